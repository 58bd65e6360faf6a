//! Checkpoints: sync all .rrd files written so far, note that in the
//! journal, and release journal files that are not needed any more.
//!
//! A checkpoint begins an epoch. It waits for the writes of .rrd files that began in the previous epoch; writes that
//! begin later belong to the next checkpoint.

use crate::engine::{Inner, Store};
use crate::memtable::state::State;
use crate::names;
use crate::wal::record::Record;
use kymo_sys::tree::Access;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

/// Number of new files, or time after the last one, that makes a
/// checkpoint due; until then a start creates these files again.
const MADE_MAX: u64 = 1000;
const MADE_REST: Duration = Duration::from_secs(30);
/// Pause after a failed checkpoint.
const RETRY: Duration = Duration::from_secs(5);

/// Folders, each with its device.
type Folders = BTreeSet<(u64, Vec<u8>)>;

/// A checkpoint that has begun: all writes of the previous epoch have ended.
struct UnfinishedCheckpoint {
    /// Position of the journal before which entries count.
    position: u64,
    /// Folders of the written files.
    folders: Folders,
    /// The oldest journal file with records that are in no block; later blocks may not be on the disk.
    unsaved: u64,
}

impl Store {
    /// Syncs the .rrd files and releases journal files; the background threads also do it when due.
    pub fn checkpoint(&self) {
        self.inner.checkpoint();
    }
}

impl Inner {
    /// Makes a checkpoint if the last one is old, the journal is too long, or enough files were created.
    pub(crate) fn checkpoint_if_due(&self, now_ns: u64) {
        let state = self.lock();
        let since_ns = now_ns.saturating_sub(state.tasks.checkpoint_ns);
        let old = since_ns >= self.settings.checkpoint_every.as_nanos() as u64;
        let long = state.journal.files_len() > self.settings.journal_files
            && !state.pins.hold_journal(now_ns);
        let rest_ns = now_ns.saturating_sub(state.tasks.made_ns);
        let rested = state.tasks.made > 0 && rest_ns >= MADE_REST.as_nanos() as u64;
        let made = rested || state.tasks.made >= MADE_MAX;
        let paused = since_ns < RETRY.as_nanos() as u64;
        drop(state);
        if (old || long || made) && !paused {
            self.checkpoint();
        }
    }

    /// Syncs all that was written so far, notes it in the journal, and releases old journal files.
    pub(crate) fn checkpoint(&self) {
        let made = self.lock().tasks.made;
        let Some(begun) = self.begin_checkpoint() else {
            return;
        };
        let synced = self.sync_file_systems(&begun.folders);
        if let Err(error) = self.segments.sync() {
            let mut state = self.lock();
            state.notice(format!(
                "cannot sync a segment: {error}; another one is begun"
            ));
            state.tasks.checkpointing = false;
            state.tasks.made = state.tasks.made.max(made);
            self.changed.notify_all();
            return;
        }
        let mut saved = self.segments.saved();
        let mut state = self.lock();
        // The blocks of a chunk without series are dropped by the next merge, so they are left out.
        saved.retain(|(chunk, _)| {
            let chunk = state.chunks.get(*chunk);
            chunk.is_some_and(|chunk| !chunk.is_empty())
        });
        let done = match synced {
            Ok(()) => self.put_checkpoint(&mut state, begun.position, saved),
            Err(error) => {
                state.tasks.checkpoints_end = true;
                state.notice(format!(
                    "cannot sync the .rrd files: {error}; the journal keeps everything until the next start"
                ));
                Err(error)
            }
        };
        let given_up = state.journal.given_up;
        drop(state);
        let done = done.and_then(|position| self.sync_to(position));
        let mut state = self.lock();
        if done.is_err() || state.journal.given_up != given_up {
            // Makes another checkpoint due soon.
            state.tasks.made = state.tasks.made.max(made);
        } else if !state.pins.hold_journal(self.clock.mono_ns()) {
            let needed = begun.unsaved.min(first_needed(&state));
            let first = needed.min(state.journal.sequence());
            if let Err(error) = state.journal.drop_before(first) {
                state.notice(format!("cannot remove old journal files: {error}"));
            }
        }
        state.tasks.checkpointing = false;
        self.changed.notify_all();
        drop(state);
        self.trim_tails();
    }

    /// Syncs each file system once, by a folder that exists.
    fn sync_file_systems(&self, folders: &Folders) -> io::Result<()> {
        let mut done = BTreeSet::new();
        for (device, folder) in folders {
            if done.contains(device) {
                continue;
            }
            match self.disk.sync_file_system(names::path(folder)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    self.sync_files_of(*device)?;
                    done.insert(*device);
                }
                answer => {
                    answer?;
                    done.insert(*device);
                }
            }
        }
        Ok(())
    }

    /// Syncs each written file, then their folders and the folders above up to the base.
    fn sync_files_of(&self, device: u64) -> io::Result<()> {
        let state = self.lock();
        let started = state.series.started();
        let here = started.filter(|series| {
            let left = series.file.left();
            left.is_some_and(|left| left.device == device)
        });
        let paths: Vec<Vec<u8>> = here.map(|series| series.path.to_vec()).collect();
        drop(state);
        for path in &paths {
            let file = self.tree.open(names::path(path), Access::Read);
            if_there(file.and_then(|file| file.sync_data()))?;
        }
        let mut folders = BTreeSet::new();
        for path in &paths {
            let folder = names::path(names::folder_of(path));
            let above = folder.ancestors().skip(1);
            folders.insert(folder);
            folders.extend(above.take_while(|above| above.starts_with(&self.settings.base)));
        }
        for folder in folders {
            if_there(self.disk.sync_dir(folder))?;
        }
        Ok(())
    }

    /// Begins an epoch and waits until all writes of the previous one have ended.
    fn begin_checkpoint(&self) -> Option<UnfinishedCheckpoint> {
        let mut state = self.lock();
        if state.tasks.checkpointing || state.tasks.checkpoints_end || !state.journal.is_open() {
            return None;
        }
        state.tasks.checkpointing = true;
        state.tasks.checkpoint_ns = self.clock.mono_ns();
        state.tasks.made = 0;
        let (position, old) = (state.journal.position, state.epochs.advance());
        while !state.epochs.is_quiet(old) {
            state = self.wait(state);
        }
        let mut folders = BTreeSet::new();
        for series in state.series.started() {
            if let Some(left) = series.file.left() {
                folders.insert((left.device, names::folder_of(&series.path).to_vec()));
            }
        }
        Some(UnfinishedCheckpoint {
            position,
            folders,
            unsaved: first_unsaved(&state),
        })
    }

    /// Notes a checkpoint in the journal; returns the position up to which the journal must then be synced.
    fn put_checkpoint(
        &self,
        state: &mut State,
        position: u64,
        saved: Vec<(u32, u64)>,
    ) -> io::Result<u64> {
        state.prepare(&*self.clock)?;
        state.put_saved(saved);
        state.journal.put(&Record::Checkpoint { position });
        let committed = state.journal.commit()?;
        let epoch = state.epochs.now();
        state.series.settle_before(epoch);
        Ok(committed)
    }
}

/// Ignores that a file or folder is missing, since removed ones need no sync.
fn if_there(synced: io::Result<()>) -> io::Result<()> {
    match synced {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        synced => synced,
    }
}

/// Returns true if the journal has files that are not needed any more, by anything.
pub(crate) fn has_useless_files(state: &State, now_ns: u64) -> bool {
    let oldest = state.journal.oldest();
    let pinned = state.pins.hold_journal(now_ns);
    !pinned
        && state.journal.files_len() > 1
        && first_unsaved(state) > oldest
        && first_needed(state) > oldest
}

/// The oldest journal file with records that are needed.
fn first_needed(state: &State) -> u64 {
    let started = state.series.started();
    let started = started.filter_map(|series| series.file.started()).min();
    first_unsaved(state).min(started.unwrap_or(u64::MAX))
}

/// The oldest journal file with records that are in no block.
fn first_unsaved(state: &State) -> u64 {
    let saving = state.chunks.iter().map(|(_, chunk)| match chunk.saving {
        // The records that are being saved are in no block yet.
        true => 0,
        false if chunk.since > 0 => chunk.since,
        false => u64::MAX,
    });
    saving.min().unwrap_or(u64::MAX)
}
