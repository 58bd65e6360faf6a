//! A store of backups: manifests in `backups/`, contents in `objects/`, by their hashes. A manifest is written when all its
//! contents are there for certain, so that a backup is there whole or not at all.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_sys::disk::Disk;

use crate::error::{Error, Result, Tried};
use crate::hash::{ContentHash, Hasher};
use crate::in_memory::InMemory;
use crate::manifest::{Manifest, Piece, SUFFIX, name_of};
use crate::store::folder::FolderStore;
use crate::store::s3::{S3Place, S3Store};
use crate::store::{BACKUPS, Content, OBJECTS, ObjectStore, Put};

/// Most bytes of a manifest's file.
const MANIFEST_MAX: u64 = 512 << 20;

/// A store of backups.
pub struct Target {
    store: Box<dyn ObjectStore>,
}

impl Target {
    /// Opens a folder for a new backup; makes it if it is missing. No other process uses it meanwhile.
    pub fn begin(disk: Arc<dyn Disk>, folder: &Path) -> Result<Target> {
        Target::begun(Box::new(FolderStore::make(disk, folder)?))
    }

    /// Opens a bucket for a new backup. The caller takes care that it is alone.
    pub fn begin_s3(place: &S3Place) -> Result<Target> {
        Target::begun(Box::new(S3Store::open(place)?))
    }

    fn begun(mut store: Box<dyn ObjectStore>) -> Result<Target> {
        store.begin()?;
        Ok(Target { store })
    }

    /// Opens a folder with backups, to read them.
    pub fn open(disk: Arc<dyn Disk>, folder: &Path) -> Result<Target> {
        let store = Box::new(FolderStore::open(disk, folder)?);
        Ok(Target { store })
    }

    /// Opens a bucket with backups, to read them.
    pub fn open_s3(place: &S3Place) -> Result<Target> {
        let store = Box::new(S3Store::open(place)?);
        Ok(Target { store })
    }

    /// A content, as messages name it.
    pub(crate) fn path_of(&self, hash: ContentHash) -> PathBuf {
        self.store.place(&object(hash))
    }

    /// Most bytes of a piece.
    pub(crate) fn piece_max(&self) -> u64 {
        self.store.piece_max()
    }

    /// All contents that are there, with their bytes.
    pub(crate) fn contents(&self) -> Result<HashMap<ContentHash, u64>> {
        let all = self.store.list(OBJECTS)?.unwrap_or_default().into_iter();
        let contents = all.filter_map(|(name, bytes)| {
            let hash = ContentHash::parse(name.rsplit('/').next()?)?;
            (object(hash) == name).then_some((hash, bytes))
        });
        Ok(contents.collect())
    }

    /// Copies a content from a part of a file. It must have this hash.
    pub(crate) fn put(&mut self, content: &Content<'_>) -> Result<Put> {
        self.store.put(&object(content.piece.hash), content)
    }

    /// Takes over a whole file that is never written again by a hard link, where that can be done. `inode` is the file's.
    pub(crate) fn link(&mut self, piece: Piece, file: &Path, inode: u64) -> Result<bool> {
        self.store
            .link(&object(piece.hash), piece.bytes, file, inode)
    }

    /// Calls `each` with the bytes of a content, part by part. The inner error names the damage.
    pub(crate) fn get(
        &self,
        piece: Piece,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<std::result::Result<(), String>> {
        let mut hasher = Hasher::default();
        let got = self
            .store
            .get(&object(piece.hash), piece.bytes, &mut |bytes| {
                hasher.add(bytes);
                each(bytes)
            });
        Ok(got?.and_then(|()| match hasher.end() == piece.hash {
            true => Ok(()),
            false => Err("is damaged".into()),
        }))
    }

    pub(crate) fn remove(&mut self, hash: ContentHash) -> Result<()> {
        self.store.remove(&object(hash))
    }

    /// Times of all backups, oldest first.
    pub fn times_ms(&self) -> Result<Vec<i64>> {
        let Some(found) = self.store.list(BACKUPS)? else {
            return Err(self.none("; name the folder that kymo backup wrote".into()));
        };
        let prefix = format!("{BACKUPS}/");
        let names = found
            .iter()
            .filter_map(|(name, _)| name.strip_prefix(&prefix));
        let mut times: Vec<i64> = names.filter_map(time_of).collect();
        times.sort_unstable();
        Ok(times)
    }

    pub(crate) fn none(&self, hint: String) -> Error {
        Error::None {
            path: self.store.place(""),
            hint,
        }
    }

    /// The backup of this time.
    pub fn manifest(&self, time_ms: i64) -> Result<Manifest> {
        let name = manifest_name(time_ms);
        let damaged = |what: &str| Error::Damaged {
            path: self.store.place(&name),
            what: what.into(),
        };
        let size = self.store.size(&name)?;
        let size = size.ok_or_else(|| damaged("it is missing"))?;
        if size > MANIFEST_MAX {
            return Err(damaged("it is too long"));
        }
        let mut bytes = Vec::new();
        let got = self.store.get(&name, size, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        got.map_err(|what| damaged(&format!("it {what}")))?;
        let manifest = Manifest::decode(&bytes).map_err(|what| damaged(&what))?;
        match manifest.time_ms == time_ms {
            true => Ok(manifest),
            false => Err(damaged("it is of another time than its name")),
        }
    }

    /// Puts a backup in place, once all its contents are there for certain. Returns the bytes of its manifest.
    pub(crate) fn publish(&mut self, manifest: &Manifest) -> Result<u64> {
        self.store.sync()?;
        let name = manifest_name(manifest.time_ms);
        let path = self.store.place(&name);
        let bytes = manifest.encode().tried("write", &path)?;
        let piece = Piece {
            hash: ContentHash::of(&bytes),
            bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        };
        self.store.put(
            &name,
            &Content {
                file: &InMemory::of(bytes),
                path: &path,
                offset: 0,
                piece,
            },
        )?;
        self.store.sync()?;
        Ok(piece.bytes)
    }

    /// Removes manifests, for certain before any content goes.
    pub(crate) fn remove_manifests(&mut self, times_ms: &[i64]) -> Result<()> {
        for time_ms in times_ms {
            self.store.remove(&manifest_name(*time_ms))?;
        }
        self.store.sync()
    }
}

/// Name of a content.
fn object(hash: ContentHash) -> String {
    let name = hash.to_string();
    let folder = name.get(..2).unwrap_or_default();
    format!("{OBJECTS}/{folder}/{name}")
}

/// Name of the manifest of this time.
fn manifest_name(time_ms: i64) -> String {
    format!("{BACKUPS}/{}", name_of(time_ms))
}

fn time_of(name: &str) -> Option<i64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let time = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%S%.fZ", digits).ok()?;
    let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    let ms = time.timestamp().as_millisecond();
    (name_of(ms) == name).then_some(ms)
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
