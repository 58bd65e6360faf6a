//! FETCH, from blocks and from what earlier ones left: always what rrdtool's arithmetic makes of all values.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Bench, START, oracle};
use kymo_rrd::Rrd;
use kymo_rrd::fetch::{Fetched, fetch};

/// What the file would answer if all that was acknowledged were in it.
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
                // A gap: rows of nothing, in runs, and longer than the archives.
                3 => bench.now_s += bench.random(400) as i64,
                4..=9 => check(&mut bench, &name),
                // A turn that has not been.
                10 => {
                    let text = format!("{}:7", bench.now_s + 1);
                    let mut turn = bench.store().turn();
                    drop(turn.update(name.as_bytes(), [text.as_bytes()]));
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
        // Here one value is dropped, and another comes before the next FETCH.
        bench.update("f0.rrd", &[&text(step)]).unwrap();
        let mut turn = bench.store().turn();
        assert!(turn.forget(b"f0.rrd"));
        turn.commit().unwrap();
        bench.acked.pop();
        bench.update("f0.rrd", &[&text(step + 1)]).unwrap();
        check(&mut bench, "f0.rrd");
    }
}
