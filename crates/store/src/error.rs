//! Typed errors, from which the daemon makes rrdcached's replies.

use kymo_base::errno::strerror;
use kymo_base::name::DisplayName;
use kymo_rrd::Kind;
use std::io;
use std::path::{Path, PathBuf};

/// Error of opening or using the store.
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
    /// Another daemon has locked the folder.
    #[error("cannot open the store in {}: process {holder} has it", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Content of the lock file: the process number of the other daemon.
        holder: String,
    },
    /// Another daemon owns the folder of .rrd files.
    #[error("cannot own {}: the daemon at {owner} has it", folder.display(), owner = shown(owner))]
    Owned {
        /// `-b`.
        folder: PathBuf,
        /// Content of the owner file: the other daemon's address and process number.
        owner: String,
    },
    /// There is no store at its place, but one nearby.
    #[error("cannot begin a store in {}: there is one in {}; {}", place.display(), found.display(), advice(place, found))]
    Beside {
        /// The place of the store.
        place: PathBuf,
        /// The place where a store was found.
        found: PathBuf,
    },
    /// A folder has more than one store.
    #[error("cannot tell which store in {} is meant: there is one in {} and one in {}; name one of them, or move one away", folder.display(), one.display(), another.display())]
    Several {
        /// The folder.
        folder: PathBuf,
        /// The first store.
        one: PathBuf,
        /// The second store.
        another: PathBuf,
    },
    /// A file of the store has an unknown version.
    #[error("cannot open the store in {}: its version is {version}, this build knows {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Version of the file.
        version: u32,
        /// The version that this build supports.
        known: u32,
    },
}

/// `ADDRESS (process NUMBER)`.
fn shown(owner: &str) -> String {
    match owner.rsplit_once(' ') {
        Some((address, pid)) => format!("{address} (process {pid})"),
        None => "an unknown address".into(),
    }
}

/// Advice for a store that is not at its place.
fn advice(place: &Path, found: &Path) -> String {
    let above = found.parent().filter(|_| found.ends_with("kymo"));
    let start = above.map(|above| format!("start with -j {}, or ", above.display()));
    let start = start.unwrap_or_default();
    format!("{start}move its files to {}", place.display())
}

impl Error {
    /// Number of the process that holds the store or the base, if the error is about that.
    pub fn holder(&self) -> Option<u32> {
        let text = match self {
            Error::Locked { holder, .. } => holder,
            Error::Owned { owner, .. } => owner.split(' ').next_back()?,
            Error::Io { .. }
            | Error::Version { .. }
            | Error::Beside { .. }
            | Error::Several { .. } => return None,
        };
        // A process that has not written its number yet is reported as 0.
        Some(text.trim().parse().unwrap_or(0))
    }

    /// Error for a file with another version than `known`.
    pub(crate) fn version(path: PathBuf, version: u32, known: u32) -> Error {
        Error::Version {
            path,
            version,
            known,
        }
    }
}

/// An error with the text of rrd_open, which begins with the file's name if it is about the file itself.
pub(crate) fn rrd_error(shown: &[u8], text: &str) -> FileError {
    let shown = DisplayName(shown).to_string();
    FileError::Rrd(match text.starts_with("is ") || text.starts_with("has ") {
        true => format!("'{shown}' {text}"),
        false => text.to_string(),
    })
}

/// Adds the operation and the path to an error of the disk.
pub(crate) trait Tried<T> {
    fn tried(self, verb: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> Tried<T> for io::Result<T> {
    fn tried(self, verb: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|cause| Error::Io {
            verb,
            path: path.into(),
            cause,
        })
    }
}

/// Reason for the refusal of an UPDATE, in whole or from some value on.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The store does not know the file yet: call `Store::touch` without a write batch, and try again.
    Untouched,
    /// `Cannot find timestamp in '%s'!`
    NoStamp {
        /// The value as it was sent.
        value: Vec<u8>,
    },
    /// `illegal attempt to update using time %lf when last update time is %lf (minimum one second step)`
    Past {
        /// The stamp of the value.
        stamp: f64,
        /// The newest stamp of the series.
        last: f64,
    },
    /// `No values updated.`
    NoValues,
    /// Another writer holds the series.
    Held,
}

/// Error of a FETCH.
#[derive(Debug)]
pub enum FetchError {
    /// The file is unreadable.
    File(FileError),
    /// The file has no such rows; rrdtool's text.
    Rrd(String),
    /// There are more rows than the caller wants at once.
    Large,
}

impl From<FileError> for FetchError {
    fn from(error: FileError) -> FetchError {
        FetchError::File(error)
    }
}

impl From<kymo_rrd::Error> for FetchError {
    fn from(error: kymo_rrd::Error) -> FetchError {
        match error.kind {
            Kind::Large => FetchError::Large,
            Kind::Past | Kind::NotSmoothed | Kind::Other => FetchError::Rrd(error.text),
        }
    }
}

/// Error of touching, reading or writing a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The name has a NUL, is empty, or is too long for the kernel: `stat failed with error %i.`
    #[error("its name cannot be a file's")]
    Name(i32),
    /// With `-B`, the name or a link in it leads outside of the base: `%s: Permission denied`.
    #[error("it lies outside of the base folder, or is the store's own")]
    Outside,
    /// `No such file: %s`
    #[error("no such file")]
    NoSuchFile,
    /// `stat failed with error %i.`
    #[error("{}", strerror(&io::Error::from_raw_os_error(*.0)))]
    Stat(i32),
    /// `Not a regular file: %s`
    #[error("it is no regular file")]
    NotRegular,
    /// `Cannot read/write %s: %s`
    #[error("{}", strerror(.0))]
    Access(io::Error),
    /// `RRD Error: could not lock RRD`: another process held
    /// the lock for longer than the wait. No data is lost.
    #[error("another program has a lock on it")]
    Locked,
    /// `RRD Error: %s`, with rrdtool's text including the file's name.
    #[error("{0}")]
    Rrd(String),
    /// `Error: rrdcached: Invalid timestamp returned`
    #[error("its last update is before 1970")]
    BadStamp,
    /// The journal cannot be written: `cannot write journal: %s`. The request had no effect.
    #[error("cannot write the journal: {}", strerror(.0))]
    Journal(io::Error),
    /// CREATE: the folder is missing and must not be created.
    #[error("its folder {} is missing", DisplayName(.0))]
    NoFolder(Vec<u8>),
    /// CREATE: the folder could not be created: `Cannot create %s: %s`.
    #[error("cannot make folder {}: {}", DisplayName(.0), strerror(.1))]
    MakeFolder(Vec<u8>, io::Error),
    /// CREATE: `creating '%s': File exists`.
    #[error("there is a file that is not the store's")]
    Exists,
    /// The file has this number of cells, more than the caller wants in memory.
    #[error("it has {0} cells, too many")]
    Large(u64),
    /// Any other error of the kernel.
    #[error("{}", strerror(.0))]
    Io(io::Error),
}
