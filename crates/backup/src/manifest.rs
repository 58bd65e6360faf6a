//! The manifest of a backup: its time, its host, and its files, each with the contents that it consists of.

mod text;

pub(crate) use text::name_of;

use crate::hash::ContentHash;

/// Name of a backup's manifest and its suffix; the name is the backup's time.
pub(crate) const SUFFIX: &str = ".manifest";

/// A backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The moment of the backup, milliseconds since 1970.
    pub time_ms: i64,
    /// Name of the machine.
    pub host: String,
    /// The files, by their paths.
    pub files: Vec<BackedUpFile>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackedUpFile {
    /// Path below the data folder, without links, dots or an empty part.
    pub path: String,
    /// State of the file when it was read.
    pub version: Version,
    /// Contents of the file, one after the other.
    pub pieces: Vec<Piece>,
}

/// State of a file: one with the same version and length has the same content, except where it does not tell (all zeros).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Inode number.
    pub inode: u64,
    /// Last modification, nanoseconds since 1970.
    pub mtime_ns: i64,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Piece {
    /// Hash of its bytes.
    pub hash: ContentHash,
    /// Number of its bytes, at least 1.
    pub bytes: u64,
}

impl BackedUpFile {
    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }
}

impl Manifest {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(BackedUpFile::bytes).sum()
    }

    /// All contents; one that is in several places is there several times.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.files.iter().flat_map(|file| &file.pieces)
    }

    /// The file of this path. Files are sorted by their paths.
    pub fn file(&self, path: &str) -> Option<&BackedUpFile> {
        let at = self
            .files
            .binary_search_by(|file| file.path.as_str().cmp(path));
        self.files.get(at.ok()?)
    }
}
