//! Series from elsewhere join those of the store: new ones with all rows, known ones with the rows that they lack.

use crate::common::{Bench, MODES, START, base, oracle, rrd};
use kymo_rrd::Rrd;
use kymo_store::{Definition, Files, ForeignSeries, JoinMode, Joined, SeriesName};
use kymo_sys::effort::effort;
use kymo_sys::sim_disk::Faults;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

const NAME: &str = "h/a.rrd";

fn bench(seed: u64, files: Files) -> Bench {
    let mut bench = Bench::new(seed, 0);
    bench.settings.files = files;
    bench.settings.chunk_values = 3;
    bench.open();
    bench
}

fn texts(numbers: RangeInclusive<i64>) -> Vec<String> {
    let each = numbers.map(|at| format!("{}:{at}", START + at * 10));
    each.collect()
}

/// A file with values, each 10 s.
fn file(numbers: RangeInclusive<i64>) -> Vec<u8> {
    let texts = texts(numbers);
    let values: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    oracle(&rrd(b"GAUGE").to_bytes(), &values)
}

fn begin(bench: &mut Bench, numbers: RangeInclusive<i64>) {
    let definition = Definition {
        name: SeriesName::File(NAME.as_bytes()),
        header: rrd(b"GAUGE").header,
    };
    let defined = bench.store().define(vec![definition]);
    assert!(matches!(defined[..], [Ok(true)]));
    go_on(bench, numbers);
}

fn go_on(bench: &mut Bench, numbers: RangeInclusive<i64>) {
    for text in texts(numbers) {
        bench.update(NAME, &[&text]).unwrap();
        bench.store().maintain();
    }
}

fn join(bench: &Bench, file: &[u8], mode: JoinMode) -> Result<Joined, String> {
    let foreign = ForeignSeries {
        name: NAME.into(),
        rrd: Rrd::parse(file).unwrap(),
    };
    let outcome = bench.store().join(vec![foreign], mode).pop().unwrap();
    outcome.map_err(|error| error.to_string())
}

fn image(bench: &Bench) -> Vec<u8> {
    bench.store().export(NAME.as_bytes()).unwrap().bytes
}

/// Ends of the known rows of both archives, in units of 10 s since START.
fn known(bytes: &[u8]) -> [Vec<i64>; 2] {
    let cells = cells(bytes);
    [0, 1].map(|archive| {
        let ends = cells.keys().filter(|key| key.0 == archive);
        ends.map(|key| key.1).collect()
    })
}

/// Known cells by archive and end of the row, in units of 10 s since START.
fn cells(bytes: &[u8]) -> BTreeMap<(usize, i64), f64> {
    let rrd = Rrd::parse(bytes).unwrap();
    let (mut cells, mut first) = (BTreeMap::new(), 0);
    for (archive, about) in rrd.header.rra.iter().enumerate() {
        let step = (rrd.header.pdp_step * about.pdp_cnt) as i64;
        let newest = rrd.header.last_up / step;
        for back in 0..about.row_cnt {
            let row = (rrd.header.cur_row[archive] + about.row_cnt - back) % about.row_cnt;
            let cell = rrd.cells[first + row as usize];
            if !cell.is_nan() {
                cells.insert(
                    (archive, ((newest - back as i64) * step - START) / 10),
                    cell,
                );
            }
        }
        first += about.row_cnt as usize;
    }
    cells
}

#[test]
fn a_new_series_is_the_file_to_the_last_bit() {
    for files in MODES {
        let mut bench = bench(1, files);
        let file = file(1..=12);
        let looked = join(&bench, &file, JoinMode::Look).unwrap();
        assert!(bench.store().paths().is_empty(), "{files:?}");
        let joined = join(&bench, &file, JoinMode::Change).unwrap();
        let expected = Joined {
            is_new: true,
            added: 11,
            differing: 0,
        };
        assert_eq!((joined, looked), (expected, expected), "{files:?}");
        for reopens in [false, true] {
            if reopens {
                bench.disk.kill();
                bench.reopen();
            }
            assert!(image(&bench) == file, "{files:?}");
            let again = join(&bench, &file, JoinMode::Change);
            assert_eq!(again, Ok(Joined::default()), "{files:?}");
        }
        if files != Files::Never {
            bench.flush(NAME).unwrap();
            assert!(bench.bytes(NAME) == file, "{files:?}");
        }
        // Later values are applied as to the file, and the file that was imported stays known.
        go_on(&mut bench, 13..=15);
        assert!(image(&bench) == self::file(1..=15), "{files:?}");
        let again = join(&bench, &file, JoinMode::Change);
        assert_eq!(again, Ok(Joined::default()), "{files:?}");
    }
}

/// The store began later than the file: the file's older rows come, and the store goes on as if it had always had them.
#[test]
fn a_known_series_gets_older_rows() {
    for files in MODES {
        for has_file in [false, true] {
            let story = format!("{files:?}, file {has_file}");
            let mut bench = bench(2, files);
            begin(&mut bench, 8..=11);
            if has_file && files != Files::Never {
                bench.flush(NAME).unwrap();
            }
            go_on(&mut bench, 12..=12);
            let before = image(&bench);
            let file = file(1..=10);
            let looked = join(&bench, &file, JoinMode::Look).unwrap();
            assert!(image(&bench) == before, "{story}");
            let joined = join(&bench, &file, JoinMode::Change).unwrap();
            assert_eq!(joined, looked, "{story}");
            assert!(!joined.is_new && joined.added > 0, "{story}: {joined:?}");
            assert_eq!(known(&image(&bench)), known(&self::file(1..=12)), "{story}");
            bench.disk.kill();
            bench.reopen();
            assert_eq!(known(&image(&bench)), known(&self::file(1..=12)), "{story}");
            if files != Files::Never {
                bench.flush(NAME).unwrap();
                assert!(bench.bytes(NAME) == image(&bench), "{story}");
            }
            go_on(&mut bench, 13..=30);
            assert_eq!(cells(&image(&bench)), cells(&self::file(1..=30)), "{story}");
            let again = join(&bench, &file, JoinMode::Change).unwrap();
            assert_eq!(again.added, 0, "{story}");
        }
    }
}

/// The file went on after the store's newest value.
#[test]
fn a_known_series_goes_on_with_a_newer_file() {
    for files in MODES {
        let mut bench = bench(3, files);
        begin(&mut bench, 1..=6);
        let joined = join(&bench, &file(4..=9), JoinMode::Change).unwrap();
        assert!(!joined.is_new && joined.added > 0, "{joined:?}");
        assert_eq!(known(&image(&bench)), known(&file(1..=9)), "{files:?}");
        go_on(&mut bench, 10..=30);
        assert_eq!(cells(&image(&bench)), cells(&file(1..=30)), "{files:?}");
    }
}

/// The store's row stays where both know one, also under a newer state.
#[test]
fn rows_that_differ_stay() {
    for upto in [6, 9] {
        let mut bench = bench(4, Files::OnDemand);
        begin(&mut bench, 1..=6);
        let mut other = Rrd::parse(&file(1..=upto)).unwrap();
        for cell in &mut other.cells {
            *cell += 100.0;
        }
        let own = image(&bench);
        let joined = join(&bench, &other.to_bytes(), JoinMode::Change).unwrap();
        assert!(joined.differing > 0, "{joined:?}");
        // Rows of the store that are still within the archives keep their values.
        let found = cells(&image(&bench));
        let newest = known(&file(1..=upto));
        for (key, cell) in cells(&own) {
            if newest[key.0].contains(&key.1) {
                assert_eq!(found.get(&key), Some(&cell), "{upto} {key:?}");
            }
        }
    }
}

#[test]
fn other_definitions_are_refused() {
    let mut bench = bench(5, Files::OnDemand);
    begin(&mut bench, 1..=6);
    let before = image(&bench);
    let change = |edit: &dyn Fn(&mut Rrd)| {
        let mut rrd = Rrd::parse(&file(1..=9)).unwrap();
        edit(&mut rrd);
        rrd.to_bytes()
    };
    for (file, why) in [
        (
            change(&|rrd| rrd.header.pdp_step = 60),
            "its step is 10 s, not 60 s",
        ),
        (
            change(&|rrd| rrd.header.ds[0].ds_nam[0] = b'y'),
            "its data sources are others",
        ),
        (
            change(&|rrd| rrd.header.rra[0].pdp_cnt = 2),
            "its archives are others",
        ),
    ] {
        let refused = join(&bench, &file, JoinMode::Change);
        let expected = format!("there is a series of this name, and {why}");
        assert_eq!(refused, Err(expected));
    }
    assert!(image(&bench) == before);
}

#[test]
fn names_that_no_series_has() {
    let bench = bench(6, Files::OnDemand);
    let foreign = |name: &[u8]| ForeignSeries {
        name: name.to_vec(),
        rrd: Rrd::parse(&file(1..=9)).unwrap(),
    };
    for name in [&b""[..], b"a\0b.rrd", b"{a=\"b\"", &[b'a'; 300]] {
        let outcome = bench
            .store()
            .join(vec![foreign(name)], JoinMode::Change)
            .pop()
            .unwrap();
        // A name that begins with a brace is one of a file.
        assert!(outcome.is_err() || name.starts_with(b"{"), "{name:?}");
    }
    let twice = vec![foreign(b"a.rrd"), foreign(b"a.rrd")];
    let outcomes = bench.store().join(twice, JoinMode::Change);
    assert!(matches!(outcomes[..], [Ok(_), Err(_)]), "{outcomes:?}");
}

/// After a power cut or a kill a series is there as it was, or with all that came.
#[test]
fn all_of_a_series_comes_or_nothing() {
    let (mut stayed, mut came) = (0, 0);
    for seed in 0..effort(6) {
        let files = MODES[seed as usize % 3];
        let is_new = seed % 2 == 0;
        let mut begun = bench(100 + seed, files);
        if !is_new {
            begin(&mut begun, 8..=12);
            if seed >= 3 && files != Files::Never {
                begun.flush(NAME).unwrap();
            }
        }
        begun.sync();
        begun.store().checkpoint();
        let before = (!is_new).then(|| known(&image(&begun)));
        begun.store = None;
        let outcomes = [before, Some(known(&file(1..=12)))];
        for power in [false, true] {
            for operation in 1.. {
                let mut bench = begun.fork();
                bench.open();
                let before = bench.disk.counts().operations;
                bench.disk.set_faults(Faults {
                    power_off_at: Some(before + operation),
                    ..Faults::default()
                });
                let upto = if is_new { 12 } else { 10 };
                let done = join(&bench, &file(1..=upto), JoinMode::Change);
                let ended = bench.disk.counts().faults == 0;
                bench.disk.set_faults(Faults::default());
                match power {
                    true => bench.disk.crash_by_chance(seed + operation),
                    false => bench.disk.kill(),
                }
                bench.reopen();
                let story = format!("seed {seed}, {files:?}, power {power}, operation {operation}");
                for _ in 0..2 {
                    let found = bench.store().load(NAME.as_bytes()).ok();
                    let found = found.map(|rrd| known(&rrd.to_bytes()));
                    let at = outcomes.iter().position(|one| *one == found);
                    let at = at.unwrap_or_else(|| panic!("{story}: {found:?}"));
                    assert!(at == 1 || done.is_err(), "{story}: it went again");
                    (stayed, came) = (stayed + u64::from(at == 0), came + u64::from(at == 1));
                    if files != Files::Never && found.is_some() {
                        bench.flush(NAME).unwrap();
                        assert!(bench.disk.bytes(&base().join(NAME)).is_some());
                    }
                }
                if ended {
                    done.unwrap();
                    break;
                }
            }
        }
    }
    assert!(stayed > 30 && came > 10, "{stayed} {came}");
}
