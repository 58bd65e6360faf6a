//! An administrator erases values of a time range: rows that overlap it become unknown, all others stay.

use crate::common::{Bench, MODES, SECOND, START, base, oracle, rrd};
use kymo_rrd::Rrd;
use kymo_store::{Definition, Files, SeriesName, TimeRange};
use kymo_sys::clock::Clock;
use kymo_sys::effort::effort;
use kymo_sys::sim_disk::Faults;

fn bench(seed: u64, files: Files) -> Bench {
    let mut bench = Bench::new(seed, 0);
    bench.settings.files = files;
    bench.settings.chunk_values = 8;
    bench.open();
    let definition = Definition {
        name: SeriesName::File(b"h/a.rrd"),
        header: rrd(b"GAUGE").header,
    };
    let outcomes = bench.store().define(vec![definition]);
    assert!(matches!(outcomes[..], [Ok(true)]));
    bench
}

fn fill(bench: &mut Bench, from: i64, count: i64) {
    for at in from..from + count {
        let value = format!("{}:{at}", START + at * 10);
        bench.update("h/a.rrd", &[&value]).unwrap();
        bench.clock.advance_ns(10 * SECOND);
        bench.store().maintain();
    }
}

fn erase(bench: &Bench, from: i64, thru: i64) -> Result<(), String> {
    let range = TimeRange {
        from: START + from,
        thru: START + thru,
    };
    let outcome = bench.store().erase(&[b"h/a.rrd".to_vec()], range).pop();
    outcome.unwrap().map_err(|error| error.to_string())
}

fn image(bench: &Bench) -> Vec<u8> {
    bench.store().load(b"h/a.rrd").unwrap().to_bytes()
}

/// All known rows: archive, end of the row since START, cell.
fn rows(bytes: &[u8]) -> Vec<(usize, i64, f64)> {
    let rrd = Rrd::parse(bytes).unwrap();
    let (mut rows, mut first) = (Vec::new(), 0);
    for (archive, about) in rrd.header.rra.iter().enumerate() {
        let step = (rrd.header.pdp_step * about.pdp_cnt) as i64;
        let newest = rrd.header.last_up / step;
        for back in 0..about.row_cnt {
            let row = (rrd.header.cur_row[archive] + about.row_cnt - back) % about.row_cnt;
            let cell = rrd.cells[first + row as usize];
            if !cell.is_nan() {
                rows.push((archive, (newest - back as i64) * step - START, cell));
            }
        }
        first += about.row_cnt as usize;
    }
    rows
}

fn values(upto: i64) -> Vec<String> {
    let each = (1..=upto).map(|at| format!("{}:{at}", START + at * 10));
    each.collect()
}

fn whole(upto: i64) -> Vec<u8> {
    let values = values(upto);
    let texts: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    oracle(&rrd(b"GAUGE").to_bytes(), &texts)
}

/// Rows of 10 and 30 s that an erased range leaves of a series with values up to `upto`.
fn left(upto: i64, (from, thru): (i64, i64)) -> Vec<(usize, i64, f64)> {
    let overlaps = |archive: usize, end: i64| {
        let begin = end - [10, 30][archive];
        from <= end && begin < thru
    };
    let mut rows = rows(&whole(upto));
    rows.retain(|(archive, end, _)| !overlaps(*archive, *end));
    rows
}

#[test]
fn rows_that_overlap_are_unknown() {
    for files in MODES {
        for has_file in [false, true] {
            for range in [(155, 165), (170, 170), (100, 141), (1, 60), (0, 10_000)] {
                let story = format!("{files:?}, file {has_file}, {range:?}");
                let mut bench = bench(1, files);
                fill(&mut bench, 1, 21);
                if has_file && files != Files::Never {
                    bench.flush("h/a.rrd").unwrap();
                }
                fill(&mut bench, 22, 1);
                erase(&bench, range.0, range.1).unwrap();
                let expected = left(22, range);
                assert_eq!(rows(&image(&bench)), expected, "{story}");
                bench.disk.kill();
                bench.reopen();
                assert_eq!(rows(&image(&bench)), expected, "{story}");
                if files != Files::Never {
                    bench.flush("h/a.rrd").unwrap();
                    assert_eq!(rows(&bench.bytes("h/a.rrd")), expected, "{story}");
                }
                // Later values make the same rows as without the erasure, except for rows that overlap the range.
                fill(&mut bench, 23, 14);
                let newest = |rows: Vec<(usize, i64, f64)>| {
                    let newer = rows.into_iter().filter(|(_, end, _)| *end > 270);
                    newer.collect::<Vec<_>>()
                };
                let expected = newest(rows(&whole(36)));
                assert_eq!(newest(rows(&image(&bench))), expected, "{story}");
            }
        }
    }
}

/// A value of the year 2033 blocks all others until it is erased.
#[test]
fn a_value_of_the_future_gives_way() {
    for files in MODES {
        let mut bench = bench(2, files);
        fill(&mut bench, 1, 20);
        bench.update("h/a.rrd", &["2000000000:7"]).unwrap();
        if files != Files::Never {
            bench.flush("h/a.rrd").unwrap();
        }
        let next = format!("{}:21", START + 210);
        assert!(bench.update("h/a.rrd", &[&next]).is_err());
        erase(&bench, 999_999_990, 1_000_000_010).unwrap();
        bench.update("h/a.rrd", &[&next]).unwrap();
        for at in 22..30 {
            let value = format!("{}:{at}", START + at * 10);
            bench.update("h/a.rrd", &[&value]).unwrap();
        }
        let known = rows(&image(&bench));
        assert!(known.contains(&(0, 290, 29.0)), "{files:?}: {known:?}");
        assert!(known.iter().all(|(_, _, cell)| *cell != 7.0), "{known:?}");
        bench.disk.kill();
        bench.reopen();
        assert_eq!(rows(&image(&bench)), known, "{files:?}");
        assert!(bench.clock.now().real_ns > 0);
    }
}

/// After a power cut or a kill, a range is erased as a whole or not at all.
#[test]
fn all_of_a_range_goes_or_nothing() {
    let (mut stayed, mut went) = (0, 0);
    for seed in 0..effort(6) {
        let files = MODES[seed as usize % 3];
        let mut begun = bench(100 + seed, files);
        fill(&mut begun, 1, 22);
        if seed >= 3 && files != Files::Never {
            begun.flush("h/a.rrd").unwrap();
        }
        begun.sync();
        begun.store().checkpoint();
        begun.store = None;
        let range = (155, 165);
        let outcomes = [rows(&whole(22)), left(22, range)];
        for power in [false, true] {
            for operation in 1.. {
                let mut bench = begun.fork();
                bench.open();
                let before = bench.disk.counts().operations;
                bench.disk.set_faults(Faults {
                    power_off_at: Some(before + operation),
                    ..Faults::default()
                });
                let done = erase(&bench, range.0, range.1);
                let ended = bench.disk.counts().faults == 0;
                bench.disk.set_faults(Faults::default());
                match power {
                    true => bench.disk.crash_by_chance(seed + operation),
                    false => bench.disk.kill(),
                }
                bench.reopen();
                let story = format!("seed {seed}, {files:?}, power {power}, operation {operation}");
                // The second look follows a flush of the file.
                for _ in 0..2 {
                    let found = rows(&image(&bench));
                    let is_one = outcomes.iter().position(|rows| *rows == found);
                    let at = is_one.unwrap_or_else(|| panic!("{story}: {found:?}"));
                    assert!(at == 1 || done.is_err(), "{story}: it came back");
                    (stayed, went) = (stayed + u64::from(at == 0), went + u64::from(at == 1));
                    if files != Files::Never {
                        bench.flush("h/a.rrd").unwrap();
                        assert!(bench.disk.bytes(&base().join("h/a.rrd")).is_some());
                    }
                }
                if ended {
                    done.unwrap();
                    break;
                }
            }
        }
    }
    assert!(stayed > 30 && went > 10, "{stayed} {went}");
}
