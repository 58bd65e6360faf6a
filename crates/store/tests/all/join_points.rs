//! Samples from elsewhere join series of points: older ones, newer ones, rows of times of which there is nothing.

use crate::common::{Bench, START};
use crate::points::{ALL, labels};
use kymo_store::{ForeignPoints, JoinMode, Joined, Point, PointsKind, PointsSchema, Tier, TierRow};
use kymo_sys::effort::effort;
use kymo_sys::sim_disk::Faults;
use std::ops::Range;

const NAME: &str = "a";

fn bench(seed: u64) -> Bench {
    let mut bench = Bench::new(seed, 0);
    bench.settings.chunk_values = 8;
    bench.open();
    bench
}

/// A sample each 15 s.
fn points(range: Range<i64>) -> Vec<Point> {
    let point = |at: i64| Point {
        t_ms: (START + 15 * at) * 1000,
        v: (at * at) as f64,
    };
    range.map(point).collect()
}

fn foreign(points: Vec<Point>, rows: Vec<(u32, TierRow)>) -> ForeignPoints {
    ForeignPoints {
        labels: labels(NAME),
        kind: PointsKind::Counter,
        points,
        rows,
    }
}

fn join(bench: &Bench, foreign: ForeignPoints, mode: JoinMode) -> Result<Joined, String> {
    let outcome = bench.store().join_points(&[foreign], mode).remove(0);
    outcome.map_err(|error| error.to_string())
}

fn send(bench: &Bench, points: &[Point]) {
    let schema = PointsSchema::new(PointsKind::Counter, 15, 60);
    let defined = bench.store().define_points(&[(labels(NAME), schema)]);
    let series = *defined[0].as_ref().unwrap();
    for point in points {
        let mut batch = bench.store().write_batch();
        batch.append_points(&[(series, *point)], &mut |_, why| panic!("{why:?}"));
        batch.commit().unwrap();
        bench.store().maintain();
    }
}

fn samples(bench: &Bench) -> Vec<Point> {
    let Some(series) = bench.store().find_points(&labels(NAME)) else {
        return Vec::new();
    };
    let read = bench.store().samples(series, ALL).unwrap();
    assert_eq!(read.damaged, 0);
    read.points
}

fn joined(is_new: bool, added: u64, differing: u64) -> Joined {
    Joined {
        is_new,
        added,
        differing,
    }
}

#[test]
fn samples_from_before_between_and_behind_join() {
    for (own, theirs, is_new, added) in [
        (0..0, 0..50, true, 50),
        (100..140, 0..100, false, 100),
        (100..140, 90..160, false, 30),
        (100..140, 150..160, false, 10),
        (100..140, 110..120, false, 0),
        (100..103, 0..110, false, 107),
    ] {
        let story = format!("{own:?} {theirs:?}");
        let mut bench = bench(1);
        if !own.is_empty() {
            send(&bench, &points(own.clone()));
        }
        let expected = joined(is_new, added, 0);
        let before = samples(&bench);
        let looked = join(
            &bench,
            foreign(points(theirs.clone()), Vec::new()),
            JoinMode::Look,
        );
        assert_eq!(looked, Ok(expected), "{story}");
        assert_eq!(samples(&bench), before, "{story}");
        let done = join(
            &bench,
            foreign(points(theirs.clone()), Vec::new()),
            JoinMode::Change,
        );
        assert_eq!(done, Ok(expected), "{story}");
        let mut all: Vec<Point> = [points(own.clone()), points(theirs.clone())].concat();
        all.sort_by_key(|point| point.t_ms);
        all.dedup_by_key(|point| point.t_ms);
        for life in 0..3 {
            assert_eq!(samples(&bench), all, "{story}, life {life}");
            let again = join(
                &bench,
                foreign(points(theirs.clone()), Vec::new()),
                JoinMode::Change,
            );
            assert_eq!(again, Ok(joined(false, 0, 0)), "{story}, life {life}");
            if life == 1 {
                send(&bench, &points(200..230));
                all.extend(points(200..230));
                assert_eq!(samples(&bench), all, "{story}");
            }
            bench.disk.kill();
            bench.reopen();
        }
    }
}

#[test]
fn samples_that_differ_stay() {
    let bench = bench(2);
    send(&bench, &points(0..40));
    let mut theirs = points(0..60);
    theirs.iter_mut().for_each(|point| point.v += 0.5);
    let done = join(&bench, foreign(theirs, Vec::new()), JoinMode::Change);
    assert_eq!(done, Ok(joined(false, 20, 40)));
    assert_eq!(samples(&bench)[..40], points(0..40)[..]);
}

#[test]
fn samples_out_of_order_are_refused() {
    let bench = bench(3);
    let mut theirs = points(0..3);
    theirs.swap(0, 1);
    let refused = join(&bench, foreign(theirs, Vec::new()), JoinMode::Change);
    assert_eq!(refused, Err("its samples are not in order".into()));
}

#[test]
fn rows_come_where_there_is_nothing_else() {
    let mut bench = bench(4);
    send(&bench, &points(0..80));
    let row = |end_s: i64| {
        let tier = Tier {
            min: 1.0,
            max: 3.0,
            sum: 8.0,
            count: 4.0,
            last: 3.0,
            increase: 2.0,
        };
        (300, TierRow { end_s, tier })
    };
    // Rows end at multiples of their length: the last one has samples of the store.
    let first = (START - 6000) / 300 * 300;
    let rows: Vec<_> = [first, first + 300, START / 300 * 300 + 300]
        .map(row)
        .into();
    let done = join(&bench, foreign(Vec::new(), rows.clone()), JoinMode::Change);
    assert_eq!(done, Ok(joined(false, 2, 0)));
    let mut known = rows[..2].to_vec();
    known.push((60, rows[0].1));
    let again = join(&bench, foreign(Vec::new(), known), JoinMode::Change);
    assert_eq!(again, Ok(joined(false, 0, 0)));
    for _ in 0..2 {
        let series = bench.store().find_points(&labels(NAME)).unwrap();
        let range = (START - 7000, START - 1000);
        let found = bench.store().tier_rows(series, 300, range).unwrap();
        let expected: Vec<TierRow> = rows[..2].iter().map(|(_, row)| *row).collect();
        assert_eq!(found, expected);
        assert_eq!(samples(&bench), points(0..80));
        bench.disk.kill();
        bench.reopen();
    }
    // A sample of a time for which there is a row is passed over.
    let late = Point {
        t_ms: (first - 10) * 1000,
        v: 7.0,
    };
    let done = join(&bench, foreign(vec![late], Vec::new()), JoinMode::Change);
    assert_eq!(done, Ok(joined(false, 0, 0)));
}

/// After a power cut or a kill all of the older samples are there or none, and nothing of the series' own is lost.
#[test]
fn all_older_samples_come_or_none() {
    let (mut stayed, mut came) = (0, 0);
    for seed in 0..effort(3) {
        let mut begun = bench(100 + seed);
        send(&begun, &points(100..130));
        begun.sync();
        begun.store().checkpoint();
        begun.store = None;
        let own = points(100..130);
        let all = [points(0..60), own.clone()].concat();
        for power in [false, true] {
            for operation in 1.. {
                let mut bench = begun.fork();
                bench.open();
                let before = bench.disk.counts().operations;
                bench.disk.set_faults(Faults {
                    power_off_at: Some(before + operation),
                    ..Faults::default()
                });
                let done = join(&bench, foreign(points(0..60), Vec::new()), JoinMode::Change);
                let ended = bench.disk.counts().faults == 0;
                bench.disk.set_faults(Faults::default());
                match power {
                    true => bench.disk.crash_by_chance(seed + operation),
                    false => bench.disk.kill(),
                }
                bench.reopen();
                let found = samples(&bench);
                let story = format!("seed {seed}, power {power}, operation {operation}");
                assert!(found == own || found == all, "{story}: {}", found.len());
                assert!(found == all || done.is_err(), "{story}: it went again");
                (stayed, came) = (
                    stayed + u64::from(found == own),
                    came + u64::from(found == all),
                );
                if ended {
                    done.unwrap();
                    break;
                }
            }
        }
    }
    assert!(stayed > 5 && came > 3, "{stayed} {came}");
}
