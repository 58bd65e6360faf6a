//! Checks a recording and its roll-ups: reads each record of each block and tail, and compares the checksum
//! of each roll-up.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use kymo_query::archive::ROLLUPS_FOLDER;
use kymo_query::rollup;
use kymo_recording::cursor::{Cursor, Item};
use kymo_recording::folder;
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_store::verify::{Finding, Weight};
use kymo_sys::disk::{Disk, NameKind, OpenMode};

/// Largest size of a roll-up.
const ROLLUP_MAX: u64 = 64 << 20;

/// Size of a check.
#[derive(Default)]
pub(super) struct Recorded {
    pub(super) samples: u64,
    pub(super) bytes: u64,
    pub(super) rollups: u64,
}

/// True if the folder has recordings.
pub(super) fn is_there(disk: &dyn Disk, dir: &Path) -> bool {
    folder::boot_folders(disk, dir).is_ok_and(|folders| !folders.is_empty())
}

/// Reads the whole recording, also while a recorder writes.
pub(super) fn check(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    each: &mut dyn FnMut(Finding),
) -> Result<Recorded> {
    let mut recorded = Recorded::default();
    let folders = folder::boot_folders(&**disk, dir)?;
    let mut hosts: Vec<&str> = folders
        .iter()
        .filter_map(|path| folder::folder_host(path))
        .collect();
    hosts.dedup();
    for host in hosts {
        let place = dir.join(host);
        let recording = Recording::open(disk.clone(), &place)?;
        let mut cursor = Cursor::new(&recording, TimeRange::ALL, Kinds::ALL);
        while let Some(item) = cursor.next()? {
            match item {
                Item::Sample { .. } => recorded.samples += 1,
                Item::Gap(gap) if gap.is_damage() => each(damage(place.clone(), gap.message)),
                Item::Gap(_) | Item::Event { .. } | Item::Context { .. } => {}
            }
        }
        recorded.bytes += cursor.bytes_read();
    }
    check_rollups(&**disk, &dir.join(ROLLUPS_FOLDER), &mut recorded, each);
    Ok(recorded)
}

fn check_rollups(
    disk: &dyn Disk,
    dir: &Path,
    recorded: &mut Recorded,
    each: &mut dyn FnMut(Finding),
) {
    for folder in names(disk, dir, NameKind::Directory) {
        for path in names(disk, &folder, NameKind::File) {
            if path.extension().is_none_or(|extension| extension != "rol") {
                continue;
            }
            recorded.rollups += 1;
            // The recorder removed the file with its block meanwhile.
            let Some(bytes) = read(disk, &path) else {
                continue;
            };
            if !rollup::is_whole(&bytes) {
                each(damage(
                    path,
                    "it is damaged; kymo serve makes it again".to_string(),
                ));
            }
        }
    }
}

fn read(disk: &dyn Disk, path: &Path) -> Option<Vec<u8>> {
    let file = disk.open(path, OpenMode::Read).ok()?;
    let size_bytes = file.metadata().ok()?.size_bytes.min(ROLLUP_MAX);
    let mut bytes = vec![0; usize::try_from(size_bytes).ok()?];
    let count = file.read_at(&mut bytes, 0).unwrap_or(0);
    bytes.truncate(count);
    Some(bytes)
}

fn names(disk: &dyn Disk, dir: &Path, wanted: NameKind) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let _none = disk.list(dir, &mut |name, kind| {
        if kind == wanted {
            found.push(dir.join(name));
        }
    });
    found.sort();
    found
}

fn damage(path: PathBuf, what: String) -> Finding {
    Finding {
        path,
        offset: 0,
        what,
        weight: Weight::Damage,
    }
}
