//! Erases samples of a range from memory, the journal, blocks and rows: all of them or none, whatever happens.

use crate::common::START;
use crate::points::{ALL, labels};
use crate::points_kept::{Counters, HOUR, retention};
use kymo_store::{Point, PointRefusal, TimeRange};
use kymo_sys::sim_disk::Faults;

/// Two counters: early samples are rows, some are in blocks, and a few are only in memory.
fn counters(seed: u64, samples: i64) -> Counters {
    let mut all = Counters::new(seed, 2, retention(HOUR, 100 * HOUR, 200 * HOUR));
    all.late_every = 9;
    all.run(samples);
    all
}

fn erase(all: &Counters, range: TimeRange) -> Result<(), kymo_store::FileError> {
    let name = labels("m0").text().to_vec();
    all.bench.store().erase(&[name], range).remove(0)
}

fn samples(all: &Counters, at: usize) -> Vec<Point> {
    let store = all.bench.store();
    let series = store.find_points(&labels(&format!("m{at}"))).unwrap();
    let read = store.samples(series, ALL).unwrap();
    assert_eq!(read.damaged, 0);
    read.points
}

fn has(range: TimeRange, point: &Point) -> bool {
    (range.from..=range.thru).contains(&point.t_ms.div_euclid(1000))
}

/// Ranges in seconds since the start; the counters run for four hundred minutes.
const RANGES: [(i64, i64); 8] = [
    (23_900, 24_500),
    (22_000, 23_000),
    (600, 1200),
    (1000, 1000),
    (18_000, 23_000),
    (0, 25_000),
    (-10_000, -1),
    (30_000, 40_000),
];

fn range((from, thru): (i64, i64)) -> TimeRange {
    TimeRange {
        from: START + from,
        thru: START + thru,
    }
}

#[test]
fn samples_of_a_range_go_and_rows_that_overlap() {
    let mut went = 0;
    for (seed, range) in RANGES.into_iter().map(range).enumerate() {
        let mut all = counters(seed as u64, 400);
        let story = format!("{range:?}");
        let (mut left, other) = (samples(&all, 0), samples(&all, 1));
        let before: Vec<_> = [300, 3600]
            .map(|step_s| (step_s, all.rows(0, step_s)))
            .into();
        let count = left.len();
        left.retain(|point| !has(range, point));
        went += count - left.len();
        erase(&all, range).unwrap();
        for life in 0..3 {
            assert_eq!(samples(&all, 0), left, "{story}, life {life}");
            assert_eq!(samples(&all, 1), other, "{story}, life {life}");
            for (step_s, before) in &before {
                let after = all.rows(0, *step_s);
                let step = i64::from(*step_s);
                let overlaps = |end: i64| range.from <= end && end - step <= range.thru;
                for (end, row) in before.iter().filter(|(end, _)| !overlaps(**end)) {
                    let now = after.get(end).unwrap_or_else(|| panic!("{story}: {end}"));
                    // The increase may differ: the next sample now grows from the one before the range.
                    assert_eq!(
                        (now.count, now.sum, now.min, now.max, now.last),
                        (row.count, row.sum, row.min, row.max, row.last),
                        "{story}: {end}"
                    );
                }
                for (end, row) in after.iter().filter(|(end, _)| overlaps(**end)) {
                    let mine = left.iter().filter(|point| {
                        let t_ms = point.t_ms;
                        (end - step) * 1000 < t_ms && t_ms <= end * 1000
                    });
                    assert_eq!(row.count, mine.count() as f64, "{story}: {end}");
                }
            }
            match life {
                0 => all.bench.disk.kill(),
                _ => all.bench.store().checkpoint(),
            }
            all.bench.reopen();
        }
        // The series still accepts samples.
        all.run(100);
        assert!(samples(&all, 0).len() > 60, "{story}");
    }
    assert!(went > 200, "{went}");
}

/// Writers still hold the number that the series had before.
#[test]
fn who_holds_the_series_goes_on_with_it() {
    let all = counters(1, 100);
    let store = all.bench.store().clone();
    let held = all.series(0);
    let newest = samples(&all, 0).last().copied().unwrap();
    let second = newest.t_ms / 1000;
    for (number, range) in [(0, -500), (-60, 0), (-100_000, 100_000)]
        .into_iter()
        .enumerate()
    {
        let range = TimeRange {
            from: second + range.0,
            thru: second + range.1.max(range.0),
        };
        erase(&all, range).unwrap();
        assert!(!samples(&all, 0).iter().any(|point| has(range, point)));
        let point = Point {
            t_ms: newest.t_ms + 1 + number as i64,
            v: 7.0,
        };
        let mut batch = store.write_batch();
        assert_eq!(
            batch.append_points(&[(held, point)], &mut |_, why| panic!("{why:?}")),
            1
        );
        batch.commit().unwrap();
        assert_eq!(store.samples(held, ALL).unwrap().points, samples(&all, 0));
        assert_eq!(samples(&all, 0).last(), Some(&point));
    }
}

/// A sample of the year 2033 blocks all others until it is erased.
#[test]
fn a_sample_of_the_future_gives_way() {
    let mut all = counters(3, 50);
    let held = all.series(0);
    let future = Point {
        t_ms: 2_000_000_000_000,
        v: 1.0,
    };
    let mut batch = all.bench.store().write_batch();
    assert_eq!(batch.append_points(&[(held, future)], &mut |_, _| {}), 1);
    batch.commit().unwrap();
    let present = Point {
        t_ms: samples(&all, 1).last().expect("a sample").t_ms + 1,
        v: 2.0,
    };
    let refused = |all: &Counters| {
        let (mut batch, mut why) = (all.bench.store().write_batch(), None);
        batch.append_points(&[(held, present)], &mut |_, reason| why = Some(reason));
        batch.commit().unwrap();
        why
    };
    assert_eq!(refused(&all), Some(PointRefusal::TooOld));
    let at = future.t_ms / 1000;
    erase(&all, TimeRange { from: at, thru: at }).unwrap();
    assert_eq!(refused(&all), None);
    let count = samples(&all, 0).len();
    all.run(10);
    all.bench.disk.kill();
    all.bench.reopen();
    assert!(samples(&all, 0).len() > count);
}

/// After a power cut or a kill, a range is erased as a whole or not at all.
#[test]
fn all_of_a_range_goes_or_nothing() {
    let (mut stayed, mut went) = (0, 0);
    for (seed, range) in RANGES.into_iter().map(range).take(5).enumerate() {
        let mut begun = counters(seed as u64, 400);
        let everything = kymo_store::Position(u64::MAX);
        begun.bench.store().durable(everything).unwrap();
        let look = |all: &Counters| (samples(all, 0), all.rows(0, 300), all.rows(0, 3600));
        let before = look(&begun);
        begun.bench.store = None;
        let after = {
            let erased = begun.fork();
            erase(&erased, range).unwrap();
            look(&erased)
        };
        assert_ne!(before, after);
        for power in [false, true] {
            for operation in 1.. {
                let mut all = begun.fork();
                let counted = all.bench.disk.counts().operations;
                all.bench.disk.set_faults(Faults {
                    power_off_at: Some(counted + operation),
                    ..Faults::default()
                });
                let done = erase(&all, range);
                let ended = all.bench.disk.counts().faults == 0;
                all.bench.disk.set_faults(Faults::default());
                match power {
                    true => all.bench.disk.crash_by_chance(seed as u64 + operation),
                    false => all.bench.disk.kill(),
                }
                all.bench.reopen();
                let story = format!("{range:?}, power {power}, operation {operation}");
                for _ in 0..2 {
                    let found = look(&all);
                    let is_one = [&before, &after].iter().position(|look| **look == found);
                    let at = is_one.unwrap_or_else(|| panic!("{story}: {:?}", found.0));
                    assert!(at == 1 || done.is_err(), "{story}: it came back");
                    (stayed, went) = (stayed + u64::from(at == 0), went + u64::from(at == 1));
                    all.bench.store().checkpoint();
                    all.bench.reopen();
                }
                if ended {
                    done.unwrap();
                    break;
                }
            }
        }
    }
    assert!(stayed > 20 && went > 10, "{stayed} {went}");
}
