//! What is done without being asked: due files, idle files, checkpoints, and the threads that do it.

use crate::engine::{Inner, Store};
use crate::error::FileError;
use crate::flush::chunk::Saver;
use crate::memtable::state::State;
use crate::names;
use crate::retention::GONE_KEPT;
use crate::rrd_file::write_back::Worker;
use crate::wal::record::Record;
use kymo_base::name::DisplayName;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Files of one round: they share a sync of the journal.
const ROUND: usize = 512;
/// How often due files are looked for, so that they come together in rounds.
const ROUND_EVERY: Duration = Duration::from_millis(500);
/// How often due chunks are looked for.
const SAVES_EVERY: Duration = Duration::from_millis(200);
/// So many files that were made, or this time after the last one, are enough for a checkpoint: until then a start makes
/// them again.
const MADE_MAX: u64 = 1000;
const MADE_REST: Duration = Duration::from_secs(30);
/// Files that could not be written are tried again after this.
const RETRY: Duration = Duration::from_secs(5);

/// The threads of a started store; ends them when asked to.
pub struct Threads {
    store: Store,
    stop: Arc<AtomicBool>,
    handles: Vec<JoinHandle<()>>,
}

/// Folders with the device they are on.
type Folders = BTreeSet<(u64, Vec<u8>)>;
type Log = Arc<dyn Fn(&str) + Send + Sync>;

impl Store {
    /// Starts what runs beside the requests: one thread syncs the journal, `writers` write due files.
    /// `log` hears what an administrator should know.
    pub fn start(&self, writers: usize, log: Log) -> Threads {
        let stop = Arc::new(AtomicBool::new(false));
        let mut handles = Vec::new();
        let syncer = (self.clone(), stop.clone(), log.clone());
        handles.push(std::thread::spawn(move || {
            let (store, stop, log) = syncer;
            while !stop.load(Ordering::Relaxed) {
                store.inner.round_of_sync();
                store.take_notices().iter().for_each(|line| log(line));
                pause(&stop, store.inner.settings.sync_every);
            }
        }));
        let saves = (self.clone(), stop.clone());
        handles.push(std::thread::spawn(move || {
            let (store, stop) = saves;
            while !stop.load(Ordering::Relaxed) {
                store.inner.round_of_chunks();
                pause(&stop, SAVES_EVERY);
            }
        }));
        let turns = Arc::new(Mutex::new(()));
        for _ in 0..writers.max(1) {
            let (store, stop, turns) = (self.clone(), stop.clone(), turns.clone());
            handles.push(std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    {
                        // Path order: one round at a time.
                        let _mine = turns.lock().unwrap_or_else(PoisonError::into_inner);
                        store.flush_due();
                        store.inner.round_of_files();
                    }
                    store.inner.wait_for_flushes(&stop);
                }
            }));
        }
        Threads {
            store: self.clone(),
            stop,
            handles,
        }
    }

    /// Lines for the log since the last call.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.inner.lock().notices)
    }

    /// Writes the files that are due, in path order; how many were written.
    pub fn flush_due(&self) -> usize {
        self.inner.flush_due()
    }

    /// What the threads of [`Store::start`] do in their rounds, for callers without threads: sync, sweep, due
    /// files, checkpoint. When to come again.
    pub fn maintain(&self) -> Duration {
        self.inner.round_of_sync();
        self.inner.flush_due();
        self.inner.round_of_files();
        self.inner.round_of_chunks();
        self.inner.settings.sync_every
    }

    /// Makes the .rrd files durable and journal files free; the threads do it when it is time.
    pub fn checkpoint(&self) {
        self.inner.checkpoint();
    }
}

impl Threads {
    /// Ends them and waits for it; what is due and not begun stays in the journal.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.store.inner.changed.notify_all();
        self.store.inner.flushes.notify_all();
        for handle in self.handles {
            let _panicked = handle.join();
        }
    }
}

fn pause(stop: &AtomicBool, length: Duration) {
    const STEP: Duration = Duration::from_millis(50);
    let mut left = length;
    while !left.is_zero() && !stop.load(Ordering::Relaxed) {
        let step = left.min(STEP);
        std::thread::sleep(step);
        left -= step;
    }
}

impl Store {
    /// Ends the store's work: `flush` writes everything first (`-F`, USR1). The journal is synced in any case.
    pub fn shutdown(&self, flush: bool) -> io::Result<()> {
        if flush {
            let mut batch = self.write_batch();
            batch.resume_all();
            batch.flush_all();
            batch.commit()?;
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
    /// Until it is time for the next round, which FLUSHALL does not wait for.
    fn wait_for_flushes(&self, stop: &AtomicBool) {
        let idle = |state: &mut State| !state.flushes && !stop.load(Ordering::Relaxed);
        let waited = self
            .flushes
            .wait_timeout_while(self.lock(), ROUND_EVERY, idle);
        waited.unwrap_or_else(PoisonError::into_inner).0.flushes = false;
    }

    fn flush_due(&self) -> usize {
        let mut due: Vec<(Arc<[u8]>, u32)> = {
            let mut state = self.lock();
            let queue = std::mem::take(&mut state.queue);
            let files = queue
                .iter()
                .filter_map(|&id| Some((state.series.get(id)?.path.clone(), id)));
            let due: Vec<_> = files.collect();
            // Until they are written they are in the queue for whoever asks.
            state.writing_back += due.len();
            due
        };
        due.sort_unstable();
        let (mut worker, mut written) = (Worker::default(), 0);
        for round in due.chunks(ROUND) {
            let ids: Vec<u32> = round.iter().map(|(_, id)| *id).collect();
            for (id, error) in self.write_files(&mut worker, &ids) {
                match error {
                    None => written += 1,
                    Some(error) => self.put_off(id, &error),
                }
            }
            self.lock().writing_back -= round.len();
        }
        written
    }

    /// A due file was not written: soon again, and a line for the log if it is not just a lock.
    fn put_off(&self, id: u32, error: &FileError) {
        let now_ns = self.clock.mono_ns();
        let mut state = self.lock();
        let Some(series) = state.series.get_mut(id) else {
            return;
        };
        // Due again when the pause is over.
        series.due_ns = now_ns + RETRY.as_nanos() as u64;
        let path = DisplayName(&series.path).to_string();
        match error {
            FileError::Locked | FileError::Journal(_) => state.queue(id),
            error => state.notice(format!("cannot write {path}: {error}; it is tried again")),
        }
    }

    /// Saves what is due, and makes room where the journal has become long.
    fn round_of_chunks(&self) {
        let now_ns = self.clock.mono_ns();
        let save_after_ns = self.settings.save_after.as_nanos() as u64;
        {
            let mut state = self.lock();
            let long = state.journal.files_len() > self.settings.journal_files;
            let oldest = state
                .chunks
                .iter()
                .map(|(_, chunk)| chunk.since)
                .filter(|&since| since > 0);
            let oldest = oldest.min().unwrap_or(0);
            let old = |since_ns: u64| now_ns.saturating_sub(since_ns) >= save_after_ns;
            let due = state.chunks.iter().filter(|(_, chunk)| {
                let first = long && chunk.since == oldest;
                chunk.since > 0 && (first || old(chunk.since_ns))
            });
            let due: Vec<u32> = due.map(|(id, _)| id).collect();
            due.into_iter().for_each(|id| state.queue_chunk(id));
            if state.due.is_empty() && !long && !state.merges_left {
                return;
            }
        }
        self.save_queued();
        self.keep_below_cap();
        let left = self.merge();
        self.lock().merges_left = left;
        let useless = {
            let state = self.lock();
            state.journal.files_len() > 1
                && first_unsaved(&state) > state.journal.oldest()
                && first_needed(&state) > state.journal.oldest()
        };
        if useless {
            self.checkpoint();
        }
    }

    fn save_queued(&self) -> usize {
        match Saver::new() {
            Ok(mut saver) => self.save_due(&mut saver),
            Err(error) => {
                self.lock().notice(format!("cannot save: {error}"));
                0
            }
        }
    }

    /// Saves everything that is in no block.
    pub(crate) fn save_all(&self) {
        let mut state = self.lock();
        let due = state.chunks.iter().filter(|(_, chunk)| chunk.since > 0);
        let due: Vec<u32> = due.map(|(id, _)| id).collect();
        due.into_iter().for_each(|id| state.queue_chunk(id));
        drop(state);
        self.save_queued();
    }

    fn round_of_sync(&self) {
        let now_ns = self.clock.mono_ns();
        let sync_every_ns = self.settings.sync_every.as_nanos() as u64;
        let mut state = self.lock();
        if now_ns.saturating_sub(state.sync_ns) < sync_every_ns {
            return;
        }
        state.sync_ns = now_ns;
        self.look_at_limits(&mut state, now_ns);
        drop(state);
        let is_behind = self.lock().journal.is_behind();
        let synced = match is_behind {
            true => self.sync_to(u64::MAX),
            false => Ok(()),
        };
        let mut state = self.lock();
        match synced {
            Ok(()) => state.journal.tell(),
            Err(error) => state.notice(format!("cannot sync the journal: {error}")),
        }
    }

    fn round_of_files(&self) {
        let now_ns = self.clock.mono_ns();
        let mut state = self.lock();
        let sweep_every_ns = self.settings.sweep_every.as_nanos() as u64;
        if now_ns.saturating_sub(state.sweep_ns) >= sweep_every_ns {
            state.sweep_ns = now_ns;
            let gone = self.sweep(&mut state, now_ns);
            drop(state);
            self.forget_gone(&gone, now_ns);
            self.forget_silent(now_ns);
            state = self.lock();
        }
        let every_ns = self.settings.checkpoint_every.as_nanos() as u64;
        let old = now_ns.saturating_sub(state.checkpoint_ns) >= every_ns;
        let long = state.journal.files_len() > self.settings.journal_files;
        let rest_ns = now_ns.saturating_sub(state.made_ns);
        let rested = state.made > 0 && rest_ns >= MADE_REST.as_nanos() as u64;
        let made = rested || state.made >= MADE_MAX;
        let paused = now_ns.saturating_sub(state.checkpoint_ns) < RETRY.as_nanos() as u64;
        drop(state);
        if (old || long || made) && !paused {
            self.checkpoint();
        }
    }

    /// Files that nobody updates are brought up to date, too; series whose files have been missing for a week go.
    fn sweep(&self, state: &mut State, now_ns: u64) -> Vec<u32> {
        if self.settings.files.is_none() {
            return Vec::new();
        }
        let (mut due, mut gone) = (Vec::new(), Vec::new());
        for (id, series) in state.series.iter() {
            let gone_ns = series.gone_since.map(|since| now_ns.saturating_sub(since));
            if gone_ns.is_some_and(|age_ns| age_ns > GONE_KEPT.as_nanos() as u64) && !series.busy {
                gone.push(id);
            } else if series.last > series.upto && now_ns >= series.due_ns && !series.suspended {
                due.push(id);
            }
        }
        due.into_iter().for_each(|id| state.queue(id));
        gone
    }

    /// Makes everything written so far durable, tells the journal, and takes its old files out of use.
    pub(crate) fn checkpoint(&self) {
        let made = self.lock().made;
        let Some((position, folders, first)) = self.begin_checkpoint() else {
            return;
        };
        let synced = self.sync_file_systems(&folders);
        if let Err(error) = self.segments.sync() {
            let mut state = self.lock();
            state.notice(format!(
                "cannot sync a segment: {error}; another one is begun"
            ));
            state.checkpointing = false;
            state.made = state.made.max(made);
            self.changed.notify_all();
            return;
        }
        let mut saved = self.segments.saved();
        let mut state = self.lock();
        // Those of which nobody is left go with the next merge.
        saved.retain(|(chunk, _)| {
            let chunk = state.chunks.get(*chunk);
            chunk.is_some_and(|chunk| !chunk.is_empty())
        });
        let done = match synced {
            Ok(()) => self.put_checkpoint(&mut state, position, saved),
            Err(error) => {
                state.checkpoints_end = true;
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
        if done.is_ok() && state.journal.given_up == given_up {
            let first = first
                .min(first_needed(&state))
                .min(state.journal.sequence());
            if let Err(error) = state.journal.drop_before(first) {
                state.notice(format!("cannot remove old journal files: {error}"));
            }
        } else {
            // Soon again.
            state.made = state.made.max(made);
        }
        state.checkpointing = false;
        self.changed.notify_all();
    }

    /// Each file system once, by a folder that is still there.
    fn sync_file_systems(&self, folders: &Folders) -> io::Result<()> {
        let mut done = BTreeSet::new();
        for (device, folder) in folders {
            if done.contains(device) {
                continue;
            }
            match self.disk.sync_file_system(names::path(folder)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                answer => {
                    answer?;
                    done.insert(*device);
                }
            }
        }
        Ok(())
    }

    /// A new epoch; waits until no write of the old one is under way. The folders of files that were written.
    /// And the oldest journal file with something that is in no block: blocks that come later may not be on the disk.
    fn begin_checkpoint(&self) -> Option<(u64, Folders, u64)> {
        let mut state = self.lock();
        if state.checkpointing || state.checkpoints_end || !state.journal.is_open() {
            return None;
        }
        state.checkpointing = true;
        state.checkpoint_ns = self.clock.mono_ns();
        state.made = 0;
        let (position, old) = (state.journal.position, (state.epoch & 1) as usize);
        state.epoch += 1;
        while state.cycles[old] > 0 {
            state = self.wait(state);
        }
        let mut folders = BTreeSet::new();
        for series in state.series.started() {
            if let Some(left) = &series.left {
                let cut = series
                    .path
                    .iter()
                    .rposition(|&byte| byte == b'/')
                    .unwrap_or(0);
                folders.insert((left.device, series.path[..cut.max(1)].to_vec()));
            }
        }
        Some((position, folders, first_unsaved(&state)))
    }

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
        let epoch = state.epoch;
        state.series.settle_before(epoch);
        Ok(committed)
    }
}

/// The oldest journal file that has something which is needed.
fn first_needed(state: &State) -> u64 {
    let started = state.series.started().map(|series| series.started).min();
    first_unsaved(state).min(started.unwrap_or(u64::MAX))
}

/// The oldest journal file that has something which is in no block.
fn first_unsaved(state: &State) -> u64 {
    let saving = state.chunks.iter().map(|(_, chunk)| match chunk.saving {
        // Its records are in no block yet.
        true => 0,
        false if chunk.since > 0 => chunk.since,
        false => u64::MAX,
    });
    saving.min().unwrap_or(u64::MAX)
}
