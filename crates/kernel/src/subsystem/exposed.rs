//! What of a subsystem is exposed to Prometheus: under which name, of which type, in which unit.
//!
//! Names, labels, types and units are those of node_exporter 1.5, and so are the numbers, bit for bit:
//! whoever has dashboards and alerts for it keeps them. The text is written by `view::prometheus`.

use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};

/// What a subsystem exposes.
pub struct Exposed {
    /// Of the whole machine; their fields are those of `Subsystem::globals`.
    pub machine: &'static [Family],
    /// Of each instance; their fields are those of `Subsystem::fields`.
    pub each: &'static [Family],
    /// The label that holds an instance's name.
    pub label: &'static str,
    /// Whether an instance of this name is exposed.
    pub shows: fn(&[u8]) -> bool,
}

impl Exposed {
    /// Nothing.
    pub const NONE: Exposed = Exposed::machine(&[]);

    /// Numbers of the whole machine only.
    pub(crate) const fn machine(machine: &'static [Family]) -> Exposed {
        Exposed {
            machine,
            each: &[],
            label: "",
            shows: |_| true,
        }
    }
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
    /// Where it has a sample for each of several fields: what tells them apart.
    pub parts: Option<Parts>,
    /// In which unit it is given.
    pub scale: Scale,
}

/// A label that takes one value after the other for consecutive fields.
pub struct Parts {
    /// The label's name.
    pub label: &'static str,
    /// Its values, in the order of the fields.
    pub values: &'static [&'static str],
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// In Prometheus' base unit: seconds, bytes.
    Base,
    /// As the kernel gives it.
    Raw,
}

impl Scale {
    /// A recorded number as it is exposed. It is computed as node_exporter does (`* 0.001`, not `/ 1000`),
    /// so that the last bit is the same.
    pub fn of(self, field: &Field, raw: u64, context: &Context) -> f64 {
        let number = match field.rule {
            Rule::Gauge => raw as i64 as f64,
            _ => raw as f64,
        };
        match (self, field.unit) {
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
    /// The indices of its fields, and the value of the label that tells them apart (empty where there is one).
    pub fn fields(&self) -> impl Iterator<Item = (usize, &'static str)> {
        let values = self.parts.as_ref().map_or(&[""][..], |parts| parts.values);
        (self.field..).zip(values.iter().copied())
    }

    /// What it means; `fields` are the subsystem's.
    pub fn meaning(&self, fields: &'static [Field]) -> &'static str {
        match fields.get(self.field) {
            Some(field) if self.help.is_empty() => field.help,
            _ => self.help,
        }
    }

    /// The same as the kernel gives it.
    pub(crate) const fn raw(mut self) -> Family {
        self.scale = Scale::Raw;
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
        parts: Some(Parts { label, values }),
        scale: Scale::Base,
    }
}

const fn family(name: &'static str, kind: Kind, field: usize) -> Family {
    Family {
        name,
        kind,
        help: "",
        field,
        parts: None,
        scale: Scale::Base,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ALL;
    use super::*;

    /// Every family has fields, a type that suits them, a name of its own, and a field is in one family only of each unit.
    #[test]
    fn tables_agree() {
        let mut names = Vec::new();
        for subsystem in ALL {
            let Exposed { machine, each, .. } = &subsystem.exposed;
            for (families, fields) in [(*machine, subsystem.globals), (*each, subsystem.fields)] {
                let mut used = Vec::new();
                for family in families {
                    for (at, _) in family.fields() {
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
                        used.push((at, family.scale));
                    }
                    names.push(family.name);
                }
                let count = used.len();
                used.sort_by_key(|&(at, scale)| (at, scale == Scale::Raw));
                used.dedup();
                assert_eq!(used.len(), count, "{}: a field twice", subsystem.name);
            }
            assert_eq!(each.is_empty(), subsystem.exposed.label.is_empty());
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name twice");
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
            assert_eq!(Scale::Base.of(&field, raw, &context), base, "{unit:?}");
            assert_eq!(Scale::Raw.of(&field, raw, &context), raw as f64);
        }
        let gauge = field(Rule::Gauge, Unit::Count);
        assert_eq!(Scale::Base.of(&gauge, -2i64 as u64, &context), -2.0);
    }
}
