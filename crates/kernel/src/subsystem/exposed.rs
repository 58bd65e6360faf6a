//! What of a subsystem is exposed to Prometheus: under which name, of which type, in which unit.
//!
//! Names, labels, types and units are those of node_exporter 1.5, and so are the numbers, bit for bit:
//! whoever has dashboards and alerts for it keeps them. The text is written by `view::prometheus`.

use kymo_base::context::Context;
use kymo_base::field::{Field, Unit};
use kymo_base::reading::{MISSING, Row};

/// What a subsystem exposes.
pub struct Exposed {
    /// Of the whole machine; their fields are those of `Subsystem::globals`.
    pub machine: &'static [Family],
    /// Of each instance.
    pub each: &'static [Each],
}

impl Exposed {
    /// Nothing.
    pub const NONE: Exposed = Exposed::machine(&[]);

    /// Numbers of the whole machine only.
    pub(crate) const fn machine(machine: &'static [Family]) -> Exposed {
        Exposed { machine, each: &[] }
    }

    /// Numbers of instances only.
    pub(crate) const fn each(each: &'static [Each]) -> Exposed {
        Exposed { machine: &[], each }
    }
}

/// What is exposed of instances that have the same labels.
pub struct Each {
    /// What tells one from the other, together.
    pub labels: &'static [MetricLabel],
    /// Whether an instance is one of them.
    pub shows: fn(&Row) -> bool,
    /// The metrics; their fields are those of `Subsystem::fields`.
    pub families: &'static [Family],
}

/// A label of an instance.
pub struct MetricLabel {
    /// Its name.
    pub name: &'static str,
    /// Appends its value.
    pub put: fn(&Row, &mut Vec<u8>),
}

impl MetricLabel {
    /// A label that holds the instance's name.
    pub(crate) const fn name(name: &'static str) -> MetricLabel {
        MetricLabel {
            name,
            put: |row, out| out.extend_from_slice(&row.name),
        }
    }

    /// A label that holds the instance's text number `N`.
    pub(crate) const fn text<const N: usize>(name: &'static str) -> MetricLabel {
        MetricLabel {
            name,
            put: |row, out| out.extend_from_slice(text_of(row, N)),
        }
    }
}

/// A text of a row; empty where it has none.
pub(crate) fn text_of(row: &Row, label: usize) -> &[u8] {
    row.labels.get(label).map_or(&[], |text| text)
}

/// A metric: a name with one help and one type, and a sample or more.
pub struct Family {
    /// node_exporter's name.
    pub name: &'static str,
    /// How Prometheus takes it.
    pub kind: Kind,
    /// What it means; empty: what its field means.
    pub help: &'static str,
    /// Index of the field, or of the first.
    pub field: usize,
    /// Whether it has a sample for each of several fields.
    pub parts: Parts,
    /// In which unit it is given.
    pub scale: Scale,
}

/// The fields of a metric, and what tells their samples apart.
pub enum Parts {
    /// One field.
    One,
    /// Consecutive fields, with a label that takes one value after the other.
    Named {
        /// The label's name.
        label: &'static str,
        /// Its values, in the order of the fields.
        values: &'static [&'static str],
    },
    /// The same of fields that stand as far apart.
    Apart {
        /// The label's name.
        label: &'static str,
        /// Its values, in the order of the fields.
        values: &'static [&'static str],
        /// From one field to the next.
        by: usize,
    },
    /// Consecutive fields that are called differently in each kind of instance.
    ByInstance {
        /// The label's name.
        label: &'static str,
        /// How many there are.
        count: usize,
        /// Its value for a field; none where the instance has no such thing.
        value: fn(&Row, usize) -> Option<&'static str>,
    },
    /// The counters of each CPU, of a subsystem that has them behind its fields; the label holds the CPU's number.
    Cpus {
        /// The label's name.
        label: &'static str,
    },
}

impl Parts {
    /// The name of the label that tells the samples apart; empty where there is one.
    pub fn label(&self) -> &'static str {
        match self {
            Parts::One => "",
            Parts::Named { label, .. }
            | Parts::Apart { label, .. }
            | Parts::ByInstance { label, .. }
            | Parts::Cpus { label } => label,
        }
    }
}

/// A metric's type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It only grows, until it begins again.
    Counter,
    /// It goes both ways.
    Gauge,
    /// node_exporter does not say.
    Untyped,
}

impl Kind {
    /// The word of the text format.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Untyped => "untyped",
        }
    }
}

/// In which unit a number is given.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scale {
    /// In Prometheus' base unit: seconds, bytes.
    Base,
    /// As the kernel gives it.
    Raw,
    /// Multiplied.
    Times(f64),
    /// Divided: that is not the same in the last bit.
    Over(f64),
    /// Multiplied by the number of another field of the same instance.
    TimesField(usize),
    /// It is not given: a 1 says that there is such an instance, and its labels what it is.
    One,
}

impl Scale {
    /// A recorded number as it is exposed. It is computed as node_exporter does (`* 0.001`, not `/ 1000`),
    /// so that the last bit is the same.
    /// `values` are all numbers of the instance.
    pub fn of(self, field: &Field, raw: u64, values: &[u64], context: &Context) -> f64 {
        let number = field.value(raw);
        match (self, field.unit) {
            (Scale::Times(factor), _) => number * factor,
            (Scale::Over(divisor), _) => number / divisor,
            (Scale::TimesField(other), _) => match values.get(other) {
                Some(&factor) if factor != MISSING => number * factor as f64,
                _ => f64::NAN,
            },
            (Scale::One, _) => 1.0,
            (Scale::Base, Unit::Ticks) => number / context.hz(),
            (Scale::Base, Unit::Sectors) => number * 512.0,
            (Scale::Base, Unit::Kilobytes) => number * 1024.0,
            (Scale::Base, Unit::Pages) => number * context.page_size(),
            (Scale::Base, Unit::Milliseconds) => number * 0.001,
            (Scale::Base, Unit::Microseconds) => number / 1000.0 / 1000.0,
            (Scale::Base, Unit::Hundredths) => number / 100.0,
            _ => number,
        }
    }
}

impl Family {
    /// Indices of its fields, where their number is not that of the CPUs.
    pub fn fields(&self) -> impl Iterator<Item = usize> + use<> {
        let (count, by) = match self.parts {
            Parts::One => (1, 1),
            Parts::Named { values, .. } => (values.len(), 1),
            Parts::Apart { values, by, .. } => (values.len(), by),
            Parts::ByInstance { count, .. } => (count, 1),
            Parts::Cpus { .. } => (0, 1),
        };
        (self.field..).step_by(by).take(count)
    }

    /// What it means; `fields` are the subsystem's.
    pub fn meaning(&self, fields: &'static [Field]) -> &'static str {
        match fields.get(self.field) {
            Some(field) if self.help.is_empty() => field.help,
            _ => self.help,
        }
    }

    /// The same as the kernel gives it.
    pub(crate) const fn raw(self) -> Family {
        self.scaled(Scale::Raw)
    }

    /// The same in another unit.
    pub(crate) const fn scaled(mut self, scale: Scale) -> Family {
        self.scale = scale;
        self
    }

    /// The same with a help of its own.
    pub(crate) const fn meant(mut self, help: &'static str) -> Family {
        self.help = help;
        self
    }

    /// The same with a sample for each of several fields from its own on.
    pub(crate) const fn of_each(mut self, parts: Parts) -> Family {
        self.parts = parts;
        self
    }
}

/// A counter of one field.
pub(crate) const fn counter(name: &'static str, field: usize) -> Family {
    family(name, Kind::Counter, field)
}

/// A gauge of one field.
pub(crate) const fn gauge(name: &'static str, field: usize) -> Family {
    family(name, Kind::Gauge, field)
}

/// A number of one field as the kernel gives it, of which node_exporter says no more.
pub(crate) const fn untyped(name: &'static str, field: usize) -> Family {
    family(name, Kind::Untyped, field).raw()
}

/// A counter of consecutive fields, told apart by a label.
pub(crate) const fn counters(
    name: &'static str,
    help: &'static str,
    first: usize,
    label: &'static str,
    values: &'static [&'static str],
) -> Family {
    Family {
        name,
        kind: Kind::Counter,
        help,
        field: first,
        parts: Parts::Named { label, values },
        scale: Scale::Base,
    }
}

/// A metric that is always 1, and says by its labels what an instance is.
pub(crate) const fn known(name: &'static str, help: &'static str) -> Family {
    family(name, Kind::Gauge, 0).scaled(Scale::One).meant(help)
}

const fn family(name: &'static str, kind: Kind, field: usize) -> Family {
    Family {
        name,
        kind,
        help: "",
        field,
        parts: Parts::One,
        scale: Scale::Base,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ALL;
    use super::*;
    use kymo_base::field::Rule;

    #[test]
    fn kinds_are_those_of_the_text_format() {
        let kinds = [Kind::Counter, Kind::Gauge, Kind::Untyped];
        assert_eq!(kinds.map(Kind::word), ["counter", "gauge", "untyped"]);
    }

    /// Every family has fields, a type that suits them, a name of its own, and a field is in one family only of each unit.
    #[test]
    fn tables_agree() {
        let mut names = Vec::new();
        for subsystem in ALL {
            let Exposed { machine, each } = &subsystem.exposed;
            let of_each = each.iter().map(|each| (each.families, subsystem.fields));
            for (families, fields) in of_each.chain([(*machine, subsystem.globals)]) {
                one_field_one_family(families, fields);
                names.extend(families.iter().map(|family| family.name));
            }
            for each in *each {
                assert!(!each.labels.is_empty(), "{}", subsystem.name);
            }
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name twice");
    }

    /// Names and labels of all tables are series that PromQL can ask for, and none is who sends them.
    #[test]
    fn tables_name_series() {
        for subsystem in ALL {
            let Exposed { machine, each } = &subsystem.exposed;
            let of_each = each.iter().flat_map(|each| {
                let labels: Vec<&str> = each.labels.iter().map(|label| label.name).collect();
                each.families
                    .iter()
                    .map(move |family| (family, labels.clone()))
            });
            for (family, mut labels) in of_each.chain(machine.iter().map(|one| (one, vec![]))) {
                labels.extend(Some(family.parts.label()).filter(|label| !label.is_empty()));
                let with_values = labels.iter().map(|label| (*label, &b"x"[..]));
                let set = kymo_series::names::machine(b"host", family.name, with_values);
                let set = set.unwrap_or_else(|error| panic!("{}: {error}", family.name));
                assert!(
                    kymo_series::names::is_metric(family.name),
                    "{}",
                    family.name
                );
                for label in labels {
                    let value = kymo_base::label_set::value(set.text(), label);
                    assert_eq!(&*value, b"x", "{label} of {}", family.name);
                }
            }
        }
    }

    fn one_field_one_family(families: &[Family], fields: &[Field]) {
        let mut used: Vec<(usize, Scale)> = Vec::new();
        for family in families {
            if family.kind == Kind::Counter {
                assert!(family.name.ends_with("_total"), "{}", family.name);
            }
            if family.scale == Scale::One {
                continue;
            }
            for at in family.fields() {
                let field = fields
                    .get(at)
                    .unwrap_or_else(|| panic!("{}: no field {at}", family.name));
                assert_eq!(
                    family.kind == Kind::Gauge,
                    field.rule == Rule::Gauge && family.kind != Kind::Untyped,
                    "{} of {}",
                    family.name,
                    field.name
                );
                assert!(!used.contains(&(at, family.scale)), "{} twice", field.name);
                used.push((at, family.scale));
            }
        }
    }

    #[test]
    fn units() {
        let context = Context::default();
        let field = |rule, unit| Field {
            name: "",
            rule,
            unit,
            help: "",
        };
        for (unit, raw, base) in [
            (Unit::Ticks, 677_212, 6772.12),
            (Unit::Sectors, 3, 1536.0),
            (Unit::Kilobytes, 3, 3072.0),
            // As node_exporter 1.5 gives it.
            (Unit::Milliseconds, 120_713, 120.713_000_000_000_01),
            (Unit::Microseconds, 1_215_938_110, 1215.93811),
            (Unit::Hundredths, 55, 0.55),
            (Unit::Count, 7, 7.0),
            (Unit::Pages, 7, 28_672.0),
        ] {
            let field = field(Rule::Counter64, unit);
            assert_eq!(Scale::Base.of(&field, raw, &[], &context), base, "{unit:?}");
            assert_eq!(Scale::Raw.of(&field, raw, &[], &context), raw as f64);
        }
        let gauge = field(Rule::Gauge, Unit::Count);
        assert_eq!(Scale::Base.of(&gauge, -2i64 as u64, &[], &context), -2.0);
        let of = |scale: Scale| scale.of(&gauge, 12_040, &[MISSING, 4096], &context);
        // As node_exporter 1.5 gives 12040 mV.
        assert_eq!(of(Scale::Times(0.001)), 12.040_000_000_000_001);
        assert_eq!(of(Scale::Over(1000.0)), 12.04);
        assert_eq!(of(Scale::TimesField(1)), 12_040.0 * 4096.0);
        assert!(of(Scale::TimesField(0)).is_nan() && of(Scale::TimesField(2)).is_nan());
        assert_eq!(of(Scale::One), 1.0);
    }
}
