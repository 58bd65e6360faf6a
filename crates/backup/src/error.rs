//! Why a backup cannot be made or read.

use std::io;
use std::path::{Path, PathBuf};

use kymo_base::errno::strerror;

/// Result of an operation on backups.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Error of an operation on backups.
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
    /// Another process uses the folder.
    #[error("cannot use {}: another backup, restore or check of it runs; wait until it has ended", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// The folder has no backups.
    #[error("cannot find a backup in {}{}", path.display(), hint)]
    None {
        /// The folder.
        path: PathBuf,
        /// Help for the reader.
        hint: String,
    },
    /// A file that a backup consists of is damaged.
    #[error("cannot read {}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        what: String,
    },
    /// A content of a backed-up file is missing or damaged.
    #[error(
        "cannot restore {file}: {} {what}; kymo restore --at TIME takes an earlier backup",
        object.display()
    )]
    Content {
        /// The file in the backup.
        file: String,
        /// The file that has the content.
        object: PathBuf,
        /// The damage.
        what: String,
    },
    /// The folder to restore into has files.
    #[error("cannot restore into {}: it has files; name a new folder, or an empty one", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// A file changed while it was read.
    #[error("cannot read {}: it changed meanwhile", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// Adds the operation and the path to an error of the file system.
pub(crate) trait Tried<T> {
    fn tried(self, verb: &'static str, path: &Path) -> Result<T>;
}

impl<T> Tried<T> for io::Result<T> {
    fn tried(self, verb: &'static str, path: &Path) -> Result<T> {
        self.map_err(|cause| Error::Io {
            verb,
            path: path.into(),
            cause,
        })
    }
}
