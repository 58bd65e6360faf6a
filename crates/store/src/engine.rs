//! The store shared by its threads, its lock, and group commit.

use crate::folder::claim::Claim;
use crate::folder::listings::Listings;
use crate::memtable::series::Series;
use crate::memtable::state::State;
use crate::names;
use crate::read::series_cache::Recent;
use crate::read::snapshot::Snapshot;
use crate::segment::set::SegmentSet;
use crate::settings::{Files, Settings};
use crate::wal::tails::Tails;
use kymo_rrd::update::Now;
use kymo_sys::clock::Clock;
use kymo_sys::disk::Disk;
use kymo_sys::tree::Tree;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A store: its journal, its segments and its files. Clones are the same store.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

/// State that the threads of a store share.
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tree: Box<dyn Tree>,
    pub(crate) listings: Listings,
    pub(crate) segments: SegmentSet,
    pub(crate) recent: Recent,
    state: Mutex<State>,
    /// See [`Inner::tails`].
    pub(crate) tails: Mutex<Tails>,
    /// A file is no longer busy, a sync or a checkpoint ended.
    pub(crate) changed: Condvar,
    /// Signals a FLUSHALL.
    pub(crate) flushes: Condvar,
    /// Held while the store is open.
    _claim: Claim,
}

impl Store {
    pub(crate) fn new(
        settings: Settings,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        tree: Box<dyn Tree>,
        segments: SegmentSet,
        (state, tails): (State, Tails),
        claim: Claim,
    ) -> Store {
        Store {
            inner: Arc::new(Inner {
                settings,
                disk,
                clock,
                tree,
                listings: Listings::default(),
                segments,
                recent: Recent::default(),
                state: Mutex::new(state),
                tails: Mutex::new(tails),
                changed: Condvar::new(),
                flushes: Condvar::new(),
                _claim: claim,
            }),
        }
    }

    /// A name as replies show it: base + `/` + name, or the name if it is absolute.
    pub fn spelled(&self, name: &[u8]) -> Vec<u8> {
        names::spelled(&self.inner.settings, name)
    }

    /// The textual check of `-B`, as in rrdcached; links are checked when the file is opened.
    pub fn allowed(&self, name: &[u8]) -> bool {
        names::allowed(&self.inner.settings, name)
    }

    /// Returns true if the series of a name has no file.
    pub fn has_without_file(&self, name: &[u8]) -> bool {
        let inner = &*self.inner;
        let spelled = names::spelled(&inner.settings, name);
        inner.without_file(name, &spelled).is_some()
    }

    /// Returns true for a store without .rrd files.
    pub fn is_without_files(&self) -> bool {
        self.inner.is_without_files()
    }
}

impl Inner {
    /// Returns true for a store without .rrd files.
    pub(crate) fn is_without_files(&self) -> bool {
        self.settings.files == Files::Never
    }

    /// The series of a name, if it has and needs no file; forgotten series that never had a file are included.
    pub(crate) fn without_file(&self, name: &[u8], spelled: &[u8]) -> Option<u32> {
        let state = self.lock();
        let id = state.series.find(name, || spelled.to_vec())?;
        let series = state.series.get(id)?;
        self.needs_no_file(series).then_some(id)
    }

    /// Returns true if a series continues without a file: it never had
    /// one, or its file was removed and is created again on request.
    pub(crate) fn needs_no_file(&self, series: &Series) -> bool {
        self.is_without_files() || series.file.left().is_none() || self.outlives_file(series)
    }

    /// Returns true if a series continues after the removal of its file.
    pub(crate) fn outlives_file(&self, series: &Series) -> bool {
        let is_gone = series.file.gone_since().is_some();
        is_gone && self.settings.files == Files::OnDemand && !series.forgotten
    }

    /// A snapshot of a series with its values up to a stamp.
    pub(crate) fn snapshot(&self, state: &State, series: &Series, until: f64) -> Option<Snapshot> {
        Snapshot::of(state, &self.segments, series, until)
    }

    pub(crate) fn rrd_now(&self) -> Now {
        let real_ns = self.clock.now().real_ns;
        Now {
            sec: real_ns.div_euclid(1_000_000_000),
            usec: real_ns.rem_euclid(1_000_000_000) / 1000,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, Duration::from_millis(100));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Syncs the journal up to `position`, or waits for another thread that does.
    pub(crate) fn sync_to(&self, position: u64) -> io::Result<()> {
        const TRIES: usize = 3;
        let mut failures = 0;
        let mut state = self.lock();
        loop {
            if state.journal.synced >= position {
                return Ok(());
            }
            if state.tasks.syncing {
                state = self.wait(state);
                continue;
            }
            state.prepare(&*self.clock)?;
            let Some(work) = state.journal.sync_work() else {
                return Ok(());
            };
            state.tasks.syncing = true;
            drop(state);
            let done = work.run(&*self.disk);
            state = self.lock();
            state.tasks.syncing = false;
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
