//! Tails: what was acknowledged to a tail is never given again, all else is, in its order, through kills, power cuts and full disks;
//! a tail that is too far behind learns how much it has missed.

use crate::common::{Bench, SECOND};
use kymo_base::label_set::Labels;
use kymo_store::{
    Files, Point, PointSeries, PointsKind, PointsSchema, Settings, Store, TailFrom, TailSink,
};
use kymo_sys::clock::Clock;
use kymo_sys::disk::Disk;
use kymo_sys::sim_disk::{Fate, Faults};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

const NAME: &str = "forward";

/// Values of each series by its number, in their order.
type Values = BTreeMap<u32, Vec<(i64, u64)>>;

#[derive(Clone, Default)]
struct Kept {
    values: Values,
    count: usize,
    most: usize,
}

impl TailSink for Kept {
    fn value(&mut self, series: u32, column: u16, t_ms: i64, v: f64) {
        assert_eq!(column, 0);
        self.values
            .entry(series)
            .or_default()
            .push((t_ms, v.to_bits()));
        self.count += 1;
    }

    fn changed(&mut self, _series: u32) {}

    fn is_full(&self) -> bool {
        self.count >= self.most
    }
}

/// A store that takes points and values of .rrd files, and a tail that follows it.
#[derive(Default)]
struct Follower {
    /// Values that the follower has confirmed.
    confirmed: Values,
    /// Values that the follower got since.
    tentative: Values,
    position: Option<u64>,
    lost_bytes: u64,
}

impl Follower {
    fn fork(&self) -> Follower {
        Follower {
            confirmed: self.confirmed.clone(),
            tentative: self.tentative.clone(),
            position: self.position,
            lost_bytes: self.lost_bytes,
        }
    }

    /// Reads on, by at most so many values.
    fn read(&mut self, store: &Store, most: usize) {
        let from = match self.position {
            Some(position) => position,
            None => store.begin_tail(NAME, TailFrom::Acknowledged).unwrap(),
        };
        let mut kept = Kept {
            most,
            ..Kept::default()
        };
        let step = store.tail(from).read(&mut kept);
        self.lost_bytes += step.lost_bytes;
        assert_eq!(step.lost_values, 0);
        self.position = Some(step.position);
        add(&mut self.tentative, &kept.values);
    }

    /// Confirms what it has; `false`: that was not possible.
    fn confirm(&mut self, store: &Store) -> bool {
        let Some(position) = self.position else {
            return true;
        };
        let is_done = store.begin_tail(NAME, TailFrom::At(position)).is_ok();
        if is_done {
            add(&mut self.confirmed, &std::mem::take(&mut self.tentative));
        }
        is_done
    }

    /// The follower starts again.
    fn restart(&mut self) {
        self.tentative.clear();
        self.position = None;
    }

    fn all(&self) -> Values {
        let mut all = self.confirmed.clone();
        add(&mut all, &self.tentative);
        all
    }
}

fn add(values: &mut Values, more: &Values) {
    for (series, more) in more {
        values.entry(*series).or_default().extend(more);
    }
}

/// Each moment of a series once: what a journal file carries over is there twice.
fn once(values: &Values) -> Values {
    let of = |values: &Vec<(i64, u64)>| {
        let mut seen = BTreeSet::new();
        let first = values.iter().filter(|(t_ms, _)| seen.insert(*t_ms));
        first.copied().collect()
    };
    values
        .iter()
        .map(|(series, values)| (*series, of(values)))
        .collect()
}

struct Fed {
    bench: Bench,
    /// Acknowledged values, in their order.
    acked: Vec<(u32, (i64, u64))>,
    synced: usize,
    number: u64,
}

fn labels(at: usize) -> Labels {
    let name = format!("m{at}");
    Labels::new([("__name__", name.as_bytes()), ("job", b"test")]).unwrap()
}

impl Fed {
    fn new(seed: u64, settings: impl FnOnce(&mut Settings)) -> Fed {
        let mut bench = Bench::new(seed, 2);
        settings(&mut bench.settings);
        bench.open();
        Fed {
            bench,
            acked: Vec::new(),
            synced: 0,
            number: 0,
        }
    }

    fn fork(&self) -> Fed {
        Fed {
            bench: self.bench.fork(),
            acked: self.acked.clone(),
            synced: self.synced,
            number: self.number,
        }
    }

    fn store(&self) -> &Store {
        self.bench.store()
    }

    fn series(&self, count: usize) -> Option<Vec<PointSeries>> {
        let schema =
            |at| PointsSchema::new([PointsKind::Gauge, PointsKind::Counter][at % 2], 10, 60);
        let all: Vec<(Labels, PointsSchema)> =
            (0..count).map(|at| (labels(at), schema(at))).collect();
        let defined = self.store().define_points(&all).into_iter();
        defined.map(Result::ok).collect()
    }

    /// The number of a series, by its name.
    fn id(&self, name: &[u8]) -> Option<u32> {
        let (known, _) = self.store().known(0);
        known
            .into_iter()
            .find(|known| known.name == name)
            .map(|known| known.id)
    }

    /// A batch of points, and a value of a file.
    fn feed(&mut self, count: usize) {
        let Some(series) = self.series(count) else {
            return;
        };
        let t_ms = self.bench.clock.now().real_ns / 1_000_000;
        let mut points = Vec::new();
        for (at, one) in series.iter().enumerate() {
            let v = match self.bench.random(9) {
                0 => f64::NAN,
                1 => 1.0 / 3.0,
                value => self.number as f64 + value as f64 / 4.0,
            };
            points.push((
                *one,
                Point {
                    t_ms: t_ms + at as i64,
                    v,
                },
            ));
        }
        self.number += 1;
        let store = self.store().clone();
        let mut batch = store.write_batch();
        batch.append_points(&points, &mut |_, why| panic!("{why:?}"));
        if batch.commit().is_err() {
            return;
        }
        for (at, (_, point)) in points.iter().enumerate() {
            let id = self.id(labels(at).text()).unwrap();
            self.acked.push((id, (point.t_ms, point.v.to_bits())));
        }
        let (name, value) = (
            ["f0.rrd", "f1.rrd"][self.number as usize % 2],
            self.number * 3,
        );
        let stamp = self.bench.clock.now().real_ns / SECOND as i64;
        if self.bench.update(name, &[&format!("{stamp}:{value}")]) == Ok(1) {
            let id = self.id(name.as_bytes()).unwrap();
            self.acked
                .push((id, (stamp * 1000, (value as f64).to_bits())));
        }
    }

    fn step(&mut self, number: u64) {
        self.bench.clock.advance_ns(7 * SECOND);
        match number % 8 {
            3 => drop(self.store().maintain()),
            5 => self.sync(),
            7 if number % 16 == 7 => self.store().checkpoint(),
            _ => self.feed(3),
        }
    }

    fn sync(&mut self) {
        let count = self.acked.len();
        if self.store().durable(kymo_store::Position(u64::MAX)).is_ok() {
            self.synced = count;
        }
    }

    fn expected(&self, count: usize) -> Values {
        let mut values = Values::new();
        for (series, value) in &self.acked[..count] {
            values.entry(*series).or_default().push(*value);
        }
        values
    }

    fn kept_files(&self) -> usize {
        let mut count = 0;
        let mut each = |name: &str, _| count += usize::from(name.starts_with("tail-"));
        self.bench
            .disk
            .list(Path::new("/j/kymo"), &mut each)
            .unwrap();
        count
    }
}

#[test]
fn all_values_come_once_they_are_synced_through_kills_at_every_step() {
    for seed in 0..3 {
        let (mut fed, mut follower) = (Fed::new(seed, |_| {}), Follower::default());
        follower.read(fed.store(), usize::MAX);
        assert!(follower.confirm(fed.store()));
        for number in 0..150 {
            fed.step(number);
            match fed.bench.random(4) {
                0 => {}
                1 => follower.read(fed.store(), 5),
                2 => follower.read(fed.store(), usize::MAX),
                _ => assert!(follower.confirm(fed.store())),
            }
            if fed.bench.random(10) == 0 {
                follower.restart();
            }
            let (mut killed, mut after) = (fed.fork(), follower.fork());
            killed.bench.disk.kill();
            killed.bench.reopen();
            after.restart();
            killed.sync();
            after.read(killed.store(), usize::MAX);
            let story = format!("seed {seed}, step {number}");
            assert_eq!(after.all(), killed.expected(killed.acked.len()), "{story}");
            assert_eq!(after.lost_bytes, 0, "{story}");
        }
    }
}

#[test]
fn what_was_synced_comes_through_power_cuts() {
    let mut cuts = 0;
    for seed in 0..3 {
        let (mut fed, mut follower) = (Fed::new(seed, |_| {}), Follower::default());
        follower.read(fed.store(), usize::MAX);
        assert!(follower.confirm(fed.store()));
        for number in 0..70 {
            fed.step(number);
            follower.read(fed.store(), 20);
            if fed.bench.random(3) == 0 {
                assert!(follower.confirm(fed.store()));
            }
            let pending = fed.bench.disk.pending_len() as u32;
            for combination in 0..3_usize.pow(pending.min(3)) {
                let (mut cut, mut after) = (fed.fork(), follower.fork());
                cut.bench.disk.crash(&mut |number| match combination
                    / 3_usize.pow(number.min(8) as u32)
                    % 3
                {
                    0 => Fate::Keep,
                    1 => Fate::Drop,
                    _ => Fate::Torn(combination as u64),
                });
                cuts += 1;
                cut.bench.reopen();
                after.restart();
                let synced = cut.synced;
                cut.sync();
                after.read(cut.store(), usize::MAX);
                let got = once(&after.all());
                let story = format!("seed {seed}, step {number}, fates {combination}");
                let mut counts = (synced..=cut.acked.len()).rev();
                let fits = counts.any(|count| cut.expected(count) == got);
                assert!(fits, "{story}: {:?} {got:?}", cut.expected(synced));
            }
        }
    }
    assert!(cuts > 300, "{cuts}");
}

#[test]
fn a_tail_on_a_full_disk_keeps_what_it_had() {
    let mut refused = 0;
    for at in 1..40 {
        let (mut fed, mut follower) = (Fed::new(at, |_| {}), Follower::default());
        follower.read(fed.store(), usize::MAX);
        assert!(follower.confirm(fed.store()));
        let before = fed.bench.disk.counts().writes + at;
        fed.bench.disk.set_faults(Faults {
            full_writes: Some((before, before + 5)),
            ..Faults::default()
        });
        for number in 0..40 {
            fed.step(number);
            follower.read(fed.store(), 7);
            refused += usize::from(!follower.confirm(fed.store()));
        }
        fed.bench.disk.set_faults(Faults::default());
        fed.bench.disk.kill();
        fed.bench.reopen();
        follower.restart();
        fed.sync();
        follower.read(fed.store(), usize::MAX);
        let got = once(&follower.all());
        assert_eq!(got, fed.expected(fed.acked.len()), "full from write {at}");
    }
    assert!(refused > 10, "{refused}");
}

/// Small journal files, of which few are kept.
fn small(settings: &mut Settings) {
    settings.journal_file_bytes = 8 << 10;
    settings.journal_files = 1;
    settings.tail_bytes = 24 << 10;
    settings.files = Files::Never;
}

#[test]
fn a_tail_that_is_too_far_behind_is_told_exactly_what_it_missed() {
    for (seed, is_old) in [(0, false), (1, false), (2, true)] {
        let settings = |settings: &mut Settings| {
            small(settings);
            if is_old {
                settings.tail_bytes = u64::MAX;
                settings.tail_age = Duration::from_secs(900);
            }
        };
        let mut fed = Fed::new(seed, settings);
        let begun = fed.store().begin_tail(NAME, TailFrom::Now).unwrap();
        let mut most = 0;
        for number in 0..600 {
            fed.bench.clock.advance_ns(7 * SECOND);
            fed.feed(5);
            if number % 5 == 0 {
                fed.store().maintain();
                fed.store().checkpoint();
                most = most.max(fed.kept_files());
            }
        }
        fed.sync();
        let missed = fed.store().missed_by_tail(NAME);
        assert!(missed > 0 && most > 1, "{missed} {most}");
        let mut follower = Follower::default();
        follower.read(fed.store(), usize::MAX);
        assert_eq!(follower.lost_bytes, 0);
        let count: usize = follower.all().values().map(Vec::len).sum();
        assert_eq!(count as u64 + missed, fed.acked.len() as u64, "{seed}");
        // The tail gets the newest values.
        let expected = fed.expected(fed.acked.len());
        for (series, values) in follower.all() {
            assert!(expected[&series].ends_with(&values));
        }
        // A reader without a name sees that the oldest bytes are gone.
        let mut kept = Kept {
            most: usize::MAX,
            ..Kept::default()
        };
        assert!(fed.store().tail(begun).read(&mut kept).lost_bytes > 0);
        // The count outlives the process, and what is kept goes with the tail.
        fed.bench.disk.kill();
        fed.bench.reopen();
        assert_eq!(fed.store().missed_by_tail(NAME), missed);
        assert!(fed.kept_files() > 0);
        assert!(fed.store().end_tail(NAME).unwrap());
        assert_eq!(fed.kept_files(), 0);
        assert!(!fed.store().end_tail(NAME).unwrap());
    }
}

#[test]
fn any_position_is_answered() {
    let mut fed = Fed::new(3, small);
    for number in 0..100 {
        fed.step(number);
    }
    fed.sync();
    let whole = {
        let mut kept = Kept {
            most: usize::MAX,
            ..Kept::default()
        };
        let from = fed.store().begin_tail("", TailFrom::Oldest).unwrap();
        let step = fed.store().tail(from).read(&mut kept);
        for position in (0..step.position + 50)
            .step_by(13)
            .chain([u64::MAX, 1 << 61])
        {
            let mut part = Kept {
                most: usize::MAX,
                ..Kept::default()
            };
            let from = fed.store().begin_tail("", TailFrom::At(position)).unwrap();
            fed.store().tail(from).read(&mut part);
            for (series, values) in &part.values {
                assert!(kept.values[series].ends_with(values), "{position}");
            }
            fed.store().tail(position).read(&mut part);
        }
        kept
    };
    assert!(whole.count > 50);
}

#[test]
fn tails_have_names_and_a_limit() {
    let mut fed = Fed::new(4, |_| {});
    let store = fed.store().clone();
    for name in ["a b", "\u{e4}", "x\n", &"x".repeat(65)] {
        assert!(store.begin_tail(name, TailFrom::Now).is_err(), "{name:?}");
    }
    for number in 0..16 {
        store
            .begin_tail(&format!("t{number}"), TailFrom::Now)
            .unwrap();
    }
    let error = store
        .begin_tail("more", TailFrom::Now)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "cannot remember one more tail in /j/kymo/tails: there are 16"
    );
    store.begin_tail("t3", TailFrom::Now).unwrap();
    let tails = store.tails();
    fed.bench.disk.kill();
    fed.bench.reopen();
    assert_eq!(fed.store().tails(), tails);
}

#[test]
fn a_tail_waits_for_what_comes() {
    let mut fed = Fed::new(5, |_| {});
    fed.feed(1);
    fed.sync();
    let now = fed.store().begin_tail("", TailFrom::Now).unwrap();
    assert!(!fed.store().wait_for_tail(now, Duration::from_millis(20)));
    let waits = fed.store().clone();
    let waiter = std::thread::spawn(move || waits.wait_for_tail(now, Duration::from_secs(300)));
    fed.bench.clock.advance_ns(SECOND);
    fed.feed(1);
    fed.sync();
    assert!(waiter.join().unwrap());
}

/// Prints what a sample costs a tail.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_sample() {
    let mut fed = Fed::new(6, |settings| {
        settings.journal_file_bytes = 16 << 20;
        settings.journal_files = 16;
        settings.chunk_values = 64;
        settings.segment_bytes = 64 << 20;
    });
    let series = fed.series(10_000).unwrap();
    let mut values = vec![0_u64; series.len()];
    for _ in 0..100 {
        fed.bench.clock.advance_ns(10 * SECOND);
        let t_ms = fed.bench.clock.now().real_ns / 1_000_000;
        let points = series.iter().zip(&mut values).map(|(one, value)| {
            *value += fed.bench.random(5000);
            (
                *one,
                Point {
                    t_ms,
                    v: *value as f64,
                },
            )
        });
        let points: Vec<(PointSeries, Point)> = points.collect();
        let store = fed.store().clone();
        let mut batch = store.write_batch();
        batch.append_points(&points, &mut |_, why| panic!("{why:?}"));
        batch.commit().unwrap();
    }
    fed.sync();
    struct Sum(u64, f64);
    impl TailSink for Sum {
        fn value(&mut self, _series: u32, _column: u16, _t_ms: i64, v: f64) {
            self.0 += 1;
            self.1 += v;
        }
        fn changed(&mut self, _series: u32) {}
        fn is_full(&self) -> bool {
            false
        }
    }
    let from = fed.store().begin_tail("", TailFrom::Oldest).unwrap();
    let (begun, mut sum) = (Instant::now(), Sum(0, 0.0));
    fed.store().tail(from).read(&mut sum);
    let ns = begun.elapsed().as_nanos() as f64 / sum.0 as f64;
    eprintln!("{} samples, {ns:.1} ns each, sum {}", sum.0, sum.1);
    assert_eq!(sum.0, 1_000_000);
}
