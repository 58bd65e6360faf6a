//! All metrics of all publishers by label set. A series has the values of living and ended programs together.

use std::collections::{HashMap, HashSet};

use kymo_base::label_set::{self, Labels};
use kymo_shm::{Metric, MetricKind};
use kymo_store::{SeriesName, Store};
use kymo_wire::keeper::{LabelledSeries, LabelledValues};

use super::budgets::Budgets;
use super::labels::{self, MetricOwner};
use super::quantile::{self, Spread};
use super::retired::{CellForm, Doubt, Retired, Total, add_cells};
use crate::labelled_series;
use crate::name_space::Input;

/// Step and heartbeat of the series in seconds. Without a value for a heartbeat, a series is unknown.
const STEP_S: u32 = 10;
const HEARTBEAT_S: u32 = 60;
/// The only column of these series.
const COLUMN: &[u8] = b"value";

/// Forms that a metric may have at once: versions of a program with other buckets, scales or types of gauges.
const FORMS_MAX: usize = 16;

/// A metric in one of its forms: index of the entry in the table, and index of the form in the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id {
    entry: usize,
    form: usize,
}

/// A metric, by its label set.
struct Summed {
    labels: Labels,
    uid: u32,
    /// Forms that publishers have; `None`: a free place.
    forms: Vec<Option<Formed>>,
    series: Vec<Labels>,
    is_defined: bool,
}

/// Values of one form of a metric.
struct Formed {
    form: CellForm,
    /// Number of publishers with this form.
    publishers: usize,
    /// Sum of their cells at the last scan. A gauge's sum is in [`Formed::gauge`].
    cells: Vec<u64>,
    gauge: f64,
    /// Cells at the last write, with those of ended programs.
    before: Option<Vec<u64>>,
}

/// All metrics.
#[derive(Default)]
pub(super) struct Table {
    entries: Vec<Option<Summed>>,
    by_labels: HashMap<Labels, usize>,
    free: Vec<usize>,
    /// Series that the store has or is about to get, with their owners. They count as long as they exist.
    stored: HashMap<Labels, u32>,
}

impl Table {
    /// Counts the series of programs in the store. A user may have more of them than the limit.
    pub(super) fn learn(
        &mut self,
        store: &Store,
        owner: impl Fn(&[u8]) -> Option<u32>,
        budgets: &mut Budgets,
    ) {
        let mut from = Some(0);
        while let Some(first) = from {
            let known = store.known(first);
            for series in known
                .series
                .iter()
                .filter(|series| labels::is_ours(&series.name))
            {
                let owner = owner(&label_set::value(&series.name, "user"));
                if let (Some(uid), Ok(labels)) = (owner, Labels::parse(&series.name))
                    && self.stored.insert(labels, uid).is_none()
                {
                    budgets.add_series(uid, 1, 0);
                }
            }
            from = known.next();
        }
    }

    /// Gives back the budget of a user's removed series, and forgets their totals. True if there were any.
    pub(super) fn forget_removed(
        &mut self,
        store: &Store,
        uid: u32,
        budgets: &mut Budgets,
        retired: &mut Retired,
    ) -> bool {
        // Series of living programs begin again with their next value.
        let live = self
            .entries
            .iter()
            .flatten()
            .flat_map(|entry| &entry.series);
        let live: HashSet<&Labels> = live.collect();
        let silent = self.stored.iter();
        let silent = silent.filter(|(labels, owner)| **owner == uid && !live.contains(labels));
        let silent: Vec<Labels> = silent.map(|(labels, _)| labels.clone()).collect();
        let has = store.has(&silent);
        let gone = silent.iter().zip(has).filter(|(_, has)| !has);
        let gone = gone.map(|(labels, _)| self.stored.remove(labels)).count();
        budgets.give_series(uid, gone, 0);
        let is_gone = |labels: &Labels, total: &Total| {
            total.uid == uid
                && !self.by_labels.contains_key(labels)
                && labels::of_total(labels, total.kind)
                    .iter()
                    .all(|series| !self.stored.contains_key(series))
        };
        let totals = retired.totals();
        let totals = totals.filter(|(labels, total)| is_gone(labels, total));
        let totals: Vec<Labels> = totals.map(|(labels, _)| labels.clone()).collect();
        for labels in &totals {
            for total in retired.forget(labels) {
                budgets.give_series(uid, 0, total.kind.cells());
            }
        }
        gone > 0 || !totals.is_empty()
    }

    /// Adds a metric of a publisher. `None`: it has no label set, its label set has series of another kind, or its owner
    /// has reached a limit.
    pub(super) fn join(
        &mut self,
        whose: MetricOwner,
        uid: u32,
        metric: &Metric,
        budgets: &mut Budgets,
        retired: &Retired,
    ) -> Option<Id> {
        let description = &metric.description;
        let labels = labels::of_metric(whose, description)?;
        let form = CellForm::of(metric.kind, description.scale);
        let cells = match retired.has(&labels, &form) {
            true => 0,
            false => metric.kind.cells(),
        };
        if let Some(&number) = self.by_labels.get(&labels) {
            let entry = self.entries.get_mut(number)?.as_mut()?;
            let form = entry.join(form, || budgets.take_series(uid, 0, cells))?;
            return Some(Id {
                entry: number,
                form,
            });
        }
        let series = labels::series(whose, description, metric.kind)?;
        let new = series.iter();
        let new = new
            .filter(|labels| !self.stored.contains_key(labels))
            .count();
        if !budgets.take_series(uid, new, cells) {
            return None;
        }
        let stored = series.iter().map(|labels| (labels.clone(), uid));
        self.stored.extend(stored);
        let entry = Summed {
            labels: labels.clone(),
            uid,
            forms: vec![Some(Formed::new(form))],
            series,
            is_defined: false,
        };
        let number = self.free.pop().unwrap_or(self.entries.len());
        match self.entries.get_mut(number) {
            Some(place) => *place = Some(entry),
            None => self.entries.push(Some(entry)),
        }
        self.by_labels.insert(labels, number);
        Some(Id {
            entry: number,
            form: 0,
        })
    }

    /// Values of a metric that the next write would write.
    #[cfg(test)]
    pub(super) fn next_values(&mut self, field: &str, retired: &Retired) -> Vec<f64> {
        let is_meant = |entry: &&mut Summed| {
            *label_set::value(entry.labels.text(), "field") == *field.as_bytes()
        };
        let entry = self.entries.iter_mut().flatten().find(is_meant);
        entry.expect("a metric").values(retired)
    }

    fn formed(&mut self, id: Id) -> Option<&mut Formed> {
        let entry = self.entries.get_mut(id.entry)?.as_mut()?;
        entry.forms.get_mut(id.form)?.as_mut()
    }

    /// Notes that a publisher of this metric is gone.
    pub(super) fn leave(&mut self, id: Id) {
        if let Some(formed) = self.formed(id) {
            formed.publishers -= 1;
        }
    }

    /// Forgets metrics without publishers, once their last value was written. Their series stay in the store, and count.
    pub(super) fn sweep(&mut self, budgets: &mut Budgets, retired: &Retired) {
        for (number, place) in self.entries.iter_mut().enumerate() {
            let Some(entry) = place else {
                continue;
            };
            for formed in &mut entry.forms {
                if let Some(gone) = formed.take_if(|formed| formed.publishers == 0)
                    && !retired.has(&entry.labels, &gone.form)
                {
                    budgets.give_series(entry.uid, 0, gone.cells.len());
                }
            }
            if entry.forms.iter().all(Option::is_none) {
                self.by_labels.remove(&entry.labels);
                self.free.push(number);
                *place = None;
            }
        }
    }

    /// Begins a scan: all sums become zero.
    pub(super) fn begin(&mut self) {
        let entries = self.entries.iter_mut().flatten();
        for formed in entries.flat_map(|entry| entry.forms.iter_mut().flatten()) {
            formed.cells.fill(0);
            formed.gauge = 0.0;
        }
    }

    /// Adds the values of a publisher.
    pub(super) fn add(&mut self, id: Id, cells: &[u64], gauge: f64) {
        if let Some(formed) = self.formed(id) {
            add_cells(&mut formed.cells, cells);
            formed.gauge += gauge;
        }
    }

    /// The total that a publisher leaves of this metric; `None`: a gauge has no total.
    pub(super) fn legacy(&self, id: Id, cells: &[u64]) -> Option<(Labels, Total)> {
        let entry = self.entries.get(id.entry)?.as_ref()?;
        let CellForm { kind, scale } = entry.forms.get(id.form)?.as_ref()?.form;
        let total = Total {
            uid: entry.uid,
            kind,
            scale,
            cells: cells.to_vec(),
        };
        has_total(kind).then(|| (entry.labels.clone(), total))
    }

    /// Writes a value to each series. An error says why that failed.
    pub(super) fn write(
        &mut self,
        store: &Store,
        retired: &Retired,
        real_ns: i64,
    ) -> Result<(), String> {
        self.define(store, real_ns / 1_000_000_000 - i64::from(STEP_S))?;
        let mut values = Vec::new();
        for entry in self.entries.iter_mut().flatten() {
            let is_unknown = retired.doubt() != Doubt::None && entry.kind().is_some_and(has_total);
            let mut of_entry = entry.values(retired);
            if let Some(total) = of_entry.first_mut().filter(|_| is_unknown) {
                // The keeper writes unknown, so that no rate is computed across the gap.
                *total = f64::NAN;
            }
            let pairs = (0..).zip(entry.series.iter().zip(of_entry));
            values.extend(
                pairs
                    .filter(|(number, (_, value))| value.is_finite() || is_unknown && *number == 0)
                    .map(|(_, pair)| pair)
                    .map(|(labels, value)| LabelledValues {
                        labels: labels.clone(),
                        stamps_ms: vec![real_ns / 1_000_000],
                        cells: vec![value],
                    }),
            );
        }
        let refused = labelled_series::write(store, &may_write, &values);
        let first = values.iter().zip(refused).find_map(|(values, outcome)| {
            let why = outcome.err()?;
            Some((values.labels.clone(), why))
        });
        let Some((labels, why)) = first else {
            return Ok(());
        };
        // Somebody has removed these series: they begin again.
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
        let outcomes = labelled_series::define(store, &may_write, &definitions);
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

fn may_write(name: SeriesName) -> Result<(), String> {
    match Input::Programs.may_write(name) {
        true => Ok(()),
        false => Err("it is another input's".into()),
    }
}

/// True if totals of ended programs are part of the series.
fn has_total(kind: MetricKind) -> bool {
    match kind {
        MetricKind::Counter | MetricKind::Histogram(_) => true,
        MetricKind::Gauge(_) => false,
    }
}

impl Formed {
    fn new(form: CellForm) -> Formed {
        Formed {
            form,
            publishers: 1,
            cells: vec![0; form.kind.cells()],
            gauge: 0.0,
            before: None,
        }
    }
}

impl Summed {
    /// Index of a publisher's form. `None`: the other forms have series of another kind, or there is no room.
    fn join(&mut self, form: CellForm, has_room: impl FnOnce() -> bool) -> Option<usize> {
        let mut known = self.forms.iter_mut().flatten();
        if !known.all(|known| known.form.is_akin(&form)) {
            return None;
        }
        for (place, known) in self.forms.iter_mut().enumerate() {
            if let Some(known) = known.as_mut().filter(|known| known.form.is_like(&form)) {
                known.publishers += 1;
                return Some(place);
            }
        }
        let free = self.forms.iter().position(Option::is_none);
        let place = free.unwrap_or(self.forms.len());
        if place >= FORMS_MAX || !has_room() {
            return None;
        }
        if free.is_none() {
            self.forms.push(None);
        }
        self.forms[place] = Some(Formed::new(form));
        Some(place)
    }

    /// Kind of the metric; other forms may have other parameters.
    fn kind(&self) -> Option<MetricKind> {
        let first = self.forms.iter().flatten().next();
        first.map(|formed| formed.form.kind)
    }

    fn definitions(&self, start: i64) -> impl Iterator<Item = LabelledSeries> + '_ {
        let is_gauge = !self.kind().is_some_and(has_total);
        self.series.iter().enumerate().map(move |(number, labels)| {
            // A counter is a double here, because most counters have another scale than 1.
            let kind: &[u8] = match is_gauge || number > 0 {
                true => b"GAUGE",
                false => b"DDERIVE",
            };
            LabelledSeries {
                labels: labels.clone(),
                step: STEP_S,
                heartbeat: HEARTBEAT_S,
                start,
                columns: vec![(COLUMN.to_vec(), kind.to_vec())],
            }
        })
    }

    /// One value for each series; NaN: no value.
    fn values(&mut self, retired: &Retired) -> Vec<f64> {
        let kept = retired.of(&self.labels);
        match self.kind() {
            Some(MetricKind::Counter) => vec![self.sum(kept, |cells, scale| {
                cells.first().map_or(0.0, |&cell| cell as f64) * scale
            })],
            Some(MetricKind::Histogram(_)) => {
                let count = self.sum(kept, |cells, _| {
                    let weights = cells.get(quantile::BEFORE..).unwrap_or_default();
                    quantile::sum(weights) as f64
                });
                let quantiles = quantile::of_all(&self.gains(kept));
                std::iter::once(count).chain(quantiles).collect()
            }
            Some(MetricKind::Gauge(_)) => {
                let forms = self.forms.iter().flatten();
                let mut living = forms.filter(|formed| formed.publishers > 0).peekable();
                // Ended programs have no gauges.
                match living.peek().is_some() {
                    true => vec![living.map(|formed| formed.gauge * formed.form.scale).sum()],
                    false => vec![f64::NAN],
                }
            }
            None => vec![f64::NAN; self.series.len()],
        }
    }

    /// Sum over all forms of living and ended programs.
    fn sum(&self, kept: &[Total], value: impl Fn(&[u64], f64) -> f64) -> f64 {
        let forms = || self.forms.iter().flatten();
        let living = forms().map(|formed| value(&all(formed, kept), formed.form.scale));
        let has = |is: fn(&CellForm, &CellForm) -> bool, total: &Total| {
            forms().any(|formed| is(&formed.form, &total.form()))
        };
        let ended = kept
            .iter()
            .filter(|total| has(CellForm::is_akin, total) && !has(CellForm::is_like, total));
        let ended = ended.map(|total| value(&total.cells, total.scale));
        living.chain(ended).sum()
    }

    /// Growth of each form since the last write.
    fn gains(&mut self, kept: &[Total]) -> Vec<Spread> {
        let forms = self.forms.iter_mut().flatten();
        let gains = forms.filter_map(|formed| {
            let MetricKind::Histogram(buckets) = formed.form.kind else {
                return None;
            };
            let now = all(formed, kept);
            let before = formed.before.replace(now)?;
            let now = formed.before.as_deref().unwrap_or_default();
            Some(Spread {
                buckets,
                scale: formed.form.scale,
                weights: quantile::more(&before, now),
            })
        });
        gains.collect()
    }
}

/// Cells of a form: living and ended programs together.
fn all(formed: &Formed, kept: &[Total]) -> Vec<u64> {
    let mut cells = formed.cells.clone();
    let form = &formed.form;
    if let Some(total) = kept.iter().find(|total| total.form().is_like(form)) {
        add_cells(&mut cells, &total.cells);
    }
    cells
}
