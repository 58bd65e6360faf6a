//! FETCH from blocks and from the state that earlier FETCHes left always equals rrdtool's arithmetic over
//! all values.

use crate::common::{Bench, SECOND, START, oracle, rrd};
use kymo_rrd::Rrd;
use kymo_rrd::fetch::{Fetched, fetch};
use kymo_store::Files;

/// Answer of the file if it held every acknowledged value.
fn expected(bench: &Bench, name: &str, cf: &[u8], (start, end): (i64, i64)) -> Fetched {
    let (_, before) = bench.files.iter().find(|file| file.0 == name).unwrap();
    let acked = bench.acked.iter().filter(|acked| acked.name == name);
    let values: Vec<&[u8]> = acked.map(|acked| &acked.text[..]).collect();
    let mut rrd = Rrd::parse(&oracle(before, &values)).unwrap();
    fetch(&rrd.header, &mut rrd.cells, cf, start, end, u64::MAX).unwrap()
}

fn check(bench: &mut Bench, name: &str) {
    let end = bench.now_s + 20 - bench.random(60) as i64;
    let range = (end - bench.random(150) as i64, end);
    let cf: &[u8] = [&b"AVERAGE"[..], b"MAX"][bench.random(2) as usize];
    let found = bench.store().fetch(name.as_bytes(), cf, range).unwrap();
    let expected = expected(bench, name, cf, range);
    let bits = |fetched: &Fetched| -> Vec<u64> {
        fetched.rows.iter().map(|cell| cell.to_bits()).collect()
    };
    let at = (found.start, found.end, found.step);
    assert_eq!(at, (expected.start, expected.end, expected.step));
    assert_eq!(bits(&found), bits(&expected), "{name} {cf:?} {range:?}");
}

#[test]
fn it_is_what_the_arithmetic_makes_of_all_values() {
    for seed in 1..=60 {
        let mut bench = Bench::new(seed, 3);
        bench.open();
        for _ in 0..120 {
            let name = format!("f{}.rrd", bench.random(3));
            match bench.random(24) {
                0 => drop(bench.flush(&name)),
                1 => drop(bench.store().maintain()),
                2 => bench.reopen(),
                // A gap: runs of unknown rows, also longer than the archives.
                3 => bench.now_s += bench.random(400) as i64,
                4..=9 => check(&mut bench, &name),
                // A batch without a commit.
                10 => {
                    let text = format!("{}:7", bench.now_s + 1);
                    let mut batch = bench.store().write_batch();
                    drop(batch.update(name.as_bytes(), [text.as_bytes()]));
                }
                _ => drop(bench.any_update()),
            }
        }
    }
}

#[test]
fn what_was_forgotten_is_not_in_it() {
    let mut bench = Bench::new(1, 1);
    bench.open();
    let text = |step: i64| format!("{}:{step}", START + 10 * step);
    for step in 1..=3 {
        bench.update("f0.rrd", &[&text(step)]).unwrap();
    }
    check(&mut bench, "f0.rrd");
    for step in [4, 6, 8] {
        // FORGET drops this value, and another one arrives before the next FETCH.
        bench.update("f0.rrd", &[&text(step)]).unwrap();
        let mut batch = bench.store().write_batch();
        assert!(batch.forget(b"f0.rrd"));
        batch.commit().unwrap();
        bench.acked.pop();
        bench.update("f0.rrd", &[&text(step + 1)]).unwrap();
        check(&mut bench, "f0.rrd");
    }
}

fn rows(bench: &Bench, name: &str) -> Vec<u64> {
    let range = (START, bench.now_s + 20);
    let found = bench.store().fetch(name.as_bytes(), b"AVERAGE", range);
    found
        .unwrap()
        .rows
        .iter()
        .map(|cell| cell.to_bits())
        .collect()
}

fn text(step: i64) -> String {
    format!("{}:{step}", START + 10 * step)
}

#[test]
fn a_value_and_forget_in_one_batch_are_the_same_after_a_start() {
    let mut bench = Bench::new(1, 1);
    bench.open();
    bench.update("f0.rrd", &[&text(1)]).unwrap();
    bench.clock.advance_ns(301 * SECOND);
    let mut batch = bench.store().write_batch();
    // This value is due and counts as written at once, so FORGET leaves it.
    batch.update(b"f0.rrd", [text(4).as_bytes()]).unwrap();
    assert!(batch.forget(b"f0.rrd"));
    batch.commit().unwrap();
    bench.now_s = START + 60;
    let refused = bench.update("f0.rrd", &[&text(3)]);
    assert!(refused.is_err(), "{refused:?}");
    bench.update("f0.rrd", &[&text(5)]).unwrap();
    let before = rows(&bench, "f0.rrd");
    bench.reopen();
    assert_eq!(rows(&bench, "f0.rrd"), before);
}

#[test]
fn a_tuned_series_is_found_after_a_start() {
    let mut bench = Bench::new(1, 0);
    bench.settings.files = Files::Never;
    bench.open();
    for (name, kind) in [(b"f0.rrd", &b"GAUGE"[..]), (b"f1.rrd", b"COUNTER")] {
        bench.store().install(name, &rrd(kind), true).unwrap();
    }
    let send = |bench: &mut Bench, steps: std::ops::Range<i64>| {
        for step in steps {
            bench.update("f0.rrd", &[&text(step)]).unwrap();
            bench.update("f1.rrd", &[&text(step)]).unwrap();
        }
        bench.now_s = START + 100;
        bench.store().maintain();
    };
    // `maintain` saves both chunks; then f1 joins the chunk of f0, which is saved alone.
    send(&mut bench, 1..5);
    let tune = &mut |mut rrd: Rrd| {
        rrd.header.ds[0].dst = kymo_rrd::header::field(b"GAUGE");
        Ok(rrd)
    };
    bench.store().rewrite(b"f1.rrd", tune).unwrap();
    send(&mut bench, 5..9);
    let before = rows(&bench, "f1.rrd");
    bench.reopen();
    bench.update("f1.rrd", &[&text(9)]).unwrap();
    let after = rows(&bench, "f1.rrd");
    // The oldest of seven rows is gone, and one row is new.
    assert_eq!(after[2..8], before[2..8]);
    assert!(f64::from_bits(after[8]).is_finite());
}
