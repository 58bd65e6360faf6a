//! The store's face for worker threads: what opens files, waits for locks and disks.

use crate::error::{Error, FileError};
use crate::read::Opened;
use crate::settings::Settings;
use crate::turn::{Position, Turn};
use kymo_rrd::Rrd;
use kymo_sys::clock::Clock;
use kymo_sys::disk::Disk;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The journal, what it holds, and the files. Clones are the same store.
#[derive(Clone)]
pub struct Store {}

/// What was found at start, for the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Values taken back into memory.
    pub values: u64,
    /// Files they belong to.
    pub files: u64,
    /// Files that were written once more because a write may have been cut short.
    pub redone: u64,
    /// Lines for the log: damage, refused journals of a stock daemon and why.
    pub notices: Vec<String>,
}

/// Numbers for STATS; the daemon adds those of the requests it saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Files that are due.
    pub queue_length: u64,
    /// Writes of files.
    pub updates_written: u64,
    /// Values in them.
    pub data_sets_written: u64,
    /// Files known.
    pub files: u64,
    /// Bytes written to the journal.
    pub journal_bytes: u64,
    /// Journal files begun after the first.
    pub journal_rotate: u64,
    /// Values that were acknowledged but that the file's definition does not take; said in the log.
    pub values_refused: u64,
    /// Writes put off because somebody else held the file's lock.
    pub locks_met: u64,
    /// Journal files given up after a failed write or sync.
    pub journals_given_up: u64,
}

/// Whether a file must be brought up to date before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// Pending values are written first (FETCH, DUMP).
    Flushed,
    /// The file as it is (INFO, FIRST, LAST).
    AsIs,
}

/// What FLUSH found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// `Successfully flushed %s.`: the file is current (or suspended).
    Done,
    /// `Nothing to flush: %s.`: it exists, and nothing is known of it.
    Nothing,
}

/// The threads of a started store; ends them when asked to.
pub struct Threads {}

impl Store {
    /// Opens the store: takes its lock, replays journals, redoes what a crash may have torn.
    pub fn open(
        _settings: Settings,
        _disk: Arc<dyn Disk>,
        _clock: Arc<dyn Clock>,
    ) -> Result<(Store, Replayed), Error> {
        Ok((Store {}, Replayed::default()))
    }

    /// Starts what runs beside the requests: one thread syncs the journal, `writers` write due files.
    /// `log` hears what an administrator should know.
    pub fn start(&self, _writers: usize, _log: Arc<dyn Fn(&str) + Send + Sync>) -> Threads {
        Threads {}
    }

    /// Takes the lock for a turn.
    pub fn turn(&self) -> Turn<'_> {
        Turn(std::marker::PhantomData)
    }

    /// A name as replies show it: base + `/` + name, or the name if it is absolute.
    pub fn spelled(&self, name: &[u8]) -> Vec<u8> {
        name.to_vec()
    }

    /// `-B`'s look at the text of a name, as rrdcached does it; links are checked when the file is opened.
    pub fn allowed(&self, _name: &[u8]) -> bool {
        true
    }

    /// Makes a file known: stat, access, header. After this a turn's `update` takes its values.
    pub fn touch(&self, _name: &[u8]) -> Result<(), FileError> {
        Err(FileError::NoSuchFile)
    }

    /// FLUSH: the file on disk is current when this returns.
    pub fn flush(&self, _name: &[u8]) -> Result<Flushed, FileError> {
        Err(FileError::NoSuchFile)
    }

    /// Opens a file for FETCH, INFO, FIRST, LAST.
    pub fn read(&self, _name: &[u8], _fresh: Fresh) -> Result<Opened, FileError> {
        Err(FileError::NoSuchFile)
    }

    /// The whole file, flushed, for DUMP and as a source or template of CREATE.
    pub fn load(&self, _name: &[u8]) -> Result<Rrd, FileError> {
        Err(FileError::NoSuchFile)
    }

    /// CREATE's first step: the folder is there, or may be made (`-R`).
    pub fn make_folder(&self, _name: &[u8], _may: bool) -> Result<(), FileError> {
        Ok(())
    }

    /// CREATE's last step: puts the file in place with one rename. `overwrite` as without `-O`.
    pub fn install(&self, _name: &[u8], _rrd: &Rrd, _overwrite: bool) -> Result<(), FileError> {
        Ok(())
    }

    /// TUNE: `edit` makes another file of the file, under its lock; pending values stay pending.
    pub fn rewrite(
        &self,
        _name: &[u8],
        _edit: &mut dyn FnMut(Rrd) -> Result<Rrd, kymo_rrd::Error>,
    ) -> Result<(), FileError> {
        Err(FileError::NoSuchFile)
    }

    /// LIST: what rrd_list_r says of a path (already joined to the base).
    pub fn list(&self, _path: &[u8], _recursive: bool) -> io::Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    /// Waits until everything before `position` is on the disk: group commit, whoever comes first syncs.
    pub fn durable(&self, _position: Position) -> io::Result<()> {
        Ok(())
    }

    /// Writes the files that are due, in path order; how many were written.
    pub fn flush_due(&self) -> usize {
        0
    }

    /// What the threads of [`Store::start`] do in their rounds, for callers without threads: sync, sweep, due
    /// files, checkpoint. When to come again.
    pub fn maintain(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// Ends the store's work: `flush` writes everything first (`-F`, USR1). The journal is synced in any case.
    pub fn shutdown(&self, _flush: bool) -> io::Result<()> {
        Ok(())
    }
}

impl Threads {
    /// Ends them and waits for it; what is due and not begun stays in the journal.
    pub fn stop(self) {}
}
