//! All metrics of all publishers by their label sets: what lives and what has ended together, and as values of series.

use std::collections::HashMap;

use kymo_base::label_set::LabelSet;
use kymo_shm::{Metric, MetricKind};
use kymo_store::Store;
use kymo_wire::keeper::{LabelledSeries, LabelledValues};

use super::budgets::Budgets;
use super::labels::{self, Whose};
use super::quantile::{self, Gain};
use super::retired::{Retired, Total};
use crate::questions::write;

/// Seconds of a primary data point, and after which nothing is known.
const STEP_S: u32 = 10;
const HEARTBEAT_S: u32 = 60;
/// The only column of such a series.
const COLUMN: &[u8] = b"value";

/// The number of an entry of the table.
pub(super) type Id = usize;

/// A metric, by its label set.
struct Summed {
    labels: LabelSet,
    uid: u32,
    kind: MetricKind,
    scale: f64,
    /// Publishers that have it.
    publishers: usize,
    /// Of them, by the last scan; a gauge's is in [`Summed::gauge`].
    cells: Vec<u64>,
    gauge: f64,
    /// All of it when it was written last.
    before: Option<Vec<u64>>,
    series: Vec<LabelSet>,
    is_defined: bool,
}

/// All of them.
#[derive(Default)]
pub(super) struct Table {
    entries: Vec<Option<Summed>>,
    by_labels: HashMap<LabelSet, Id>,
    free: Vec<Id>,
}

impl Table {
    /// The entry of a publisher's metric; `None`: it has no name, another kind than others of that name, or its owner has
    /// as many as he may.
    pub(super) fn join(
        &mut self,
        whose: Whose,
        uid: u32,
        metric: &Metric,
        budgets: &mut Budgets,
        retired: &Retired,
    ) -> Option<Id> {
        let description = &metric.description;
        let labels = labels::of_metric(whose, description)?;
        if let Some(&id) = self.by_labels.get(&labels) {
            let entry = self.entries.get_mut(id)?.as_mut()?;
            let is_like =
                entry.kind == metric.kind && entry.scale.to_bits() == description.scale.to_bits();
            entry.publishers += usize::from(is_like);
            return is_like.then_some(id);
        }
        let series = labels::series(whose, description, metric.kind)?;
        let is_kept = retired.total(&labels).is_some();
        if !is_kept && !budgets.take_set(uid, metric.kind.cells(), false) {
            return None;
        }
        let entry = Summed {
            labels: labels.clone(),
            uid,
            kind: metric.kind,
            scale: description.scale,
            publishers: 1,
            cells: vec![0; metric.kind.cells()],
            gauge: 0.0,
            before: None,
            series,
            is_defined: false,
        };
        let id = self.free.pop().unwrap_or(self.entries.len());
        match self.entries.get_mut(id) {
            Some(place) => *place = Some(entry),
            None => self.entries.push(Some(entry)),
        }
        self.by_labels.insert(labels, id);
        Some(id)
    }

    /// A publisher has it no more.
    pub(super) fn leave(&mut self, id: Id) {
        if let Some(Some(entry)) = self.entries.get_mut(id) {
            entry.publishers -= 1;
        }
    }

    /// Forgets what no publisher has, once its last value was written.
    pub(super) fn sweep(&mut self, budgets: &mut Budgets, retired: &Retired) {
        for (id, place) in self.entries.iter_mut().enumerate() {
            let Some(entry) = place.take_if(|entry| entry.publishers == 0) else {
                continue;
            };
            if retired.total(&entry.labels).is_none() {
                budgets.give_set(entry.uid, entry.kind.cells());
            }
            self.by_labels.remove(&entry.labels);
            self.free.push(id);
        }
    }

    /// A scan begins.
    pub(super) fn begin(&mut self) {
        for entry in self.entries.iter_mut().flatten() {
            entry.cells.fill(0);
            entry.gauge = 0.0;
        }
    }

    /// Adds what a publisher has.
    pub(super) fn add(&mut self, id: Id, cells: &[u64], gauge: f64) {
        let Some(Some(entry)) = self.entries.get_mut(id) else {
            return;
        };
        for (sum, cell) in entry.cells.iter_mut().zip(cells) {
            *sum = sum.wrapping_add(*cell);
        }
        entry.gauge += gauge;
    }

    /// What a publisher leaves of it; `None`: a gauge has no total.
    pub(super) fn legacy(&self, id: Id, cells: &[u64]) -> Option<(LabelSet, Total)> {
        let entry = self.entries.get(id)?.as_ref()?;
        let total = Total {
            uid: entry.uid,
            kind: entry.kind,
            scale: entry.scale,
            cells: cells.to_vec(),
        };
        let is_total = !matches!(entry.kind, MetricKind::Gauge(_));
        is_total.then(|| (entry.labels.clone(), total))
    }

    /// Writes a value of each series; why not, if it failed.
    pub(super) fn write(
        &mut self,
        store: &Store,
        retired: &Retired,
        real_ns: i64,
    ) -> Result<(), String> {
        self.define(store, real_ns / 1_000_000_000 - i64::from(STEP_S))?;
        let mut values = Vec::new();
        for entry in self.entries.iter_mut().flatten() {
            let of_entry = entry.values(retired);
            let pairs = entry.series.iter().zip(of_entry);
            values.extend(
                pairs
                    .filter(|(_, value)| value.is_finite())
                    .map(|(labels, value)| LabelledValues {
                        labels: labels.clone(),
                        stamps_ms: vec![real_ns / 1_000_000],
                        cells: vec![value],
                    }),
            );
        }
        let refused = write::write(store, &values);
        let first = values.iter().zip(refused).find_map(|(values, outcome)| {
            let why = outcome.err()?;
            Some((values.labels.clone(), why))
        });
        let Some((labels, why)) = first else {
            return Ok(());
        };
        // Somebody has removed them: they begin again.
        for entry in self.entries.iter_mut().flatten() {
            entry.is_defined = false;
        }
        Err(format!("cannot write {labels:?}: {why}"))
    }

    fn define(&mut self, store: &Store, start: i64) -> Result<(), String> {
        let new = self.entries.iter_mut().flatten();
        let new: Vec<&mut Summed> = new.filter(|entry| !entry.is_defined).collect();
        let definitions = new.iter().flat_map(|entry| entry.definitions(start));
        let definitions: Vec<LabelledSeries> = definitions.collect();
        if definitions.is_empty() {
            return Ok(());
        }
        let outcomes = write::define(store, &definitions);
        new.into_iter().for_each(|entry| entry.is_defined = true);
        let failed = definitions.iter().zip(outcomes);
        match failed
            .filter_map(|(series, outcome)| Some((series, outcome.err()?)))
            .next()
        {
            Some((series, why)) => Err(format!("cannot define {:?}: {why}", series.labels)),
            None => Ok(()),
        }
    }
}

impl Summed {
    fn definitions(&self, start: i64) -> impl Iterator<Item = LabelledSeries> + '_ {
        self.series.iter().enumerate().map(move |(number, labels)| {
            let is_gauge = matches!(self.kind, MetricKind::Gauge(_)) || number > 0;
            // A counter is a double here: most have another scale than 1.
            let kind: &[u8] = if is_gauge { b"GAUGE" } else { b"DDERIVE" };
            LabelledSeries {
                labels: labels.clone(),
                step: STEP_S,
                heartbeat: HEARTBEAT_S,
                start,
                columns: vec![(COLUMN.to_vec(), kind.to_vec())],
            }
        })
    }

    /// What lives and what has ended, together.
    fn all(&self, retired: &Retired) -> Vec<u64> {
        let mut cells = self.cells.clone();
        if let Some(total) = retired.total(&self.labels)
            && total.kind == self.kind
        {
            for (cell, more) in cells.iter_mut().zip(&total.cells) {
                *cell = cell.wrapping_add(*more);
            }
        }
        cells
    }

    /// One for each series; NaN: there is none.
    fn values(&mut self, retired: &Retired) -> Vec<f64> {
        let all = self.all(retired);
        match self.kind {
            MetricKind::Counter => {
                vec![all.first().map_or(f64::NAN, |&cell| cell as f64) * self.scale]
            }
            // Of programs that have ended there is none.
            MetricKind::Gauge(_) if self.publishers == 0 => vec![f64::NAN],
            MetricKind::Gauge(_) => vec![self.gauge * self.scale],
            MetricKind::Histogram(buckets) => {
                let zero = vec![0; all.len()];
                let count = quantile::gain(buckets, &zero, &all).count;
                let quantiles = match self.before.replace(all) {
                    Some(before) => {
                        let now = self.before.as_deref().unwrap_or_default();
                        let Gain { quantiles, .. } = quantile::gain(buckets, &before, now);
                        quantiles.map(|value| value * self.scale)
                    }
                    None => [f64::NAN; 3],
                };
                std::iter::once(count as f64).chain(quantiles).collect()
            }
        }
    }
}
