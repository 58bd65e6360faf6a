//! Files made on request: a series goes on without its file, and the next request makes the file again.

use crate::common::{Bench, SECOND, START, base, oracle, rrd};
use kymo_rrd::Rrd;
use kymo_store::{Definition, FileError, Files, Flushed, Fresh, SeriesName};
use kymo_sys::disk::Disk;
use kymo_sys::sim_disk::Fate;
use std::time::Duration;

fn bench(seed: u64, count: usize) -> Bench {
    let mut bench = Bench::new(seed, count);
    bench.settings.files = Files::OnDemand;
    bench.settings.chunk_values = 8;
    bench.open();
    bench
}

fn define(bench: &Bench, name: &str) -> bool {
    let definition = Definition {
        name: SeriesName::File(name.as_bytes()),
        header: rrd(b"GAUGE").header,
    };
    let mut outcomes = bench.store().define(vec![definition]);
    outcomes.pop().unwrap().unwrap()
}

fn fill(bench: &mut Bench, name: &str, from: i64, count: i64) {
    for at in from..from + count {
        let value = format!("{}:{at}", START + at * 10);
        bench.update(name, &[&value]).unwrap();
        bench.store().maintain();
    }
}

/// File of a series that began as `before`, with values up to `upto`.
fn expected(before: &[u8], upto: i64) -> Vec<u8> {
    let values: Vec<String> = (1..=upto)
        .map(|at| format!("{}:{at}", START + at * 10))
        .collect();
    let texts: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    oracle(before, &texts)
}

/// Reads as FETCH does, which writes no file.
fn look(bench: &Bench, name: &str) {
    drop(bench.store().read(name.as_bytes(), Fresh::Flushed).unwrap());
}

fn remove_file(bench: &Bench, name: &str) {
    bench.disk.unlink(&base().join(name)).unwrap();
}

/// First source of a series: a definition, CREATE, or a file.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Defined,
    Created,
    Found,
}

/// A removed file once took the history with it: values counted as stored and were lost, and FLUSH succeeded without a file.
#[test]
fn a_removed_view_is_made_again() {
    for origin in [Origin::Defined, Origin::Created, Origin::Found] {
        for (is_looked_at, restarts) in [(false, false), (true, false), (false, true), (true, true)]
        {
            let story = format!("{origin:?}, looked at {is_looked_at}, restarts {restarts}");
            let mut bench = bench(1, 1);
            let name = match origin {
                Origin::Found => "f0.rrd",
                _ => "h/a.rrd",
            };
            let new = rrd(b"GAUGE");
            match origin {
                Origin::Defined => assert!(define(&bench, name)),
                Origin::Created => {
                    bench.store().make_folder(name.as_bytes(), true).unwrap();
                    bench.store().install(name.as_bytes(), &new, true).unwrap();
                }
                Origin::Found => {}
            }
            fill(&mut bench, name, 1, 30);
            assert_eq!(bench.flush(name).unwrap(), Flushed::Done);
            remove_file(&bench, name);
            if is_looked_at {
                look(&bench, name);
                // Longer than the store keeps values of a missing file.
                bench.clock.advance_ns(9 * 86_400 * SECOND);
                bench.store().maintain();
                bench.clock.advance_ns(9 * 86_400 * SECOND);
                bench.store().maintain();
            }
            if restarts {
                bench.disk.kill();
                bench.reopen();
            }
            assert!(!define(&bench, name), "{story}: it began again");
            fill(&mut bench, name, 31, 20);
            let expected = expected(&new.to_bytes(), 50);
            let listed = bench.store().list(b"/db/", true).unwrap();
            assert!(listed.contains(&name.as_bytes().to_vec()), "{story}");
            assert!(
                bench.store().load(name.as_bytes()).unwrap().to_bytes() == expected,
                "{story}"
            );
            for again in 0..2 {
                assert_eq!(bench.flush(name).unwrap(), Flushed::Done, "{story}");
                assert!(bench.bytes(name) == expected, "{story}, {again}");
                bench.disk.kill();
                bench.reopen();
            }
        }
    }
}

/// A file that another program puts in the place of a removed one counts as it is, even if a client read the series in between.
#[test]
fn a_file_in_the_place_of_a_removed_one_counts() {
    for is_looked_at in [false, true] {
        let mut bench = bench(2, 0);
        define(&bench, "a.rrd");
        fill(&mut bench, "a.rrd", 1, 30);
        bench.flush("a.rrd").unwrap();
        remove_file(&bench, "a.rrd");
        if is_looked_at {
            look(&bench, "a.rrd");
        }
        let theirs = oracle(&rrd(b"GAUGE").to_bytes(), &[b"1000000300:77"]);
        bench.disk.set_bytes(&base().join("a.rrd"), theirs.clone());
        bench.flush("a.rrd").unwrap();
        bench.update("a.rrd", &["1000000310:78"]).unwrap();
        bench.flush("a.rrd").unwrap();
        let expected = oracle(&theirs, &[b"1000000310:78"]);
        assert!(bench.bytes("a.rrd") == expected, "{is_looked_at}");
    }
}

/// After FORGET and a removed file, the next series of this name inherits nothing.
#[test]
fn a_forgotten_series_does_not_outlive_its_file() {
    let mut bench = bench(3, 0);
    define(&bench, "a.rrd");
    bench.update("a.rrd", &["2000000000:7"]).unwrap();
    bench.flush("a.rrd").unwrap();
    let mut batch = bench.store().write_batch();
    assert!(batch.forget(b"a.rrd"));
    batch.commit().unwrap();
    remove_file(&bench, "a.rrd");
    assert!(bench.update("a.rrd", &["1000000010:1"]).is_err());
    assert!(define(&bench, "a.rrd"));
    bench.update("a.rrd", &["1000000010:1"]).unwrap();
    bench.flush("a.rrd").unwrap();
    let expected = oracle(&rrd(b"GAUGE").to_bytes(), &[b"1000000010:1"]);
    assert!(bench.bytes("a.rrd") == expected);
}

/// `rrdtool graph --daemon unix:` resolves a name before it asks, so a series without a file has an empty placeholder.
#[test]
fn a_series_without_a_file_has_a_placeholder() {
    let mut bench = bench(4, 0);
    assert!(define(&bench, "h/a.rrd"));
    define(&bench, "h/b.rrd");
    define(&bench, "h/c.rrd");
    assert_eq!(bench.bytes("h/a.rrd"), b"");
    fill(&mut bench, "h/a.rrd", 1, 20);
    fill(&mut bench, "h/b.rrd", 1, 20);
    for life in 0..2 {
        let expected = expected(&rrd(b"GAUGE").to_bytes(), 20);
        assert!(!define(&bench, "h/a.rrd"), "{life}");
        bench.store().touch(b"h/a.rrd").unwrap();
        assert!(bench.store().load(b"h/b.rrd").unwrap().to_bytes() == expected);
        assert_eq!(bench.store().list(b"/db/h", true).unwrap().len(), 3);
        bench.disk.kill();
        bench.reopen();
    }
    let expected = expected(&rrd(b"GAUGE").to_bytes(), 20);
    assert!(matches!(
        bench.store().export_in_place(&[b"h/b.rrd"])[..],
        [None]
    ));
    assert!(bench.bytes("h/b.rrd") == expected);
    bench.flush("h/a.rrd").unwrap();
    assert!(bench.bytes("h/a.rrd") == expected);
    // The sweep restores a removed placeholder; a removed series takes its placeholder with it.
    remove_file(&bench, "h/c.rrd");
    remove_file(&bench, "h/a.rrd");
    look(&bench, "h/a.rrd");
    bench.clock.advance_ns(3601 * SECOND);
    bench.store().maintain();
    assert_eq!(bench.bytes("h/c.rrd"), b"");
    assert_eq!(bench.bytes("h/a.rrd"), b"");
    bench.disk.kill();
    bench.reopen();
    bench.flush("h/a.rrd").unwrap();
    assert!(bench.bytes("h/a.rrd") == expected);
    let removed = bench.store().remove(&[b"h/c.rrd".to_vec()]);
    assert!(matches!(removed[..], [Ok(())]), "{removed:?}");
    assert!(bench.disk.bytes(&base().join("h/c.rrd")).is_none());
}

/// A stray empty file, or the zeros that a power cut left of a new file, is no series: a touch reports a missing file.
#[test]
fn a_hollow_file_is_never_taken_over() {
    for files in [Files::OnDemand, Files::After(Duration::from_secs(300))] {
        for bytes in [Vec::new(), vec![0; 2000]] {
            let mut bench = Bench::new(5, 0);
            bench.settings.files = files;
            bench.disk.set_bytes(&base().join("a.rrd"), bytes.clone());
            bench.open();
            let told = bench.store().touch(b"a.rrd");
            assert!(matches!(told, Err(FileError::NoSuchFile)), "{told:?}");
            if bytes.is_empty() || files != Files::OnDemand {
                assert!(define(&bench, "a.rrd"), "{files:?}");
                bench.update("a.rrd", &["1000000010:1"]).unwrap();
                bench.flush("a.rrd").unwrap();
                let expected = oracle(&rrd(b"GAUGE").to_bytes(), &[b"1000000010:1"]);
                assert!(bench.bytes("a.rrd") == expected, "{files:?}");
            }
            let new = rrd(b"GAUGE");
            bench.disk.set_bytes(&base().join("b.rrd"), bytes.clone());
            bench.store().install(b"b.rrd", &new, false).unwrap();
            bench.update("b.rrd", &["1000000010:1"]).unwrap();
        }
    }
}

/// A power cut comes after the first file of a series is in place and before END is on the disk. The file once counted as
/// another program's for ever.
#[test]
fn power_cut_at_the_end_of_a_first_file() {
    let (mut whole, mut missing) = (0, 0);
    for seed in 0..120 {
        for save in [false, true] {
            let mut bench = bench(seed, 0);
            define(&bench, "h/a.rrd");
            fill(&mut bench, "h/a.rrd", 1, 20);
            if save {
                bench.clock.advance_ns(7 * 3600 * SECOND);
                bench.store().maintain();
            }
            bench.sync();
            bench.flush("h/a.rrd").unwrap();
            bench.store = None;
            match seed % 2 {
                0 => bench.disk.crash(&mut |_| Fate::Drop),
                _ => bench.disk.crash_by_chance(seed),
            }
            let left = bench.disk.bytes(&base().join("h/a.rrd"));
            match left.map(|bytes| Rrd::parse(&bytes).is_ok()) {
                Some(true) => whole += 1,
                _ => missing += 1,
            }
            let story = format!("seed {seed}, saved {save}");
            bench.reopen();
            let notices = &bench.replayed.notices;
            let is_of_it = |line: &String| line.contains("a.rrd");
            assert!(!notices.iter().any(is_of_it), "{story}: {notices:?}");
            fill(&mut bench, "h/a.rrd", 21, 9);
            bench
                .flush("h/a.rrd")
                .unwrap_or_else(|error| panic!("{story}: {error:?}"));
            let expected = expected(&rrd(b"GAUGE").to_bytes(), 29);
            assert!(bench.bytes("h/a.rrd") == expected, "{story}");
        }
    }
    assert!(whole > 20, "{whole} {missing}");
}

/// Another program put a file there while no daemon ran: the store leaves it alone.
#[test]
fn a_file_of_others_stays() {
    let mut bench = bench(7, 0);
    define(&bench, "a.rrd");
    fill(&mut bench, "a.rrd", 1, 20);
    bench.disk.kill();
    let theirs = oracle(&rrd(b"GAUGE").to_bytes(), &[b"1000000300:77"]);
    bench.disk.set_bytes(&base().join("a.rrd"), theirs.clone());
    bench.reopen();
    assert!(bench.flush("a.rrd").is_err());
    assert!(bench.bytes("a.rrd") == theirs);
}
