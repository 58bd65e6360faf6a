//! Store behaviour with locks, names, files that other programs change, and journals of stock rrdcached.

use crate::common::{Bench, SECOND, START, base, oracle, rrd};
use kymo_rrd::Rrd;
use kymo_rrd::create::{Create, create};
use kymo_store::{FileError, Files, Flushed, Fresh, Refusal, Switched};
use kymo_sys::clock::Clock;
use kymo_sys::disk::{Disk, OpenMode, RecordLock};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn bench(count: usize) -> Bench {
    let mut bench = Bench::new(1, count);
    bench.open();
    bench
}

/// Checks that the file equals rrdtool's arithmetic over all values accepted for it.
fn is_current(bench: &Bench, name: &str) {
    let (_, before) = bench.files.iter().find(|file| file.0 == name).unwrap();
    let acked = bench.acked.iter().filter(|acked| acked.name == name);
    let values: Vec<&[u8]> = acked.map(|acked| &acked.text[..]).collect();
    assert!(oracle(before, &values) == bench.bytes(name), "{name}");
}

fn texts(bench: &Bench, name: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let batch = bench.store().write_batch();
    batch.pending(name.as_bytes(), &mut |text| {
        texts.push(String::from_utf8(text.to_vec()).unwrap());
    });
    texts
}

#[test]
fn requests_and_their_answers() {
    let mut bench = bench(1);
    let store = bench.store().clone();
    assert_eq!(
        store.write_batch().update(b"f0.rrd", [&b"1:1"[..]]),
        Err(Refusal::Untouched)
    );
    assert!(!store.write_batch().forget(b"f0.rrd"));
    assert_eq!(store.write_batch().suspend(b"f0.rrd"), Switched::Unknown);
    assert_eq!(store.write_batch().pending(b"f0.rrd", &mut |_| {}), None);
    assert_eq!(bench.flush("f0.rrd").unwrap(), Flushed::Nothing);
    bench
        .update("f0.rrd", &["1000000010:1", "1000000020:2"])
        .unwrap();
    assert_eq!(texts(&bench, "f0.rrd"), ["1000000010:1", "1000000020:2"]);
    let mut batch = store.write_batch();
    let past = Refusal::Past {
        stamp: 5.0,
        last: 1000000020.0,
    };
    assert_eq!(batch.update(b"f0.rrd", [&b"5:1"[..]]), Err(past));
    let value = b"N:1".to_vec();
    assert_eq!(
        batch.update(b"f0.rrd", [&b"N:1"[..]]),
        Err(Refusal::NoStamp { value })
    );
    assert_eq!(batch.update(b"f0.rrd", []), Err(Refusal::NoValues));
    // Values before a bad one in the same call stay.
    assert!(
        batch
            .update(b"f0.rrd", [&b"1000000030:3"[..], b"x"])
            .is_err()
    );
    assert_eq!(batch.last_stamp(b"f0.rrd"), Some(1000000030.0));
    batch.commit().unwrap();
    assert_eq!(texts(&bench, "f0.rrd").len(), 3);
    // A batch that is dropped without a commit has no effect.
    let mut batch = store.write_batch();
    batch.update(b"f0.rrd", [&b"1000000040:4"[..]]).unwrap();
    assert!(batch.forget(b"f0.rrd"));
    drop(batch);
    assert_eq!(texts(&bench, "f0.rrd").len(), 3);
    assert_eq!(bench.flush("f0.rrd").unwrap(), Flushed::Done);
    assert_eq!(bench.flush("f0.rrd").unwrap(), Flushed::Done);
    assert_eq!(texts(&bench, "f0.rrd").len(), 0);
    let opened = store.read(b"f0.rrd", Fresh::AsIs).unwrap();
    assert_eq!(opened.header.last_up, 1000000030);
    drop(opened);
    let mut batch = store.write_batch();
    assert_eq!(batch.suspend(b"f0.rrd"), Switched::Now);
    assert_eq!(batch.suspend(b"f0.rrd"), Switched::Already);
    batch.update(b"f0.rrd", [&b"1000000040:4"[..]]).unwrap();
    batch.flush_all();
    batch.commit().unwrap();
    assert_eq!(
        (store.flush_due(), bench.flush("f0.rrd").unwrap()),
        (0, Flushed::Done)
    );
    assert_eq!(texts(&bench, "f0.rrd"), ["1000000040:4"]);
    let mut batch = store.write_batch();
    assert_eq!(
        (batch.resume_all(), batch.suspend_all(), batch.resume_all()),
        (1, 1, 1)
    );
    assert!(batch.forget(b"f0.rrd") && !batch.forget(b"f0.rrd"));
    batch.commit().unwrap();
    assert_eq!(store.write_batch().pending(b"f0.rrd", &mut |_| {}), None);
    bench.update("f0.rrd", &["1000000035:4"]).unwrap();
    let stats = store.write_batch().stats();
    assert_eq!(
        (stats.updates_written, stats.data_sets_written, stats.files),
        (1, 3, 1)
    );
}

#[test]
fn due_files_are_written_in_path_order_when_it_is_time() {
    let mut bench = bench(3);
    for name in ["f2.rrd", "f0.rrd", "f1.rrd"] {
        bench.update(name, &["1000000010:1"]).unwrap();
    }
    bench.clock.advance_ns(299 * SECOND);
    bench.update("f2.rrd", &["1000000020:1"]).unwrap();
    assert_eq!(bench.store().flush_due(), 0);
    // Due times do not depend on the wall clock.
    bench.clock.step_wall_ns(-86_400 * SECOND as i64);
    bench.clock.advance_ns(SECOND);
    for name in ["f2.rrd", "f1.rrd", "f0.rrd"] {
        bench.update(name, &["1000000030:1"]).unwrap();
    }
    let store = bench.store().clone();
    let mut queue = Vec::new();
    store
        .write_batch()
        .queue(&mut |count, path| queue.push((count, path.to_vec())));
    assert_eq!(queue[0], (3, b"/db/f2.rrd".to_vec()));
    assert_eq!(queue.len(), 3);
    assert_eq!(store.flush_due(), 3);
    let changed: Vec<i64> = ["f0.rrd", "f1.rrd", "f2.rrd"]
        .map(|name| {
            let tree = bench
                .disk
                .tree(&base(), kymo_sys::tree::Reach::Anywhere)
                .unwrap();
            tree.stat(&base().join(name)).unwrap().mtime_ns
        })
        .to_vec();
    assert!(changed.is_sorted(), "{changed:?}");
    assert_eq!(store.write_batch().stats().queue_length, 0);
    for name in ["f0.rrd", "f1.rrd", "f2.rrd"] {
        is_current(&bench, name);
    }
    // The sweep writes due files that get no more updates.
    bench.update("f0.rrd", &["1000000040:1"]).unwrap();
    bench.clock.advance_ns(3601 * SECOND);
    store.maintain();
    store.maintain();
    is_current(&bench, "f0.rrd");
}

#[test]
fn a_lock_delays_and_loses_nothing() {
    let mut bench = bench(2);
    bench.settings.lock_wait = Duration::from_secs(10);
    bench.store = None;
    bench.open();
    for name in ["f0.rrd", "f1.rrd"] {
        bench
            .update(name, &["1000000010:1", "1000000020:2"])
            .unwrap();
    }
    let theirs = bench
        .disk
        .open(&base().join("f0.rrd"), OpenMode::Write)
        .unwrap();
    assert!(theirs.try_record_lock(RecordLock::Shared).unwrap());
    let store = bench.store().clone();
    let mut batch = store.write_batch();
    batch.flush_all();
    batch.commit().unwrap();
    assert_eq!(store.flush_due(), 1);
    is_current(&bench, "f1.rrd");
    let began_ns = bench.clock.now().mono_ns;
    let clock = bench.clock.clone();
    let answered = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !answered.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
                clock.advance_ns(SECOND / 2);
            }
        });
        let answer = bench.flush("f0.rrd");
        answered.store(true, Ordering::Relaxed);
        assert!(matches!(answer, Err(FileError::Locked)));
    });
    assert!(bench.clock.now().mono_ns >= began_ns + 10 * SECOND);
    assert_eq!(texts(&bench, "f0.rrd").len(), 2);
    bench.update("f0.rrd", &["1000000030:3"]).unwrap();
    drop(theirs);
    assert_eq!(store.flush_due(), 1);
    is_current(&bench, "f0.rrd");
    assert!(store.write_batch().stats().locks_met >= 2);
}

#[test]
fn a_bad_value_harms_no_neighbour() {
    let mut bench = bench(2);
    let values = [
        "1000000010:1",
        "1000000020:x",
        "1000000030:1:2",
        "1000000040:4",
    ];
    bench.update("f0.rrd", &values).unwrap();
    bench.update("f1.rrd", &["1000000010:5"]).unwrap();
    bench.flush("f0.rrd").unwrap();
    bench.flush("f1.rrd").unwrap();
    is_current(&bench, "f0.rrd");
    is_current(&bench, "f1.rrd");
    assert_eq!(bench.store().write_batch().stats().values_refused, 2);
    assert_eq!(bench.store().take_notices().len(), 2);
    // A stamp that the file refuses must not block later values.
    bench.update("f0.rrd", &["1e300:x"]).unwrap();
    bench.flush("f0.rrd").unwrap();
    bench.acked.pop();
    bench.update("f0.rrd", &["1000000050:4"]).unwrap();
    bench.flush("f0.rrd").unwrap();
    is_current(&bench, "f0.rrd");
}

/// A value with a stamp far in the future is acknowledged, then refused: later values count, also after a start.
#[test]
fn a_refused_stamp_from_the_future_hides_nothing_after_a_start() {
    for by_saving in [false, true] {
        let mut bench = bench(1);
        bench.update("f0.rrd", &["1000000010:1"]).unwrap();
        bench.update("f0.rrd", &["9999999999:1:2"]).unwrap();
        bench.acked.pop();
        match by_saving {
            true => {
                // The crash below drops the block that `maintain` saves, as no sync follows.
                bench.update("f0.rrd", &["99999999999:1:2"]).unwrap();
                bench.update("f0.rrd", &["1e300:1"]).unwrap();
                bench.acked.truncate(1);
                bench.sync();
                bench.store().maintain();
            }
            false => drop(bench.flush("f0.rrd").unwrap()),
        }
        let refused = bench.store().write_batch().stats().values_refused;
        let notices = bench.store().take_notices();
        assert!(refused > 0, "{by_saving}: {notices:?}");
        bench.update("f0.rrd", &["1000000020:2"]).unwrap();
        bench.sync();
        for _ in 0..2 {
            bench.disk.crash(&mut |_| kymo_sys::sim_disk::Fate::Drop);
            bench.reopen();
            bench.update("f0.rrd", &["1000000030:3"]).ok();
        }
        bench.flush("f0.rrd").unwrap();
        is_current(&bench, "f0.rrd");
    }
}

#[test]
fn names() {
    let mut bench = bench(1);
    bench.disk.create_dir_all(&base().join("d")).unwrap();
    bench
        .disk
        .symlink(Path::new("../f0.rrd"), &base().join("d/link.rrd"));
    bench.disk.symlink(Path::new("d"), &base().join("e"));
    bench
        .disk
        .hard_link(&base().join("f0.rrd"), &base().join("d/hard.rrd"));
    let long = "x/".repeat(3000);
    let names = [
        "f0.rrd",
        "./f0.rrd",
        "d/../f0.rrd",
        "/db//f0.rrd",
        "d/link.rrd",
        "e/link.rrd",
        "d/hard.rrd",
    ];
    for (i, name) in names.iter().enumerate() {
        let value = format!("{}:{i}", START + 10 + i as i64 * 10);
        assert_eq!(bench.update(name, &[&value]), Ok(1), "{name}");
        assert_eq!(texts(&bench, name).len(), i + 1, "{name}");
    }
    // More spellings than the store remembers.
    for i in 1..30 {
        let name = format!("{}f0.rrd", "./".repeat(i));
        let value = format!("{}:{i}", START + 200 + i as i64);
        bench.update(&name, &[&value]).unwrap();
    }
    assert_eq!(bench.store().write_batch().stats().files, 1);
    bench
        .acked
        .iter_mut()
        .for_each(|acked| acked.name = "f0.rrd".into());
    bench.flush("e/hard.rrd").unwrap();
    is_current(&bench, "f0.rrd");
    let store = bench.store();
    for (name, expected) in [
        (&b"none.rrd"[..], "NoSuchFile"),
        (b"d", "NotRegular"),
        (b"f0.rrd/x", "Stat(20)"),
        (b"f0.rrd\0x", "Name(22)"),
        (long.as_bytes(), "Name(36)"),
        (&[b'x'; 300], "Name(36)"),
        (b"", "NotRegular"),
    ] {
        let error = store.touch(name).unwrap_err();
        assert_eq!(
            format!("{error:?}"),
            expected,
            "{}",
            String::from_utf8_lossy(name)
        );
    }
    assert_eq!(store.spelled(b"a.rrd"), b"/db/a.rrd");
}

#[test]
fn nothing_outside_of_the_base() {
    let mut bench = bench(1);
    bench.store = None;
    bench.settings.beneath = true;
    bench.open();
    bench
        .disk
        .set_bytes(Path::new("/out.rrd"), rrd(b"GAUGE").to_bytes());
    bench
        .disk
        .symlink(Path::new("/out.rrd"), &base().join("out.rrd"));
    bench.disk.symlink(Path::new(".."), &base().join("up"));
    let store = bench.store();
    for name in [&b"../out.rrd"[..], b"/out.rrd", b"out.rrd", b"up/out.rrd"] {
        let shown = String::from_utf8_lossy(name);
        assert!(
            matches!(store.touch(name), Err(FileError::Outside)),
            "{shown}"
        );
        assert!(store.read(name, Fresh::AsIs).is_err(), "{shown}");
        assert!(
            store.install(name, &rrd(b"GAUGE"), true).is_err() || name == b"out.rrd",
            "{shown}"
        );
    }
    assert!(!store.allowed(b"../out.rrd") && store.allowed(b"out.rrd"));
    assert_eq!(
        bench.disk.bytes(Path::new("/out.rrd")).unwrap(),
        rrd(b"GAUGE").to_bytes()
    );
    bench.update("f0.rrd", &["1000000010:1"]).unwrap();
}

#[test]
fn create_and_tune() {
    let mut bench = bench(1);
    let store = bench.store().clone();
    let new = rrd(b"GAUGE");
    assert!(matches!(
        store.make_folder(b"x/y/n.rrd", false),
        Err(FileError::NoFolder(_))
    ));
    store.make_folder(b"x/y/n.rrd", true).unwrap();
    store.install(b"x/y/n.rrd", &new, false).unwrap();
    assert!(matches!(
        store.install(b"x/y/n.rrd", &new, false),
        Err(FileError::Exists)
    ));
    bench.files.push(("x/y/n.rrd".into(), new.to_bytes()));
    bench
        .update("x/y/n.rrd", &["1000000010:1", "1000000020:2"])
        .unwrap();
    bench.sync();
    // A start recreates a file that CREATE made and a power cut lost.
    let mut cut = bench.fork();
    cut.disk.crash(&mut |_| kymo_sys::sim_disk::Fate::Drop);
    assert!(cut.disk.bytes(&base().join("x/y/n.rrd")).is_none());
    cut.disk.create_dir_all(&base().join("x/y")).unwrap();
    cut.reopen();
    cut.judge(2, "after a cut");
    let mut edit = |mut rrd: Rrd| {
        rrd.header.ds[0].par[0] = 77;
        Ok(rrd)
    };
    store.rewrite(b"x/y/n.rrd", &mut edit).unwrap();
    assert_eq!(texts(&bench, "x/y/n.rrd").len(), 2);
    bench.flush("x/y/n.rrd").unwrap();
    let tuned = Rrd::parse(&bench.bytes("x/y/n.rrd")).unwrap();
    assert_eq!(
        (tuned.header.ds[0].par[0], tuned.header.last_up),
        (77, 1000000020)
    );
    let loaded = store.load(b"x/y/n.rrd").unwrap();
    assert_eq!(loaded.to_bytes(), tuned.to_bytes());
    let missing = store
        .read(b"none.rrd", Fresh::Flushed)
        .map(|_| ())
        .unwrap_err();
    let text = "Rrd(\"opening '/db/none.rrd': No such file or directory\")";
    assert_eq!(format!("{missing:?}"), text);
    assert_eq!(
        store.list(b"/db", true).unwrap(),
        [b"f0.rrd".to_vec(), b"x/y/n.rrd".to_vec()]
    );
}

/// Other programs replace, edit, delete and restore a file while values are pending and after a crash.
#[test]
fn files_that_others_change() {
    for crash in [false, true] {
        let mut bench = bench(2);
        bench
            .update("f0.rrd", &["1000000010:1", "1000000020:2"])
            .unwrap();
        bench.flush("f0.rrd").unwrap();
        bench.update("f0.rrd", &["1000000030:3"]).unwrap();
        bench.update("f1.rrd", &["1000000030:3"]).unwrap();
        // Another program puts a file with a later stamp in its place: older values do not apply to the new file.
        let theirs = oracle(&rrd(b"GAUGE").to_bytes(), &[b"1000000025:9"]);
        replace(&bench, "f0.rrd", &theirs);
        if crash {
            bench.disk.kill();
            bench.reopen();
        }
        bench.flush("f0.rrd").unwrap();
        assert_eq!(bench.bytes("f0.rrd"), oracle(&theirs, &[b"1000000030:3"]));
        // Another program tunes the file in place.
        let mut tuned = Rrd::parse(&bench.bytes("f0.rrd")).unwrap();
        tuned.header.ds[0].par[0] = 500;
        let file = bench
            .disk
            .open(&base().join("f0.rrd"), OpenMode::Write)
            .unwrap();
        file.write_at(&tuned.to_bytes(), 0).unwrap();
        drop(file);
        bench.update("f0.rrd", &["1000000040:4"]).unwrap();
        if crash {
            bench.disk.kill();
            bench.reopen();
        }
        bench.flush("f0.rrd").unwrap();
        assert_eq!(
            bench.bytes("f0.rrd"),
            oracle(&tuned.to_bytes(), &[b"1000000040:4"])
        );
        // Another program deletes the file: once a flush has noticed it, UPDATE fails; pending values wait for the file's
        // return.
        let old = bench.bytes("f0.rrd");
        bench.update("f0.rrd", &["1000000050:5"]).unwrap();
        bench.disk.unlink(&base().join("f0.rrd")).unwrap();
        assert!(matches!(bench.flush("f0.rrd"), Err(FileError::NoSuchFile)));
        assert!(bench.update("f0.rrd", &["1000000060:6"]).is_err());
        if crash {
            bench.disk.kill();
            bench.reopen();
        }
        bench.disk.set_bytes(&base().join("f0.rrd"), old.clone());
        bench.update("f0.rrd", &["1000000070:7"]).unwrap();
        bench.flush("f0.rrd").unwrap();
        assert_eq!(
            bench.bytes("f0.rrd"),
            oracle(&old, &[b"1000000050:5", b"1000000070:7"])
        );
    }
}

/// Another program tunes a file that lacks recent values, as rrdtool tune does: no value is lost, and later values use the
/// new definitions.
#[test]
fn files_that_others_tune() {
    for (crash, pending, flushed) in (0..8).map(|i| (i & 1 > 0, i & 2 > 0, i & 4 > 0)) {
        let mut bench = bench(1);
        let values: Vec<String> = (1..30).map(|i| format!("{}:{i}", START + i * 10)).collect();
        let (early, late) = values.split_at(values.len() - usize::from(pending));
        bench.update("f0.rrd", &["1000000005:1"]).unwrap();
        bench.flush("f0.rrd").unwrap();
        for value in early {
            bench.update("f0.rrd", &[value]).unwrap();
        }
        save(&bench);
        for value in late {
            bench.update("f0.rrd", &[value]).unwrap();
        }
        if flushed {
            bench.flush("f0.rrd").unwrap();
        }
        tune(&bench, "f0.rrd", |rrd| {
            rrd.header.ds[0].par[2] = 20f64.to_bits()
        });
        if crash {
            bench.disk.kill();
            bench.reopen();
        }
        let told = texts(&bench, "f0.rrd");
        // A read merges the edit; the next value uses the new definitions.
        bench.store().read(b"f0.rrd", Fresh::AsIs).unwrap();
        assert_eq!(texts(&bench, "f0.rrd"), told);
        bench.update("f0.rrd", &["1000000300:7"]).unwrap();
        if crash {
            bench.disk.crash(&mut |_| kymo_sys::sim_disk::Fate::Keep);
            bench.reopen();
        }
        bench.flush("f0.rrd").unwrap();
        let mut expected: Vec<&[u8]> = vec![b"1000000005:1"];
        expected.extend(early.iter().map(|value| value.as_bytes()));
        let mut later: Vec<&[u8]> = late.iter().map(|value| value.as_bytes()).collect();
        if flushed {
            expected.append(&mut later);
        }
        let mut rrd = Rrd::parse(&oracle(&bench.files[0].1, &expected)).unwrap();
        rrd.header.ds[0].par[2] = 20f64.to_bits();
        later.push(b"1000000300:7");
        assert_eq!(
            bench.bytes("f0.rrd"),
            oracle(&rrd.to_bytes(), &later),
            "{crash} {pending}"
        );
        assert_eq!(bench.store().take_notices(), Vec::<String>::new());
    }
}

/// A file with the same contents but another mtime or another inode still belongs to the store.
#[test]
fn files_that_others_only_touch() {
    let mut bench = bench(1);
    for i in 1..30 {
        let value = format!("{}:{i}", START + i * 10);
        bench.update("f0.rrd", &[&value]).unwrap();
        if i == 15 {
            bench.flush("f0.rrd").unwrap();
        }
    }
    save(&bench);
    tune(&bench, "f0.rrd", |_| {});
    bench.store().read(b"f0.rrd", Fresh::AsIs).unwrap();
    let copy = bench.bytes("f0.rrd");
    replace(&bench, "f0.rrd", &copy);
    bench.flush("f0.rrd").unwrap();
    is_current(&bench, "f0.rrd");
    assert_eq!(bench.store().take_notices(), Vec::<String>::new());
}

/// Another program updates the file, or restores an old copy: the store applies the newer values of its blocks.
#[test]
fn files_that_others_update_or_restore() {
    for crash in [false, true] {
        let mut bench = bench(1);
        let all: Vec<String> = (1..40).map(|i| format!("{}:{i}", START + i * 10)).collect();
        let mut old = Vec::new();
        for (i, value) in all.iter().enumerate() {
            bench.update("f0.rrd", &[value]).unwrap();
            if i == 9 {
                bench.flush("f0.rrd").unwrap();
                old = bench.bytes("f0.rrd");
            }
        }
        save(&bench);
        let texts: Vec<&[u8]> = all.iter().map(|value| value.as_bytes()).collect();
        let theirs = oracle(&old, &[b"1000000155:77"]);
        replace(&bench, "f0.rrd", &theirs);
        if crash {
            bench.disk.kill();
            bench.reopen();
        }
        bench.flush("f0.rrd").unwrap();
        assert_eq!(bench.bytes("f0.rrd"), oracle(&theirs, &texts[15..]));
        let notices = bench.store().take_notices();
        let notice = "/db/f0.rrd was changed by others and counts as it is: 24 newer values are applied to it, 5 that it does not take are dropped";
        assert_eq!(notices, [notice]);
        // An old copy of the file.
        replace(&bench, "f0.rrd", &old);
        bench.flush("f0.rrd").unwrap();
        assert_eq!(bench.bytes("f0.rrd"), oracle(&old, &texts[15..]));
        // A file with two data sources.
        let mut other = rrd(b"GAUGE");
        other.header.ds.push(other.header.ds[0]);
        other.header.ds[1].ds_nam[0] = b'y';
        other.header.pdp_prep.push(other.header.pdp_prep[0]);
        other.header.cdp_prep = vec![other.header.cdp_prep[0]; 4];
        other.cells = vec![f64::NAN; other.header.cell_count() as usize];
        replace(&bench, "f0.rrd", &other.to_bytes());
        bench.update("f0.rrd", &["1000000500:3:4"]).unwrap();
        bench.flush("f0.rrd").unwrap();
        assert_eq!(
            bench.bytes("f0.rrd"),
            oracle(&other.to_bytes(), &[b"1000000500:3:4"])
        );
    }
}

/// A renamed file keeps values that only blocks have; another file with the same inode number by chance does not.
#[test]
fn files_that_others_rename() {
    for (crash, saved, told) in (0..8).map(|i| (i & 1 > 0, i & 2 > 0, i & 4 > 0)) {
        let mut bench = bench(1);
        for i in 1..30 {
            let value = format!("{}:{i}", START + i * 10);
            bench.update("f0.rrd", &[&value]).unwrap();
            if i == 9 {
                bench.flush("f0.rrd").unwrap();
            }
        }
        save(&bench);
        let [old, new] = ["f0.rrd", "new.rrd"].map(|name| base().join(name));
        bench.disk.rename(&old, &new).unwrap();
        if told {
            assert!(matches!(bench.flush("f0.rrd"), Err(FileError::NoSuchFile)));
        }
        if crash {
            bench.disk.kill();
            bench.reopen();
            assert!(bench.disk.bytes(&old).is_none());
        }
        bench.update("new.rrd", &["1000000400:1"]).unwrap();
        if saved {
            save(&bench);
        }
        bench.sync();
        bench.disk.crash(&mut |_| kymo_sys::sim_disk::Fate::Keep);
        bench.reopen();
        bench.flush("new.rrd").unwrap();
        bench
            .acked
            .iter_mut()
            .for_each(|acked| acked.name = "new.rrd".into());
        bench.files[0].0 = "new.rrd".into();
        is_current(&bench, "new.rrd");
        assert_eq!(
            bench.store().write_batch().stats().files,
            1,
            "{crash} {saved} {told}"
        );
        assert!(bench.update("f0.rrd", &["1000000500:1"]).is_err());
        // Another file's contents under the same inode number.
        let theirs = rrd(b"GAUGE").to_bytes();
        let third = base().join("third.rrd");
        bench.disk.rename(&new, &third).unwrap();
        let file = bench.disk.open(&third, OpenMode::Write).unwrap();
        file.write_at(&theirs, 0).unwrap();
        drop(file);
        bench.update("third.rrd", &["1000000010:5"]).unwrap();
        bench.flush("third.rrd").unwrap();
        assert_eq!(
            bench.bytes("third.rrd"),
            oracle(&theirs, &[b"1000000010:5"])
        );
    }
}

/// A checkpoint follows new files, so that not each start after a kill makes them again.
#[test]
fn a_checkpoint_follows_new_files() {
    for (count, rest, redone) in [(3, 29, 3), (3, 30, 0), (1000, 6, 0)] {
        let mut bench = bench(1);
        let new = rrd(b"GAUGE");
        for i in 0..count {
            let name = format!("n{i}.rrd");
            bench.store().install(name.as_bytes(), &new, false).unwrap();
        }
        bench.clock.advance_ns(rest * SECOND);
        bench.store().maintain();
        for redone in [redone, 0] {
            bench.disk.kill();
            bench.reopen();
            assert_eq!(bench.replayed.redone, redone, "{count} {rest}");
            bench.clock.advance_ns(30 * SECOND);
            bench.store().maintain();
        }
        assert_eq!(bench.bytes("n2.rrd"), new.to_bytes());
    }
}

/// Saves all values to blocks.
fn save(bench: &Bench) {
    bench.clock.advance_ns(7 * 3600 * SECOND);
    bench.store().maintain();
}

/// Changes a file in place.
fn tune(bench: &Bench, name: &str, edit: impl Fn(&mut Rrd)) {
    let mut rrd = Rrd::parse(&bench.bytes(name)).unwrap();
    edit(&mut rrd);
    let file = bench
        .disk
        .open(&base().join(name), OpenMode::Write)
        .unwrap();
    file.write_at(&rrd.to_bytes(), 0).unwrap();
}

fn replace(bench: &Bench, name: &str, bytes: &[u8]) {
    let beside = base().join("beside");
    bench.disk.set_bytes(&beside, bytes.to_vec());
    bench.disk.rename(&beside, &base().join(name)).unwrap();
}

/// Stock rrdcached reads the header at the first UPDATE after its start. Kymo once refused values that were older than the
/// newest value of the replaced file.
#[test]
fn a_file_that_was_replaced_while_no_daemon_ran_is_seen_before_its_values_are_refused() {
    let mut bench = Bench::new(1, 2);
    bench.open();
    for name in ["f0.rrd", "f1.rrd"] {
        // Enough values for `maintain` to save them.
        for second in 100..200 {
            bench
                .update(name, &[&format!("1000000{second}:1")])
                .unwrap();
        }
        bench.flush(name).unwrap();
    }
    bench.store().maintain();
    bench.reopen();
    // The new file has other sources, so values of the replaced file do not apply to it.
    let definitions: [&[u8]; 3] = [
        b"DS:a:GAUGE:600:U:U",
        b"DS:b:GAUGE:600:U:U",
        b"RRA:LAST:0.5:1:9",
    ];
    let request = Create {
        file_name: b"",
        step: 10,
        start: Some(START),
        definitions: &definitions,
    };
    let blank = create(&request, START, &mut 1, None, &[])
        .unwrap()
        .to_bytes();
    replace(&bench, "f0.rrd", &blank);
    bench.update("f0.rrd", &["1000000010:7:8"]).unwrap();
    let refused = bench.update("f1.rrd", &["1000000010:7"]).unwrap_err();
    assert!(refused.starts_with("Past"), "{refused}");
    bench.flush("f0.rrd").unwrap();
    assert!(bench.bytes("f0.rrd") == oracle(&blank, &[b"1000000010:7:8"]));
}

#[test]
fn journals_of_a_stock_daemon() {
    let mut bench = Bench::new(1, 2);
    bench.settings.stock_journals = Some("/j".into());
    let put = |name: &str, text: &str| {
        bench
            .disk
            .set_bytes(Path::new(name), text.as_bytes().to_vec());
    };
    put(
        "/j/rrd.journal.1000000000.000001",
        "update f0.rrd 1000000010:1 1000000020:2\nwrote /db/f0.rrd\nupdate /db/f1.rrd 1000000010:1\nforget /db/f1.rrd\nupdate ./f\\0.rrd 1000000030:3\n",
    );
    put(
        "/j/rrd.journal.1000000001.000001",
        "update f1.rrd 1000000015:7\nupdate none.rrd 1000000015:7\nupdate f0.rrd 1000000040:4\nupdate f1.rrd 10000",
    );
    put("/j/rrd.journalist", "");
    bench.open();
    assert_eq!(texts(&bench, "f0.rrd").len(), 4);
    assert_eq!(texts(&bench, "f1.rrd"), ["1000000015:7"]);
    assert_eq!(
        (bench.replayed.values, bench.replayed.notices.len()),
        (6, 1),
        "{:?}",
        bench.replayed
    );
    let names: Vec<String> = bench
        .disk
        .files()
        .iter()
        .map(|(path, _)| path.display().to_string())
        .collect();
    let names: Vec<&String> = names
        .iter()
        .filter(|name| name.contains("rrd.journal"))
        .collect();
    assert_eq!(names, ["/j/replayed-rrd.journal.1000000001.000001"]);
    // A power cut loses none of the replayed values.
    bench.disk.crash(&mut |_| kymo_sys::sim_disk::Fate::Drop);
    bench.reopen();
    bench.flush("f0.rrd").unwrap();
    let values: [&[u8]; 4] = [
        b"1000000010:1",
        b"1000000020:2",
        b"1000000030:3",
        b"1000000040:4",
    ];
    assert_eq!(bench.bytes("f0.rrd"), oracle(&bench.files[0].1, &values));
}

#[test]
fn one_store_a_folder_and_other_versions_are_refused() {
    let mut bench = bench(1);
    bench.update("f0.rrd", &["1000000010:1"]).unwrap();
    let again = bench.try_open().unwrap_err().to_string();
    assert!(
        again.contains("cannot open the store in /j/kymo/lock: process "),
        "{again}"
    );
    bench.store = None;
    let path = crate::common::folder().join("journal-000000000001");
    let mut bytes = bench.disk.bytes(&path).unwrap();
    bytes[8] = 9;
    bytes[2048 + 8] = 9;
    bench.disk.set_bytes(&path, bytes.clone());
    let other = bench.try_open().unwrap_err().to_string();
    assert!(other.contains("its version is 9"), "{other}");
    assert_eq!(bench.disk.bytes(&path).unwrap(), bytes);
}

#[test]
fn shutdown_leaves_everything_in_the_files_when_asked() {
    for flush in [true, false] {
        let mut bench = bench(2);
        bench.update("f0.rrd", &["1000000010:1"]).unwrap();
        bench.store().shutdown(flush).unwrap();
        let current = bench.bytes("f0.rrd") == oracle(&bench.files[0].1, &[b"1000000010:1"]);
        assert_eq!(current, flush);
        bench.disk.crash(&mut |_| kymo_sys::sim_disk::Fate::Drop);
        bench.reopen();
        bench.judge(1, "after shutdown");
    }
}

/// A store in a real folder, with its threads.
#[test]
fn on_a_real_disk() {
    use kymo_store::{Settings, Store};
    use kymo_sys::clock::RealClock;
    use kymo_sys::disk::RealDisk;
    use std::sync::Arc;
    let root = std::env::temp_dir().join(format!("kymo-store-{}", std::process::id()));
    std::fs::create_dir_all(root.join("db")).unwrap();
    let root = root.canonicalize().unwrap();
    let bytes = rrd(b"GAUGE").to_bytes();
    std::fs::write(root.join("db/a.rrd"), &bytes).unwrap();
    let settings = Settings {
        journal_file_bytes: 64 << 10,
        beneath: true,
        files: Files::After(Duration::ZERO),
        sync_every: Duration::from_millis(10),
        ..Settings::new(root.join("j"), root.join("db"))
    };
    let open = || Store::open(settings.clone(), Arc::new(RealDisk), Arc::new(RealClock)).unwrap();
    let (store, _) = open();
    let threads = store.start(2, Arc::new(|_| {}));
    store.touch(b"a.rrd").unwrap();
    let mut values: Vec<Vec<u8>> = Vec::new();
    for i in 1..3000 {
        values.push(format!("{}:{i}", START + i * 10).into_bytes());
        let mut batch = store.write_batch();
        batch
            .update(b"a.rrd", [&values[values.len() - 1][..]])
            .unwrap();
        let position = batch.commit().unwrap();
        if i % 500 == 0 {
            store.durable(position).unwrap();
            store.flush(b"a.rrd").unwrap();
        }
    }
    threads.stop();
    drop(store);
    let (store, replayed) = open();
    assert_eq!(replayed.notices, Vec::<String>::new());
    store.flush(b"a.rrd").unwrap();
    let values: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
    assert_eq!(
        std::fs::read(root.join("db/a.rrd")).unwrap(),
        oracle(&bytes, &values)
    );
    std::fs::remove_dir_all(&root).unwrap();
}

/// A file's age follows from its mtime, not from the daemon's start.
#[test]
fn starts_make_no_file_younger() {
    use kymo_store::{Settings, Store};
    use kymo_sys::clock::{RealClock, Stamp};
    use kymo_sys::disk::RealDisk;
    use kymo_sys::sim_clock::SimClock;
    use std::sync::Arc;
    const DAY: u64 = 86_400 * SECOND;
    let root = std::env::temp_dir().join(format!("kymo-age-{}", std::process::id()));
    std::fs::create_dir_all(root.join("db")).unwrap();
    std::fs::write(root.join("db/a.rrd"), rrd(b"GAUGE").to_bytes()).unwrap();
    let settings = Settings::new(root.join("j"), root.join("db"));
    let written_ns = RealClock.now().real_ns;
    let update = |store: &Store, stamp: i64| {
        let mut batch = store.write_batch();
        let value = format!("{}:1", START + stamp);
        batch.update(b"a.rrd", [value.as_bytes()]).unwrap();
        batch.commit().unwrap();
        store.write_batch().stats().queue_length
    };
    for (number, (age_ns, rest_ns)) in [(0, 7 * DAY), (6 * DAY, DAY), (30 * DAY, DAY / 24)]
        .into_iter()
        .enumerate()
    {
        let clock = Arc::new(SimClock::new(Stamp {
            real_ns: written_ns + age_ns as i64,
            mono_ns: 5 * SECOND,
            boot_ns: 5 * SECOND,
        }));
        let (store, _) = Store::open(settings.clone(), Arc::new(RealDisk), clock.clone()).unwrap();
        if number == 0 {
            store.touch(b"a.rrd").unwrap();
        }
        let stamp = 100 * number as i64;
        clock.advance_ns(rest_ns - 60 * SECOND);
        if age_ns < 7 * DAY {
            assert_eq!(update(&store, stamp + 10), 0, "{number}");
        }
        clock.advance_ns(120 * SECOND);
        assert_eq!(update(&store, stamp + 20), 1, "{number}");
    }
    std::fs::remove_dir_all(&root).unwrap();
}

/// A start without files after a crash names the .rrd files that may be incomplete.
#[test]
fn without_files_what_was_cut_short_is_told() {
    let mut bench = Bench::new(1, 2);
    bench.open();
    bench.update("f1.rrd", &["1000000010:1"]).unwrap();
    bench.flush("f1.rrd").unwrap();
    bench.disk.kill();
    bench.settings.files = Files::Never;
    bench.reopen();
    let said = bench.replayed.notices.join("\n");
    assert!(
        said.starts_with("1 .rrd files may have been cut short by the crash (/db/f1.rrd"),
        "{said}"
    );
    bench.store().checkpoint();
    bench.disk.kill();
    bench.reopen();
    assert_eq!(bench.replayed.notices, Vec::<String>::new());
}

/// A rewrite of a file keeps the file's rows where the store's frames are damaged.
#[test]
fn damaged_frames_take_nothing_from_files() {
    use kymo_store::Store;
    use kymo_sys::clock::RealClock;
    use kymo_sys::disk::RealDisk;
    use std::sync::Arc;
    let root = std::env::temp_dir().join(format!("kymo-damaged-{}", std::process::id()));
    std::fs::create_dir_all(root.join("db")).unwrap();
    let file = root.join("db/a.rrd");
    std::fs::write(&file, rrd(b"GAUGE").to_bytes()).unwrap();
    let mut settings = crate::common::settings();
    (settings.folder, settings.base) = (root.join("j"), root.join("db"));
    let open = || Store::open(settings.clone(), Arc::new(RealDisk), Arc::new(RealClock)).unwrap();
    let (store, _) = open();
    store.touch(b"a.rrd").unwrap();
    for i in 1..9 {
        let mut batch = store.write_batch();
        let value = format!("{}:{i}", START + 10 * i);
        batch.update(b"a.rrd", [value.as_bytes()]).unwrap();
        batch.commit().unwrap();
        store.maintain();
        if i == 4 {
            // Later frames prove that this part is on the disk, so damage in it cannot pass for the end.
            store.checkpoint();
        }
    }
    store.flush(b"a.rrd").unwrap();
    drop(store);
    let expected = std::fs::read(&file).unwrap();
    let modified = std::fs::metadata(&file).unwrap().modified().unwrap();
    let names = |folder: &Path| -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        entries.map(|entry| entry.path()).collect()
    };
    let files: Vec<_> = names(&settings.folder)
        .into_iter()
        .map(|path| (std::fs::read(&path).unwrap(), path))
        .collect();
    let is_segment = |path: &Path| path.to_string_lossy().contains("segment-");
    let segments = files.iter().filter(|(_, path)| is_segment(path));
    let segment = segments.min_by_key(|(_, path)| path).unwrap();
    let mut kept = 0;
    for at in (4096..segment.0.len()).step_by(5) {
        for path in names(&settings.folder) {
            std::fs::remove_file(path).unwrap();
        }
        for (bytes, path) in &files {
            let mut bytes = bytes.clone();
            if *path == segment.1 {
                bytes[at] ^= 0x55;
            }
            std::fs::write(path, bytes).unwrap();
        }
        let (store, _) = open();
        store.flush(b"a.rrd").unwrap();
        let notices = store.take_notices();
        if notices
            .iter()
            .any(|line| line.contains("was written from blocks that are damaged"))
        {
            kept += 1;
            assert!(std::fs::read(&file).unwrap() == expected, "{at}");
        }
        drop(store);
        // Restores the file and its mtime.
        std::fs::write(&file, &expected).unwrap();
        let open = std::fs::File::options().write(true).open(&file).unwrap();
        open.set_modified(modified).unwrap();
    }
    assert!(kept > 0);
    std::fs::remove_dir_all(&root).unwrap();
}

/// Updates, flushes, reads, checkpoints and writes of due files run at once; in the end every file has every value.
#[test]
fn many_threads() {
    use kymo_store::{Settings, Store};
    use kymo_sys::clock::RealClock;
    use kymo_sys::disk::RealDisk;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    const FILES: usize = 5;
    const VALUES: i64 = 400;
    let root = std::env::temp_dir().join(format!("kymo-threads-{}", std::process::id()));
    std::fs::create_dir_all(root.join("db")).unwrap();
    let bytes = rrd(b"GAUGE").to_bytes();
    let settings = Settings {
        journal_file_bytes: 32 << 10,
        files: Files::After(Duration::ZERO),
        sync_every: Duration::from_millis(3),
        ..Settings::new(root.join("j"), root.join("db"))
    };
    let open = || Store::open(settings.clone(), Arc::new(RealDisk), Arc::new(RealClock)).unwrap();
    let (store, _) = open();
    let names: Vec<String> = (0..FILES).map(|i| format!("{i}.rrd")).collect();
    for name in &names {
        std::fs::write(root.join("db").join(name), &bytes).unwrap();
        store.touch(name.as_bytes()).unwrap();
    }
    let threads = store.start(2, Arc::new(|_| {}));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, names, done) = (&store, &names, &done);
        let writers: Vec<_> = names
            .iter()
            .map(|name| {
                scope.spawn(move || {
                    for i in 1..=VALUES {
                        let value = format!("{}:{i}", START + i * 10);
                        let mut batch = store.write_batch();
                        batch.update(name.as_bytes(), [value.as_bytes()]).unwrap();
                        let position = batch.commit().unwrap();
                        if i % 100 == 0 {
                            store.durable(position).unwrap();
                        }
                    }
                })
            })
            .collect();
        for thread in 0..3 {
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    for name in names {
                        match thread {
                            0 => drop(store.flush(name.as_bytes()).unwrap()),
                            1 => drop(store.load(name.as_bytes()).unwrap()),
                            _ => store.checkpoint(),
                        }
                    }
                }
            });
        }
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    threads.stop();
    store.shutdown(true).unwrap();
    let values: Vec<Vec<u8>> = (1..=VALUES)
        .map(|i| format!("{}:{i}", START + i * 10).into_bytes())
        .collect();
    let values: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
    let expected = oracle(&bytes, &values);
    for name in &names {
        assert!(
            std::fs::read(root.join("db").join(name)).unwrap() == expected,
            "{name}"
        );
    }
    assert_eq!(store.write_batch().stats().values_refused, 0);
    drop(store);
    let (_, replayed) = open();
    assert_eq!((replayed.values, replayed.notices), (0, Vec::new()));
    std::fs::remove_dir_all(&root).unwrap();
}

/// Needs a real disk, since files of the simulated disk have no owners.
#[test]
fn journals_that_others_may_have_written_are_refused() {
    use kymo_store::{Settings, Store};
    use kymo_sys::clock::RealClock;
    use kymo_sys::disk::RealDisk;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;
    let root = std::env::temp_dir().join(format!("kymo-stock-{}", std::process::id()));
    std::fs::create_dir_all(root.join("db")).unwrap();
    std::fs::write(root.join("db/a.rrd"), rrd(b"GAUGE").to_bytes()).unwrap();
    let mut settings = Settings::new(root.join("j"), root.join("db"));
    settings.stock_journals = Some(root.clone());
    let put = |name: &str, stamp: i64, mode: u32| {
        let path = root.join(name);
        std::fs::write(&path, format!("update a.rrd {stamp}:1\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let mut expected = 2;
    put("rrd.journal.0", START + 10, 0o664);
    put("rrd.journal.1", START + 20, 0o646);
    put("rrd.journal.2", START + 30, 0o644);
    let path = put("rrd.journal.3", START + 40, 0o600);
    // Only root can change a file's owner.
    if std::os::unix::fs::chown(&path, Some(12345), None).is_ok() {
        expected = 3;
    } else {
        std::fs::remove_file(&path).unwrap();
    }
    let (store, replayed) = Store::open(settings, Arc::new(RealDisk), Arc::new(RealClock)).unwrap();
    assert_eq!(
        (replayed.values, replayed.notices.len()),
        (1, expected),
        "{replayed:?}"
    );
    assert_eq!(
        store.write_batch().last_stamp(b"a.rrd"),
        Some(START as f64 + 30.0)
    );
    let left = std::fs::read_dir(&root).unwrap().filter_map(Result::ok);
    let left = left.filter(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .starts_with("rrd.journal")
    });
    assert_eq!(left.count(), expected);
    std::fs::remove_dir_all(&root).unwrap();
}

/// Bytes of the file that the series' rows would make.
fn image(bench: &Bench, name: &str) -> Vec<u8> {
    bench.store().load(name.as_bytes()).unwrap().to_bytes()
}

#[test]
fn series_without_files() {
    let mut bench = Bench::new(1, 0);
    bench.settings.files = Files::Never;
    bench.open();
    let store = bench.store().clone();
    let new = rrd(b"GAUGE");
    store.install(b"d/n.rrd", &new, false).unwrap();
    assert!(matches!(
        store.install(b"d/n.rrd", &new, false),
        Err(FileError::Exists)
    ));
    let values: Vec<String> = (1..40).map(|i| format!("{}:{i}", START + i * 10)).collect();
    for value in &values {
        bench.update("d/n.rrd", &[value]).unwrap();
        store.maintain();
    }
    let texts: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    let expected = oracle(&new.to_bytes(), &texts);
    assert_eq!(image(&bench, "d/n.rrd"), expected);
    assert_eq!(bench.flush("d/n.rrd").unwrap(), Flushed::Done);
    assert!(matches!(
        bench.flush("none.rrd"),
        Err(FileError::NoSuchFile)
    ));
    assert!(bench.disk.bytes(&base().join("d/n.rrd")).is_none());
    assert_eq!(store.list(b"/db", false).unwrap(), [b"d".to_vec()]);
    assert_eq!(store.list(b"/db", true).unwrap(), [b"d/n.rrd".to_vec()]);
    // CREATE with a source makes a file with rows; TUNE edits it.
    let full = Rrd::parse(&expected).unwrap();
    store.install(b"full.rrd", &full, true).unwrap();
    assert_eq!(image(&bench, "full.rrd"), expected);
    let mut edit = |mut rrd: Rrd| {
        rrd.header.ds[0].par[0] = 77;
        Ok(rrd)
    };
    store.rewrite(b"full.rrd", &mut edit).unwrap();
    drop(store);
    bench.disk.kill();
    bench.reopen();
    assert_eq!(image(&bench, "d/n.rrd"), expected);
    let tuned = Rrd::parse(&image(&bench, "full.rrd")).unwrap();
    assert_eq!(tuned.header.ds[0].par[0], 77);
    assert_eq!(tuned.cells.len(), full.cells.len());
    bench.update("full.rrd", &["1000000500:7"]).unwrap();
    // A start with files enabled.
    bench.store = None;
    bench.settings.files = Files::After(Duration::from_secs(300));
    bench.disk.create_dir_all(&base().join("d")).unwrap();
    bench.open();
    bench.flush("d/n.rrd").unwrap();
    assert_eq!(bench.bytes("d/n.rrd"), expected);
}

/// A new series never shows rows of a series that is gone, also after a start.
#[test]
fn places_of_series_that_are_gone() {
    let mut bench = bench(2);
    let fill = |bench: &mut Bench, name: &str| {
        for i in 1..30 {
            let value = format!("{}:777", START + i * 10);
            bench.update(name, &[&value]).unwrap();
            bench.store().maintain();
        }
    };
    fill(&mut bench, "f0.rrd");
    bench.disk.unlink(&base().join("f0.rrd")).unwrap();
    assert!(bench.flush("f0.rrd").is_err());
    bench.clock.advance_ns(8 * 86_400 * SECOND);
    for _ in 0..3 {
        bench.store().maintain();
    }
    bench.store().shutdown(true).unwrap();
    bench.reopen();
    let store = bench.store().clone();
    let new = rrd(b"GAUGE");
    store.install(b"new.rrd", &new, false).unwrap();
    bench.update("new.rrd", &["1000000290:1"]).unwrap();
    let expected = oracle(&new.to_bytes(), &[b"1000000290:1"]);
    assert_eq!(image(&bench, "new.rrd"), expected);
}
