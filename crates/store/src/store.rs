//! The store: what its threads share, its lock, and its end. What worker threads do with files is in `ask.rs` and `make.rs`.

use crate::claim::Claim;
use crate::drum::Drum;
use crate::error::Error;
use crate::names;
use crate::recent::Recent;
use crate::recover;
use crate::settings::Settings;
use crate::state::State;
use crate::turn::{Position, Turn};
use kymo_sys::clock::Clock;
use kymo_sys::disk::Disk;
use kymo_sys::tree::Tree;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The journal, what it holds, and the files. Clones are the same store.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

/// What the threads of a store share.
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tree: Box<dyn Tree>,
    pub(crate) drum: Drum,
    pub(crate) recent: Recent,
    state: Mutex<State>,
    /// A file is no longer busy, a sync or a checkpoint ended.
    pub(crate) changed: Condvar,
    /// FLUSHALL came.
    pub(crate) flushes: Condvar,
    /// As long as the store is open.
    _claim: Claim,
}

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

impl Store {
    /// Opens the store: takes its lock, replays journals, redoes what a crash may have torn.
    pub fn open(
        settings: Settings,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Store, Replayed), Error> {
        let claim = Claim::take(&settings, &*disk)?;
        Store::open_claimed(settings, claim, disk, clock)
    }

    /// The same with locks that were taken before.
    pub fn open_claimed(
        settings: Settings,
        claim: Claim,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Store, Replayed), Error> {
        recover::open(settings, claim, disk, clock)
    }

    pub(crate) fn new(
        settings: Settings,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        tree: Box<dyn Tree>,
        drum: Drum,
        state: State,
        claim: Claim,
    ) -> Store {
        Store {
            inner: Arc::new(Inner {
                settings,
                disk,
                clock,
                tree,
                drum,
                recent: Recent::default(),
                state: Mutex::new(state),
                changed: Condvar::new(),
                flushes: Condvar::new(),
                _claim: claim,
            }),
        }
    }

    /// Takes the lock for a turn.
    pub fn turn(&self) -> Turn<'_> {
        Turn::new(&self.inner)
    }

    /// A name as replies show it: base + `/` + name, or the name if it is absolute.
    pub fn spelled(&self, name: &[u8]) -> Vec<u8> {
        names::spelled(&self.inner.settings, name)
    }

    /// `-B`'s look at the text of a name, as rrdcached does it; links are checked when the file is opened.
    pub fn allowed(&self, name: &[u8]) -> bool {
        names::allowed(&self.inner.settings, name)
    }

    /// Whether a name stands for a series that has no file, because none has.
    pub fn has(&self, name: &[u8]) -> bool {
        let inner = &*self.inner;
        self.is_without_files()
            && inner
                .any(name, &names::spelled(&inner.settings, name))
                .is_some()
    }

    /// Whether there are no .rrd files.
    pub fn is_without_files(&self) -> bool {
        self.inner.settings.files.is_none()
    }

    /// LIST: what rrd_list_r says of a path (already joined to the base).
    pub fn list(&self, path: &[u8], recursive: bool) -> io::Result<Vec<Vec<u8>>> {
        if !self.admits(path) {
            return Err(io::Error::from_raw_os_error(13));
        }
        match self.is_without_files() {
            true => Ok(self
                .inner
                .lock()
                .groups
                .below(&names::normal(path), recursive)),
            false => crate::list::list(&*self.inner.tree, path, recursive),
        }
    }

    /// Waits until everything before `position` is on the disk: group commit, whoever comes first syncs.
    pub fn durable(&self, position: Position) -> io::Result<()> {
        self.inner.sync_to(position.0)
    }

    /// Ends the store's work: `flush` writes everything first (`-F`, USR1). The journal is synced in any case.
    pub fn shutdown(&self, flush: bool) -> io::Result<()> {
        if flush {
            let mut turn = self.turn();
            turn.resume_all();
            turn.flush_all();
            turn.commit()?;
            self.flush_due();
            self.inner.save_all();
            self.inner.checkpoint();
        }
        self.inner.sync_to(u64::MAX)?;
        self.inner.lock().journal.tell();
        Ok(())
    }
}

impl Inner {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, Duration::from_millis(100));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Syncs the journal until everything before `position` is on the disk.
    pub(crate) fn sync_to(&self, position: u64) -> io::Result<()> {
        const TRIES: usize = 3;
        let mut failures = 0;
        let mut state = self.lock();
        loop {
            if state.journal.synced >= position {
                return Ok(());
            }
            if state.syncing {
                state = self.wait(state);
                continue;
            }
            state.prepare(&*self.clock)?;
            let Some(work) = state.journal.sync_work() else {
                return Ok(());
            };
            state.syncing = true;
            drop(state);
            let done = work.run(&*self.disk);
            state = self.lock();
            state.syncing = false;
            self.changed.notify_all();
            match done {
                Ok(()) => {
                    state.journal.sync_done(&work);
                    if position == u64::MAX {
                        return Ok(());
                    }
                }
                Err(error) => {
                    state.notice(format!(
                        "cannot sync the journal: {error}; a new file is begun"
                    ));
                    state.journal.give_up();
                    failures += 1;
                    if failures == TRIES {
                        return Err(error);
                    }
                }
            }
        }
    }
}
