//! A round: lines in, one write batch out.

use std::collections::HashMap;

use kymo_base::label_set::Labels;
use kymo_base::name::DisplayName;
use kymo_series::names;
use kymo_store::{Point, PointSeries, PointsKind, PointsSchema, Store};
use kymo_sys::clock::Stamp;
use kymo_wire::graphite::{self, BadPoint, GraphiteLine, Points, Tags};

use crate::common::keyed_hash::KeyedHash;
use crate::common::line_server::LineIntake;
use crate::common::sender_lots::SenderLot;
use crate::common::series_limit::{SHARE_IS_FULL, SeriesLimit};
use crate::common::troubles::Troubles;

/// A sample whose time is further ahead is refused: it would make all true samples late until that time.
const AHEAD_MAX_MS: i64 = 300_000;
/// A series without samples for this time gives its place to others.
const IDLE_MAX_NS: u64 = 3_600_000_000_000;
/// Time between two searches for such series.
const SWEEP_EVERY_NS: u64 = 60_000_000_000;
/// New series that begin with one write to the journal.
const NEW_AT_ONCE: usize = 256;
const LONG_NAME: &str = "a name whose labels are too long or too many";
const NEW_NAMES: &str = "a sample of a new name beyond the limit of new ones";

/// The state of the listener.
#[derive(Default)]
pub(super) struct GraphiteIntake {
    /// Known series, by path and tags as lines spell them.
    index: HashMap<Box<[u8]>, IndexedName, KeyedHash>,
    limit: SeriesLimit,
    /// Samples of this round.
    samples: Vec<(Target, Point)>,
    /// Series that begin with this round.
    new: Vec<(Box<[u8]>, Labels)>,
    /// Buffer for the batch.
    batch: Vec<(PointSeries, Point)>,
    key: Vec<u8>,
    swept_ns: u64,
    /// Samples stored since the start.
    stored: u64,
    troubles: Troubles,
}

/// A known name.
struct IndexedName {
    target: Target,
    received_ns: u64,
    /// The sender that the limits count the series for.
    sender: SenderLot,
}

/// A series of the store, or one of those that begin with this round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Known(PointSeries),
    New(usize),
}

impl LineIntake for GraphiteIntake {
    const LINE_MAX: usize = graphite::LINE_MAX;

    fn take_lines(&mut self, lines: &[u8], sender: SenderLot, store: &Store, now: Stamp) {
        let mut points = Points::of(lines);
        while let Some(step) = points.next() {
            match step {
                Ok(GraphiteLine::Point(point)) => self.take(&point, sender, store, now),
                Ok(GraphiteLine::NotANumber) => self.troubles.count("a value that is nan", 1),
                Err(bad) => {
                    let line = points.line();
                    self.troubles.note(bad.why(), || shown(line));
                }
            }
        }
    }

    fn refuse_long_line(&mut self) {
        self.troubles.count(BadPoint::LineLength.why(), 1);
    }

    fn end_round(&mut self, store: &Store) {
        let begun = self.define(store);
        self.batch.clear();
        for (target, point) in self.samples.drain(..) {
            let series = match target {
                Target::Known(series) => Some(series),
                Target::New(at) => begun.get(at).copied().flatten(),
            };
            match series {
                Some(series) => self.batch.push((series, point)),
                None => self
                    .troubles
                    .count("a sample of a series that cannot begin", 1),
            }
        }
        self.write(store);
    }

    fn due_ns(&self) -> Option<u64> {
        (!self.index.is_empty()).then_some(self.swept_ns + SWEEP_EVERY_NS)
    }

    fn on_time(&mut self, _store: &Store, now: Stamp, _ends: bool) {
        self.swept_ns = now.mono_ns;
        let limit = &mut self.limit;
        self.index.retain(|_, entry| {
            let is_idle = entry.received_ns + IDLE_MAX_NS <= now.mono_ns;
            limit.release(entry.sender, usize::from(is_idle));
            !is_idle
        });
    }

    fn samples(&self) -> u64 {
        self.stored
    }

    fn troubles(&mut self) -> &mut Troubles {
        &mut self.troubles
    }
}

impl GraphiteIntake {
    /// Gathers a sample.
    fn take(&mut self, point: &graphite::Point, sender: SenderLot, store: &Store, now: Stamp) {
        let now_ms = now.real_ns / 1_000_000;
        let t_ms = point.time.map_or(now_ms, milliseconds);
        if t_ms > now_ms.saturating_add(AHEAD_MAX_MS) {
            return self
                .troubles
                .count("a sample of more than 5 minutes ahead", 1);
        }
        if t_ms < now_ms.saturating_sub(i64::from(store.samples_kept_s()) * 1000) {
            // The store would drop the sample at once.
            return self
                .troubles
                .count("a sample that is older than samples are kept", 1);
        }
        self.key.clear();
        self.key.extend_from_slice(point.path);
        self.key.push(b';');
        self.key.extend_from_slice(point.tags.raw());
        let target = match self.index.get_mut(&*self.key) {
            Some(entry) => {
                entry.received_ns = now.mono_ns;
                Some(entry.target)
            }
            None => self.arrive(point, sender, store, now.mono_ns),
        };
        if let Some(target) = target {
            let v = point.value;
            self.samples.push((target, Point { t_ms, v }));
        }
    }

    /// Finds the series of an unknown name in the store, or begins one. `None`: the sample is refused and
    /// counted.
    fn arrive(
        &mut self,
        point: &graphite::Point,
        sender: SenderLot,
        store: &Store,
        now_ns: u64,
    ) -> Option<Target> {
        let limit = &mut self.limit;
        if limit.room(sender) == 0 {
            self.troubles.count(SHARE_IS_FULL, 1);
            return None;
        }
        let now_s = std::time::Duration::from_nanos(now_ns).as_secs_f64();
        if !limit.may_look(sender, now_s) {
            self.troubles.count(NEW_NAMES, 1);
            return None;
        }
        let labels = match labels(point.path, &point.tags) {
            Ok(labels) => labels,
            Err(why) => {
                let path = point.path;
                self.troubles.note(why, || shown(path));
                return None;
            }
        };
        let target = match store.find_points(&labels) {
            Some(series) => Target::Known(series),
            None if store.admit_labels(&labels).is_err() => {
                let path = point.path;
                self.troubles.note(LONG_NAME, || shown(path));
                return None;
            }
            None if limit.may_begin(sender, 1, now_s) => {
                self.new.push((self.key.as_slice().into(), labels));
                Target::New(self.new.len() - 1)
            }
            None => {
                let path = point.path;
                self.troubles.note(NEW_NAMES, || shown(path));
                return None;
            }
        };
        let received_ns = now_ns;
        self.limit.hold(sender, 1);
        let entry = IndexedName {
            target,
            received_ns,
            sender,
        };
        self.index.insert(self.key.as_slice().into(), entry);
        Some(target)
    }

    /// Defines the new series. Returns the series of each, `None` if it cannot begin.
    fn define(&mut self, store: &Store) -> Vec<Option<PointSeries>> {
        let mut begun = Vec::new();
        let (keys, labels): (Vec<_>, Vec<_>) = self.new.drain(..).unzip();
        let schema = PointsSchema::new(PointsKind::Untyped, 0, 0);
        for labels in labels.chunks(NEW_AT_ONCE) {
            let definitions: Vec<_> = labels
                .iter()
                .map(|labels| (labels.clone(), schema.clone()))
                .collect();
            for (outcome, labels) in store.define_points(&definitions).into_iter().zip(labels) {
                if let Err(error) = &outcome {
                    let name = DisplayName(labels.text());
                    self.troubles
                        .note("a series that cannot begin", || format!("{name}: {error}"));
                }
                begun.push(outcome.ok());
            }
        }
        for (key, series) in keys.iter().zip(&begun) {
            match (self.index.get_mut(key), series) {
                (Some(entry), Some(series)) => entry.target = Target::Known(*series),
                // The next sample tries again.
                (Some(_), None) => drop(self.index.remove(key)),
                (None, _) => {}
            }
        }
        begun
    }

    /// Writes the samples of the round.
    fn write(&mut self, store: &Store) {
        if self.batch.is_empty() {
            return;
        }
        let (troubles, batch) = (&mut self.troubles, &self.batch);
        let mut gone = Vec::new();
        let mut written = store.write_batch();
        let appended = written.append_points(batch, &mut |at, why| {
            troubles.count(why.why(), 1);
            if why == kymo_store::PointRefusal::NoSeries {
                gone.extend(batch.get(at).map(|(series, _)| *series));
            }
        });
        match written.commit() {
            Ok(_) => self.stored += u64::try_from(appended).unwrap_or(u64::MAX),
            Err(error) => {
                let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
                troubles.count("a sample that was not written", count - 1);
                let example = || format!("cannot write journal: {error}");
                troubles.note("a sample that was not written", example);
            }
        }
        if !gone.is_empty() {
            // Somebody removed these series; their next samples begin them again.
            self.index
                .retain(|_, entry| !gone.iter().any(|it| entry.target == Target::Known(*it)));
        }
    }
}

/// Labels of a path with tags. As in carbon, the last value of a repeated key counts, and the key `name` is the
/// path.
fn labels(path: &[u8], tags: &Tags) -> Result<Labels, &'static str> {
    let mut pairs: Vec<(&[u8], &[u8])> = Vec::new();
    for (key, value) in tags.iter().filter(|(key, _)| *key != b"name") {
        match pairs.iter_mut().find(|(known, _)| *known == key) {
            Some(pair) => pair.1 = value,
            None => pairs.push((key, value)),
        }
    }
    pairs.sort_unstable();
    names::graphite(path, &pairs).map_err(|_| LONG_NAME)
}

fn milliseconds(seconds: f64) -> i64 {
    // The protocol has no time beyond the year 5138.
    (seconds * 1000.0).round() as i64
}

/// The beginning of a line, for a message.
fn shown(line: &[u8]) -> String {
    const SHOWN_MAX: usize = 80;
    DisplayName(line.get(..SHOWN_MAX).unwrap_or(line)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_its_tags_has_one_set_of_labels() {
        for (line, expected) in [
            ("a.b 1 1", r#"{__name__="a_b",job="graphite",path="a.b"}"#),
            (
                "a;y=2;x=1 1 1",
                r#"{__name__="a",job="graphite",path="a",x="1",y="2"}"#,
            ),
            (
                "a;x=1;x=3;name=b 1 1",
                r#"{__name__="a",job="graphite",path="a",x="3"}"#,
            ),
            (
                "a;job=b 1 1",
                r#"{__name__="a",exported_job="b",job="graphite",path="a"}"#,
            ),
        ] {
            let Some(Ok(GraphiteLine::Point(point))) = Points::of(line.as_bytes()).next() else {
                panic!("{line} is no point");
            };
            let labels = labels(point.path, &point.tags).unwrap();
            assert_eq!(labels.text(), expected.as_bytes(), "{line}");
        }
        let long = "a".repeat(900);
        let tags = (0..60).map(|n| format!(";tag{n}={}", "\"".repeat(200)));
        let line = format!("{long}{} 1 1", tags.collect::<String>());
        let Some(Ok(GraphiteLine::Point(point))) = Points::of(line.as_bytes()).next() else {
            panic!("no point");
        };
        assert!(labels(point.path, &point.tags).is_err());
    }
}
