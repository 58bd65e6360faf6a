//! The errors of a recording, in words for users.

use std::io;
use std::path::{Path, PathBuf};

use kymo_base::errno::strerror;

/// Error of recording or reading.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation of the file system failed.
    #[error("cannot {verb} {}: {}", path.display(), strerror(cause))]
    Io {
        /// The operation.
        verb: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
    /// Another recorder holds the lock of the folder.
    #[error("cannot record to {}: process {holder} is recording there", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Content of the lock file: the process number of the other recorder.
        holder: String,
    },
    /// The size limit is too small for a ring of blocks.
    #[error("cannot record within {cap_bytes} bytes: the least is {least_bytes}, eight blocks")]
    CapTooSmall {
        /// The configured limit.
        cap_bytes: u64,
        /// The smallest allowed limit.
        least_bytes: u64,
    },
    /// No space is left under the size limit.
    #[error("cannot reserve {bytes} bytes: the cap of {cap_bytes} is used up")]
    CapUsedUp {
        /// Bytes to reserve.
        bytes: u64,
        /// The size limit.
        cap_bytes: u64,
    },
    /// The content of a file is invalid.
    #[error("cannot read {}: {cause}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        cause: String,
    },
    /// The path holds no recording.
    #[error("cannot find a recording in {}", path.display())]
    NotFound {
        /// The path that was searched.
        path: PathBuf,
    },
    /// The folder holds recordings of more than one host.
    #[error("cannot choose a recording in {}: it holds {hosts}; name one, as DIR/HOST", path.display())]
    SeveralHosts {
        /// The folder.
        path: PathBuf,
        /// Names of the hosts, separated by commas.
        hosts: String,
    },
    /// The bytes given to the writer are not whole records.
    #[error("cannot append a batch: byte {offset} starts no whole record")]
    BadBatch {
        /// Offset in the batch.
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

    /// Returns true if space is missing: a full disk,
    /// a used-up quota, or the size limit itself.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Io { cause, .. } => kymo_sys::disk::is_full(cause),
            Error::CapUsedUp { .. } => true,
            _ => false,
        }
    }
}

/// Result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds the operation and the path to an error of the disk.
pub(crate) trait Tried<T> {
    fn tried(self, verb: &'static str, path: &Path) -> Result<T>;
}

impl<T> Tried<T> for io::Result<T> {
    fn tried(self, verb: &'static str, path: &Path) -> Result<T> {
        self.map_err(|cause| Error::io(verb, path, cause))
    }
}
