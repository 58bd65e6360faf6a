//! A flush: a sample of each series, in one write batch. A metric continues for five minutes after its last line; then its
//! series get a stale marker, and the metric is forgotten.

use std::collections::HashMap;

use kymo_base::label_set::Labels;
use kymo_base::name::DisplayName;
use kymo_store::{Point, PointRefusal, PointSeries, PointsSchema, Store};
use kymo_sys::clock::{Clock as _, RealClock, Stamp};

use super::aggregate::PartName;
use super::metrics::Metrics;
use super::part::Part;
use crate::common::keyed_hash::KeyedHash;
use crate::common::troubles::Troubles;

/// Time for which a metric continues without lines.
const SILENT_NS: u64 = 300_000_000_000;
/// Prometheus' stale marker, which says that a series has ended.
const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);
/// Intervals without a sample after which readers consider a series ended.
const HEARTBEAT_INTERVALS: u32 = 6;
/// New series that begin with one write to the journal.
const NEW_AT_ONCE: usize = 256;

/// The state between flushes.
pub(super) struct Flusher {
    interval_s: u32,
    /// Time of the next flush; `None`: there is no metric.
    due_ns: Option<u64>,
    /// Index of each series' metric.
    owners: HashMap<PointSeries, usize, KeyedHash>,
    /// Buffer for the samples of a flush.
    samples: Vec<(PointSeries, Point)>,
}

/// A new series.
struct NewPart {
    place: usize,
    part: PartName,
    labels: Labels,
    value: f64,
}

impl Flusher {
    /// No metrics yet; flushes are `interval_s` seconds apart.
    pub(super) fn new(interval_s: u32) -> Flusher {
        Flusher {
            interval_s,
            due_ns: None,
            owners: HashMap::default(),
            samples: Vec::new(),
        }
    }

    /// Time of the next flush, by the monotonic clock.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// Schedules the first flush, one interval from now.
    pub(super) fn begin(&mut self) {
        if self.due_ns.is_none() {
            self.due_ns = Some(RealClock.mono_ns() + self.interval_ns());
        }
    }

    fn interval_ns(&self) -> u64 {
        u64::from(self.interval_s) * 1_000_000_000
    }

    /// Writes a sample of each series.
    pub(super) fn flush(
        &mut self,
        metrics: &mut Metrics,
        store: &Store,
        now: Stamp,
        troubles: &mut Troubles,
    ) {
        let t_ms = now.real_ns / 1_000_000;
        self.samples.clear();
        self.end_silent(metrics, (t_ms, now.mono_ns));
        let new = self.gather(metrics, t_ms, troubles);
        self.define(new, metrics, (store, now.mono_ns), t_ms, troubles);
        self.write(metrics, store, troubles);
        let next_ns = self.due_ns.unwrap_or(now.mono_ns) + self.interval_ns();
        // After a stop of the machine one flush is enough.
        let next_ns = next_ns.max(now.mono_ns + self.interval_ns() / 2);
        self.due_ns = (!metrics.is_empty()).then_some(next_ns);
    }

    /// Writes stale markers for metrics that were silent for too long, and forgets them.
    fn end_silent(&mut self, metrics: &mut Metrics, (t_ms, now_ns): (i64, u64)) {
        let Flusher {
            owners, samples, ..
        } = self;
        metrics.forget_silent(now_ns.saturating_sub(SILENT_NS), |metric| {
            metric.aggregate.each_part(|_, part, _| {
                if let Part::Known(series) = *part {
                    owners.remove(&series);
                    samples.push((series, Point { t_ms, v: STALE }));
                }
            });
        });
    }

    /// Collects samples of known series, and returns new series.
    fn gather(
        &mut self,
        metrics: &mut Metrics,
        t_ms: i64,
        troubles: &mut Troubles,
    ) -> Vec<NewPart> {
        let mut new = Vec::new();
        for (place, metric) in metrics.metrics.iter_mut().enumerate() {
            let Some(metric) = metric else { continue };
            let mut unnamed = Vec::new();
            metric.aggregate.each_part(|name, part, value| {
                let Some(v) = value else { return };
                match *part {
                    Part::Known(series) => self.samples.push((series, Point { t_ms, v })),
                    Part::New => unnamed.push((name, v)),
                    Part::Taken => {}
                }
            });
            metric.aggregate.begin_flush();
            for (part, value) in unnamed {
                match part.labels(&metric.name, &metric.tags()) {
                    Ok(labels) => new.push(NewPart {
                        place,
                        part,
                        labels,
                        value,
                    }),
                    Err(_) => troubles.count("a name whose labels are too long or too many", 1),
                }
            }
        }
        new
    }

    /// Defines new series.
    fn define(
        &mut self,
        mut new: Vec<NewPart>,
        metrics: &mut Metrics,
        (store, now_ns): (&Store, u64),
        t_ms: i64,
        troubles: &mut Troubles,
    ) {
        new.retain(|new_part| {
            let labels = &new_part.labels;
            let may = store.admit_labels(labels).is_ok() || store.find_points(labels).is_some();
            troubles.count(
                "a name whose labels are too long or too many",
                u64::from(!may),
            );
            may
        });
        new.retain(|new_part| {
            let is_bucket = matches!(new_part.part, PartName::Bucket(_));
            // The metric has paid for its other series.
            let may = !is_bucket
                || store.find_points(&new_part.labels).is_some()
                || metrics.may_begin_bucket(new_part.place, now_ns);
            troubles.count("a bucket beyond the limit of new series", u64::from(!may));
            may
        });
        for new in new.chunks(NEW_AT_ONCE) {
            let definition = |new_part: &NewPart| {
                let heartbeat_s = HEARTBEAT_INTERVALS.saturating_mul(self.interval_s);
                let schema = PointsSchema::new(new_part.part.kind(), self.interval_s, heartbeat_s);
                (new_part.labels.clone(), schema)
            };
            let definitions: Vec<_> = new.iter().map(definition).collect();
            for (new_part, outcome) in new.iter().zip(store.define_points(&definitions)) {
                let name = DisplayName(new_part.labels.text());
                let found = match outcome {
                    Ok(series)
                        if *self.owners.entry(series).or_insert(new_part.place)
                            == new_part.place =>
                    {
                        let v = new_part.value;
                        self.samples.push((series, Point { t_ms, v }));
                        Part::Known(series)
                    }
                    Ok(_) => {
                        let why = "a series whose name another metric has";
                        troubles.note(why, || name.to_string());
                        Part::Taken
                    }
                    Err(error) => {
                        let why = "a series that cannot begin";
                        troubles.note(why, || format!("{name}: {error}"));
                        Part::New
                    }
                };
                set_part(
                    metrics,
                    new_part.place,
                    |name, _| name == new_part.part,
                    found,
                );
            }
        }
    }

    /// Writes the samples.
    fn write(&mut self, metrics: &mut Metrics, store: &Store, troubles: &mut Troubles) {
        if self.samples.is_empty() {
            return;
        }
        let samples = &self.samples;
        let mut gone = Vec::new();
        let mut batch = store.write_batch();
        batch.append_points(samples, &mut |at, why| {
            troubles.count(why.why(), 1);
            if why == PointRefusal::NoSeries {
                gone.extend(samples.get(at).map(|(series, _)| *series));
            }
        });
        if let Err(error) = batch.commit() {
            let why = "a sample that was not written";
            troubles.count(why, u64::try_from(samples.len()).unwrap_or(u64::MAX) - 1);
            troubles.note(why, || format!("cannot write journal: {error}"));
        }
        for series in gone {
            // Somebody removed this series; the next flush begins it again.
            if let Some(place) = self.owners.remove(&series) {
                let is_it = |_, part| part == Part::Known(series);
                set_part(metrics, place, is_it, Part::New);
            }
        }
    }
}

/// Sets those series of a metric that fit.
fn set_part(
    metrics: &mut Metrics,
    place: usize,
    fits: impl Fn(PartName, Part) -> bool,
    found: Part,
) {
    let metric = metrics.metrics.get_mut(place).and_then(Option::as_mut);
    if let Some(metric) = metric {
        metric.aggregate.each_part(|name, part, _| {
            if fits(name, *part) {
                *part = found;
            }
        });
    }
}
