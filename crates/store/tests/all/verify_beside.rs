//! `verify` and `status` find no damage in a store that saves and merges as fast as it can on a real disk.

use crate::common::START;
use kymo_store::status::status;
use kymo_store::verify::{Event, verify};
use kymo_store::{Files, Settings, Store};
use kymo_sys::clock::RealClock;
use kymo_sys::disk::{Disk, RealDisk};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Least time of the looks.
const LOOKS: Duration = Duration::from_secs(4);
/// Longest time, for a busy machine on which a look sees less.
const LOOKS_MAX: Duration = Duration::from_secs(60);

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn settings(folder: &Path) -> Settings {
    Settings {
        files: Files::Never,
        journal_file_bytes: 64 << 10,
        sync_every: Duration::from_millis(20),
        checkpoint_every: Duration::from_millis(100),
        chunk_values: 4,
        journal_files: 2,
        segment_bytes: 20_000,
        ..Settings::new(folder, folder.join("base"))
    }
}

/// Sends values to all series until `stop` is set.
fn feed(store: &Store, names: &[String], stop: &AtomicBool) {
    let mut stamp = START;
    while !stop.load(Ordering::Relaxed) {
        // Large steps make points old soon, too.
        stamp += 3000;
        let mut batch = store.write_batch();
        for name in names {
            let text = format!("{stamp}:{}", stamp % 1000);
            batch.update(name.as_bytes(), [text.as_bytes()]).unwrap();
        }
        batch.commit().unwrap();
        // A pause lets saving keep up.
        std::thread::sleep(Duration::from_micros(500));
    }
}

fn segments(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut each = |name: &str, _| {
        if name.starts_with("segment-") {
            names.insert(name.to_string());
        }
    };
    RealDisk.list(folder, &mut each).unwrap();
    names
}

#[test]
fn a_store_at_full_speed_is_no_damaged_store() {
    let name = format!("kymo-verify-beside-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir_all(folder.0.join("base")).unwrap();
    let (store, _) =
        Store::open(settings(&folder.0), Arc::new(RealDisk), Arc::new(RealClock)).unwrap();
    let names: Vec<String> = (0..40).map(|number| format!("s{number}.rrd")).collect();
    for (number, name) in names.iter().enumerate() {
        let rrd = crate::common::rrd([&b"GAUGE"[..], b"COUNTER"][number % 2]);
        store.install(name.as_bytes(), &rrd, false).unwrap();
        store.touch(name.as_bytes()).unwrap();
    }
    let stop = AtomicBool::new(false);
    let (mut looks, mut blocks, mut merged) = (0, 0, BTreeSet::new());
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| feed(&store, &names, &stop));
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                store.maintain();
            }
        });
        let mut look = || {
            let mut findings = Vec::new();
            let summary = verify(Arc::new(RealDisk), &folder.0, &mut |event| {
                if let Event::Found(finding) = event {
                    findings.push(finding);
                }
            });
            let summary = summary.map_err(|error| error.to_string())?;
            if summary.damaged > 0 {
                return Err(format!("look {looks}: {findings:?}"));
            }
            let found = status(Arc::new(RealDisk), &RealClock, &folder.0);
            let found = found.map_err(|error| error.to_string())?;
            if found.series != names.len() as u64 || !found.notices.is_empty() {
                return Err(format!("look {looks}: {found:?}"));
            }
            looks += 1;
            blocks += summary.blocks;
            let names = segments(&folder.0).into_iter();
            merged.extend(names.filter(|name| !name.ends_with("-0")));
            Ok(looks > 20 && blocks > 200 && merged.len() > 10)
        };
        let mut done = Ok(false);
        while done
            .as_ref()
            .is_ok_and(|&enough| begun.elapsed() < LOOKS || !enough)
            && begun.elapsed() < LOOKS_MAX
        {
            done = look();
        }
        stop.store(true, Ordering::Relaxed);
        done.unwrap();
    });
    assert_eq!(store.take_notices(), Vec::<String>::new());
    eprintln!(
        "{looks} looks, {blocks} blocks, {} merged segments",
        merged.len()
    );
    assert!(
        looks > 20 && blocks > 200 && merged.len() > 10,
        "{looks} {blocks} {merged:?}"
    );
}
