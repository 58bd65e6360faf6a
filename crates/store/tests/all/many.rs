//! Many series with few values, and a year without any: a store of a million series at a twentieth of its size.

use crate::common::{Bench, SECOND, START, folder, oracle};
use kymo_rrd::Rrd;
use kymo_rrd::create::{Create, create};
use kymo_store::status::{Status, status};
use kymo_store::{Files, Settings};
use std::sync::Arc;

const SERIES: usize = 50_000;
const YEAR: i64 = 31_536_000;

/// Sends a value to each series.
fn round(bench: &Bench, stamp: i64) {
    let store = bench.store();
    for few in (0..SERIES).collect::<Vec<_>>().chunks(1000) {
        let mut batch = store.write_batch();
        for number in few {
            let text = format!("{stamp}:{}", stamp % 100 + *number as i64);
            let taken = batch.update(name(*number).as_bytes(), [text.as_bytes()]);
            assert_eq!(taken, Ok(1));
        }
        batch.commit().unwrap();
    }
    // A merge takes some segments at a time, so merges get several turns before the next values.
    for _ in 0..3 {
        store.maintain();
    }
}

fn name(number: usize) -> String {
    format!("d{}/s{number}.rrd", number % 100)
}

fn look(bench: &Bench) -> Status {
    let found = status(Arc::new(bench.disk.clone()), &*bench.clock, &folder()).unwrap();
    assert_eq!(found.notices, Vec::<String>::new());
    assert_eq!(found.series, SERIES as u64);
    assert!(found.segments <= 64, "{found:?}");
    found
}

#[test]
fn many_series_with_a_year_between_their_values() {
    let mut bench = Bench::new(5, 0);
    bench.settings = Settings {
        files: Files::Never,
        chunk_values: 2,
        segment_bytes: 70_000,
        ..Settings::new(folder(), crate::common::base())
    };
    bench.open();
    let blank = crate::common::rrd(b"GAUGE");
    for number in 0..SERIES {
        let name = name(number);
        bench
            .store()
            .install(name.as_bytes(), &blank, false)
            .unwrap();
        bench.store().touch(name.as_bytes()).unwrap();
    }
    let stamps = [10, 20, 30, 40, 50, 60].map(|at| START + at);
    let later = stamps.map(|stamp| stamp + YEAR);
    let mut most = 0;
    for stamp in stamps.iter().chain(&later) {
        bench.clock.advance_ns(10 * SECOND);
        if *stamp == later[0] {
            bench.clock.advance_ns(YEAR as u64 * SECOND);
        }
        round(&bench, *stamp);
        if stamp % 20 == START % 20 {
            most = most.max(look(&bench).segments);
        }
    }
    let found = look(&bench);
    assert_eq!(found.chunks, SERIES.div_ceil(256) as u64, "{found:?}");
    assert_eq!(
        (found.unsaved.values, found.unsaved.series),
        (0, 0),
        "{found:?}"
    );
    assert!(most > 50, "{most} segments at most");
    // Rows from before the year are dead.
    assert_eq!(found.rows.unwrap().0, (later[0] - 50) as f64, "{found:?}");
    // Some series get one more value each, which only the journal has, in a frame of its own.
    let last = later[5] + 10;
    let looked_at = || (0..SERIES).step_by(997);
    for number in looked_at() {
        let mut batch = bench.store().write_batch();
        let text = format!("{last}:{}", last % 100 + number as i64);
        let taken = batch.update(name(number).as_bytes(), [text.as_bytes()]);
        assert_eq!(taken, Ok(1));
        batch.commit().unwrap();
    }
    assert_eq!(look(&bench).unsaved.values, looked_at().count() as u64);
    bench.reopen();
    assert_eq!(look(&bench).series, found.series);
    for number in looked_at() {
        let values = stamps.iter().chain(&later).chain([&last]);
        let values: Vec<String> = values
            .map(|stamp| format!("{stamp}:{}", stamp % 100 + number as i64))
            .collect();
        let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let exported = bench.store().export(name(number).as_bytes()).unwrap();
        assert!(
            exported.bytes == oracle(&blank.to_bytes(), &values),
            "{number}"
        );
    }
}

/// rrdtool derives a number from a file's name, and keeps it in the definitions of Holt-Winters archives.
#[test]
fn files_of_holt_winters_archives_share_their_blocks() {
    const FILES: usize = 300;
    let mut bench = Bench::new(6, 0);
    bench.settings = Settings {
        files: Files::Never,
        chunk_values: 2,
        ..Settings::new(folder(), crate::common::base())
    };
    bench.open();
    let definitions: [&[u8]; 3] = [
        b"DS:x:GAUGE:60:U:U",
        b"RRA:AVERAGE:0.5:1:20",
        b"RRA:HWPREDICT:30:0.1:0.0035:6",
    ];
    let made: Vec<Rrd> = (0..FILES)
        .map(|number| {
            let name = name(number);
            let request = Create {
                file_name: name.as_bytes(),
                step: 10,
                start: Some(START),
                definitions: &definitions,
            };
            create(&request, START, &mut { 1 }, None, &[]).unwrap()
        })
        .collect();
    assert_ne!(made[0].header.rra, made[1].header.rra);
    for (number, rrd) in made.iter().enumerate() {
        let name = name(number);
        bench.store().install(name.as_bytes(), rrd, false).unwrap();
        bench.store().touch(name.as_bytes()).unwrap();
    }
    let mut values = Vec::new();
    for at in 1..40 {
        let text = format!("{}:{}", START + 10 * at, at * at % 17);
        let mut batch = bench.store().write_batch();
        for number in 0..FILES {
            let taken = batch.update(name(number).as_bytes(), [text.as_bytes()]);
            assert_eq!(taken, Ok(1));
        }
        batch.commit().unwrap();
        values.push(text);
        bench.store().maintain();
        if at == 20 {
            bench.reopen();
        }
    }
    let found = status(Arc::new(bench.disk.clone()), &*bench.clock, &folder()).unwrap();
    assert_eq!(found.chunks, FILES.div_ceil(256) as u64, "{found:?}");
    let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    for (number, rrd) in made.iter().enumerate() {
        let exported = bench.store().export(name(number).as_bytes()).unwrap();
        assert!(
            exported.bytes == oracle(&rrd.to_bytes(), &values),
            "{number}"
        );
    }
}
