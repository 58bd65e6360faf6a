//! The keeper's own files beside the store, docs/formats/kept.md, and a check of each.

use std::io;
use std::path::{Path, PathBuf};

use kymo_store::verify::{Finding, Weight};
use kymo_sys::disk::Disk;
use kymo_sys::kept_file::{self, Contents, Found, Kind};

use crate::collectd::event_files;
use crate::programs::retired;
use crate::pushed::families;
use crate::traps::engines;

/// Number of reads of a growing file, after which an incomplete end counts as damage.
const TRIES: usize = 4;

/// A file: its name, its format, and a check that a record can be read.
type Kept = (&'static str, Kind, fn(u32, &[u8]) -> bool);

const FILES: [Kept; 7] = [
    (retired::NAME, retired::FILE, retired::is_record),
    (
        event_files::NAMES[0],
        event_files::FILE,
        event_files::is_record,
    ),
    (
        event_files::NAMES[1],
        event_files::FILE,
        event_files::is_record,
    ),
    (families::NAME, families::FILE, families::is_record),
    (engines::NAME, engines::FILE, engines::is_record),
    (
        kymo_store::PLACE_NAME,
        kymo_store::PLACE_FILE,
        kymo_store::is_place,
    ),
    (
        kymo_store::TAILS_NAME,
        kymo_store::TAILS_FILE,
        kymo_store::is_tails,
    ),
];

/// Names of the files that a backup has. Tails are not among them: whoever reads them goes on with the store as it is.
/// Nor are engines of SNMPv3: an older count of starts would let old messages in.
pub const BACKED_UP: [&str; 5] = [
    retired::NAME,
    event_files::NAMES[0],
    event_files::NAMES[1],
    families::NAME,
    kymo_store::PLACE_NAME,
];

/// Size and damage of the checked files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of findings that are damage.
    pub damaged: u64,
}

/// Checks each of these files in a store's folder, also while a keeper writes. Fails if a file is unreadable or of a
/// newer version.
pub fn check(disk: &dyn Disk, folder: &Path, each: &mut dyn FnMut(Finding)) -> io::Result<Checked> {
    let mut checked = Checked::default();
    for (name, kind, is_record) in FILES {
        let path = folder.join(name);
        let Some(contents) = look(disk, &path, &kind)? else {
            continue;
        };
        checked.files += 1;
        checked.bytes += u64::try_from(contents.bytes.len()).unwrap_or(u64::MAX);
        for finding in findings(&path, &contents, is_record) {
            checked.damaged += u64::from(finding.weight == Weight::Damage);
            each(finding);
        }
    }
    Ok(checked)
}

fn look(disk: &dyn Disk, path: &Path, kind: &Kind) -> io::Result<Option<Contents>> {
    let mut tries = 1;
    loop {
        match kept_file::read(disk, path, kind)? {
            Found::Missing => return Ok(None),
            Found::Newer(version) => {
                let why = format!(
                    "it is of version {version}, and this kymo knows version {}",
                    kind.version
                );
                return Err(io::Error::other(why));
            }
            Found::Read(contents) if contents.is_whole() || tries == TRIES => {
                return Ok(Some(contents));
            }
            Found::Read(_) => tries += 1,
        }
    }
}

fn findings(path: &Path, contents: &Contents, is_record: fn(u32, &[u8]) -> bool) -> Vec<Finding> {
    let found = |at: usize, what: String, weight| Finding {
        path: PathBuf::from(path),
        offset: u64::try_from(at).unwrap_or(u64::MAX),
        what,
        weight,
    };
    let damage = contents.damage.iter().map(|range| {
        let what = format!("{} bytes are damaged", range.len());
        found(range.start, what, Weight::Damage)
    });
    let strange = contents.records.iter().filter_map(|range| {
        let body = contents.bytes.get(range.clone())?;
        let what = "a record makes no sense".to_string();
        (!is_record(contents.version, body)).then(|| found(range.start, what, Weight::Damage))
    });
    let cut = contents.cut.map(|at| {
        let what = "the last record was not written to its end, and does not count".to_string();
        found(at, what, Weight::Note)
    });
    damage.chain(strange).chain(cut).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kymo_sys::kept_file::{KeptFile, Sync};
    use kymo_sys::sim_disk::SimDisk;

    use super::*;

    /// `verify` reported no damage in a store with a turned bit in `programs`.
    #[test]
    fn every_turned_bit_is_found() {
        let folder = Path::new("/store");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
        let fixtures = [
            "programs-1",
            "notifications-2",
            "notifications-1",
            "families-1",
            "trap-engines-1",
        ];
        let fixtures = fixtures.map(|name| std::fs::read(root.join(name)).unwrap());
        let disk = Arc::new(SimDisk::new(1));
        disk.create_dir_all(folder).unwrap();
        for ((name, ..), bytes) in FILES.into_iter().zip(&fixtures) {
            disk.set_bytes(&folder.join(name), bytes.clone());
        }
        let checked = check(&*disk, folder, &mut |finding| panic!("{finding:?}")).unwrap();
        assert_eq!((checked.files, checked.damaged), (5, 0));
        for ((name, ..), bytes) in FILES.into_iter().zip(&fixtures) {
            for at in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[at / 8] ^= 1 << (at % 8);
                disk.set_bytes(&folder.join(name), flipped);
                let checked = check(&*disk, folder, &mut |_| {});
                assert!(
                    checked.is_err() || checked.unwrap().damaged > 0,
                    "{name} bit {at}"
                );
            }
            disk.set_bytes(&folder.join(name), bytes.clone());
        }
        let newer = Kind {
            version: 9,
            ..retired::FILE
        };
        let (mut kept, _) = KeptFile::open(disk.clone(), folder.join("programs"), newer).unwrap();
        kept.replace(1, &mut |_| {}, Sync::Now).unwrap();
        let error = check(&*disk, folder, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("it is of version 9"), "{error}");
    }
}
