//! From labels to series: known names, new series within the budgets, and batches of samples for the store.

use std::collections::HashMap;

use kymo_base::label_set::{LabelError, Labels};
use kymo_series::names;
use kymo_store::{FileError, Point, PointRefusal, PointSeries, PointsKind, PointsSchema};
use kymo_wire::remote_write::{MetricType, SeriesMetadata};

use super::budgets::PushBudgets;
use super::families::Families;
use super::kinds::points_kind;
use super::round::PushRound;
use crate::common::keyed_hash::KeyedHash;
use crate::name_space;

/// Known names at most, with some 300 bytes each. They are a cache of what the store knows.
const KNOWN_MAX: usize = 200_000;
/// Names without samples for this time are forgotten.
const IDLE_MAX_NS: u64 = 3_600_000_000_000;
/// Time between two searches for such names.
const SWEEP_EVERY_NS: u64 = 600_000_000_000;
/// Time between two comparisons of descriptions of known series with the kept ones.
const DESCRIBE_EVERY_NS: u64 = 60_000_000_000;
/// New series that begin with one write to the journal.
const NEW_AT_ONCE: usize = 256;
/// Samples that are written under one lock of the store.
const BATCH: usize = 4096;
/// No text in UTF-8 has this byte.
const END: u8 = 0xff;

const LONG_NAME: &str = "a sample whose labels are too long or too many";
const LABEL_NAME: &str = "a sample with a label whose name is not letters, digits and _";
const OWN_NAME: &str = "a sample under a name of kymo's own";
const NEW_NAMES: &str = "a sample of a new series beyond the limit of new ones";
const CANNOT_BEGIN: &str = "a sample of a series that cannot begin";

/// Series that senders write, and samples that wait for the end of a batch.
pub(super) struct PushIntake {
    /// Known series, by their labels, each text with an [`END`].
    known: HashMap<Box<[u8]>, KnownName, KeyedHash>,
    swept_ns: u64,
    described_ns: Option<u64>,
    key: Vec<u8>,
    new: Vec<NewSeries>,
    samples: Vec<(PushTarget, Point)>,
    /// Buffer for the batch.
    batch: Vec<(PointSeries, Point)>,
    budgets: PushBudgets,
    own_host: Vec<u8>,
    pub(super) families: Families,
}

/// A known name.
struct KnownName {
    target: PushTarget,
    received_ns: u64,
    /// False: no request described the metric.
    is_described: bool,
}

/// A series that begins with this batch.
struct NewSeries {
    key: Box<[u8]>,
    labels: Labels,
    kind: PointsKind,
}

/// A series of the store, or one of those that begin with this batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PushTarget {
    Known(PointSeries),
    New(usize),
}

/// Description of a series by its sender: the family, and its metadata.
pub(super) type About<'a> = Option<(&'a str, SeriesMetadata<'a>)>;

impl PushIntake {
    /// No known names; `own_host` is the name of this machine.
    pub(super) fn new(families: Families, own_host: Vec<u8>) -> PushIntake {
        PushIntake {
            known: HashMap::default(),
            swept_ns: 0,
            described_ns: None,
            key: Vec::new(),
            new: Vec::new(),
            samples: Vec::new(),
            batch: Vec::new(),
            budgets: PushBudgets::default(),
            own_host,
            families,
        }
    }

    /// Begins a request.
    pub(super) fn begin(&mut self, round: &mut PushRound) {
        self.drop_pending();
        let now_ns = round.now.mono_ns;
        round.describes = self
            .described_ns
            .is_none_or(|at| now_ns.saturating_sub(at) >= DESCRIBE_EVERY_NS);
        if round.describes {
            self.described_ns = Some(now_ns);
        }
        if now_ns.saturating_sub(self.swept_ns) >= SWEEP_EVERY_NS {
            self.swept_ns = now_ns;
            let oldest_ns = now_ns.saturating_sub(IDLE_MAX_NS);
            self.known.retain(|_, known| known.received_ns >= oldest_ns);
        }
    }

    /// Drops samples that are in no batch, of a request that cannot be read to its end.
    pub(super) fn drop_pending(&mut self) {
        self.samples.clear();
        for new in self.new.drain(..) {
            self.known.remove(&new.key);
        }
    }

    /// The series with these labels, sorted by names. `None`: it is refused, and its `samples` are counted.
    pub(super) fn series<'l>(
        &mut self,
        labels: impl Iterator<Item = (&'l str, &'l str)> + Clone,
        samples: u64,
        about: About,
        round: &mut PushRound,
    ) -> Option<PushTarget> {
        if self.samples.len() >= BATCH {
            self.write(round);
        }
        self.key.clear();
        for (name, value) in labels.clone() {
            self.key.extend_from_slice(name.as_bytes());
            self.key.push(END);
            self.key.extend_from_slice(value.as_bytes());
            self.key.push(END);
        }
        if let Some(known) = self.known.get_mut(&*self.key) {
            known.received_ns = round.now.mono_ns;
            let target = known.target;
            let is_due = round.describes || !known.is_described;
            if let Some((family, metadata)) = about.filter(|_| is_due) {
                known.is_described = true;
                self.families.note(family, &metadata);
            }
            return Some(target);
        }
        match self.arrive(labels, about, round) {
            Ok(target) => Some(target),
            Err(why) => {
                round.refuse(why, samples);
                None
            }
        }
    }

    /// Finds the series of an unknown name in the store, or begins one. The error is the reason for a refusal.
    fn arrive<'l>(
        &mut self,
        labels: impl Iterator<Item = (&'l str, &'l str)> + Clone,
        about: About,
        round: &PushRound,
    ) -> Result<PushTarget, &'static str> {
        if !self.budgets.may_look(round.sender, round.now_s()) {
            return Err(NEW_NAMES);
        }
        let metric = labels.clone().find(|(name, _)| *name == names::METRIC);
        let metric = metric.map_or("", |(_, metric)| metric);
        let set = Labels::new(labels.map(|(name, value)| (name, value.as_bytes())));
        let set = set.map_err(|error| match error {
            LabelError::Name => LABEL_NAME,
            LabelError::Twice | LabelError::Count | LabelError::Long | LabelError::Text => {
                LONG_NAME
            }
        })?;
        if !name_space::may_push(&set, &self.own_host) {
            return Err(OWN_NAME);
        }
        let target = match round.store.find_points(&set) {
            Some(series) => PushTarget::Known(series),
            None if round.store.admit_labels(&set).is_err() => return Err(LONG_NAME),
            None if self.budgets.may_begin(round.sender, round.now_s()) => {
                self.new.push(NewSeries {
                    key: self.key.as_slice().into(),
                    labels: set,
                    kind: points_kind(self.metric_type(metric, about), metric),
                });
                PushTarget::New(self.new.len() - 1)
            }
            None => return Err(NEW_NAMES),
        };
        if let Some((family, metadata)) = about {
            self.families.note(family, &metadata);
        }
        self.make_room();
        let received_ns = round.now.mono_ns;
        let known = KnownName {
            target,
            received_ns,
            is_described: about.is_some(),
        };
        self.known.insert(self.key.as_slice().into(), known);
        Ok(target)
    }

    fn metric_type(&self, metric: &str, about: About) -> MetricType {
        let described = about.map(|(_, metadata)| metadata.metric_type);
        let described = described.filter(|of| *of != MetricType::Unknown);
        described.unwrap_or_else(|| self.families.type_of(metric))
    }

    /// Forgets names if there are too many. Names of series that have not begun yet stay.
    fn make_room(&mut self) {
        if self.known.len() < KNOWN_MAX {
            return;
        }
        self.known
            .retain(|_, known| matches!(known.target, PushTarget::New(_)));
    }

    /// Gathers a sample.
    #[inline]
    pub(super) fn add(&mut self, target: PushTarget, point: Point, round: &mut PushRound) {
        if round.admits(point.t_ms) {
            self.samples.push((target, point));
        }
    }

    /// Writes the gathered samples.
    pub(super) fn write(&mut self, round: &mut PushRound) {
        let begun = self.define(round);
        self.batch.clear();
        let mut lost = 0;
        for (target, point) in self.samples.drain(..) {
            let series = match target {
                PushTarget::Known(series) => Some(series),
                PushTarget::New(at) => begun.get(at).copied().flatten(),
            };
            match series {
                Some(series) => self.batch.push((series, point)),
                None => lost += 1,
            }
        }
        round.refuse(CANNOT_BEGIN, lost);
        let batch = std::mem::take(&mut self.batch);
        for part in batch.chunks(BATCH) {
            if round.failed.is_none() {
                self.write_part(part, round);
            }
        }
        self.batch = batch;
    }

    /// Defines the new series. Returns the series of each, `None` if it cannot begin.
    fn define(&mut self, round: &mut PushRound) -> Vec<Option<PointSeries>> {
        let new = std::mem::take(&mut self.new);
        let mut begun = Vec::with_capacity(new.len());
        for new in new.chunks(NEW_AT_ONCE) {
            let definition = |new: &NewSeries| {
                let schema = PointsSchema::new(new.kind, 0, 0);
                (new.labels.clone(), schema)
            };
            let definitions: Vec<_> = new.iter().map(definition).collect();
            let outcomes = round.store.define_points(&definitions);
            for (new, outcome) in new.iter().zip(outcomes) {
                let series = match outcome {
                    Ok(series) => Some(series),
                    Err(error) => {
                        if matches!(error, FileError::Journal(_)) {
                            round.failed.get_or_insert_with(|| error.to_string());
                        }
                        None
                    }
                };
                match (self.known.get_mut(&new.key), series) {
                    (Some(known), Some(series)) => known.target = PushTarget::Known(series),
                    // The next sample tries again.
                    (Some(_), None) => drop(self.known.remove(&new.key)),
                    (None, _) => {}
                }
                round.begun += u64::from(series.is_some());
                begun.push(series);
            }
        }
        begun
    }

    fn write_part(&mut self, part: &[(PointSeries, Point)], round: &mut PushRound) {
        let mut gone = Vec::new();
        let mut refused: Vec<(&'static str, u64)> = Vec::new();
        let mut lost = 0;
        let mut written = round.store.write_batch();
        written.append_points(part, &mut |at, why| {
            lost += 1;
            match refused.iter_mut().find(|(known, _)| *known == why.why()) {
                Some((_, count)) => *count += 1,
                None => refused.push((why.why(), 1)),
            }
            if why == PointRefusal::NoSeries {
                gone.extend(part.get(at).map(|(series, _)| *series));
            }
        });
        match written.commit() {
            Ok(_) => round.stored += u64::try_from(part.len()).unwrap_or(u64::MAX) - lost,
            Err(error) => round.failed = Some(format!("cannot write journal: {error}")),
        }
        if !gone.is_empty() {
            // Somebody removed these series while samples came: sent again, the samples begin them again.
            let is_gone =
                |known: &KnownName| gone.iter().any(|it| known.target == PushTarget::Known(*it));
            self.known.retain(|_, known| !is_gone(known));
            let why = "a series was removed while its samples came";
            round.failed.get_or_insert_with(|| why.into());
            return;
        }
        for (why, count) in refused {
            round.refuse(why, count);
        }
    }
}
