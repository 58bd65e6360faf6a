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
    /// The largest values, by subsystem and instance.
    stood: HashMap<&'static str, HashMap<Vec<u8>, Stood>>,
}

/// An instance's key and its largest values.
type Stood = (u64, Vec<u64>);

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
        if !subsystem.exposed.machine.is_empty() {
            let machine = ExposedInstance {
                row: Cow::Owned(Row::default()),
                values: Cow::Borrowed(&reading.globals),
            };
            groups.push(MetricGroup {
                labels: &[],
                families: subsystem.exposed.machine,
                fields: subsystem.globals,
                instances: vec![machine],
            });
        }
        let last = match self.stood.is_empty() {
            true => HashMap::new(),
            false => self.stood.remove(subsystem.name).unwrap_or_default(),
        };
        let mut now = HashMap::new();
        for each in subsystem.exposed.each {
            let rows = reading.rows.iter().filter(|row| (each.shows)(row));
            let instances = rows.map(|row| ExposedInstance {
                row: Cow::Borrowed(row),
                values: raise(subsystem, row, context, &last, &mut now),
            });
            groups.push(MetricGroup {
                labels: each.labels,
                families: each.families,
                fields: subsystem.fields,
                instances: instances.collect(),
            });
        }
        if !now.is_empty() {
            self.stood.insert(subsystem.name, now);
        }
        groups
    }
}

/// The row's values, none of them below its last value.
fn raise<'a>(
    subsystem: &'static Subsystem,
    row: &'a Row,
    context: &Context,
    last: &HashMap<Vec<u8>, Stood>,
    now: &mut HashMap<Vec<u8>, Stood>,
) -> Cow<'a, [u64]> {
    let steps = |field: &Field| field.rule == Rule::CounterMayStepBack;
    if !subsystem.fields.iter().any(steps) {
        return Cow::Borrowed(&row.values);
    }
    let mut values = row.values.clone();
    let mut stands = row.values.clone();
    let last = last.get(&row.name).filter(|(key, _)| *key == row.key);
    let last = last.map_or(&[][..], |(_, stood)| stood);
    let cells = values
        .iter_mut()
        .zip(&mut stands)
        .zip(subsystem.fields.iter().zip(last));
    for ((value, stands), (field, &stood)) in cells.filter(|(_, (field, _))| steps(field)) {
        *value = raised(field, *value, stood, context);
        // A counter that was not read now keeps its largest value.
        *stands = if *value == MISSING { stood } else { *value };
    }
    now.insert(row.name.clone(), (row.key, stands));
    Cow::Owned(values)
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
