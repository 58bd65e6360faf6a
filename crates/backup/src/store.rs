//! The places where backups can be: a store of objects, each with a name such as `objects/ab/ab...` and bytes that are there
//! as a whole or not at all. `folder` is a folder of a file system, `s3` a bucket of a server that speaks S3.

use std::path::{Path, PathBuf};

use kymo_sys::disk::DiskFile;

use crate::error::{Result, Tried};
use crate::hash::Hasher;
use crate::manifest::Piece;

pub(crate) mod folder;
pub(crate) mod s3;

/// Folders of contents and of manifests.
pub(crate) const OBJECTS: &str = "objects";
pub(crate) const BACKUPS: &str = "backups";
/// Bytes that are read at once.
const BUFFER: u64 = 1 << 20;

/// Objects by their names.
pub(crate) trait ObjectStore {
    /// Makes room for a new backup, and removes what a backup that was killed has left.
    fn begin(&mut self) -> Result<()>;

    /// Names and bytes of all objects whose names begin with `folder/`; `None`: there is no such folder.
    fn list(&self, folder: &str) -> Result<Option<Vec<(String, u64)>>>;

    /// Makes an object of a content, or replaces it.
    fn put(&mut self, name: &str, content: &Content<'_>) -> Result<Put>;

    /// Makes an object of a whole file that is never written again by a hard link, where that can be done. `inode` is the
    /// file's.
    fn link(&mut self, name: &str, bytes: u64, file: &Path, inode: u64) -> Result<bool>;

    /// Number of bytes of an object; `None`: there is none.
    fn size(&self, name: &str) -> Result<Option<u64>>;

    /// Calls `each` with the bytes of an object that has this number of bytes, part by part. The inner error names the
    /// damage.
    fn get(
        &self,
        name: &str,
        bytes: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<std::result::Result<(), String>>;

    /// Removes an object.
    fn remove(&mut self, name: &str) -> Result<()>;

    /// Puts all names that were made and removed on the disk.
    fn sync(&mut self) -> Result<()>;

    /// Most bytes of an object that is made of a part of a file.
    fn piece_max(&self) -> u64;

    /// The object, or the store if `name` is empty, as messages name it.
    fn place(&self, name: &str) -> PathBuf;
}

/// Outcome of making an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// The object is there.
    Done,
    /// The file has another content by now.
    Changed,
}

/// A part of a file.
pub(crate) struct Content<'a> {
    /// The file.
    pub(crate) file: &'a dyn DiskFile,
    /// Path of the file, for messages.
    pub(crate) path: &'a Path,
    /// The first byte.
    pub(crate) offset: u64,
    /// Hash and number of the bytes.
    pub(crate) piece: Piece,
}

impl Content<'_> {
    /// Calls `each` with the bytes; true if they are those of the hash.
    pub(crate) fn read(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        let mut hasher = Hasher::default();
        let from = (self.file, self.path);
        let is_whole = read_parts(from, self.offset, self.piece.bytes, &mut |bytes| {
            hasher.add(bytes);
            each(bytes)
        });
        Ok(is_whole? && hasher.end() == self.piece.hash)
    }
}

/// Calls `each` with the bytes of a part of a file; false if the file ends before.
pub(crate) fn read_parts(
    (file, path): (&dyn DiskFile, &Path),
    offset: u64,
    length: u64,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<bool> {
    let most = usize::try_from(length.min(BUFFER)).unwrap_or(usize::MAX);
    let (mut buffer, mut done) = (vec![0; most], 0);
    while done < length {
        let wanted = usize::try_from((length - done).min(BUFFER)).unwrap_or(usize::MAX);
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

/// The damage of an object of another length.
fn other_size(size: u64, expected: u64) -> String {
    format!("has {size} bytes instead of {expected}")
}
