//! What can go wrong, typed: the daemon turns it into rrdcached's replies.

use kymo_base::name::DisplayName;
use kymo_rrd::Kind;
use std::io;
use std::path::{Path, PathBuf};

/// Why the store could not be opened or go on.
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
    /// Another daemon has the folder.
    #[error("cannot open the store in {}: process {holder} has it", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// What the other one wrote there, its process number.
        holder: String,
    },
    /// Another daemon has the folder of .rrd files.
    #[error("cannot own {}: the daemon at {owner} has it", folder.display(), owner = shown(owner))]
    Owned {
        /// `-b`.
        folder: PathBuf,
        /// What the other one wrote there: its address and its process number.
        owner: String,
    },
    /// There is no store where one is to be, but one beside that.
    #[error("cannot begin a store in {}: there is one in {}; {}", place.display(), found.display(), advice(place, found))]
    Beside {
        /// Where it is to be.
        place: PathBuf,
        /// Where one is.
        found: PathBuf,
    },
    /// A folder that is named has more than one.
    #[error("cannot tell which store in {} is meant: there is one in {} and one in {}; name one of them, or move one away", folder.display(), one.display(), another.display())]
    Several {
        /// The folder.
        folder: PathBuf,
        /// Where one is.
        one: PathBuf,
        /// And another.
        another: PathBuf,
    },
    /// A file of the folder is of another version.
    #[error("cannot open the store in {}: its version is {version}, this build knows {known}", path.display())]
    Version {
        /// The journal file.
        path: PathBuf,
        /// What it says.
        version: u32,
        /// What is known of such files.
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

/// What to do about a store that is not where it is looked for.
fn advice(place: &Path, found: &Path) -> String {
    let above = found.parent().filter(|_| found.ends_with("kymo"));
    let start = above.map(|above| format!("start with -j {}, or ", above.display()));
    let start = start.unwrap_or_default();
    format!("{start}move its files to {}", place.display())
}

impl Error {
    /// Number of the process that has what was to be opened, if somebody has.
    pub fn holder(&self) -> Option<u32> {
        let text = match self {
            Error::Locked { holder, .. } => holder,
            Error::Owned { owner, .. } => owner.split(' ').next_back()?,
            Error::Io { .. }
            | Error::Version { .. }
            | Error::Beside { .. }
            | Error::Several { .. } => return None,
        };
        // One that has not said who it is yet has no process of that number.
        Some(text.trim().parse().unwrap_or(0))
    }

    /// A file of another version than the `known` one.
    pub(crate) fn version(path: PathBuf, version: u32, known: u32) -> Error {
        Error::Version {
            path,
            version,
            known,
        }
    }
}

/// rrd_open's texts: those about the file itself begin with its name.
pub(crate) fn rrd_error(shown: &[u8], text: &str) -> FileError {
    let shown = DisplayName(shown).to_string();
    FileError::Rrd(match text.starts_with("is ") || text.starts_with("has ") {
        true => format!("'{shown}' {text}"),
        false => text.to_string(),
    })
}

/// Adds what was tried, and on what, to an answer of the disk.
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

/// Why an UPDATE was refused, wholly or from some value on.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The store does not know the file yet: call `Store::touch` without a write batch, and ask again.
    Untouched,
    /// `Cannot find timestamp in '%s'!`
    NoStamp {
        /// The value, as it was sent.
        value: Vec<u8>,
    },
    /// `illegal attempt to update using time %lf when last update time is %lf (minimum one second step)`
    Past {
        /// The value's stamp.
        stamp: f64,
        /// The newest stamp so far.
        last: f64,
    },
    /// `No values updated.`
    NoValues,
    /// Another one sends values of this series.
    Held,
}

/// Why there are no rows.
#[derive(Debug)]
pub enum FetchError {
    /// The file cannot be read.
    File(FileError),
    /// It has no such rows: rrdtool's text.
    Rrd(String),
    /// They are more than were wanted at once.
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

/// Why a file cannot be touched, read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The name has a NUL, is empty or longer than the kernel takes: `stat failed with error %i.`
    #[error("its name cannot be a file's")]
    Name(i32),
    /// `-B`, and the name or a link in it leads outside: `%s: Permission denied`.
    #[error("it lies outside of the base folder, or is the store's own")]
    Outside,
    /// `No such file: %s`
    #[error("no such file")]
    NoSuchFile,
    /// `stat failed with error %i.`
    #[error("{}", io::Error::from_raw_os_error(*.0))]
    Stat(i32),
    /// `Not a regular file: %s`
    #[error("it is no regular file")]
    NotRegular,
    /// `Cannot read/write %s: %s`
    #[error("{0}")]
    Access(io::Error),
    /// `RRD Error: could not lock RRD`: somebody else's lock outlasted the wait. Nothing is lost.
    #[error("another program has a lock on it")]
    Locked,
    /// `RRD Error: %s`, with rrdtool's text, file name and all.
    #[error("{0}")]
    Rrd(String),
    /// `Error: rrdcached: Invalid timestamp returned`
    #[error("its last update is before 1970")]
    BadStamp,
    /// The journal takes nothing: `cannot write journal: %s`. Nothing was done.
    #[error("cannot write the journal: {0}")]
    Journal(io::Error),
    /// CREATE: the folder is missing and may not be made.
    #[error("its folder {} is missing", DisplayName(.0))]
    NoFolder(Vec<u8>),
    /// CREATE: the folder could not be made: `Cannot create %s: %s`.
    #[error("cannot make folder {}: {}", DisplayName(.0), .1)]
    MakeFolder(Vec<u8>, io::Error),
    /// CREATE: `creating '%s': File exists`.
    #[error("there is a file that is not the store's")]
    Exists,
    /// It has so many cells, more than were wanted in memory.
    #[error("it has {0} cells, too many")]
    Large(u64),
    /// Anything else the kernel says.
    #[error("{0}")]
    Io(io::Error),
}
