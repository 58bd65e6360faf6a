//! Shared parts of `import` and `export`: opening a store without a daemon, and messages about files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use kymo_base::name::DisplayName;
use kymo_ingest::keeper;
use kymo_store::{Files, Settings, Store};
use kymo_sys::clock::RealClock;
use kymo_sys::disk::RealDisk;
use kymo_sys::talk;

use crate::options::refuse;

/// A time longer than any run: values are never written because of their age.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Longest wait for the end of a daemon that has the store. Most such daemons do not end, so the wait is short.
const ENDS_WITHIN: Duration = Duration::from_secs(3);

/// Reason for which a command ends before it begins, with a line or the help as text.
pub(super) enum Stop {
    /// Help was asked for.
    Say(String),
    /// The command cannot run.
    Refuse(String),
}

impl From<String> for Stop {
    fn from(line: String) -> Stop {
        Stop::Refuse(line)
    }
}

/// Reads the words of a command.
pub(super) fn read<T: Parser>(name: &str, words: &[&[u8]]) -> Result<T, Stop> {
    use std::os::unix::ffi::OsStrExt as _;
    let words = words
        .iter()
        .map(|word| std::ffi::OsStr::from_bytes(word).to_os_string());
    let words = std::iter::once(name.into()).chain(words);
    T::try_parse_from(words).map_err(|error| match error.use_stderr() {
        false => Stop::Say(error.to_string()),
        true => Stop::Refuse(refuse::line(&error, &format!("{name} --help"))),
    })
}

/// Real path of a folder.
pub(super) fn real(folder: &Path) -> Result<PathBuf, String> {
    let cannot = |error| format!("cannot open {}: {error}", folder.display());
    std::fs::canonicalize(folder).map_err(cannot)
}

/// Opens the store in `folder` for files below `base`, and takes its lock.
pub(super) fn open(folder: PathBuf, base: PathBuf) -> Result<Store, String> {
    let settings = Settings {
        files: Files::OnDemand,
        sweep_every: NEVER,
        lock_wait: Duration::ZERO,
        ..Settings::new(folder, base)
    };
    let claim = keeper::claim_within(ENDS_WITHIN, &settings, &mut |line| {
        talk::say(format_args!("kymo: {}", DisplayName(line.as_bytes())));
    });
    let claim = claim.map_err(|error| error.to_string())?;
    let opened = Store::open_claimed(settings, claim, Arc::new(RealDisk), Arc::new(RealClock));
    let (store, replayed) = opened.map_err(|error| error.to_string())?;
    for notice in &replayed.notices {
        talk::say(format_args!("kymo: {}", DisplayName(notice.as_bytes())));
    }
    Ok(store)
}

/// Prints a line about a file.
pub(super) fn complain(verb: &str, path: &[u8], cause: &str) {
    let cause = DisplayName(cause.as_bytes());
    talk::say(format_args!("cannot {verb} {}: {cause}", DisplayName(path)));
}
