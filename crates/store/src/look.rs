//! A store's folder seen by somebody who is not its daemon: files are read, and nothing is written, locked or tidied up.

use crate::error::{Error, Tried};
use kymo_sys::disk::{Disk, DiskFile, Metadata, NameKind, OpenMode, RecordLock};
use kymo_sys::tree::{Reach, Tree};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Looks at a folder that a daemon changes meanwhile, before that is an error.
pub(crate) const TRIES: usize = 8;

/// The store's own folder: this one, or the one that a daemon with this `-j` or `-b` has. `None`: there is none.
pub fn store_folder(disk: &dyn Disk, folder: &Path) -> Result<Option<PathBuf>, Error> {
    let below = ["kymo", ".kymo"].map(|name| folder.join(name));
    if is_store(disk, folder).tried("list", folder)? {
        return Ok(Some(folder.into()));
    }
    for folder in below {
        match is_store(disk, &folder) {
            Ok(true) => return Ok(Some(folder)),
            Err(error) if !is_missing(&error) => return Err(error).tried("list", &folder),
            _ => {}
        }
    }
    Ok(None)
}

fn is_store(disk: &dyn Disk, folder: &Path) -> io::Result<bool> {
    let mut found = false;
    disk.list(folder, &mut |name, kind| {
        let ours = name.starts_with("journal-") || name.starts_with("segment-");
        found |= ours && kind == NameKind::File;
    })?;
    Ok(found)
}

/// Missing, or no folder.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// A disk as somebody sees it who may not write. What a start would tidy up stays, as if that had been done.
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
