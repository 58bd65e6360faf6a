//! Background work and its threads: due files and chunks, idle files, syncs, checkpoints.

use crate::bell::Bell;
use crate::checkpoint::has_useless_files;
use crate::engine::{Inner, Store};
use crate::error::FileError;
use crate::flush::chunk::Saver;
use crate::memtable::state::State;
use crate::retention::GONE_KEPT;
use crate::rrd_file::write_back::Worker;
use kymo_base::name::DisplayName;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Number of files of one round, which share a sync of the journal.
const ROUND: usize = 512;
/// Interval of the search for due files, which groups them into rounds.
const ROUND_EVERY: Duration = Duration::from_millis(500);
/// Interval of the search for due chunks.
const SAVES_EVERY: Duration = Duration::from_millis(200);
/// Longest sleep of a thread without work. New work wakes it;
/// sweeps, checkpoints and old chunks are only due by the clock.
const AT_REST: Duration = Duration::from_secs(30);
/// Longest sleep while the journal is too long.
const LONG_REST: Duration = Duration::from_secs(1);
/// Pause before another attempt to write a file.
const RETRY: Duration = Duration::from_secs(5);

/// The threads of a started store; [`Threads::stop`] ends them.
pub struct Threads {
    store: Store,
    stop: Arc<AtomicBool>,
    handles: Vec<JoinHandle<()>>,
}

type Log = Arc<dyn Fn(&str) + Send + Sync>;

impl Store {
    /// Starts the background threads: one syncs the journal, one saves chunks, `writers` write due files. `log` gets the
    /// messages for the administrator.
    pub fn start(&self, writers: usize, log: Log) -> Threads {
        let stop = Arc::new(AtomicBool::new(false));
        let mut handles = Vec::new();
        let syncer = (self.clone(), stop.clone(), log.clone());
        handles.push(std::thread::spawn(move || {
            let (store, stop, log) = syncer;
            while !stop.load(Ordering::Relaxed) {
                store.inner.round_of_sync();
                store.take_notices().iter().for_each(|line| log(line));
                if store.inner.rest_from_syncs(&stop) {
                    pause(&stop, store.inner.settings.sync_every);
                }
            }
        }));
        let saves = (self.clone(), stop.clone());
        handles.push(std::thread::spawn(move || {
            let (store, stop) = saves;
            while !stop.load(Ordering::Relaxed) {
                store.inner.round_of_chunks();
                if store.inner.rest_from_writes(&stop) {
                    pause(&stop, SAVES_EVERY);
                }
            }
        }));
        let turns = Arc::new(Mutex::new(()));
        for writer in 0..writers.max(1) {
            let (store, stop, turns) = (self.clone(), stop.clone(), turns.clone());
            handles.push(std::thread::spawn(move || {
                if writer == 0 {
                    store.inner.put_missing_placeholders();
                }
                // One round at a time keeps the files in path order. The thread
                // that has the lock also waits for work, so that the others sleep.
                let _mine = turns.lock().unwrap_or_else(PoisonError::into_inner);
                while !stop.load(Ordering::Relaxed) {
                    store.flush_due();
                    store.inner.round_of_files();
                    if store.inner.rest_from_writes(&stop) {
                        store.inner.wait_for_flushes(&stop);
                    }
                }
            }));
        }
        Threads {
            store: self.clone(),
            stop,
            handles,
        }
    }

    /// Returns the messages for the log since the last call.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.inner.lock().notices)
    }

    /// Writes the files that are due, in path order; returns their number.
    pub fn flush_due(&self) -> usize {
        self.inner.flush_due()
    }

    /// Does one round of the work of the threads of [`Store::start`], for callers without threads: sync, sweep, due files,
    /// checkpoint. Returns the time until the next call.
    pub fn maintain(&self) -> Duration {
        self.inner.round_of_sync();
        self.inner.flush_due();
        self.inner.round_of_files();
        self.inner.round_of_chunks();
        self.inner.settings.sync_every
    }
}

impl Threads {
    /// Ends the threads and waits for them; due work that has not begun stays in the journal.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.store.inner.changed.notify_all();
        {
            // A thread that has read `stop` before is waiting by now, since it holds this lock until it waits.
            let state = self.store.inner.lock();
            self.store.inner.flushes.notify_all();
            state.journal.written.ring();
            state.tasks.work.ring();
        }
        for handle in self.handles {
            handle.thread().unpark();
            let _panicked = handle.join();
        }
    }
}

/// Sleeps until the thread is unparked by a request to stop.
fn pause(stop: &AtomicBool, length: Duration) {
    if !stop.load(Ordering::Relaxed) {
        std::thread::park_timeout(length);
    }
}

impl Store {
    /// Ends the store's work; `flush` writes everything first (`-F`, USR1). The journal is synced in any case.
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
        self.inner.lock().journal.write_synced_position();
        Ok(())
    }
}

impl Inner {
    /// Sleeps until the syncing thread has work, or for [`AT_REST`]; returns false in that case.
    fn rest_from_syncs(&self, stop: &AtomicBool) -> bool {
        let state = self.lock();
        let written = state.journal.written.clone();
        self.rest(state, &written, State::needs_no_sync, stop)
    }

    /// Sleeps until the threads that write files and chunks have work, or for [`AT_REST`]; returns false in that case.
    fn rest_from_writes(&self, stop: &AtomicBool) -> bool {
        let state = self.lock();
        let work = state.tasks.work.clone();
        self.rest(state, &work, State::needs_no_thread, stop)
    }

    fn rest(
        &self,
        mut state: MutexGuard<'_, State>,
        bell: &Bell,
        has_nothing: fn(&State) -> bool,
        stop: &AtomicBool,
    ) -> bool {
        let longest = self.longest_rest(&state);
        while has_nothing(&state) && !stop.load(Ordering::Relaxed) {
            let is_over;
            (state, is_over) = bell.wait(state, longest);
            if is_over {
                return false;
            }
            // The rotation may have made the journal too long.
            if self.has_long_journal(&state) {
                break;
            }
        }
        true
    }

    fn has_long_journal(&self, state: &State) -> bool {
        state.journal.files_len() > self.settings.journal_files
    }

    /// Longest sleep of a thread without work.
    fn longest_rest(&self, state: &State) -> Duration {
        let settings = &self.settings;
        let longest = match self.has_long_journal(state) {
            true => LONG_REST,
            false => AT_REST,
        };
        let every = [
            settings.sweep_every,
            settings.checkpoint_every,
            settings.save_after,
        ];
        every
            .into_iter()
            .fold(longest, Duration::min)
            .max(ROUND_EVERY)
    }

    /// Sleeps until the next round, or until a FLUSHALL.
    fn wait_for_flushes(&self, stop: &AtomicBool) {
        let idle = |state: &mut State| !state.tasks.flushes && !stop.load(Ordering::Relaxed);
        let waited = self
            .flushes
            .wait_timeout_while(self.lock(), ROUND_EVERY, idle);
        waited
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .tasks
            .flushes = false;
    }

    fn flush_due(&self) -> usize {
        let mut due: Vec<(Arc<[u8]>, u32)> = {
            let mut state = self.lock();
            let queue = std::mem::take(&mut state.tasks.queue);
            let files = queue
                .iter()
                .filter_map(|&id| Some((state.series.get(id)?.path.clone(), id)));
            let due: Vec<_> = files.collect();
            // Files of this round count as queued for STATS until they are written.
            state.tasks.writing_back += due.len();
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
            self.lock().tasks.writing_back -= round.len();
        }
        written
    }

    /// Schedules another attempt for a due file, and logs the error unless it is only a lock.
    fn put_off(&self, id: u32, error: &FileError) {
        let now_ns = self.clock.mono_ns();
        let mut state = self.lock();
        let Some(series) = state.series.get_mut(id) else {
            return;
        };
        // Makes the file due again after the pause.
        series.file.put_off(now_ns + RETRY.as_nanos() as u64);
        let path = DisplayName(&series.path).to_string();
        match error {
            FileError::Locked | FileError::Journal(_) => state.queue(id),
            error => state.notice(format!("cannot write {path}: {error}; it is tried again")),
        }
    }

    /// Saves due chunks, and further ones if the journal has become too long.
    fn round_of_chunks(&self) {
        let now_ns = self.clock.mono_ns();
        let save_after_ns = self.settings.save_after.as_nanos() as u64;
        {
            let mut state = self.lock();
            let long = self.has_long_journal(&state);
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
            if state.tasks.due.is_empty() && !long && !state.tasks.merges_left {
                return;
            }
        }
        self.save_queued();
        self.keep_below_cap();
        let left = self.merge();
        self.lock().tasks.merges_left = left;
        let useless = has_useless_files(&self.lock(), self.clock.mono_ns());
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

    /// Saves all values that are in no block.
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
        if now_ns.saturating_sub(state.tasks.sync_ns) < sync_every_ns {
            return;
        }
        state.tasks.sync_ns = now_ns;
        self.look_at_limits(&mut state, now_ns);
        drop(state);
        self.trim_tails();
        let is_behind = self.lock().journal.is_behind();
        let synced = match is_behind {
            true => self.sync_to(u64::MAX),
            false => Ok(()),
        };
        let mut state = self.lock();
        match synced {
            Ok(()) => state.journal.write_synced_position(),
            Err(error) => state.notice(format!("cannot sync the journal: {error}")),
        }
    }

    fn round_of_files(&self) {
        let now_ns = self.clock.mono_ns();
        let mut state = self.lock();
        let sweep_every_ns = self.settings.sweep_every.as_nanos() as u64;
        if now_ns.saturating_sub(state.tasks.sweep_ns) >= sweep_every_ns {
            state.tasks.sweep_ns = now_ns;
            let gone = self.sweep(&mut state, now_ns);
            drop(state);
            self.forget_gone(&gone, now_ns);
            self.forget_silent(now_ns);
            self.put_missing_placeholders();
        } else {
            drop(state);
        }
        self.checkpoint_if_due(now_ns);
    }

    /// Finds files to update though no values arrive, and series to drop whose files have been missing for a week.
    fn sweep(&self, state: &mut State, now_ns: u64) -> Vec<u32> {
        if self.is_without_files() {
            return Vec::new();
        }
        let (mut due, mut gone) = (Vec::new(), Vec::new());
        for (id, series) in state.series.iter() {
            let file = &series.file;
            let gone_ns = file.gone_since().map(|since| now_ns.saturating_sub(since));
            if gone_ns.is_some_and(|age_ns| age_ns > GONE_KEPT.as_nanos() as u64)
                && !file.is_busy()
                && !self.outlives_file(series)
            {
                gone.push(id);
            } else if series.values.last > file.upto() && file.is_due(now_ns) && !series.suspended {
                due.push(id);
            }
        }
        due.into_iter().for_each(|id| state.queue(id));
        gone
    }
}
