//! The folder that backups are in: manifests in `backups/`, contents in `objects/`, by their hashes. A name is given to a file
//! when all of it is on the disk, and a manifest when all its contents are, so that a backup is there whole or not at all.
//! The operations on contents are few (list, put, get, remove), so that an object store can do them, too.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_sys::disk::{Disk, DiskFile, NameKind, OpenMode};

use crate::error::{Error, Result, Tried};
use crate::hash::{ContentHash, Hasher};
use crate::manifest::{Manifest, Piece, SUFFIX, name_of};

/// Folders of contents and of manifests.
const OBJECTS: &str = "objects";
const BACKUPS: &str = "backups";
/// Locked by whoever uses the folder.
const LOCK: &str = "lock";
/// A file that is not finished yet.
const UNFINISHED: &str = "unfinished";
/// Most bytes of a manifest's file.
const MANIFEST_MAX: u64 = 512 << 20;
/// Bytes that are read at once.
pub(crate) const PIECE: u64 = 1 << 20;

/// The folder of backups. No other process uses it meanwhile.
pub struct Target {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// Folders with new names that may not be on the disk.
    unsynced: BTreeSet<PathBuf>,
    _lock: Option<Box<dyn DiskFile>>,
}

impl Target {
    /// Opens a folder for a new backup; makes it if it is missing.
    pub fn begin(disk: Arc<dyn Disk>, folder: &Path) -> Result<Target> {
        let is_missing = |above: &&Path| disk.metadata(above).is_err();
        let missing = folder.ancestors().take_while(is_missing);
        let above = missing.filter_map(|folder| match folder.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Some(PathBuf::from(".")),
            parent => parent.map(Path::to_path_buf),
        });
        let new_names: Vec<PathBuf> = above.collect();
        for folder in [folder.join(OBJECTS), folder.join(BACKUPS)] {
            disk.create_dir_all(&folder).tried("make", &folder)?;
        }
        let path = folder.join(LOCK);
        let lock = disk.open(&path, OpenMode::Create).tried("open", &path)?;
        let mut target = Target::locked(disk, folder, Some(lock))?;
        target.unsynced.insert(folder.into());
        target.unsynced.extend(new_names);
        target.remove_unfinished()?;
        Ok(target)
    }

    /// Opens a folder with backups, to read them.
    pub fn open(disk: Arc<dyn Disk>, folder: &Path) -> Result<Target> {
        let path = folder.join(LOCK);
        // A medium that cannot be written needs no lock.
        let lock = disk.open(&path, OpenMode::Read).ok();
        Target::locked(disk, folder, lock)
    }

    fn locked(
        disk: Arc<dyn Disk>,
        folder: &Path,
        lock: Option<Box<dyn DiskFile>>,
    ) -> Result<Target> {
        if let Some(lock) = &lock
            && !lock.try_lock().tried("lock", &folder.join(LOCK))?
        {
            return Err(Error::Busy {
                path: folder.into(),
            });
        }
        Ok(Target {
            disk,
            folder: folder.into(),
            unsynced: BTreeSet::new(),
            _lock: lock,
        })
    }

    /// Removes what a backup that was killed has left.
    fn remove_unfinished(&self) -> Result<()> {
        for folder in [OBJECTS, BACKUPS] {
            let path = self.folder.join(folder).join(UNFINISHED);
            match self.disk.unlink(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.tried("remove", &path)?,
            }
        }
        Ok(())
    }

    /// Path of a content.
    pub(crate) fn path_of(&self, hash: ContentHash) -> PathBuf {
        let name = hash.to_string();
        let folder = self.folder.join(OBJECTS);
        folder.join(name.get(..2).unwrap_or_default()).join(name)
    }

    /// All contents that are there, with their bytes.
    pub(crate) fn contents(&self) -> Result<HashMap<ContentHash, u64>> {
        let mut found = HashMap::new();
        let folder = self.folder.join(OBJECTS);
        for part in self.names(&folder, NameKind::Directory)? {
            let part = folder.join(part);
            for name in self.names(&part, NameKind::File)? {
                let Some(hash) = ContentHash::parse(&name) else {
                    continue;
                };
                let path = part.join(name);
                let stat = self.disk.metadata(&path).tried("read", &path)?;
                found.insert(hash, stat.size_bytes);
            }
        }
        Ok(found)
    }

    fn names(&self, folder: &Path, kind: NameKind) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let listed = self.disk.list(folder, &mut |name, found| {
            if found == kind {
                names.push(name.to_string());
            }
        });
        listed.tried("list", folder)?;
        names.sort_unstable();
        Ok(names)
    }

    /// Copies a content from a part of a file. It must have this hash.
    pub(crate) fn put(
        &mut self,
        piece: Piece,
        from: (&dyn DiskFile, &Path),
        offset: u64,
    ) -> Result<Put> {
        let unfinished = self.folder.join(OBJECTS).join(UNFINISHED);
        let file = self.create(&unfinished)?;
        let mut hasher = Hasher::default();
        let mut written = 0;
        let copied = read_pieces(from, offset, piece.bytes, &mut |bytes| {
            hasher.add(bytes);
            let written_to = file.write_at(bytes, written);
            written += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            written_to.tried("write", &unfinished)
        });
        let is_whole = copied? && hasher.end() == piece.hash;
        if !is_whole {
            return Ok(Put::Changed);
        }
        file.sync_data().tried("write", &unfinished)?;
        self.name(&unfinished, piece.hash)?;
        Ok(Put::Done)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        match self.disk.unlink(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.tried("remove", path)?,
        }
        self.disk
            .open(path, OpenMode::CreateNew)
            .tried("make", path)
    }

    /// Gives a content that is on the disk its name.
    fn name(&mut self, unfinished: &Path, hash: ContentHash) -> Result<()> {
        let path = self.path_of(hash);
        if let Some(part) = path.parent() {
            self.disk.create_dir_all(part).tried("make", part)?;
            self.unsynced.insert(part.into());
        }
        self.unsynced.insert(self.folder.join(OBJECTS));
        self.disk.rename(unfinished, &path).tried("name", &path)
    }

    /// Takes over a whole file that is never written again by a hard link, where that can be done. `inode` is the file's.
    pub(crate) fn link(&mut self, piece: Piece, file: &Path, inode: u64) -> Result<bool> {
        let unfinished = self.folder.join(OBJECTS).join(UNFINISHED);
        if self.disk.link(file, &unfinished).is_err() {
            return Ok(false);
        }
        let stat = self.disk.metadata(&unfinished).tried("read", &unfinished)?;
        // Another file may have the name by now.
        if (stat.inode, stat.size_bytes) != (inode, piece.bytes) {
            self.disk.unlink(&unfinished).tried("remove", &unfinished)?;
            return Ok(false);
        }
        let linked = self.disk.open(&unfinished, OpenMode::Read);
        let synced = linked.and_then(|file| file.sync_data());
        synced.tried("write", &unfinished)?;
        self.name(&unfinished, piece.hash)?;
        Ok(true)
    }

    /// Calls `each` with the bytes of a content, part by part. The inner error names the damage.
    pub(crate) fn get(
        &self,
        piece: Piece,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<std::result::Result<(), String>> {
        let path = self.path_of(piece.hash);
        let file = match self.disk.open(&path, OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Err("is missing".into()));
            }
            file => file.tried("open", &path)?,
        };
        let size = file.metadata().tried("read", &path)?.size_bytes;
        if size != piece.bytes {
            return Ok(Err(format!("has {size} bytes instead of {}", piece.bytes)));
        }
        let mut hasher = Hasher::default();
        let whole = read_pieces((&*file, &path), 0, size, &mut |bytes| {
            hasher.add(bytes);
            each(bytes)
        });
        let whole = match whole {
            Err(Error::Io { cause, .. }) if cause.raw_os_error() == Some(EIO) => {
                return Ok(Err("is unreadable: the disk fails".into()));
            }
            whole => whole?,
        };
        match whole && hasher.end() == piece.hash {
            true => Ok(Ok(())),
            false => Ok(Err("is damaged".into())),
        }
    }

    pub(crate) fn remove(&mut self, hash: ContentHash) -> Result<()> {
        let path = self.path_of(hash);
        self.disk.unlink(&path).tried("remove", &path)
    }

    /// Times of all backups, oldest first.
    pub fn times_ms(&self) -> Result<Vec<i64>> {
        let folder = self.folder.join(BACKUPS);
        if self.disk.metadata(&folder).is_err() {
            return Err(self.none("; name the folder that kymo backup wrote".into()));
        }
        let names = self.names(&folder, NameKind::File)?;
        let mut times: Vec<i64> = names.iter().filter_map(|name| time_of(name)).collect();
        times.sort_unstable();
        Ok(times)
    }

    pub(crate) fn none(&self, hint: String) -> Error {
        Error::None {
            path: self.folder.clone(),
            hint,
        }
    }

    /// Path of the manifest of this time.
    pub(crate) fn manifest_path(&self, time_ms: i64) -> PathBuf {
        self.folder.join(BACKUPS).join(name_of(time_ms))
    }

    /// The backup of this time.
    pub fn manifest(&self, time_ms: i64) -> Result<Manifest> {
        let path = self.manifest_path(time_ms);
        let damaged = |what: String| Error::Damaged {
            path: path.clone(),
            what,
        };
        let file = self.disk.open(&path, OpenMode::Read).tried("open", &path)?;
        let size = file.metadata().tried("read", &path)?.size_bytes;
        if size > MANIFEST_MAX {
            return Err(damaged("it is too long".into()));
        }
        let mut bytes = Vec::new();
        read_pieces((&*file, &path), 0, size, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        let manifest = Manifest::decode(&bytes).map_err(damaged)?;
        match manifest.time_ms == time_ms {
            true => Ok(manifest),
            false => Err(damaged("it is of another time than its name".into())),
        }
    }

    /// Puts a backup in place, once all its contents are on the disk. Returns the bytes of its manifest.
    pub(crate) fn publish(&mut self, manifest: &Manifest) -> Result<u64> {
        self.sync_names()?;
        let unfinished = self.folder.join(BACKUPS).join(UNFINISHED);
        let path = self.manifest_path(manifest.time_ms);
        let bytes = manifest.encode().tried("write", &path)?;
        let file = self.create(&unfinished)?;
        file.write_at(&bytes, 0).tried("write", &path)?;
        file.sync_data().tried("write", &path)?;
        self.disk.rename(&unfinished, &path).tried("name", &path)?;
        let backups = self.folder.join(BACKUPS);
        self.disk.sync_dir(&backups).tried("write", &backups)?;
        Ok(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
    }

    /// Puts the names of contents on the disk.
    fn sync_names(&mut self) -> Result<()> {
        for folder in &self.unsynced {
            self.disk.sync_dir(folder).tried("write", folder)?;
        }
        self.unsynced.clear();
        Ok(())
    }

    /// Removes a backup's manifest, for certain before any content goes.
    pub(crate) fn remove_manifests(&mut self, times_ms: &[i64]) -> Result<()> {
        for time_ms in times_ms {
            let path = self.manifest_path(*time_ms);
            self.disk.unlink(&path).tried("remove", &path)?;
        }
        let folder = self.folder.join(BACKUPS);
        self.disk.sync_dir(&folder).tried("write", &folder)
    }
}

/// Errno of a disk that cannot read a sector.
const EIO: i32 = 5;

/// Outcome of sending a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// The content is in its place.
    Done,
    /// The file has another content by now.
    Changed,
}

fn time_of(name: &str) -> Option<i64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let time = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%S%.fZ", digits).ok()?;
    let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    let ms = time.timestamp().as_millisecond();
    (name_of(ms) == name).then_some(ms)
}

/// Calls `each` with the bytes of a part of a file; false if the file ends before.
pub(crate) fn read_pieces(
    (file, path): (&dyn DiskFile, &Path),
    offset: u64,
    length: u64,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<bool> {
    let most = usize::try_from(length.min(PIECE)).unwrap_or(usize::MAX);
    let (mut buffer, mut done) = (vec![0; most], 0);
    while done < length {
        let wanted = usize::try_from((length - done).min(PIECE)).unwrap_or(usize::MAX);
        let Some(room) = buffer.get_mut(..wanted) else {
            return Ok(false);
        };
        let count = file.read_at(room, offset + done);
        let count = count.tried("read", path)?;
        each(room.get(..count).unwrap_or_default())?;
        done += u64::try_from(count).unwrap_or(u64::MAX);
        if count < wanted {
            return Ok(done == length);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_manifests_are_their_times() {
        for ms in [0, 1_795_824_000_123, 1_795_824_000_000] {
            assert_eq!(time_of(&name_of(ms)), Some(ms));
        }
        for name in [
            "unfinished",
            "20261128T000000Z.manifest",
            "20261128T000000.1234Z.manifest",
        ] {
            assert_eq!(time_of(name), None, "{name}");
        }
    }
}
