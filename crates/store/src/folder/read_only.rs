//! A store's folder as seen by a process other than its daemon: reads files, and does not write, lock or clean up.

use crate::error::{Error, Tried};
use kymo_sys::disk::{Disk, DiskFile, Metadata, NameKind, OpenMode, RecordLock};
use kymo_sys::tree::{Reach, Tree};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of attempts to read a folder that a daemon is changing.
pub(crate) const TRIES: usize = 8;

/// Names of the store's folder: below that of the daemon's `-j`, and below its `-b` without `-j`.
const NAMES: [&str; 2] = ["kymo", ".kymo"];

/// The store in a folder, in its `kymo` or `.kymo` or in itself; `None` if there is none.
pub fn store_folder(disk: &dyn Disk, folder: &Path) -> Result<Option<PathBuf>, Error> {
    let mut found = Vec::new();
    if is_store(disk, folder).tried("list", folder)? {
        found.push(folder.to_path_buf());
    }
    for below in NAMES.map(|name| folder.join(name)) {
        match is_store(disk, &below) {
            Ok(true) => found.push(below),
            Err(error) if !is_missing(&error) => return Err(error).tried("list", &below),
            _ => {}
        }
    }
    match &found[..] {
        [one, another, ..] => Err(Error::Several {
            folder: folder.into(),
            one: one.clone(),
            another: another.clone(),
        }),
        _ => Ok(found.pop()),
    }
}

/// The place for a store, possibly a new one: the folder of this name in `above`. If there is no store but one lies a
/// folder higher or lower, returns an error, since that one is probably meant.
pub fn place_of_store(disk: &dyn Disk, above: &Path, name: &str) -> Result<PathBuf, Error> {
    let place = above.join(name);
    let is_there = |folder: &Path| is_store(disk, folder).unwrap_or(false);
    if is_there(&place) {
        return Ok(place);
    }
    let near = [above, &place].map(|folder| NAMES.map(|name| folder.join(name)));
    let mut near = std::iter::once(above.to_path_buf()).chain(near.into_iter().flatten());
    match near.find(|folder| is_there(folder)) {
        Some(found) => Err(Error::Beside { place, found }),
        None => Ok(place),
    }
}

fn is_store(disk: &dyn Disk, folder: &Path) -> io::Result<bool> {
    let mut found = false;
    let is_number = |byte: u8| byte.is_ascii_digit() || byte == b'-';
    disk.list(folder, &mut |name, kind| {
        let number = ["journal-", "segment-"].map(|front| name.strip_prefix(front));
        let number = number.into_iter().flatten().next();
        let ours = number.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_number));
        found |= ours && kind == NameKind::File;
    })?;
    Ok(found)
}

/// Returns true if a path is missing or no folder.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// A disk without write access. Changes that a start would make only to clean up appear to succeed.
pub(crate) struct ReadOnly(pub(crate) Arc<dyn Disk>);

struct ReadOnlyFile(Box<dyn DiskFile>);

fn refused() -> io::Error {
    io::Error::other("the folder is only looked at")
}

impl Disk for ReadOnly {
    fn create_dir_all(&self, _dir: &Path) -> io::Result<()> {
        Err(refused())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        match mode {
            OpenMode::Read | OpenMode::Write => {
                let file = self.0.open(path, OpenMode::Read)?;
                Ok(Box::new(ReadOnlyFile(file)))
            }
            OpenMode::Create | OpenMode::CreateNew => Err(refused()),
        }
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }

    fn unlink(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rmdir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path, each: &mut dyn FnMut(&str, NameKind)) -> io::Result<()> {
        self.0.list(dir, each)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.0.metadata(path)
    }

    fn name_kind(&self, path: &Path) -> io::Result<NameKind> {
        self.0.name_kind(path)
    }

    fn sync_file_system(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn user(&self) -> u32 {
        self.0.user()
    }

    fn tree(&self, _base: &Path, _reach: Reach) -> io::Result<Box<dyn Tree>> {
        Err(refused())
    }
}

impl DiskFile for ReadOnlyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(refused())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _size_bytes: u64) -> io::Result<()> {
        Err(refused())
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    fn try_lock(&self) -> io::Result<bool> {
        Err(refused())
    }

    fn try_record_lock(&self, _kind: RecordLock) -> io::Result<bool> {
        Err(refused())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_sys::sim_disk::SimDisk;

    /// Regression test: a daemon with the same folder did not find files that were imported into it.
    #[test]
    fn a_folder_means_one_store() {
        for (stores, found, with_j, with_b) in [
            (&[][..], Ok(None), Ok("/d/kymo"), Ok("/d/.kymo")),
            (
                &["/d/kymo"],
                Ok(Some("/d/kymo")),
                Ok("/d/kymo"),
                Err("start with -j /d, or move its files to /d/.kymo"),
            ),
            (
                &["/d/.kymo"],
                Ok(Some("/d/.kymo")),
                Err("move its files to /d/kymo"),
                Ok("/d/.kymo"),
            ),
            (
                &["/d"],
                Ok(Some("/d")),
                Err("move its files to /d/kymo"),
                Err("move its files to /d/.kymo"),
            ),
            (
                &["/d/kymo/kymo"],
                Ok(None),
                Err("start with -j /d/kymo, or move its files to /d/kymo"),
                Ok("/d/.kymo"),
            ),
            (
                &["/d", "/d/kymo"],
                Err("there is one in /d and one in /d/kymo"),
                Ok("/d/kymo"),
                Err("move its files to /d/.kymo"),
            ),
        ] {
            let disk = SimDisk::new(1);
            let d = Path::new("/d");
            disk.create_dir_all(&d.join("kymo/kymo")).unwrap();
            disk.create_dir_all(&d.join(".kymo")).unwrap();
            disk.set_bytes(&d.join("journal-of-somebody"), vec![1]);
            for store in stores {
                let name = Path::new(store).join("journal-000000000001");
                disk.set_bytes(&name, vec![1]);
            }
            let same =
                |got: Result<Option<PathBuf>, Error>, wanted: Result<Option<&str>, &str>| match (
                    got, wanted,
                ) {
                    (Ok(got), Ok(wanted)) => {
                        assert_eq!(got, wanted.map(PathBuf::from), "{stores:?}")
                    }
                    (Err(got), Err(text)) => assert!(got.to_string().contains(text), "{got}"),
                    (got, _) => panic!("{stores:?}: {got:?}"),
                };
            same(store_folder(&disk, d), found);
            same(place_of_store(&disk, d, "kymo").map(Some), with_j.map(Some));
            same(
                place_of_store(&disk, d, ".kymo").map(Some),
                with_b.map(Some),
            );
        }
    }
}
