//! The metrics of a reading: every sample that the subsystems' tables expose, with its instance.
//!
//! `/metrics`, the recording as a reader of series, and this machine's history
//! all use these functions, so that a metric has the same value in each.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::reading::{MISSING, Reading, Row};

use crate::subsystem::exposed::{Family, MetricLabel, Parts, Scale};
use crate::subsystem::{SPREAD_RULE, Subsystem};

/// Metrics of a subsystem that have the same labels, and the instances that have them.
pub struct MetricGroup<'a> {
    /// Labels that tell the instances apart; none for numbers of the whole machine.
    pub labels: &'static [MetricLabel],
    /// The metrics.
    pub families: &'static [Family],
    /// The fields that the families index.
    pub fields: &'static [Field],
    /// The instances, in the reading's order.
    pub instances: Vec<ExposedInstance<'a>>,
}

impl<'a> MetricGroup<'a> {
    /// The metrics of the whole machine, the first group of a subsystem that has some.
    pub fn of_machine(subsystem: &'static Subsystem, reading: &'a Reading) -> Option<Self> {
        let families = subsystem.exposed.machine;
        (!families.is_empty()).then(|| MetricGroup {
            labels: &[],
            families,
            fields: subsystem.globals,
            instances: vec![ExposedInstance {
                row: Cow::Owned(Row::default()),
                values: Cow::Borrowed(&reading.globals),
            }],
        })
    }
}

/// An instance with the values that are exposed.
pub struct ExposedInstance<'a> {
    /// The row of the instance; for the whole machine, a row without a name.
    pub row: Cow<'a, Row>,
    /// The instance's values; a counter that stepped back a little keeps its last value.
    pub values: Cow<'a, [u64]>,
}

/// The label value that distinguishes the samples of a family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SamplePart {
    /// The family has one sample.
    Whole,
    /// A word of the table.
    Word(&'static str),
    /// The number of a CPU.
    Cpu(usize),
}

impl SamplePart {
    /// The label value as text; empty if the family has one sample.
    pub fn text(self) -> Cow<'static, str> {
        match self {
            SamplePart::Whole => Cow::Borrowed(""),
            SamplePart::Word(word) => Cow::Borrowed(word),
            SamplePart::Cpu(number) => Cow::Owned(number.to_string()),
        }
    }
}

/// Holds counters that the kernel may step back (idle, iowait) until they pass their last value, as node_exporter does:
/// Prometheus would take a step back of a tick for a restart, and count everything since boot again.
#[derive(Default)]
pub struct Floor {
    /// The largest values, by subsystem.
    stood: HashMap<&'static str, StoodRows>,
}

/// The largest values of a subsystem's instances.
struct StoodRows {
    /// Fields that may step back.
    fields: Vec<usize>,
    /// The instances of the last reading, in its order.
    rows: Vec<Stood>,
}

/// An instance's name and key, and the largest values of the fields that may step back.
struct Stood {
    name: Vec<u8>,
    key: u64,
    values: Vec<u64>,
}

/// A larger step back, in seconds, is a restart: the CPU was offline. node_exporter's rule.
const STEP_BACK_MAX: f64 = 3.0;

/// Field of the counters of each CPU, which have the kernel's unit.
const OF_CPU: Field = Field {
    name: "",
    rule: SPREAD_RULE,
    unit: Unit::Count,
    help: "",
};

impl Floor {
    /// Returns the metrics of a reading. The floor forgets instances that the reading does not have.
    pub fn groups<'a>(
        &mut self,
        subsystem: &'static Subsystem,
        reading: &'a Reading,
        context: &Context,
    ) -> Vec<MetricGroup<'a>> {
        let mut groups = Vec::with_capacity(1 + subsystem.exposed.each.len());
        groups.extend(MetricGroup::of_machine(subsystem, reading));
        let raised = match subsystem.exposed.each.is_empty() {
            true => Vec::new(),
            false => self.raised(subsystem, &reading.rows, context),
        };
        for each in subsystem.exposed.each {
            let rows = reading.rows.iter().enumerate();
            let instances = rows.filter(|(_, row)| (each.shows)(row));
            let instances = instances.map(|(at, row)| ExposedInstance {
                row: Cow::Borrowed(row),
                values: match raised.get(at) {
                    Some(Some(values)) => Cow::Owned(values.clone()),
                    _ => Cow::Borrowed(&row.values),
                },
            });
            groups.push(MetricGroup {
                labels: each.labels,
                families: each.families,
                fields: subsystem.fields,
                instances: instances.collect(),
            });
        }
        groups
    }

    /// The values of rows in which a counter stepped back a little, by the row's place.
    fn raised(
        &mut self,
        subsystem: &'static Subsystem,
        rows: &[Row],
        context: &Context,
    ) -> Vec<Option<Vec<u64>>> {
        let stood = self.stood.entry(subsystem.name);
        let stood = stood.or_insert_with(|| StoodRows::of(subsystem));
        if stood.fields.is_empty() {
            return Vec::new();
        }
        stood.arrange(rows);
        let StoodRows { fields, rows: of } = stood;
        let pairs = rows.iter().zip(of);
        let raised = pairs.map(|(row, stood)| {
            let mut values = None;
            for (&at, stands) in fields.iter().zip(&mut stood.values) {
                let now = row.values.get(at).copied().unwrap_or(MISSING);
                let value = raised(&subsystem.fields[at], now, *stands, context);
                if value != now {
                    values.get_or_insert_with(|| row.values.clone())[at] = value;
                }
                // A counter that was not read now keeps its largest value.
                if value != MISSING {
                    *stands = value;
                }
            }
            values
        });
        raised.collect()
    }
}

impl StoodRows {
    fn of(subsystem: &'static Subsystem) -> StoodRows {
        let fields = subsystem.fields.iter().enumerate();
        let fields = fields.filter(|(_, field)| field.rule == Rule::CounterMayStepBack);
        StoodRows {
            fields: fields.map(|(at, _)| at).collect(),
            rows: Vec::new(),
        }
    }

    /// Brings the instances into the order of `rows`. Those that `rows` lacks are forgotten; new ones have no values.
    fn arrange(&mut self, rows: &[Row]) {
        let is_of = |(stood, row): (&Stood, &Row)| stood.key == row.key && stood.name == row.name;
        if self.rows.len() == rows.len() && self.rows.iter().zip(rows).all(is_of) {
            return;
        }
        let old = std::mem::take(&mut self.rows).into_iter();
        let mut old: HashMap<(Vec<u8>, u64), Vec<u64>> = old
            .map(|stood| ((stood.name, stood.key), stood.values))
            .collect();
        let of_row = |row: &Row| {
            let (name, key) = (row.name.clone(), row.key);
            let known = old.remove(&(name.clone(), key));
            Stood {
                values: known.unwrap_or_else(|| vec![MISSING; self.fields.len()]),
                name,
                key,
            }
        };
        self.rows = rows.iter().map(of_row).collect();
    }
}

/// Returns `now`, or the last value if `now` is only a small step back from it.
fn raised(field: &Field, now: u64, stood: u64, context: &Context) -> u64 {
    if now == MISSING || stood == MISSING || now >= stood {
        return now;
    }
    match Scale::Base.of(field, stood - now, &[], context) < STEP_BACK_MAX {
        true => stood,
        false => now,
    }
}

/// Milliseconds since 1970 as seconds; 0 for times before 1970.
pub fn seconds(t_ms: i64) -> f64 {
    let t_ms = u64::try_from(t_ms).unwrap_or(0);
    Duration::from_millis(t_ms).as_secs_f64()
}

impl ExposedInstance<'_> {
    /// Calls `put` with each known sample of a family and its part. `moment_s` is when the reading was, in seconds since
    /// 1970.
    pub fn samples(
        &self,
        family: &Family,
        fields: &[Field],
        (context, moment_s): (&Context, f64),
        put: &mut dyn FnMut(SamplePart, f64),
    ) {
        match family.scale {
            Scale::One => return put(SamplePart::Whole, 1.0),
            Scale::Moment if moment_s.is_nan() || self.values.is_empty() => return,
            Scale::Moment => return put(SamplePart::Whole, moment_s),
            _ => {}
        }
        let mut sample = |at: usize, field: &Field, part: SamplePart| {
            let Some(&raw) = self.values.get(at).filter(|raw| **raw != MISSING) else {
                return;
            };
            let value = family.scale.of(field, raw, &self.values, context);
            if !value.is_nan() {
                put(part, value);
            }
        };
        let of_family = family.fields().filter_map(|at| Some((at, fields.get(at)?)));
        match family.parts {
            Parts::One => of_family.for_each(|(at, field)| sample(at, field, SamplePart::Whole)),
            Parts::Named { values: parts, .. } | Parts::Apart { values: parts, .. } => {
                for ((at, field), part) in of_family.zip(parts) {
                    sample(at, field, SamplePart::Word(part));
                }
            }
            Parts::ByInstance { value, .. } => {
                for (at, field) in of_family {
                    if let Some(part) = value(&self.row, at) {
                        sample(at, field, SamplePart::Word(part));
                    }
                }
            }
            Parts::Cpus { .. } => {
                for (cpu, at) in (family.field..self.values.len()).enumerate() {
                    sample(at, &OF_CPU, SamplePart::Cpu(cpu));
                }
            }
        }
    }
}
