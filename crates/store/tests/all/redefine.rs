//! Definitions of a series change while values arrive: it remains one series, with its former rows in the new definitions.

use crate::common::{Bench, MODES, SECOND, START, base, oracle, rrd};
use kymo_rrd::create::{Create, create};
use kymo_rrd::{Header, Rrd};
use kymo_store::{Definition, FileError, Files, Redefinition, SeriesName, Writer};
use kymo_sys::disk::Disk as _;
use kymo_sys::effort::effort;
use kymo_sys::sim_disk::Faults;

/// A step of ten seconds; [`wide`] has one of a minute.
fn narrow() -> Header {
    rrd(b"DERIVE").header
}

fn wide() -> Header {
    let mut header = narrow();
    header.pdp_step = 60;
    header.ds[0].par[0] = 120;
    header
}

fn bench(seed: u64, files: Files) -> Bench {
    let mut bench = Bench::new(seed, 0);
    bench.settings.files = files;
    bench.settings.chunk_values = 1000;
    bench.open();
    bench
}

fn define(bench: &Bench, names: &[&str], header: &Header) {
    let definition = |name: &&'static str| Definition {
        name: SeriesName::File(name.as_bytes()),
        header: header.clone(),
    };
    let names: Vec<&'static str> = names.iter().map(|name| &*name.to_string().leak()).collect();
    let outcomes = bench.store().define(names.iter().map(definition).collect());
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(true))));
}

fn redefine(bench: &Bench, names: &[&str], since: i64) -> Vec<Result<bool, FileError>> {
    let (from, to) = (narrow(), wide());
    let wanted = names.iter().map(|name| Redefinition {
        name: name.as_bytes(),
        from: &from,
        to: &to,
        since: (START + since) as f64,
    });
    bench.store().redefine(&wanted.collect::<Vec<_>>())
}

fn all_done(outcomes: &[Result<bool, FileError>]) -> bool {
    outcomes.iter().all(|outcome| matches!(outcome, Ok(true)))
}

/// A counter that grows by about seven each second.
fn values(stamps: impl Iterator<Item = i64>) -> Vec<String> {
    stamps
        .map(|at| format!("{}:{}", START + at, at * 7 + at % 13))
        .collect()
}

fn send(bench: &mut Bench, name: &str, values: &[String]) {
    for value in values {
        bench.update(name, &[value]).unwrap();
    }
}

fn texts(values: &[String]) -> Vec<&[u8]> {
    values.iter().map(|value| value.as_bytes()).collect()
}

/// Saves all values to blocks.
fn save(bench: &Bench) {
    bench.clock.advance_ns(7 * 3600 * SECOND);
    bench.store().maintain();
}

/// rrdtool's result: `create --source`, then the later values.
fn expected(before: &[String], after: &[String]) -> Vec<u8> {
    let narrow = Rrd {
        header: narrow(),
        ..rrd(b"DERIVE")
    };
    let old = Rrd::parse(&oracle(&narrow.to_bytes(), &texts(before))).unwrap();
    let wide = wide();
    let request = Create::default();
    let new = create(&request, START, &mut { 1 }, Some(&wide), &[&old]).unwrap();
    oracle(&new.to_bytes(), &texts(after))
}

fn unchanged(values: &[String]) -> Vec<u8> {
    oracle(&rrd(b"DERIVE").to_bytes(), &texts(values))
}

fn image(bench: &Bench, name: &str) -> Vec<u8> {
    bench.store().load(name.as_bytes()).unwrap().to_bytes()
}

#[test]
fn rows_are_joined_and_values_since_the_change_count() {
    let before = values((1..=40).map(|n| n * 10));
    let change = values((1..=3).map(|n| 400 + n * 60));
    let after = values((4..=9).map(|n| 400 + n * 60));
    for files in MODES {
        for (saved, has_file) in [(false, false), (true, false), (false, true), (true, true)] {
            let story = format!("{files:?}, saved {saved}, file {has_file}");
            let mut bench = bench(1, files);
            define(&bench, &["h/a.rrd", "h/b.rrd"], &narrow());
            send(&mut bench, "h/a.rrd", &before);
            if saved {
                save(&bench);
            }
            if has_file {
                bench.flush("h/a.rrd").unwrap();
            }
            send(&mut bench, "h/a.rrd", &change);
            assert!(all_done(&redefine(&bench, &["h/a.rrd"], 460)), "{story}");
            let mut since = change.clone();
            assert!(
                image(&bench, "h/a.rrd") == expected(&before, &since),
                "{story}"
            );
            send(&mut bench, "h/a.rrd", &after);
            since.extend(after.clone());
            for again in 0..2 {
                let story = format!("{story}, {again}");
                assert!(
                    image(&bench, "h/a.rrd") == expected(&before, &since),
                    "{story}"
                );
                if files != Files::Never {
                    bench.flush("h/a.rrd").unwrap();
                    assert!(
                        bench.bytes("h/a.rrd") == expected(&before, &since),
                        "{story}"
                    );
                }
                bench.disk.kill();
                bench.reopen();
            }
            assert!(image(&bench, "h/b.rrd") == unchanged(&[]), "{story}");
            assert_eq!(bench.store().step(b"h/a.rrd"), Some(60));
            assert_eq!(bench.store().step(b"h/b.rrd"), Some(10));
            assert_eq!(bench.store().step(b"h/c.rrd"), None);
            assert_eq!(bench.store().paths().len(), 2, "{story}");
        }
    }
}

/// Two archives of means and one of maxima, the first with so many rows; each value stands for at most 20 s.
fn archives(rows: u64) -> Header {
    let finest = format!("RRA:AVERAGE:0.5:1:{rows}");
    let definitions: [&[u8]; 4] = [
        b"DS:x:GAUGE:20:U:U",
        finest.as_bytes(),
        b"RRA:AVERAGE:0.9:6:50",
        b"RRA:MAX:0.9:6:50",
    ];
    let request = Create {
        step: 10,
        start: Some(START),
        definitions: &definitions,
        ..Create::default()
    };
    create(&request, START, &mut { 1 }, None, &[])
        .unwrap()
        .header
}

/// A billing month was paid for with means of two hours in place of its unknown rows.
#[test]
fn unknown_rows_stay_unknown_and_known_ones_keep_their_bits() {
    for files in MODES {
        for has_file in [false, true] {
            let mut bench = bench(7, files);
            let (from, to) = (archives(90), archives(120));
            define(&bench, &["a.rrd"], &from);
            let with_gap = (1..=100).filter(|n| n % 12 < 7).map(|n| n * 10);
            let sent: Vec<String> = with_gap
                .map(|at| format!("{}:{}.1", START + at, at % 17))
                .collect();
            send(&mut bench, "a.rrd", &sent);
            if has_file {
                bench.flush("a.rrd").unwrap();
            }
            let rows = |bench: &Bench, archive: usize, count: u64| {
                let rrd = Rrd::parse(&image(bench, "a.rrd")).unwrap();
                let (all, newest) = (rrd.header.rra[archive].row_cnt, rrd.header.cur_row[archive]);
                let row = |past: u64| rrd.header.cell(archive, (newest + all - past) % all);
                let cells = (0..count).map(|past| rrd.cells[row(past) as usize].to_bits());
                cells.collect::<Vec<u64>>()
            };
            let before = [
                rows(&bench, 0, 90),
                rows(&bench, 1, 50),
                rows(&bench, 2, 50),
            ];
            let nan = |bits: &u64| f64::from_bits(*bits).is_nan();
            assert!(before[0].iter().filter(|bits| nan(bits)).count() > 20);
            let wanted = Redefinition {
                name: b"a.rrd",
                from: &from,
                to: &to,
                since: (START + 2000) as f64,
            };
            assert!(all_done(&bench.store().redefine(&[wanted])), "{files:?}");
            let after = [
                rows(&bench, 0, 90),
                rows(&bench, 1, 50),
                rows(&bench, 2, 50),
            ];
            assert!(after == before, "{files:?}");
            // Rows that there were not are made of those of other archives.
            let more = rows(&bench, 0, 100);
            assert!(!more[90..].iter().all(nan), "{files:?}");
        }
    }
}

/// A file that a client had asked for was the series' only home after a change: its removal lost the series' history.
#[test]
fn a_view_is_only_a_view_after_a_change() {
    let mut bench = bench(8, Files::OnDemand);
    define(&bench, &["h/a.rrd"], &narrow());
    let (before, since) = (
        values((1..=40).map(|n| n * 10)),
        values((1..=3).map(|n| 400 + n * 60)),
    );
    send(&mut bench, "h/a.rrd", &before);
    bench.flush("h/a.rrd").unwrap();
    assert!(all_done(&redefine(&bench, &["h/a.rrd"], 460)));
    // The view is there again at once.
    assert!(bench.bytes("h/a.rrd") == expected(&before, &[]));
    send(&mut bench, "h/a.rrd", &since);
    for _ in 0..2 {
        let path = base().join("h/a.rrd");
        bench.disk.unlink(&path).unwrap();
        assert!(image(&bench, "h/a.rrd") == expected(&before, &since));
        bench.flush("h/a.rrd").unwrap();
        assert!(bench.bytes("h/a.rrd") == expected(&before, &since));
        bench.disk.kill();
        bench.reopen();
    }
}

/// Values in a block keep the definitions under which they were accepted, even if they are newer than the change.
#[test]
fn values_in_blocks_are_applied() {
    let mut bench = bench(2, Files::OnDemand);
    define(&bench, &["a.rrd"], &narrow());
    let (mut before, since) = (
        values((1..=9).map(|n| n * 10)),
        values((2..=4).map(|n| n * 60)),
    );
    send(&mut bench, "a.rrd", &before);
    send(&mut bench, "a.rrd", &since[..2]);
    save(&bench);
    send(&mut bench, "a.rrd", &since[2..]);
    assert!(all_done(&redefine(&bench, &["a.rrd"], 120)));
    before.extend_from_slice(&since[..2]);
    assert!(image(&bench, "a.rrd") == expected(&before, &since[2..]));
}

#[test]
fn others_stay_what_they_are() {
    for files in MODES {
        let mut bench = bench(3, files);
        let mut other = narrow();
        other.rra[0].row_cnt = 9;
        define(&bench, &["own.rrd"], &other);
        define(&bench, &["a.rrd"], &narrow());
        let sent = values((1..=9).map(|n| n * 10));
        send(&mut bench, "a.rrd", &sent);
        send(&mut bench, "own.rrd", &sent);
        let own = image(&bench, "own.rrd");
        let outcomes = redefine(&bench, &["own.rrd", "nowhere.rrd", "a.rrd", "a.rrd"], 60);
        let outcomes: Vec<bool> = outcomes.into_iter().filter_map(Result::ok).collect();
        // The call names a.rrd twice: one of the two may wait for the other's file in vain.
        assert_eq!(outcomes[..3], [false, false, true], "{files:?}");
        assert!(image(&bench, "own.rrd") == own, "{files:?}");
        assert!(matches!(redefine(&bench, &["a.rrd"], 60)[..], [Ok(false)]));
        assert!(redefine(&bench, &["../x.rrd", "nul\0"], 60)[1].is_err());
    }
}

/// A series keeps the writer that holds it.
#[test]
fn its_writer_stays() {
    for files in MODES {
        let bench = bench(4, files);
        define(&bench, &["a.rrd"], &narrow());
        let send = |writer, at: i64| {
            let mut batch = bench.store().write_batch();
            batch.by(writer);
            let text = format!("{}:{at}", START + at);
            let taken = batch.update(b"a.rrd", [text.as_bytes()]);
            batch.commit().unwrap();
            taken.is_ok()
        };
        let (signed, uid) = (Writer::signed(b"web"), Writer::uid(0));
        assert!(send(signed, 10) && !send(uid, 20));
        assert!(all_done(&redefine(&bench, &["a.rrd"], 20)));
        assert!(!send(uid, 60) && send(signed, 80), "{files:?}");
    }
}

/// Many redefinitions while merges and saves go on: rows stay with their own series.
#[test]
fn many_at_once() {
    let mut bench = bench(5, Files::OnDemand);
    bench.settings.chunk_values = 5;
    bench.reopen();
    let names: Vec<String> = (0..600).map(|at| format!("h/{at}.rrd")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    define(&bench, &names, &narrow());
    let stamps = |at: usize| (1..=12).map(move |n| n * 10 + at as i64 % 7);
    for (at, name) in names.iter().enumerate() {
        send(&mut bench, name, &values(stamps(at)));
    }
    for some in names.chunks(50) {
        bench.store().maintain();
        assert!(all_done(&redefine(&bench, some, 300)));
    }
    save(&bench);
    for _ in 0..2 {
        for (at, name) in names.iter().enumerate() {
            assert!(
                image(&bench, name) == expected(&values(stamps(at)), &[]),
                "{name}"
            );
        }
        bench.disk.kill();
        bench.reopen();
    }
}

struct Stop {
    files: Files,
    has_file: bool,
    step: u64,
    is_power: bool,
}

/// Stops a redefinition at one disk operation; returns true if the redefinition did not end before it. Each series is whole,
/// with old or new definitions, and no other series finds its rows.
fn stops(stop: &Stop) -> bool {
    let Stop {
        files,
        has_file,
        step,
        is_power,
    } = *stop;
    let story = format!("{files:?}, file {has_file}, power {is_power}, step {step}");
    let mut bench = bench(1000 + step, files);
    let names = ["h/a.rrd", "h/b.rrd"];
    define(&bench, &names, &narrow());
    define(&bench, &["h/w.rrd"], &wide());
    let before = values((1..=40).map(|n| n * 10));
    let change = values((1..=3).map(|n| 400 + n * 60));
    for name in names {
        send(&mut bench, name, &before);
    }
    if has_file {
        bench.flush("h/a.rrd").unwrap();
    }
    if step % 2 == 0 {
        save(&bench);
    }
    for name in names {
        send(&mut bench, name, &change);
    }
    bench.store().checkpoint();
    bench.sync();
    let faults = Faults {
        power_off_at: Some(bench.disk.counts().operations + 1 + step),
        ..Faults::default()
    };
    bench.disk.set_faults(faults);
    let ended = all_done(&redefine(&bench, &names, 460));
    bench.store = None;
    match is_power {
        true => bench.disk.crash_by_chance(step),
        false => bench.disk.kill(),
    }
    bench.disk.set_faults(Faults::default());
    bench.reopen();
    let all = [&before[..], &change[..]].concat();
    let (old, new) = (unchanged(&all), expected(&before, &change));
    define(&bench, &["h/n1.rrd", "h/n2.rrd", "h/n3.rrd"], &wide());
    for name in names {
        let is = image(&bench, name);
        assert!(is == new || is == old, "{story}: {name}");
        assert!(is == new || is_power || !ended, "{story}: {name} ended");
    }
    for fresh in ["h/n1.rrd", "h/n2.rrd", "h/n3.rrd", "h/w.rrd"] {
        let unknown = Rrd::parse(&image(&bench, fresh)).unwrap();
        assert!(unknown.cells.iter().all(|cell| cell.is_nan()), "{story}");
    }
    for (name, outcome) in names.iter().zip(redefine(&bench, &names, 460)) {
        outcome.unwrap();
        let mut rows = Rrd::parse(&image(&bench, name)).unwrap();
        assert_eq!(rows.header.pdp_step, 60, "{story}");
        rows.header.last_up_usec = 0;
        assert_eq!(rows.header.last_up, START + 580, "{story}");
    }
    bench.disk.kill();
    bench.reopen();
    assert_eq!(bench.store().step(b"h/a.rrd"), Some(60), "{story}");
    !ended
}

#[test]
fn kills_and_power_cuts_at_each_step() {
    for files in MODES {
        for has_file in [false, true] {
            for is_power in [false, true] {
                let steps = (0..1000).take_while(|&step| {
                    stops(&Stop {
                        files,
                        has_file,
                        step,
                        is_power,
                    })
                });
                assert!(steps.count() > 3, "{files:?}");
            }
        }
    }
}

/// After a full disk or a failed write or sync the series is whole, and the next attempt works.
#[test]
fn disks_that_fail() {
    for at in 0..effort(90) {
        let mut bench = bench(2000 + at, MODES[at as usize % 3]);
        define(&bench, &["a.rrd"], &narrow());
        let before = values((1..=40).map(|n| n * 10));
        let change = values((1..=3).map(|n| 400 + n * 60));
        send(&mut bench, "a.rrd", &before);
        send(&mut bench, "a.rrd", &change);
        let counts = bench.disk.counts();
        let nth = at / 9;
        bench.disk.set_faults(match at / 3 % 3 {
            0 => Faults {
                full_writes: Some((counts.writes + nth, u64::MAX)),
                ..Faults::default()
            },
            1 => Faults {
                broken_write: Some(counts.writes + nth),
                ..Faults::default()
            },
            _ => Faults {
                broken_sync: Some(counts.syncs + nth),
                ..Faults::default()
            },
        });
        let story = format!("{at}: {:?}", bench.settings.files);
        let done = all_done(&redefine(&bench, &["a.rrd"], 460));
        bench.disk.set_faults(Faults::default());
        bench.clock.advance_ns(SECOND);
        if !done {
            let all = [&before[..], &change[..]].concat();
            // A new file that is already in its place counts.
            let is = image(&bench, "a.rrd");
            let new = expected(&before, &change);
            assert!(is == unchanged(&all) || is == new, "{story}");
            redefine(&bench, &["a.rrd"], 460).pop().unwrap().unwrap();
        }
        assert_eq!(bench.store().step(b"a.rrd"), Some(60), "{story}");
        bench.disk.kill();
        bench.reopen();
        assert_eq!(bench.store().step(b"a.rrd"), Some(60), "{story}");
    }
}
