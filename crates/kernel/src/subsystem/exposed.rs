//! The metrics of a subsystem for Prometheus: names, types and units.
//!
//! Names, labels, types and units are those of node_exporter 1.5, and so are the numbers, bit for bit, so that existing
//! dashboards and alerts keep working. `view::prometheus` writes the text.

use kymo_base::context::Context;
use kymo_base::field::{Field, Unit};
use kymo_base::reading::{MISSING, Row};

/// The metrics of a subsystem.
pub struct Exposed {
    /// Metrics of the whole machine; their fields are those of `Subsystem::globals`.
    pub machine: &'static [Family],
    /// Metrics of instances.
    pub each: &'static [Each],
}

impl Exposed {
    /// No metrics.
    pub const NONE: Exposed = Exposed::machine(&[]);

    /// Metrics of the whole machine only.
    pub(crate) const fn machine(machine: &'static [Family]) -> Exposed {
        Exposed { machine, each: &[] }
    }

    /// Metrics of instances only.
    pub(crate) const fn each(each: &'static [Each]) -> Exposed {
        Exposed { machine: &[], each }
    }
}

/// Metrics of the instances that have the same labels.
pub struct Each {
    /// Labels that together identify an instance.
    pub labels: &'static [MetricLabel],
    /// Returns true if an instance has these metrics.
    pub shows: fn(&Row) -> bool,
    /// The metrics; their fields are those of `Subsystem::fields`.
    pub families: &'static [Family],
}

/// A label of an instance.
pub struct MetricLabel {
    /// Name of the label.
    pub name: &'static str,
    /// Appends the value.
    pub put: fn(&Row, &mut Vec<u8>),
    /// True: a sample goes without the label where the value is empty.
    pub may_lack: bool,
}

impl MetricLabel {
    /// A label with the instance's name.
    pub(crate) const fn name(name: &'static str) -> MetricLabel {
        MetricLabel {
            name,
            put: |row, out| out.extend_from_slice(&row.name),
            may_lack: false,
        }
    }

    /// A label with the instance's text number `N`.
    pub(crate) const fn text<const N: usize>(name: &'static str) -> MetricLabel {
        MetricLabel {
            name,
            put: |row, out| out.extend_from_slice(text_of(row, N)),
            may_lack: false,
        }
    }

    /// The label, left out where its value is empty.
    pub(crate) const fn if_known(mut self) -> MetricLabel {
        self.may_lack = true;
        self
    }
}

/// A text of a row; empty if the row lacks it.
pub(crate) fn text_of(row: &Row, label: usize) -> &[u8] {
    row.labels.get(label).map_or(&[], |text| text)
}

/// A metric: one name, help and type, and one or more samples.
pub struct Family {
    /// Name, as in node_exporter.
    pub name: &'static str,
    /// Type for Prometheus.
    pub kind: Kind,
    /// Help; empty for the help of the field.
    pub help: &'static str,
    /// Index of the field, or of the first field.
    pub field: usize,
    /// Fields of the metric and the labels of their samples.
    pub parts: Parts,
    /// Unit of the samples.
    pub scale: Scale,
}

/// The fields of a metric, and the label that distinguishes their samples.
pub enum Parts {
    /// One field.
    One,
    /// Consecutive fields, with one value of the label for each.
    Named {
        /// Name of the label.
        label: &'static str,
        /// Values of the label, in the order of the fields.
        values: &'static [&'static str],
    },
    /// As `Named`, for fields at a constant distance.
    Apart {
        /// Name of the label.
        label: &'static str,
        /// Values of the label, in the order of the fields.
        values: &'static [&'static str],
        /// Distance between two fields.
        by: usize,
    },
    /// Consecutive fields whose label values depend on the instance.
    ByInstance {
        /// Name of the label.
        label: &'static str,
        /// Number of fields.
        count: usize,
        /// Value of the label for a field; `None` if the instance lacks it.
        value: fn(&Row, usize) -> Option<&'static str>,
    },
    /// The counters of each CPU, which follow a subsystem's fields; the label is the number of the CPU.
    Cpus {
        /// Name of the label.
        label: &'static str,
    },
}

impl Parts {
    /// The name of the label that distinguishes the samples; empty for a single sample.
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

/// Type of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A value that only grows, except at a restart.
    Counter,
    /// A value that may grow and fall.
    Gauge,
    /// The type that node_exporter gives as untyped.
    Untyped,
}

impl Kind {
    /// The type's word in the text format.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Untyped => "untyped",
        }
    }
}

/// Unit of an exposed number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scale {
    /// Prometheus' base unit: seconds, bytes.
    Base,
    /// The kernel's unit.
    Raw,
    /// The number multiplied by this.
    Times(f64),
    /// The number divided by this, which may differ from a multiplication in the last bit.
    Over(f64),
    /// 1 and the number divided by this.
    OnePlus(f64),
    /// The number multiplied by another field of the same instance.
    TimesField(usize),
    /// Always 1: the labels of the sample describe the instance.
    One,
    /// The moment of the sample, in seconds since 1970.
    Moment,
}

impl Scale {
    /// Converts a recorded number to the exposed one. The computation is node_exporter's (`* 0.001`, not `/ 1000`), so
    /// that the last bit is the same. `values` are all numbers of the instance.
    pub fn of(self, field: &Field, raw: u64, values: &[u64], context: &Context) -> f64 {
        let number = field.value(raw);
        match (self, field.unit) {
            (Scale::Times(factor), _) => number * factor,
            (Scale::Over(divisor), _) => number / divisor,
            (Scale::OnePlus(divisor), _) => 1.0 + number / divisor,
            (Scale::TimesField(other), _) => match values.get(other) {
                Some(&factor) if factor != MISSING => number * factor as f64,
                _ => f64::NAN,
            },
            (Scale::One, _) => 1.0,
            // The reading does not have it.
            (Scale::Moment, _) => f64::NAN,
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
    /// True if the metric has values of fields.
    pub fn has_fields(&self) -> bool {
        !matches!(self.scale, Scale::One | Scale::Moment)
    }

    /// Indices of the fields; none for counters of each CPU.
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

    /// The help text; `fields` are the subsystem's.
    pub fn meaning(&self, fields: &'static [Field]) -> &'static str {
        match fields.get(self.field) {
            Some(field) if self.help.is_empty() => field.help,
            _ => self.help,
        }
    }

    /// Returns the metric in the kernel's unit.
    pub(crate) const fn raw(self) -> Family {
        self.scaled(Scale::Raw)
    }

    /// Returns the metric in another unit.
    pub(crate) const fn scaled(mut self, scale: Scale) -> Family {
        self.scale = scale;
        self
    }

    /// Returns the metric with its own help.
    pub(crate) const fn meant(mut self, help: &'static str) -> Family {
        self.help = help;
        self
    }

    /// Returns the metric with a sample for each of several fields.
    pub(crate) const fn of_each(mut self, parts: Parts) -> Family {
        self.parts = parts;
        self
    }
}

/// A counter with one field.
pub(crate) const fn counter(name: &'static str, field: usize) -> Family {
    family(name, Kind::Counter, field)
}

/// A gauge with one field.
pub(crate) const fn gauge(name: &'static str, field: usize) -> Family {
    family(name, Kind::Gauge, field)
}

/// A metric with one field in the kernel's unit, which node_exporter gives as untyped.
pub(crate) const fn untyped(name: &'static str, field: usize) -> Family {
    family(name, Kind::Untyped, field).raw()
}

/// A counter with consecutive fields, distinguished by a label.
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

/// The moment of each sample, as a gauge.
pub(crate) const fn moment(name: &'static str, help: &'static str) -> Family {
    let family = family(name, Kind::Gauge, 0);
    family.scaled(Scale::Moment).meant(help)
}

/// A metric that is always 1 and describes an instance by its labels.
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

    /// Every family has fields, a suitable type and a unique name, and no two families of a unit share a field.
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

    /// Names and labels of all tables are valid in PromQL, and no label is one that names the machine.
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

    /// The list of the dashboard's metrics is true: a name that is added here leaves the list of those that are missing.
    #[test]
    fn metrics_of_the_dashboard() {
        let list = include_str!("dashboard_names.txt");
        let has = |name: &str| {
            ALL.iter().any(|subsystem| {
                let Exposed { machine, each } = &subsystem.exposed;
                let each = each.iter().flat_map(|each| each.families);
                each.chain(*machine).any(|family| family.name == name)
            })
        };
        let lines = list.lines().filter(|line| !line.starts_with('#'));
        let (mut there, mut missing) = (0, 0);
        for line in lines {
            let (name, is_missing) = match line.split_once(" - ") {
                Some((name, _)) => (name, true),
                None => (line, false),
            };
            assert_eq!(has(name), !is_missing, "{name}");
            match is_missing {
                true => missing += 1,
                false => there += 1,
            }
        }
        assert_eq!((there, missing), (209, 19));
    }

    /// Counters that are read at scans of processes alone, beside numbers of each sample: their fields are gauges, so
    /// that samples between two scans repeat them.
    const KEPT_COUNTERS: [&str; 6] = [
        "node_network_receive_nohandler_total",
        "node_timex_pps_calibration_total",
        "node_timex_pps_error_total",
        "node_timex_pps_jitter_total",
        "node_timex_pps_stability_exceeded_total",
        "process_cpu_seconds_total",
    ];

    fn one_field_one_family(families: &[Family], fields: &[Field]) {
        let mut used: Vec<(usize, Scale)> = Vec::new();
        for family in families {
            if family.kind == Kind::Counter {
                assert!(family.name.ends_with("_total"), "{}", family.name);
            }
            if !family.has_fields() {
                continue;
            }
            for at in family.fields() {
                let field = fields
                    .get(at)
                    .unwrap_or_else(|| panic!("{}: no field {at}", family.name));
                let is_kept = KEPT_COUNTERS.contains(&family.name);
                assert_eq!(
                    family.kind == Kind::Gauge || is_kept,
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
            // Value given by node_exporter 1.5.
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
        // Value given by node_exporter 1.5 for 12040 mV.
        assert_eq!(of(Scale::Times(0.001)), 12.040_000_000_000_001);
        assert_eq!(of(Scale::Over(1000.0)), 12.04);
        assert_eq!(of(Scale::TimesField(1)), 12_040.0 * 4096.0);
        assert!(of(Scale::TimesField(0)).is_nan() && of(Scale::TimesField(2)).is_nan());
        assert_eq!(of(Scale::One), 1.0);
    }
}
