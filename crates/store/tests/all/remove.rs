//! Removal of series, with and without files.

use crate::common::{Bench, MODES, SECOND, START, base, oracle, rrd};
use kymo_store::{Definition, FileError, Files, SeriesName};
use kymo_sys::disk::{Disk, OpenMode, RecordLock};
use kymo_sys::effort::effort;
use kymo_sys::sim_disk::Faults;

fn bench(seed: u64, files: Files) -> Bench {
    let mut bench = Bench::new(seed, 1);
    bench.settings.files = files;
    bench.settings.beneath = true;
    bench.open();
    bench
}

fn define(bench: &Bench, names: &[&str]) {
    let header = rrd(b"GAUGE").header;
    let definitions = names.iter().map(|name| Definition {
        name: SeriesName::File(name.as_bytes()),
        header: header.clone(),
    });
    for outcome in bench.store().define(definitions.collect()) {
        outcome.unwrap();
    }
}

fn fill(bench: &mut Bench, name: &str, from: i64, count: i64) -> Vec<String> {
    let values = (from..from + count).map(|at| format!("{}:{at}", START + at * 10));
    let values: Vec<String> = values.collect();
    for value in &values {
        bench.update(name, &[value]).unwrap();
        bench.store().maintain();
    }
    values
}

fn expected(values: &[String]) -> Vec<u8> {
    let texts: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    oracle(&rrd(b"GAUGE").to_bytes(), &texts)
}

fn remove(bench: &Bench, names: &[&str]) -> Vec<Result<(), FileError>> {
    let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
    bench.store().remove(&names)
}

fn image(bench: &Bench, name: &str) -> Option<Vec<u8>> {
    let loaded = bench.store().load(name.as_bytes());
    loaded.ok().map(|rrd| rrd.to_bytes())
}

fn is_there(bench: &Bench, name: &str) -> bool {
    // An empty placeholder does not count as a file.
    let bytes = bench.disk.bytes(&base().join(name));
    bytes.is_some_and(|bytes| !bytes.is_empty())
}

#[test]
fn a_removed_series_is_gone_and_begins_again() {
    for files in MODES {
        let mut bench = bench(1, files);
        define(&bench, &["h/a.rrd", "h/b.rrd", "h/c.rrd"]);
        for name in ["h/a.rrd", "h/b.rrd", "h/c.rrd"] {
            fill(&mut bench, name, 1, 30);
        }
        bench.flush("h/a.rrd").unwrap();
        let outcomes = remove(&bench, &["h/a.rrd", "none.rrd", "h/b.rrd", "../x.rrd"]);
        let is = outcomes.iter().map(Result::is_ok).collect::<Vec<_>>();
        assert_eq!(is, [true, false, true, false], "{files:?}: {outcomes:?}");
        assert!(matches!(outcomes[1], Err(FileError::NoSuchFile)));
        assert!(matches!(outcomes[3], Err(FileError::Outside)));
        for life in ["this", "the next"] {
            for name in ["h/a.rrd", "h/b.rrd"] {
                assert!(!is_there(&bench, name), "{files:?} {name} in {life} life");
                assert_eq!(image(&bench, name), None, "{files:?} {name} in {life} life");
                assert!(bench.update(name, &["1000000400:1"]).is_err());
            }
            assert!(image(&bench, "h/c.rrd").is_some());
            bench.disk.kill();
            bench.reopen();
        }
        define(&bench, &["h/a.rrd"]);
        // Values older than the removed ones.
        let values = fill(&mut bench, "h/a.rrd", 5, 9);
        assert_eq!(
            image(&bench, "h/a.rrd"),
            Some(expected(&values)),
            "{files:?}"
        );
        bench.clock.advance_ns(86_400 * SECOND);
        bench.store().shutdown(false).unwrap();
        bench.store().maintain();
        bench.disk.kill();
        bench.reopen();
        assert_eq!(
            image(&bench, "h/a.rrd"),
            Some(expected(&values)),
            "{files:?}"
        );
    }
}

#[test]
fn a_file_that_the_store_does_not_know_goes() {
    let bench = bench(2, Files::OnDemand);
    bench.disk.create_dir_all(&base().join("d")).unwrap();
    let bytes = rrd(b"GAUGE").to_bytes();
    bench.disk.set_bytes(&base().join("d/x.rrd"), bytes);
    assert!(remove(&bench, &["d"])[0].is_err());
    remove(&bench, &["d/x.rrd"]).pop().unwrap().unwrap();
    assert!(!is_there(&bench, "d/x.rrd"));
    assert!(matches!(
        remove(&bench, &["d/x.rrd"])[0],
        Err(FileError::NoSuchFile)
    ));
}

/// A file that another program has locked stays, and so does its series.
#[test]
fn a_file_that_others_have_locked_stays() {
    let mut bench = bench(3, Files::OnDemand);
    define(&bench, &["h/a.rrd"]);
    let mut values = fill(&mut bench, "h/a.rrd", 1, 9);
    bench.flush("h/a.rrd").unwrap();
    values.extend(fill(&mut bench, "h/a.rrd", 10, 9));
    let file = bench
        .disk
        .open(&base().join("h/a.rrd"), OpenMode::Write)
        .unwrap();
    assert!(file.try_record_lock(RecordLock::Exclusive).unwrap());
    assert!(matches!(
        remove(&bench, &["h/a.rrd"])[0],
        Err(FileError::Locked)
    ));
    drop(file);
    assert_eq!(image(&bench, "h/a.rrd"), Some(expected(&values)));
    remove(&bench, &["h/a.rrd"]).pop().unwrap().unwrap();
    assert!(!is_there(&bench, "h/a.rrd"));
}

/// After a kill or a power cut before any disk operation, the series is whole or gone.
#[test]
fn all_of_a_series_or_nothing() {
    let mut cut = 0;
    for seed in 0..effort(12) {
        let files = MODES[seed as usize % 3];
        let mut begun = bench(100 + seed, files);
        define(&begun, &["h/a.rrd"]);
        let mut values = fill(&mut begun, "h/a.rrd", 1, 40);
        if begun.random(2) == 0 && files != Files::Never {
            begun.flush("h/a.rrd").unwrap();
            values.extend(fill(&mut begun, "h/a.rrd", 41, 5));
        }
        begun.sync();
        begun.store().checkpoint();
        begun.store = None;
        for power in [false, true] {
            for operation in 1.. {
                let mut bench = begun.fork();
                bench.open();
                let before = bench.disk.counts().operations;
                bench.disk.set_faults(Faults {
                    power_off_at: Some(before + operation),
                    ..Faults::default()
                });
                let removed = remove(&bench, &["h/a.rrd"]).pop().unwrap();
                let ended = bench.disk.counts().faults == 0;
                bench.disk.set_faults(Faults::default());
                match power {
                    true => bench.disk.crash_by_chance(seed + operation),
                    false => bench.disk.kill(),
                }
                bench.reopen();
                let story = format!("seed {seed}, {files:?}, power {power}, operation {operation}");
                match image(&bench, "h/a.rrd") {
                    Some(there) => {
                        assert!(removed.is_err(), "{story}: it came back");
                        cut += 1;
                        assert_eq!(there, expected(&values), "{story}: it is not whole");
                    }
                    None => assert!(!is_there(&bench, "h/a.rrd"), "{story}: its file is there"),
                }
                if ended {
                    removed.unwrap();
                    break;
                }
            }
        }
    }
    assert!(cut > 30, "{cut} of them were there");
}
