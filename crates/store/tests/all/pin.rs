//! A pinned store: files that are copied up to their pinned lengths, at any later time, are the store as it was.

use crate::common::{Bench, SECOND, START, base, folder};
use kymo_store::{Files, Pinned, Store};
use kymo_sys::clock::Clock;
use kymo_sys::disk::{Disk, OpenMode};
use kymo_sys::sim_disk::SimDisk;
use std::path::Path;
use std::sync::Arc;

fn bench() -> Bench {
    let mut bench = Bench::new(7, 3);
    bench.settings.files = Files::OnDemand;
    bench.open();
    bench
}

/// Values of the next `count` periods of ten seconds from `from` on.
fn update(bench: &mut Bench, from: i64, count: i64) {
    for number in from..from + count {
        for name in ["f0.rrd", "f1.rrd"] {
            let text = format!("{}:{number}", START + 10 + 10 * number);
            bench.update(name, &[&text]).unwrap();
        }
        bench.store().maintain();
    }
}

fn exported(store: &Store) -> Vec<Vec<u8>> {
    let names: [&[u8]; 2] = [b"f0.rrd", b"f1.rrd"];
    let files = names.map(|name| store.export(name).unwrap());
    files.map(|file| file.bytes).into()
}

/// A disk for copies of pinned files.
fn empty_disk() -> SimDisk {
    let copy = SimDisk::new(1);
    copy.create_dir_all(&folder()).unwrap();
    copy.create_dir_all(&base()).unwrap();
    copy
}

/// Copies the segments, which merging may remove, or the journal files, which a pin holds.
fn copy_files(bench: &Bench, pinned: &Pinned, of_journal: bool, copy: &SimDisk) {
    let is_wanted = |name: &str| name.starts_with("journal-") == of_journal;
    for file in pinned.files.iter().filter(|file| is_wanted(&file.name)) {
        let path = folder().join(&file.name);
        let bytes = bench.disk.bytes(&path).unwrap();
        let length = usize::try_from(file.bytes).unwrap();
        let to = copy.open(&path, OpenMode::CreateNew).unwrap();
        to.write_at(&bytes[..length], 0).unwrap();
    }
}

/// Copies the files with rows from before the store knew them.
fn copy_adopted(bench: &Bench, copy: &SimDisk) {
    for name in bench.store().adopted() {
        let path = base().join(std::str::from_utf8(&name).unwrap());
        copy.set_bytes(&path, bench.disk.bytes(&path).unwrap());
    }
}

fn looked_at(bench: &Bench, disk: SimDisk) -> Vec<Vec<u8>> {
    let (disk, clock): (Arc<dyn Disk>, Arc<dyn Clock>) = (Arc::new(disk), bench.clock.clone());
    let store = Store::open_to_look(&folder(), &base(), &disk, &clock).unwrap();
    exported(&store)
}

fn journals(bench: &Bench) -> usize {
    let files = bench.disk.files().into_iter();
    let is_journal = |path: &Path| path.to_string_lossy().contains("journal-");
    files.filter(|(path, _)| is_journal(path)).count()
}

#[test]
fn pinned_files_are_the_store_as_it_was() {
    let mut bench = bench();
    update(&mut bench, 0, 45);
    let (pinned, then) = (bench.store().pin().unwrap(), exported(bench.store()));
    assert!(pinned.files.iter().any(|file| file.sealed));
    assert!(
        pinned
            .files
            .iter()
            .any(|file| file.name.contains("journal"))
    );
    let copy = empty_disk();
    copy_files(&bench, &pinned, false, &copy);
    // Enough for journal files to be dropped and used again, without a pin.
    update(&mut bench, 45, 3_000);
    bench.store().checkpoint();
    copy_files(&bench, &pinned, true, &copy);
    copy_adopted(&bench, &copy);
    assert_ne!(exported(bench.store()), then);
    assert_eq!(looked_at(&bench, copy), then);
}

#[test]
fn a_pin_keeps_journal_files_until_it_ends() {
    let mut bench = bench();
    let mut from = 0;
    let mut grow = |bench: &mut Bench| {
        update(bench, from, 1_500);
        from += 1_500;
        bench.store().checkpoint();
        journals(bench)
    };
    let without = grow(&mut bench);
    let pinned = bench.store().pin().unwrap();
    grow(&mut bench);
    let with = grow(&mut bench);
    assert!(with > without + 2, "{without} {with}");
    assert!(bench.store().unpin(pinned.pin) && !bench.store().unpin(pinned.pin));
    let after = grow(&mut bench);
    assert!(after <= without + 1, "{without} {after}");
    bench.store().pin().unwrap();
    bench.clock.advance_ns(3601 * SECOND);
    let expired = grow(&mut bench);
    assert!(expired <= without + 1, "{without} {expired}");
}

#[test]
fn a_store_at_rest_is_pinned_by_its_frames() {
    let mut bench = bench();
    update(&mut bench, 0, 45);
    let (pinned, then) = (bench.store().pin().unwrap(), exported(bench.store()));
    assert_eq!(bench.store().adopted(), [b"f0.rrd", b"f1.rrd"]);
    bench.store().unpin(pinned.pin);
    bench.store = None;
    let at_rest = Store::pin_at_rest(Arc::new(bench.disk.clone()), &folder()).unwrap();
    assert_eq!(at_rest.pin, 0);
    let names = |pinned: &Pinned| -> Vec<(String, u64)> {
        let files = pinned.files.iter();
        files.map(|file| (file.name.clone(), file.bytes)).collect()
    };
    assert_eq!(names(&at_rest), names(&pinned));
    bench.open();
    let copy = empty_disk();
    copy_files(&bench, &at_rest, false, &copy);
    copy_files(&bench, &at_rest, true, &copy);
    copy_adopted(&bench, &copy);
    assert_eq!(looked_at(&bench, copy), then);
}
