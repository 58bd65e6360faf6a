//! What can go wrong with a recording, in the words shown to people.

use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be recorded or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system said no.
    #[error("cannot {verb} {}: {cause}", path.display())]
    Io {
        /// What was tried.
        verb: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the kernel answered.
        cause: io::Error,
    },
    /// Another recorder has the folder.
    #[error("cannot record to {}: process {holder} is recording there", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// What the other recorder wrote there, its process number.
        holder: String,
    },
    /// The byte cap leaves no room for a ring.
    #[error("cannot record within {cap_bytes} bytes: the least is {least_bytes}, eight blocks")]
    CapTooSmall {
        /// What was asked for.
        cap_bytes: u64,
        /// What is needed.
        least_bytes: u64,
    },
    /// Room can only be made by breaking the cap.
    #[error("cannot reserve {bytes} bytes: the cap of {cap_bytes} is used up")]
    CapUsedUp {
        /// What was needed.
        bytes: u64,
        /// The cap.
        cap_bytes: u64,
    },
    /// A file is not what it should be.
    #[error("cannot read {}: {cause}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// There is nothing to read.
    #[error("cannot find a recording in {}", path.display())]
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A folder holds recordings of more than one host.
    #[error("cannot choose a recording in {}: it holds {hosts}; name one, as DIR/HOST", path.display())]
    SeveralHosts {
        /// The folder.
        path: PathBuf,
        /// Their names, separated by commas.
        hosts: String,
    },
    /// The bytes handed to the writer are not whole records.
    #[error("cannot append a batch: byte {offset} starts no whole record")]
    BadBatch {
        /// Where in the batch.
        offset: usize,
    },
}

impl Error {
    pub(crate) fn io(verb: &'static str, path: &Path, cause: io::Error) -> Self {
        Error::Io {
            verb,
            path: path.into(),
            cause,
        }
    }

    pub(crate) fn damaged(path: &Path, cause: impl Into<String>) -> Self {
        Error::Damaged {
            path: path.into(),
            cause: cause.into(),
        }
    }

    /// Whether room is what is missing: a full disk, a used-up quota, or the cap itself.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Io { cause, .. } => kymo_sys::disk::is_full(cause),
            Error::CapUsedUp { .. } => true,
            _ => false,
        }
    }
}

/// What the functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds what was tried, and on what, to an answer of the disk.
pub(crate) trait Tried<T> {
    fn tried(self, verb: &'static str, path: &Path) -> Result<T>;
}

impl<T> Tried<T> for io::Result<T> {
    fn tried(self, verb: &'static str, path: &Path) -> Result<T> {
        self.map_err(|cause| Error::io(verb, path, cause))
    }
}
