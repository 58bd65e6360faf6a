//! A folder of a file system. A name is given to a file when all of it is on the disk.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_sys::disk::{Disk, DiskFile, NameKind, OpenMode};

use super::{BACKUPS, Content, OBJECTS, ObjectStore, Put, other_size, read_parts};
use crate::error::{Error, Result, Tried};

/// Locked by whoever uses the folder.
const LOCK: &str = "lock";
/// A file that is not finished yet.
const UNFINISHED: &str = "unfinished";
/// Most bytes of a piece.
const PIECE_MAX: u64 = 4 << 30;
/// Errno of a disk that cannot read a sector.
const EIO: i32 = 5;

/// A folder. No other process uses it meanwhile.
pub(crate) struct FolderStore {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// Folders with new names that may not be on the disk.
    unsynced: BTreeSet<PathBuf>,
    _lock: Option<Box<dyn DiskFile>>,
}

impl FolderStore {
    /// Opens a folder for a new backup; makes it if it is missing.
    pub(crate) fn make(disk: Arc<dyn Disk>, folder: &Path) -> Result<FolderStore> {
        let is_missing = |above: &&Path| disk.metadata(above).is_err();
        let missing = folder.ancestors().take_while(is_missing);
        let above = missing.filter_map(|folder| match folder.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Some(PathBuf::from(".")),
            parent => parent.map(Path::to_path_buf),
        });
        let new_names: Vec<PathBuf> = above.collect();
        for folder in [OBJECTS, BACKUPS].map(|name| folder.join(name)) {
            disk.create_dir_all(&folder).tried("make", &folder)?;
        }
        let path = folder.join(LOCK);
        let lock = disk.open(&path, OpenMode::Create).tried("open", &path)?;
        let mut store = FolderStore::locked(disk, folder, Some(lock))?;
        store.unsynced.insert(folder.into());
        store.unsynced.extend(new_names);
        Ok(store)
    }

    /// Opens a folder with backups, to read them.
    pub(crate) fn open(disk: Arc<dyn Disk>, folder: &Path) -> Result<FolderStore> {
        let path = folder.join(LOCK);
        // A medium that cannot be written needs no lock.
        let lock = disk.open(&path, OpenMode::Read).ok();
        FolderStore::locked(disk, folder, lock)
    }

    fn locked(
        disk: Arc<dyn Disk>,
        folder: &Path,
        lock: Option<Box<dyn DiskFile>>,
    ) -> Result<FolderStore> {
        if let Some(lock) = &lock
            && !lock.try_lock().tried("lock", &folder.join(LOCK))?
        {
            return Err(Error::Busy {
                path: folder.into(),
            });
        }
        Ok(FolderStore {
            disk,
            folder: folder.into(),
            unsynced: BTreeSet::new(),
            _lock: lock,
        })
    }

    /// Path of the unfinished file beside an object.
    fn unfinished(&self, name: &str) -> PathBuf {
        let top = name.split('/').next().unwrap_or_default();
        self.folder.join(top).join(UNFINISHED)
    }

    fn remove_if_there(&self, path: &Path) -> Result<()> {
        match self.disk.unlink(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.tried("remove", path),
        }
    }

    fn create(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        self.remove_if_there(path)?;
        self.disk
            .open(path, OpenMode::CreateNew)
            .tried("make", path)
    }

    /// Gives a file that is on the disk its name.
    fn name(&mut self, unfinished: &Path, name: &str) -> Result<()> {
        let path = self.folder.join(name);
        if let Some(part) = path.parent() {
            self.disk.create_dir_all(part).tried("make", part)?;
            self.unsynced.insert(part.into());
        }
        if let Some(top) = unfinished.parent() {
            self.unsynced.insert(top.into());
        }
        self.disk.rename(unfinished, &path).tried("name", &path)
    }

    fn names(&self, folder: &Path) -> Result<Vec<(String, NameKind)>> {
        let mut names = Vec::new();
        let listed = self
            .disk
            .list(folder, &mut |name, kind| names.push((name.into(), kind)));
        listed.tried("list", folder)?;
        Ok(names)
    }

    /// Adds the files below a folder.
    fn add_below(&self, below: &str, found: &mut Vec<(String, u64)>) -> Result<()> {
        for (name, kind) in self.names(&self.folder.join(below))? {
            let name = format!("{below}/{name}");
            match kind {
                NameKind::Directory => self.add_below(&name, found)?,
                NameKind::File => {
                    let path = self.folder.join(&name);
                    let stat = self.disk.metadata(&path).tried("read", &path)?;
                    found.push((name, stat.size_bytes));
                }
                NameKind::Other => {}
            }
        }
        Ok(())
    }
}

impl ObjectStore for FolderStore {
    fn begin(&mut self) -> Result<()> {
        [OBJECTS, BACKUPS]
            .iter()
            .try_for_each(|folder| self.remove_if_there(&self.unfinished(folder)))
    }

    fn list(&self, folder: &str) -> Result<Option<Vec<(String, u64)>>> {
        if self.disk.metadata(&self.folder.join(folder)).is_err() {
            return Ok(None);
        }
        let mut found = Vec::new();
        self.add_below(folder, &mut found)?;
        Ok(Some(found))
    }

    fn put(&mut self, name: &str, content: &Content<'_>) -> Result<Put> {
        let unfinished = self.unfinished(name);
        let file = self.create(&unfinished)?;
        let mut written = 0;
        let is_whole = content.read(&mut |bytes| {
            let written_to = file.write_at(bytes, written);
            written += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            written_to.tried("write", &unfinished)
        })?;
        if !is_whole {
            return Ok(Put::Changed);
        }
        file.sync_data().tried("write", &unfinished)?;
        self.name(&unfinished, name)?;
        Ok(Put::Done)
    }

    fn link(&mut self, name: &str, bytes: u64, file: &Path, inode: u64) -> Result<bool> {
        let unfinished = self.unfinished(name);
        self.remove_if_there(&unfinished)?;
        if self.disk.link(file, &unfinished).is_err() {
            return Ok(false);
        }
        let stat = self.disk.metadata(&unfinished).tried("read", &unfinished)?;
        // Another file may have the name by now.
        if (stat.inode, stat.size_bytes) != (inode, bytes) {
            self.disk.unlink(&unfinished).tried("remove", &unfinished)?;
            return Ok(false);
        }
        let linked = self.disk.open(&unfinished, OpenMode::Read);
        let synced = linked.and_then(|file| file.sync_data());
        synced.tried("write", &unfinished)?;
        self.name(&unfinished, name)?;
        Ok(true)
    }

    fn size(&self, name: &str) -> Result<Option<u64>> {
        let path = self.folder.join(name);
        match self.disk.metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            stat => Ok(Some(stat.tried("read", &path)?.size_bytes)),
        }
    }

    fn get(
        &self,
        name: &str,
        bytes: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<std::result::Result<(), String>> {
        let path = self.folder.join(name);
        let file = match self.disk.open(&path, OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Err("is missing".into()));
            }
            file => file.tried("open", &path)?,
        };
        let size = file.metadata().tried("read", &path)?.size_bytes;
        if size != bytes {
            return Ok(Err(other_size(size, bytes)));
        }
        match read_parts((&*file, &path), 0, size, each) {
            Err(Error::Io { cause, .. }) if cause.raw_os_error() == Some(EIO) => {
                Ok(Err("is unreadable: the disk fails".into()))
            }
            Ok(true) => Ok(Ok(())),
            Ok(false) => Ok(Err("is damaged".into())),
            Err(error) => Err(error),
        }
    }

    fn remove(&mut self, name: &str) -> Result<()> {
        let path = self.folder.join(name);
        self.disk.unlink(&path).tried("remove", &path)?;
        if let Some(part) = path.parent() {
            self.unsynced.insert(part.into());
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        for folder in &self.unsynced {
            self.disk.sync_dir(folder).tried("write", folder)?;
        }
        self.unsynced.clear();
        Ok(())
    }

    fn piece_max(&self) -> u64 {
        PIECE_MAX
    }

    fn place(&self, name: &str) -> PathBuf {
        match name {
            "" => self.folder.clone(),
            name => self.folder.join(name),
        }
    }
}
