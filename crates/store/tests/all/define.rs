//! Definitions of many series at once, as a listener sends them, with and without files.

use crate::common::{Bench, MODES, SECOND, START, base, oracle, rrd};
use kymo_rrd::Rrd;
use kymo_store::{Definition, FileError, Files, Flushed, SeriesName};
use kymo_sys::disk::Disk;
use kymo_sys::effort::effort;
use kymo_sys::sim_disk::Faults;
use std::time::Duration;

fn bench(seed: u64, files: Files) -> Bench {
    let mut bench = Bench::new(seed, 1);
    bench.settings.files = files;
    bench.settings.beneath = true;
    bench.open();
    bench
}

/// Defines the series; for each, returns whether it is new.
fn define(bench: &Bench, names: &[&str]) -> Vec<Result<bool, FileError>> {
    let header = rrd(b"GAUGE").header;
    let definitions = names.iter().map(|name| Definition {
        name: SeriesName::File(name.as_bytes()),
        header: header.clone(),
    });
    bench.store().define(definitions.collect())
}

fn began(outcomes: Vec<Result<bool, FileError>>) -> Vec<bool> {
    outcomes.into_iter().map(Result::unwrap).collect()
}

fn image(bench: &Bench, name: &str) -> Vec<u8> {
    bench.store().load(name.as_bytes()).unwrap().to_bytes()
}

fn is_there(bench: &Bench, name: &str) -> bool {
    // An empty placeholder does not count as a file.
    let bytes = bench.disk.bytes(&base().join(name));
    bytes.is_some_and(|bytes| !bytes.is_empty())
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

#[test]
fn a_series_is_the_same_with_and_without_a_file() {
    for files in MODES {
        let mut bench = bench(1, files);
        let names = [
            "h/cpu/idle.rrd",
            "h/cpu/user.rrd",
            "h/cpu/idle.rrd",
            "g/x.rrd",
        ];
        assert_eq!(began(define(&bench, &names)), [true, true, false, true]);
        assert_eq!(began(define(&bench, &names[..1])), [false]);
        let at_once = matches!(files, Files::After(_));
        assert_eq!(is_there(&bench, "h/cpu/idle.rrd"), at_once, "{files:?}");
        let mut values = fill(&mut bench, "h/cpu/idle.rrd", 1, 30);
        bench.disk.kill();
        bench.reopen();
        assert_eq!(began(define(&bench, &names)), [false; 4]);
        values.extend(fill(&mut bench, "h/cpu/idle.rrd", 31, 20));
        assert_eq!(image(&bench, "h/cpu/idle.rrd"), expected(&values));
        assert_eq!(bench.flush("h/cpu/idle.rrd").unwrap(), Flushed::Done);
        if files != Files::Never {
            assert_eq!(bench.bytes("h/cpu/idle.rrd"), expected(&values));
            // A day later, a file that no client asked for is still missing.
            bench.clock.advance_ns(86_400 * SECOND);
            bench.store().maintain();
            assert_eq!(is_there(&bench, "h/cpu/user.rrd"), at_once, "{files:?}");
        }
        let listed = bench.store().list(b"/db/", true).unwrap();
        let listed: Vec<String> = listed
            .into_iter()
            .map(|name| String::from_utf8(name).unwrap())
            .filter(|name| name != "f0.rrd")
            .collect();
        assert_eq!(listed, ["g/x.rrd", "h/cpu/idle.rrd", "h/cpu/user.rrd"]);
        let folder = bench.store().list(b"/db/h", false).unwrap();
        assert_eq!(folder, [b"cpu"]);
        let one = bench.store().list(b"/db/g/x.rrd", false).unwrap();
        assert_eq!(one, [b"x.rrd"]);
    }
}

#[test]
fn files_that_are_there_are_taken_as_they_are() {
    for files in [Files::OnDemand, Files::After(Duration::from_secs(300))] {
        let mut bench = bench(2, files);
        let before = expected(&["1000000010:7".into()]);
        bench.disk.create_dir_all(&base().join("h")).unwrap();
        bench
            .disk
            .set_bytes(&base().join("h/a.rrd"), before.clone());
        assert_eq!(
            began(define(&bench, &["h/a.rrd", "h/b.rrd"])),
            [false, true]
        );
        bench.update("h/a.rrd", &["1000000020:8"]).unwrap();
        bench.flush("h/a.rrd").unwrap();
        assert_eq!(bench.bytes("h/a.rrd"), oracle(&before, &[b"1000000020:8"]));
    }
}

#[test]
fn nothing_begins_where_it_must_not() {
    for files in MODES {
        let bench = bench(3, files);
        let store_folder = bench.settings.folder.join("x.rrd");
        let long = format!("{}.rrd", "n".repeat(300));
        for name in [
            "../x.rrd",
            "h/../../x.rrd",
            "nul\0.rrd",
            ".kymo-owner",
            store_folder.to_str().unwrap(),
            &long,
        ] {
            let outcome = define(&bench, &[name, "ok.rrd"]);
            assert!(outcome[0].is_err(), "{files:?} {name}");
        }
        assert!(bench.store().has_without_file(b"ok.rrd") != matches!(files, Files::After(_)));
    }
}

/// A new series is told from an old file by creating its placeholder, which must replace no link.
#[test]
fn a_link_to_a_file_is_that_file() {
    let mut bench = bench(6, Files::OnDemand);
    let before = expected(&["1000000010:7".into()]);
    let path = |name: &str| base().join(name);
    bench.disk.create_dir_all(&path("real")).unwrap();
    bench.disk.set_bytes(&path("real/a.rrd"), before.clone());
    bench.disk.symlink(&path("real"), &path("link"));
    bench.disk.symlink(&path("real/a.rrd"), &path("real/b.rrd"));
    bench.disk.symlink(&path("none.rrd"), &path("real/c.rrd"));
    let names = ["link/a.rrd", "real/b.rrd", "real/c.rrd", "link/d.rrd"];
    assert_eq!(began(define(&bench, &names)), [false, false, true, true]);
    assert_eq!(bench.bytes("real/d.rrd"), b"");
    bench.update("real/b.rrd", &["1000000020:8"]).unwrap();
    bench.flush("link/a.rrd").unwrap();
    assert_eq!(
        bench.bytes("real/a.rrd"),
        oracle(&before, &[b"1000000020:8"])
    );
    assert!(bench.disk.bytes(&path("none.rrd")).is_none());
}

/// CREATE of a series without a file fails with -O, and begins the series again without -O.
#[test]
fn create_knows_series_without_files() {
    let mut bench = bench(4, Files::OnDemand);
    began(define(&bench, &["d/n.rrd"]));
    fill(&mut bench, "d/n.rrd", 1, 9);
    let store = bench.store().clone();
    bench.disk.create_dir_all(&base().join("d")).unwrap();
    let new = rrd(b"GAUGE");
    assert!(matches!(
        store.install(b"d/n.rrd", &new, false),
        Err(FileError::Exists)
    ));
    assert!(!is_there(&bench, "d/n.rrd"));
    store.install(b"d/n.rrd", &new, true).unwrap();
    assert_eq!(bench.bytes("d/n.rrd"), new.to_bytes());
    // TUNE makes the file.
    began(define(&bench, &["d/t.rrd"]));
    let values = fill(&mut bench, "d/t.rrd", 1, 9);
    let mut edit = |mut rrd: Rrd| {
        rrd.header.ds[0].par[0] = 77;
        Ok(rrd)
    };
    store.rewrite(b"d/t.rrd", &mut edit).unwrap();
    let tuned = Rrd::parse(&bench.bytes("d/t.rrd")).unwrap();
    assert_eq!(tuned.header.ds[0].par[0], 77);
    let bits = |rrd: &Rrd| {
        rrd.cells
            .iter()
            .map(|cell| cell.to_bits())
            .collect::<Vec<_>>()
    };
    assert_eq!(bits(&tuned), bits(&Rrd::parse(&expected(&values)).unwrap()));
}

/// On a full disk a failed definition begins no series, and the next attempt works.
#[test]
fn a_full_disk() {
    for files in MODES {
        let mut bench = bench(5, files);
        bench.disk.set_faults(Faults {
            full_writes: Some((0, u64::MAX)),
            ..Faults::default()
        });
        let names: Vec<String> = (0..5000).map(|at| format!("h/{at}.rrd")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let outcomes = define(&bench, &names);
        assert!(outcomes.iter().any(Result::is_err), "{files:?}");
        bench.disk.set_faults(Faults::default());
        bench.clock.advance_ns(SECOND);
        let again = began(define(&bench, &names));
        for (first, again) in outcomes.iter().zip(&again) {
            // With files, the first attempt may have begun a series and failed later.
            let counted = matches!(first, Ok(true)) != *again;
            assert!(counted || matches!(files, Files::After(_)), "{files:?}");
        }
        let values = fill(&mut bench, names[4999], 1, 9);
        bench.disk.kill();
        bench.reopen();
        assert_eq!(image(&bench, names[4999]), expected(&values));
    }
}

/// After a power cut at any moment, a defined and synced series is there, and its file is made on request.
#[test]
fn power_cuts() {
    for seed in 0..effort(60) {
        let files = MODES[seed as usize % 3];
        let mut bench = bench(100 + seed, files);
        let mut values = Vec::new();
        began(define(&bench, &["h/a.rrd", "h/b.rrd"]));
        let before = 1 + bench.random(30) as i64;
        values.extend(fill(&mut bench, "h/a.rrd", 1, before));
        if bench.random(2) == 0 {
            bench.flush("h/a.rrd").unwrap();
        }
        if bench.random(2) == 0 {
            bench.store().checkpoint();
        }
        bench.sync();
        if bench.random(2) == 0 {
            let _may_be_lost = bench.flush("h/a.rrd");
        }
        bench.disk.crash_by_chance(seed);
        bench.reopen();
        let after = 1 + bench.random(9) as i64;
        values.extend(fill(&mut bench, "h/a.rrd", before + 1, after));
        assert_eq!(
            image(&bench, "h/a.rrd"),
            expected(&values),
            "seed {seed}, {files:?}"
        );
        bench.flush("h/a.rrd").unwrap();
        if files != Files::Never {
            assert_eq!(
                bench.bytes("h/a.rrd"),
                expected(&values),
                "seed {seed}, {files:?}"
            );
        }
        assert_eq!(began(define(&bench, &["h/b.rrd"])), [false], "seed {seed}");
    }
}

/// The store drops a series without a file after a silence longer than its archives reach, and makes no file for it.
#[test]
fn silent_series_go() {
    let mut bench = bench(6, Files::OnDemand);
    began(define(&bench, &["h/a.rrd", "h/b.rrd"]));
    fill(&mut bench, "h/a.rrd", 1, 9);
    for day in 1..20 {
        bench.clock.advance_ns(86_400 * SECOND);
        bench
            .update("h/b.rrd", &[&format!("{}:1", START + day * 86_400)])
            .unwrap();
        bench.store().shutdown(false).unwrap();
        bench.store().maintain();
    }
    assert!(!bench.store().has_without_file(b"h/a.rrd"));
    assert!(!is_there(&bench, "h/a.rrd"));
    assert!(bench.store().has_without_file(b"h/b.rrd"));
}

/// The file of a series is removed. Where files are kept up to date, the series begins again with its next value, as
/// collectd recreates a file; where files are made on request, the series goes on (`views`).
#[test]
fn a_removed_file_is_a_new_series() {
    let files = Files::After(Duration::from_secs(300));
    let mut bench = bench(7, files);
    began(define(&bench, &["h/a.rrd"]));
    fill(&mut bench, "h/a.rrd", 1, 30);
    bench.flush("h/a.rrd").unwrap();
    bench.disk.unlink(&base().join("h/a.rrd")).unwrap();
    assert!(matches!(bench.flush("h/a.rrd"), Err(FileError::NoSuchFile)));
    assert!(
        bench.update("h/a.rrd", &["1000000400:1"]).is_err(),
        "{files:?}"
    );
    // Like a file that collectd makes, the series begins shortly before its first value.
    let mut new = rrd(b"GAUGE");
    new.header.last_up = START + 400;
    let definition = Definition {
        name: SeriesName::File(b"h/a.rrd"),
        header: new.header.clone(),
    };
    assert_eq!(began(bench.store().define(vec![definition])), [true]);
    let values = fill(&mut bench, "h/a.rrd", 41, 9);
    let texts: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    let expected = oracle(&new.to_bytes(), &texts);
    assert_eq!(image(&bench, "h/a.rrd"), expected, "{files:?}");
    bench.disk.kill();
    bench.reopen();
    assert_eq!(image(&bench, "h/a.rrd"), expected, "{files:?}");
    bench.flush("h/a.rrd").unwrap();
    assert_eq!(bench.bytes("h/a.rrd"), expected, "{files:?}");
}
