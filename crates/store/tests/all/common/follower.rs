//! A client of a tail, and a judge that knows the accepted values and which of them were on the disk.

#![allow(clippy::unwrap_used, missing_docs)]

use super::{Bench, START};
use kymo_base::label_set::Labels;
use kymo_store::{
    Missed, Point, PointSeries, PointsKind, PointsSchema, Position, TailError, TailFrom,
    TailReader, TailSample, TailSeries, TailSink,
};
use std::collections::{BTreeMap, BTreeSet};

/// Value of a series: time in milliseconds, and the bits of the number.
pub(crate) type Value = (i64, u64);

/// Everything that a tail has delivered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Names of the series defined since the tail was opened, by number.
    pub names: BTreeMap<u32, String>,
    /// Values in the order of delivery, by series.
    pub values: BTreeMap<String, Vec<Value>>,
    pub missed: Vec<Missed>,
    pub gone: Vec<String>,
    pub count: u64,
    pub defined: Vec<TailSeries>,
}

impl TailSink for Told {
    fn defined(&mut self, series: &TailSeries) {
        let name = String::from_utf8(series.known.name.clone()).unwrap();
        self.names.insert(series.known.id, name);
        self.defined.push(series.clone());
    }

    fn gone(&mut self, series: u32) {
        self.gone
            .push(self.names.remove(&series).expect("a defined series"));
    }

    fn missed(&mut self, missed: Missed) {
        self.missed.push(missed);
    }

    fn samples(&mut self, samples: &[TailSample]) {
        for sample in samples {
            let name = self
                .names
                .get(&sample.series)
                .expect("a definition comes first");
            let values = self.values.entry(name.clone()).or_default();
            values.push((sample.t_ms, sample.v.to_bits()));
            self.count += 1;
        }
    }
}

pub(crate) fn labels(name: &str) -> Labels {
    Labels::new([("__name__", name.as_bytes()), ("job", b"tail")]).unwrap()
}

/// A store with files and point series, and a registered tail of it.
pub(crate) struct Follower {
    pub bench: Bench,
    pub points: usize,
    /// Accepted values in order.
    pub accepted: Vec<(String, Value)>,
    /// Number of accepted values before the last successful sync.
    pub synced: usize,
    pub reader: Option<TailReader>,
    pub told: Told,
    /// Position up to which the tail has acknowledged everything.
    pub acknowledged: u64,
    /// `told.count` at the last acknowledgement.
    pub acknowledged_count: u64,
}

pub(crate) const NAME: &str = "follower";

impl Follower {
    pub(crate) fn new(seed: u64, files: usize, points: usize) -> Follower {
        Follower {
            bench: Bench::new(seed, files),
            points,
            accepted: Vec::new(),
            synced: 0,
            reader: None,
            told: Told::default(),
            acknowledged: 0,
            acknowledged_count: 0,
        }
    }

    pub(crate) fn fork(&self) -> Follower {
        Follower {
            bench: self.bench.fork(),
            points: self.points,
            accepted: self.accepted.clone(),
            synced: self.synced,
            reader: None,
            told: self.told.clone(),
            acknowledged: self.acknowledged,
            acknowledged_count: self.acknowledged_count,
        }
    }

    pub(crate) fn reopen(&mut self) {
        self.reader = None;
        self.bench.reopen();
    }

    pub(crate) fn define(&self) -> Option<Vec<PointSeries>> {
        let schema = PointsSchema::new(PointsKind::Gauge, 10, 60);
        let all = (0..self.points).map(|at| (labels(&format!("p{at}")), schema.clone()));
        let defined = self.bench.store().define_points(&all.collect::<Vec<_>>());
        defined.into_iter().map(Result::ok).collect()
    }

    /// Sends a value of a file, or a batch of samples.
    pub(crate) fn send(&mut self) {
        if self.points == 0 || (!self.bench.files.is_empty() && self.bench.random(2) == 0) {
            let before = self.bench.acked.len();
            let _faults = self.bench.any_update();
            for acked in &self.bench.acked[before..] {
                let text = std::str::from_utf8(&acked.text).unwrap();
                let (stamp, value) = text.split_once(':').unwrap();
                let stamp: f64 = stamp.parse().unwrap();
                let value = value.parse().unwrap_or(f64::NAN);
                let value = ((stamp * 1000.0).round() as i64, value.to_bits());
                self.accepted.push((acked.name.clone(), value));
            }
            return;
        }
        let Some(series) = self.define() else { return };
        self.bench.now_s += 1;
        let t_ms = self.bench.now_s * 1000 + self.bench.random(900) as i64;
        let mut samples = Vec::new();
        for (at, &series) in series.iter().enumerate() {
            let runs = 1 + self.bench.random(3) as i64 / 2;
            for run in 0..runs {
                let v = self.bench.random(100_000) as f64 / 8.0;
                samples.push((
                    at,
                    series,
                    Point {
                        t_ms: t_ms + run,
                        v,
                    },
                ));
            }
        }
        let store = self.bench.store().clone();
        let mut batch = store.write_batch();
        let all: Vec<_> = samples
            .iter()
            .map(|(_, series, point)| (*series, *point))
            .collect();
        batch.append_points(&all, &mut |_, why| panic!("{why:?}"));
        if batch.commit().is_ok() {
            for (at, _, point) in samples {
                let name = String::from_utf8(labels(&format!("p{at}")).text().to_vec()).unwrap();
                self.accepted.push((name, (point.t_ms, point.v.to_bits())));
            }
        }
    }

    pub(crate) fn sync(&mut self) {
        let count = self.accepted.len();
        if self.bench.store().durable(Position(u64::MAX)).is_ok() {
            self.synced = count;
        }
    }

    /// Opens the registered tail; a new one begins at the oldest position.
    pub(crate) fn open(&mut self) -> Result<(), TailError> {
        let reader = self.bench.store().tail(Some(NAME), TailFrom::Oldest)?;
        assert!(
            reader.position().0 >= self.acknowledged,
            "an acknowledged position was lost"
        );
        self.reader = Some(reader);
        self.told.names.clear();
        Ok(())
    }

    pub(crate) fn read(&mut self, bytes: u64) -> Result<(), TailError> {
        if self.reader.is_none() {
            self.open()?;
        }
        self.reader.as_mut().unwrap().read(bytes, &mut self.told)
    }

    pub(crate) fn acknowledge(&mut self) -> Result<(), TailError> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        reader.acknowledge()?;
        self.acknowledged = reader.position().0;
        self.acknowledged_count = self.told.count;
        Ok(())
    }

    /// Checks that the tail delivered the first `least` accepted values, each series in order, and no value
    /// that was not accepted.
    pub(crate) fn judge(&self, least: usize, story: &str) {
        let mut accepted: BTreeMap<&str, (Vec<Value>, Vec<Value>)> = BTreeMap::new();
        for (at, (name, value)) in self.accepted.iter().enumerate() {
            let (all, synced) = accepted.entry(name).or_default();
            all.push(*value);
            if at < least {
                synced.push(*value);
            }
        }
        assert!(
            self.told.missed.is_empty(),
            "{story}: {:?}",
            self.told.missed
        );
        for (name, told) in &self.told.values {
            let (all, _) = accepted
                .get(&**name)
                .unwrap_or_else(|| panic!("{story}: {name}"));
            let known: BTreeSet<&Value> = all.iter().collect();
            let strange = told.iter().find(|value| !known.contains(value));
            assert_eq!(strange, None, "{story}: {name} was told what was not sent");
        }
        for (name, (_, synced)) in accepted {
            let told = self.told.values.get(name).cloned().unwrap_or_default();
            let (mut seen, mut order) = (BTreeSet::new(), Vec::<Value>::new());
            order.extend(told.iter().filter(|value| seen.insert(**value)));
            let lost = synced.iter().find(|value| !seen.contains(value));
            assert_eq!(
                lost,
                None,
                "{story}: {name} lost a value of {}",
                synced.len()
            );
            let rises = order.windows(2).all(|pair| pair[0].0 < pair[1].0);
            assert!(rises, "{story}: {name} is out of order: {order:?}");
        }
        assert!(self.bench.now_s >= START);
    }
}
