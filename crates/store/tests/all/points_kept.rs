//! Retention of point series: by the configured times, and by the room for the store.

use crate::common::{Bench, SECOND, START, folder};
use crate::points::{ALL, labels, rows};
use kymo_base::label_set::{LabelLimits, Labels};
use kymo_base::random::next_random;
use kymo_store::status::{self, Status};
use kymo_store::{
    FileError, LookRange, Point, PointSeries, PointsKind, PointsRetention, PointsSchema,
    SeriesName, Tier,
};
use kymo_sys::clock::Clock;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const HOUR: i64 = 3600;

/// Counters that all get a sample at each interval.
pub(crate) struct Counters {
    pub(crate) bench: Bench,
    values: Vec<f64>,
    pub(crate) acked: Vec<(usize, Point)>,
    said: Vec<String>,
    interval_s: u32,
    /// On average, one of this number of samples is a counter reset that arrives six minutes late; 0: none.
    pub(crate) late_every: u64,
    held: Vec<(usize, Point)>,
}

impl Counters {
    pub(crate) fn new(seed: u64, count: usize, retention: Option<PointsRetention>) -> Counters {
        let mut bench = Bench::new(seed, 0);
        bench.settings.points = retention;
        bench.settings.segment_bytes = 8000;
        bench.open();
        Counters {
            bench,
            values: vec![0.0; count],
            acked: Vec::new(),
            said: Vec::new(),
            interval_s: 60,
            late_every: 0,
            held: Vec::new(),
        }
    }

    pub(crate) fn series(&self, at: usize) -> PointSeries {
        let schema = PointsSchema::new(PointsKind::Counter, self.interval_s, 120);
        let defined = self
            .bench
            .store()
            .define_points(&[(labels(&format!("m{at}")), schema)]);
        *defined[0].as_ref().unwrap()
    }

    /// Copies the disk and the test's knowledge, and opens the copy.
    pub(crate) fn fork(&self) -> Counters {
        let mut bench = self.bench.fork();
        bench.open();
        Counters {
            bench,
            values: self.values.clone(),
            acked: self.acked.clone(),
            said: Vec::new(),
            interval_s: self.interval_s,
            late_every: self.late_every,
            held: self.held.clone(),
        }
    }

    fn now_s(&self) -> i64 {
        self.bench.clock.now().real_ns / 1_000_000_000
    }

    pub(crate) fn run(&mut self, samples: i64) {
        let all: Vec<PointSeries> = (0..self.values.len()).map(|at| self.series(at)).collect();
        for _ in 0..samples {
            self.bench
                .clock
                .advance_ns(u64::from(self.interval_s) * SECOND);
            let (t_ms, before) = (self.now_s() * 1000, self.acked.len());
            for (at, value) in self.values.iter_mut().enumerate() {
                let random = next_random(&mut self.bench.random);
                *value += random as f64 % 5000.0;
                let is_late = self.late_every > 0 && (random >> 20).is_multiple_of(self.late_every);
                if is_late {
                    *value = 1.0;
                }
                let point = Point { t_ms, v: *value };
                match is_late {
                    true => self.held.push((at, point)),
                    false => self.acked.push((at, point)),
                }
            }
            let is_due = |(_, point): &mut (usize, Point)| point.t_ms <= t_ms - 360_000;
            self.acked.extend(self.held.extract_if(.., is_due));
            let new = &self.acked[before..];
            let samples: Vec<_> = new.iter().map(|&(at, point)| (all[at], point)).collect();
            let store = self.bench.store().clone();
            let mut batch = store.write_batch();
            batch.append_points(&samples, &mut |_, why| panic!("{why:?}"));
            batch.commit().unwrap();
            for _ in 0..3 {
                store.maintain();
            }
            self.said.extend(store.take_notices());
        }
        self.bench.store().checkpoint();
        self.bench.store().maintain();
    }

    /// Seconds that the stored samples of a series cover. Segments with few dead samples may keep old ones.
    fn samples_reach_s(&self, at: usize) -> i64 {
        let read = self.bench.store().samples(self.series(at), ALL).unwrap();
        let mine = self.acked.iter().filter(|(series, _)| *series == at);
        let mine: BTreeMap<i64, f64> = mine.map(|(_, point)| (point.t_ms, point.v)).collect();
        for point in &read.points {
            assert_eq!(mine.get(&point.t_ms), Some(&point.v));
        }
        read.points.len() as i64 * i64::from(self.interval_s)
    }

    /// Rows of a series in the store, by the end of the row.
    pub(crate) fn rows(&self, at: usize, step_s: u32) -> BTreeMap<i64, Tier> {
        let store = self.bench.store();
        let found = store.tier_rows(self.series(at), step_s, (0, i64::MAX / 2));
        let found = found.unwrap().into_iter();
        found.map(|row| (row.end_s, row.tier)).collect()
    }

    fn status(&self) -> Status {
        let disk = Arc::new(self.bench.disk.clone());
        status::status(disk, &*self.bench.clock, &folder()).unwrap()
    }

    /// Step of the answer for some early hours, of which each row is known.
    fn seen_s(&self, at: usize) -> u64 {
        let name = labels(&format!("m{at}"));
        let range = LookRange {
            from: START + 2 * HOUR,
            thru: START + 5 * HOUR,
            step: 10,
            cells_max: 1000,
        };
        let looked = self.bench.store().look(SeriesName::Labels(&name), &range);
        let mean = looked.unwrap().mean;
        assert!(mean.rows.iter().all(|cell| !cell.is_nan()), "{mean:?}");
        mean.step
    }

    /// Checks that rows of the last `kept_s` seconds are those of the samples; returns the number of all rows.
    fn rows_count(&self, at: usize, step_s: u32, kept_s: i64) -> usize {
        let mut sorted = self.acked.clone();
        sorted.sort_by_key(|(_, point)| point.t_ms);
        let (mut found, mut expected) =
            (self.rows(at, step_s), rows(&sorted, at, i64::from(step_s)));
        let count = found.len();
        let from = self.now_s() - kept_s + i64::from(step_s);
        found.retain(|end, _| *end > from);
        expected.retain(|end, _| *end > from);
        assert_eq!(found, expected, "rows of {step_s} s");
        count
    }

    /// Checks counts and increases of all rows, but not `last`, which a late sample may have set.
    fn increases_fit(&self, at: usize, step_s: u32) {
        let mut sorted = self.acked.clone();
        sorted.sort_by_key(|(_, point)| point.t_ms);
        let expected = rows(&sorted, at, i64::from(step_s));
        let found = self.rows(at, step_s);
        let of = |row: Option<&Tier>| row.map(|row| (row.count, row.increase));
        let wrong = expected
            .iter()
            .filter(|(end, row)| of(found.get(end)) != of(Some(row)));
        let wrong: Vec<_> = wrong
            .map(|(end, row)| (end, of(Some(row)), of(found.get(end))))
            .collect();
        assert!(wrong.is_empty(), "rows of {step_s} s: {wrong:?}");
        assert_eq!(found.len(), expected.len());
    }
}

pub(crate) fn retention(samples_s: i64, rows_5m_s: i64, rows_1h_s: i64) -> Option<PointsRetention> {
    let [samples_s, rows_5m_s, rows_1h_s] =
        [samples_s, rows_5m_s, rows_1h_s].map(|seconds| u32::try_from(seconds).unwrap());
    Some(PointsRetention {
        samples_s,
        rows_5m_s,
        rows_1h_s,
    })
}

#[test]
fn other_times_count_for_series_that_are_there() {
    let mut all = Counters::new(1, 2, None);
    all.run(600);
    assert!(all.samples_reach_s(0) > 9 * HOUR);
    all.bench.settings.points = retention(HOUR, 3 * HOUR, 24 * HOUR);
    all.bench.reopen();
    all.run(120);
    for at in 0..2 {
        let reach_s = all.samples_reach_s(at);
        assert!((HOUR..4 * HOUR).contains(&reach_s), "{reach_s}");
        let count = all.rows_count(at, 300, 3 * HOUR);
        assert!((36..100).contains(&count), "{count}");
        all.rows_count(at, 3600, 24 * HOUR);
    }
    // Longer times apply to samples from now on.
    all.bench.settings.points = retention(5 * HOUR, 24 * HOUR, 48 * HOUR);
    all.bench.reopen();
    all.run(400);
    for at in 0..2 {
        let reach_s = all.samples_reach_s(at);
        assert!((5 * HOUR..9 * HOUR).contains(&reach_s), "{reach_s}");
        all.rows_count(at, 300, 9 * HOUR);
        all.rows_count(at, 3600, 48 * HOUR);
    }
    // A new series beside the others.
    all.values.push(0.0);
    all.run(20);
    assert!(all.rows_count(2, 300, 24 * HOUR) > 0);
}

#[test]
fn long_label_sets_begin_no_series_and_stay_where_they_are() {
    let set = |count: usize| {
        let labels: Vec<String> = (0..count).map(|at| format!("l{at}")).collect();
        Labels::new(labels.iter().map(|name| (&**name, &b"v"[..]))).unwrap()
    };
    let mut bench = Bench::new(1, 0);
    bench.open();
    let schema = PointsSchema::new(PointsKind::Gauge, 10, 60);
    let define = |bench: &Bench, labels: Labels| {
        let defined = bench.store().define_points(&[(labels, schema.clone())]);
        defined.into_iter().next().unwrap()
    };
    assert!(define(&bench, set(64)).is_ok());
    let Err(FileError::Rrd(why)) = define(&bench, set(65)) else {
        panic!("it began");
    };
    assert_eq!(why, "its set has 65 labels, 64 at most are taken");
    bench.settings.labels = LabelLimits {
        labels: 3,
        bytes: 40,
    };
    bench.reopen();
    let known = define(&bench, set(64)).unwrap();
    let (mut batch, point) = (bench.store().write_batch(), Point { t_ms: 1, v: 1.0 });
    assert_eq!(batch.append_points(&[(known, point)], &mut |_, _| {}), 1);
    batch.commit().unwrap();
    assert!(define(&bench, set(4)).is_err());
    let long = Labels::new([("a", &b"0123456789012345678901234567890123456789"[..])]).unwrap();
    assert!(define(&bench, long.clone()).is_err());
    let header = crate::common::rrd(b"GAUGE").header;
    let name = SeriesName::Labels(&long);
    let defined = bench
        .store()
        .define(vec![kymo_store::Definition { name, header }]);
    assert!(defined[0].is_err(), "{defined:?}");
}

/// A late sample whose neighbours were saved first once added nothing to its counter's growth, and the next one too much.
#[test]
fn late_resets_are_in_the_growth_when_samples_leave() {
    for seed in 0..4 {
        let mut all = Counters::new(seed, 2, retention(HOUR, 100 * HOUR, 200 * HOUR));
        all.late_every = 5;
        all.run(1200);
        all.bench.disk.kill();
        all.bench.reopen();
        for at in 0..2 {
            assert!(all.samples_reach_s(at) < 8 * HOUR);
            for step_s in [300, 3600] {
                all.increases_fit(at, step_s);
            }
        }
    }
}

/// A read of an old range once read every younger block.
#[test]
fn an_old_hour_is_read_from_few_blocks() {
    let mut bench = Bench::new(1, 0);
    (bench.settings.chunk_values, bench.settings.segment_bytes) = (64, 64 << 20);
    bench.settings.journal_files = 8;
    bench.open();
    let schema = PointsSchema::new(PointsKind::Gauge, 10, 60);
    let series = bench.store().define_points(&[(labels("m"), schema)]);
    let series = *series[0].as_ref().unwrap();
    let start_ms = bench.clock.now().real_ns / 1_000_000;
    let samples = 15 * 8640;
    let point = |at: i64| Point {
        t_ms: start_ms + at * 10_000,
        v: at as f64,
    };
    for first in (0..samples).step_by(40) {
        let mut batch = bench.store().write_batch();
        let few: Vec<_> = (first..first + 40).map(|at| (series, point(at))).collect();
        assert_eq!(batch.append_points(&few, &mut |_, _| {}), 40);
        batch.commit().unwrap();
        bench.store().maintain();
    }
    for _ in 0..2 {
        let whole = bench.store().samples(series, ALL).unwrap();
        assert_eq!(whole.points.len() as i64, samples);
        assert!(whole.blocks > 800, "{}", whole.blocks);
        for first in [0, 8640, 100_000, samples - 361] {
            let range = (point(first).t_ms, point(first + 360).t_ms);
            let hour = bench.store().samples(series, range).unwrap();
            let expected: Vec<Point> = (first..=first + 360).map(point).collect();
            assert_eq!(hour.points, expected);
            assert!(hour.blocks <= 5, "{} blocks of {first}", hour.blocks);
        }
        bench.store().checkpoint();
        bench.reopen();
    }
}

/// Where room is short, samples go first, then rows of five minutes; rows of an hour stay.
#[test]
fn samples_go_first_and_rows_of_an_hour_stay() {
    let run = |store_bytes: u64| {
        let mut all = Counters::new(9, 3, None);
        all.interval_s = 5;
        all.bench.settings.chunk_values = 30;
        all.bench.settings.segment_bytes = 20_000;
        all.bench.settings.store_bytes = store_bytes;
        all.bench.reopen();
        all.run(14_400);
        all
    };
    let samples_said = "samples are rows sooner than they should be: there is no room for all in";
    let fine_said =
        "the finest rows of samples go sooner than they should: there is no room for all in";
    let whole = run(1 << 30);
    assert_eq!(whole.said, Vec::<String>::new());
    let hours: Vec<_> = (0..3).map(|at| whole.rows(at, 3600)).collect();
    for (cap, says) in [
        (40_000, &[samples_said][..]),
        (20_000, &[samples_said]),
        (10_000, &[samples_said, fine_said]),
    ] {
        let mut all = run(cap);
        let lines = says.iter().map(|line| format!("{line} {cap} bytes"));
        assert_eq!(all.said.len(), says.len(), "{:?}", all.said);
        let mut said = all.said.iter().zip(lines);
        assert!(said.all(|(said, line)| said.starts_with(&line)));
        let is_fine_whole = says.len() == 1;
        for _ in 0..2 {
            for (at, hours) in hours.iter().enumerate() {
                let reach_s = all.samples_reach_s(at);
                assert!(reach_s < 10 * HOUR, "{cap}: {reach_s}");
                match is_fine_whole {
                    true => assert_eq!(all.rows_count(at, 300, 100 * HOUR), 241, "{cap}"),
                    false => assert!(all.rows(at, 300).len() < 150, "{cap}"),
                }
                assert_eq!(all.rows(at, 3600), *hours, "{cap}");
                // The answer for early hours has the finest rows that are left.
                assert_eq!(all.seen_s(at), if is_fine_whole { 300 } else { 3600 });
            }
            all.bench.reopen();
        }
        let found = all.status();
        let (points, fine) = (found.points.unwrap(), found.fine_rows.unwrap());
        assert!(points.0 > points.1 - 10.0 * HOUR as f64, "{points:?}");
        let is_short = fine.0 > (START + 5 * HOUR) as f64;
        assert_eq!(is_short, !is_fine_whole, "{fine:?}");
    }
}

/// Questions for all samples once found none before the oldest one that was kept.
#[test]
fn rows_stand_for_expired_samples() {
    let mut all = Counters::new(4, 2, retention(HOUR, 6 * HOUR, 48 * HOUR));
    all.run(1500);
    let (store, now_s) = (all.bench.store().clone(), all.now_s());
    let series = all.series(1);
    let truth = |t_s: i64| {
        let mine = all.acked.iter().filter(|(at, _)| *at == 1);
        let before = mine.take_while(|(_, point)| point.t_ms <= t_s * 1000);
        before.last().map_or(0.0, |(_, point)| point.v)
    };
    for (back_s, before) in [(25 * HOUR, 0), (8 * HOUR, 2), (4 * HOUR + 100, 1), (600, 2)] {
        let from_ms = (now_s - back_s) * 1000;
        let expired = store.expired_rows(series, (from_ms, now_s * 1000), before);
        let expired = expired.unwrap();
        let range = (from_ms.max(expired.thru_ms + 1), now_s * 1000);
        let samples = store.samples(series, range).unwrap().points;
        let ends: Vec<(i64, u32)> = expired
            .rows
            .iter()
            .map(|(s, row)| (row.end_s, *s))
            .collect();
        // Each row begins where the one before ends, and the first sample after them is the next one.
        for pair in ends.windows(2) {
            assert_eq!(pair[0].0, pair[1].0 - i64::from(pair[1].1), "{ends:?}");
            assert!(pair[0].1 >= pair[1].1);
        }
        if let (Some((last_s, _)), Some((first_s, step_s))) = (ends.last(), ends.first()) {
            assert_eq!(last_s * 1000, expired.thru_ms);
            let first_ms = samples[0].t_ms;
            assert!(
                (1..=60_000).contains(&(first_ms - last_s * 1000)),
                "{first_ms}"
            );
            let step_s = i64::from(*step_s);
            let rows_before = (from_ms / 1000 - first_s + step_s - 1).div_euclid(step_s);
            assert_eq!(rows_before, i64::from(before), "{back_s}");
        } else {
            assert!(samples[0].t_ms - from_ms <= 60_000);
        }
        let grown: f64 = expired
            .rows
            .iter()
            .skip(1)
            .map(|(_, row)| row.tier.increase)
            .sum();
        let ends = ends.first().zip(ends.last());
        let expect = ends.map_or(0.0, |(first, last)| truth(last.0) - truth(first.0));
        assert!(
            (grown - expect).abs() < 1e-6 * expect.max(1.0),
            "{grown} {expect}"
        );
    }
    let steps = |back_s: i64| -> Vec<u32> {
        let range = ((now_s - back_s) * 1000, now_s * 1000);
        let rows = store.expired_rows(series, range, 0).unwrap().rows;
        let mut steps: Vec<u32> = rows.iter().map(|(step_s, _)| *step_s).collect();
        steps.dedup();
        steps
    };
    assert_eq!(steps(24 * HOUR), [3600, 300]);
    assert_eq!(steps(5 * HOUR), [300]);
    assert_eq!(steps(600), [] as [u32; 0]);
}
