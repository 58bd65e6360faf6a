//! Idle threads of a store sleep for half a minute; any work for them wakes them.

use crate::common::{START, base, rrd, settings};
use kymo_store::{Files, Settings, Store};
use kymo_sys::clock::RealClock;
use kymo_sys::disk::{Disk as _, OpenMode};
use kymo_sys::sim_disk::{Fate, SimDisk};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Much shorter than a rest, much longer than the pauses between rounds.
const SOON: Duration = Duration::from_secs(15);
/// Time after which threads without work rest.
const QUIET: Duration = Duration::from_millis(1500);

/// Waits until the condition holds; a thread that slept on would take longer than [`SOON`].
fn is_soon(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < SOON, "a thread rests, but {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Stamp of the newest value that a power cut would leave.
fn last_after_a_cut(disk: &SimDisk, settings: &Settings) -> Option<f64> {
    let disk = disk.fork();
    disk.crash(&mut |_| Fate::Drop);
    let (store, _) = Store::open(settings.clone(), Arc::new(disk), Arc::new(RealClock)).unwrap();
    store.write_batch().last_stamp(b"a.rrd")
}

#[test]
fn work_ends_the_rest_of_the_threads_and_so_does_the_end() {
    let disk = SimDisk::new(1);
    disk.create_dir_all(&base()).unwrap();
    let path = base().join("a.rrd");
    let before = rrd(b"GAUGE").to_bytes();
    let file = disk.open(&path, OpenMode::Create).unwrap();
    file.write_at(&before, 0).unwrap();
    drop(file);
    disk.sync_file_system(&base()).unwrap();
    let settings = Settings {
        files: Files::After(Duration::from_secs(300)),
        journal_file_bytes: 64 << 20,
        sync_every: Duration::from_millis(50),
        ..settings()
    };
    let (store, _) = Store::open(
        settings.clone(),
        Arc::new(disk.clone()),
        Arc::new(RealClock),
    )
    .unwrap();
    let threads = store.start(4, Arc::new(|_| {}));
    store.touch(b"a.rrd").unwrap();
    for i in 1..=2 {
        std::thread::sleep(QUIET);
        let mut batch = store.write_batch();
        let stamp = START + i * 10;
        let value = format!("{stamp}:{i}");
        batch.update(b"a.rrd", [value.as_bytes()]).unwrap();
        batch.commit().unwrap();
        is_soon("a value is not on the disk", || {
            last_after_a_cut(&disk, &settings) == Some(stamp as f64)
        });
    }
    assert_eq!(disk.bytes(&path).unwrap(), before);
    std::thread::sleep(QUIET);
    let mut batch = store.write_batch();
    batch.flush_all();
    batch.commit().unwrap();
    is_soon("a file is not written", || {
        disk.bytes(&path).unwrap() != before
    });
    std::thread::sleep(QUIET);
    let begun = Instant::now();
    threads.stop();
    assert!(begun.elapsed() < SOON, "a thread does not hear of the end");
}
