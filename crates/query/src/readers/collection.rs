//! The samples of chosen series of a recording.

use std::collections::{BTreeMap, HashMap};

use kymo_base::context::Context;
use kymo_kernel::exposition::{MetricGroup, SamplePart, seconds};
use kymo_kernel::subsystem;
use kymo_series::{Budget, ReadError, Sample, SeriesId};

use super::discovery::{MetricOrigin, SampleOrigin};
use super::pass::{Pass, PassSink, WantedMetrics};
use crate::sheet::{Line, Pick};

/// Collects samples, a column a series.
pub(super) struct Collection<'a> {
    budget: &'a mut Budget,
    columns: Vec<(SeriesId, Vec<Sample>)>,
    /// By the indices of the subsystem and of the group among the subsystem's.
    metrics: Vec<((usize, usize), Instances)>,
    fields: HashMap<String, usize>,
    error: Option<ReadError>,
}

/// By the instance's name, the families that are collected.
type Instances = HashMap<Vec<u8>, Vec<FamilyColumns>>;

/// Columns of the samples of a family.
struct FamilyColumns {
    family: usize,
    parts: Vec<(SamplePart, usize)>,
}

impl<'a> Collection<'a> {
    /// Collects no series yet.
    pub(super) fn new(budget: &'a mut Budget) -> Collection<'a> {
        Collection {
            budget,
            columns: Vec::new(),
            metrics: Vec::new(),
            fields: HashMap::new(),
            error: None,
        }
    }

    /// Collects the samples of a series, too.
    pub(super) fn add(&mut self, id: SeriesId, origin: &SampleOrigin) {
        let column = self.columns.len();
        match origin {
            SampleOrigin::Metric(metric) => self.add_metric(metric, column),
            SampleOrigin::Field(id) => {
                self.fields.insert(id.clone(), column);
            }
        }
        self.columns.push((id, Vec::new()));
    }

    fn add_metric(&mut self, metric: &MetricOrigin, column: usize) {
        let group = (metric.subsystem, metric.group);
        let place = self.metrics.iter().position(|(known, _)| *known == group);
        let place = place.unwrap_or_else(|| {
            self.metrics.push((group, Instances::new()));
            self.metrics.len() - 1
        });
        let instances = &mut self.metrics[place].1;
        let families = instances.entry(metric.instance.clone()).or_default();
        let part = (metric.part, column);
        match families.iter_mut().find(|of| of.family == metric.family) {
            Some(of) => of.parts.push(part),
            None => families.push(FamilyColumns {
                family: metric.family,
                parts: vec![part],
            }),
        }
    }

    /// The pass that gives the samples.
    pub(super) fn pass(&self) -> Pass {
        let mut wanted: BTreeMap<usize, WantedMetrics> = BTreeMap::new();
        for ((index, group), instances) in &self.metrics {
            let metrics = wanted.entry(*index).or_insert_with(|| WantedMetrics {
                subsystem: *index,
                machine: Vec::new(),
                instances: false,
            });
            let families = instances.values().flatten().map(|of| of.family);
            match is_of_machine(*index, *group) {
                true => metrics.machine.extend(families),
                false => metrics.instances = true,
            }
        }
        let picks = self.fields.keys().map(|id| Pick::parse(id));
        Pass::new(wanted.into_values(), picks.filter_map(Result::ok).collect())
    }

    /// The samples of each series.
    pub(super) fn end(self) -> Result<Vec<(SeriesId, Vec<Sample>)>, ReadError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.columns),
        }
    }
}

/// Reports whether a group has the metrics of the whole machine: it is the first one of a subsystem that has some.
fn is_of_machine(index: usize, group: usize) -> bool {
    let subsystem = subsystem::ALL.get(index);
    group == 0 && subsystem.is_some_and(|subsystem| !subsystem.exposed.machine.is_empty())
}

/// Adds a sample to a column. A clock that was set back makes no second sample of a time, and none before the last one.
fn push(column: &mut Vec<Sample>, sample: Sample, budget: &mut Budget) -> Result<(), ReadError> {
    if column.last().is_some_and(|last| last.t_ms >= sample.t_ms) {
        return Ok(());
    }
    budget.take_samples(1)?;
    column.push(sample);
    Ok(())
}

impl PassSink for Collection<'_> {
    fn metrics(
        &mut self,
        t_ms: i64,
        subsystem: usize,
        groups: &[MetricGroup],
        context: &Context,
    ) -> bool {
        let Collection {
            budget,
            columns,
            metrics,
            error,
            ..
        } = self;
        for (number, group) in groups.iter().enumerate() {
            let mut known = metrics.iter();
            let Some((_, instances)) = known.find(|(known, _)| *known == (subsystem, number))
            else {
                continue;
            };
            for instance in &group.instances {
                let families = instances.get(&instance.row.name).into_iter().flatten();
                for of in families {
                    let Some(family) = group.families.get(of.family) else {
                        continue;
                    };
                    let at = (context, seconds(t_ms));
                    instance.samples(family, group.fields, at, &mut |part, v| {
                        let column = of.parts.iter().find(|(known, _)| *known == part);
                        if let Some(&(_, column)) = column {
                            let sample = Sample { t_ms, v };
                            if let Err(why) = push(&mut columns[column].1, sample, budget) {
                                *error = Some(why);
                            }
                        }
                    });
                }
            }
        }
        self.error.is_none()
    }

    fn field(&mut self, t_ms: i64, (_, line): (usize, &Line), v: f64, _context: &Context) -> bool {
        if let Some(&column) = self.fields.get(&line.id) {
            let sample = Sample { t_ms, v };
            self.error = push(&mut self.columns[column].1, sample, self.budget).err();
        }
        self.error.is_none()
    }
}
