//! What `import` and `export` share: a store without a daemon, and words for what is wrong with a file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use kymo_base::name::DisplayName;
use kymo_store::{FileError, Settings, Store};
use kymo_sys::clock::RealClock;
use kymo_sys::disk::RealDisk;

use crate::refuse;

/// Longer than any run: nothing is written because it is time.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Why a command ends before it began; the text is a line, or the help.
pub enum Stop {
    /// Help was asked for.
    Say(String),
    /// It cannot be done.
    Refuse(String),
}

impl From<String> for Stop {
    fn from(line: String) -> Stop {
        Stop::Refuse(line)
    }
}

/// Reads a command's words.
pub fn read<T: Parser>(name: &str, words: &[&[u8]]) -> Result<T, Stop> {
    use std::os::unix::ffi::OsStrExt as _;
    let words = words
        .iter()
        .map(|word| std::ffi::OsStr::from_bytes(word).to_os_string());
    let words = std::iter::once(name.into()).chain(words);
    T::try_parse_from(words).map_err(|error| match error.use_stderr() {
        false => Stop::Say(error.to_string()),
        true => Stop::Refuse(refuse::line(&error)),
    })
}

/// A folder's real path.
pub fn real(folder: &Path) -> Result<PathBuf, String> {
    let cannot = |error| format!("cannot open {}: {error}", folder.display());
    std::fs::canonicalize(folder).map_err(cannot)
}

/// Opens the store in `folder` for files below `base`, and takes its lock.
pub fn open(folder: PathBuf, base: PathBuf) -> Result<Store, String> {
    let settings = Settings {
        files: Some(NEVER),
        sweep_every: NEVER,
        lock_wait: Duration::ZERO,
        ..Settings::new(folder, base)
    };
    let opened = Store::open(settings, Arc::new(RealDisk), Arc::new(RealClock));
    let (store, replayed) = opened.map_err(|error| error.to_string())?;
    for notice in &replayed.notices {
        eprintln!("kymo: {}", DisplayName(notice.as_bytes()));
    }
    Ok(store)
}

/// What is wrong with a file.
pub fn cause(error: &FileError) -> String {
    match error {
        FileError::Name(number) | FileError::Stat(number) => {
            io::Error::from_raw_os_error(*number).to_string()
        }
        FileError::Outside => "it lies outside of the base, or is the store's own".into(),
        FileError::NoSuchFile => "no such file".into(),
        FileError::NotRegular => "it is no regular file".into(),
        FileError::Locked => "somebody else has its lock".into(),
        FileError::Rrd(text) => text.clone(),
        FileError::BadStamp => "its last update is before 1970".into(),
        FileError::NoFolder(_) => "its folder is missing".into(),
        FileError::Large(cells) => format!("it has {cells} cells, too many"),
        FileError::Exists => "there is a file that is not the store's".into(),
        FileError::Access(error)
        | FileError::Journal(error)
        | FileError::MakeFolder(_, error)
        | FileError::Io(error) => error.to_string(),
    }
}

/// A line about one file.
pub fn complain(verb: &str, path: &[u8], cause: &str) {
    let cause = DisplayName(cause.as_bytes());
    eprintln!("cannot {verb} {}: {cause}", DisplayName(path));
}
