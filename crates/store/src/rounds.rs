//! What is done without being asked: due files, idle files, checkpoints, and the threads that do it.

use crate::entry::Entry;
use crate::error::FileError;
use crate::files::File;
use crate::names;
use crate::state::State;
use crate::store::{Inner, Store};
use crate::write::Worker;
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
/// A missing file's values are kept so long.
const GONE_KEPT: Duration = Duration::from_secs(7 * 86_400);
/// Values that are pending this many journal files long are written into the newest one.
const FILES_KEPT: u64 = 2;
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
                .filter_map(|&id| Some((state.files.get(id)?.path.clone(), id)));
            files.collect()
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
        }
        written
    }

    /// A due file was not written: soon again, and a line for the log if it is not just a lock.
    fn put_off(&self, id: u32, error: &FileError) {
        let now_ns = self.clock.mono_ns();
        let write_after_ns = self.settings.write_after.as_nanos() as u64;
        let mut state = self.lock();
        let Some(file) = state.files.get_mut(id) else {
            return;
        };
        // Due once more when the pause is over.
        file.flushed_ns = (now_ns + RETRY.as_nanos() as u64).saturating_sub(write_after_ns);
        let path = DisplayName(&file.path).to_string();
        match error {
            FileError::Locked | FileError::Journal(_) => state.queue(id),
            error => state.notice(format!("cannot write {path}: {error:?}")),
        }
    }

    fn round_of_sync(&self) {
        let now_ns = self.clock.mono_ns();
        let sync_every_ns = self.settings.sync_every.as_nanos() as u64;
        let mut state = self.lock();
        if now_ns.saturating_sub(state.sync_ns) < sync_every_ns {
            return;
        }
        state.sync_ns = now_ns;
        drop(state);
        if let Err(error) = self.sync_to(u64::MAX) {
            self.lock()
                .notice(format!("cannot sync the journal: {error}"));
        }
    }

    fn round_of_files(&self) {
        let now_ns = self.clock.mono_ns();
        let mut state = self.lock();
        let sweep_every_ns = self.settings.sweep_every.as_nanos() as u64;
        if now_ns.saturating_sub(state.sweep_ns) >= sweep_every_ns {
            state.sweep_ns = now_ns;
            self.sweep(&mut state, now_ns);
        }
        let every_ns = self.settings.checkpoint_every.as_nanos() as u64;
        let old = now_ns.saturating_sub(state.checkpoint_ns) >= every_ns;
        let long = state.journal.files_len() > FILES_KEPT as usize;
        let paused = now_ns.saturating_sub(state.checkpoint_ns) < RETRY.as_nanos() as u64;
        drop(state);
        if (old || long) && !paused {
            self.checkpoint();
        }
    }

    /// Files that nobody updates are written, and forgotten when they have nothing.
    fn sweep(&self, state: &mut State, now_ns: u64) {
        let write_after_ns = self.settings.write_after.as_nanos() as u64;
        let sweep_every_ns = self.settings.sweep_every.as_nanos() as u64;
        let (mut due, mut gone, mut idle) = (Vec::new(), Vec::new(), Vec::new());
        for (id, file) in state.files.iter() {
            let age_ns = now_ns.saturating_sub(file.flushed_ns);
            let gone_ns = file.gone_since.map(|since| now_ns.saturating_sub(since));
            if gone_ns.is_some_and(|age_ns| age_ns > GONE_KEPT.as_nanos() as u64) && !file.busy {
                gone.push(id);
            } else if file.is_idle() && age_ns >= sweep_every_ns && file.begun != state.epoch {
                idle.push(id);
            } else if !file.values.is_empty() && age_ns >= write_after_ns && !file.suspended {
                due.push(id);
            }
        }
        due.into_iter().for_each(|id| state.queue(id));
        for id in gone {
            let path = state
                .files
                .get(id)
                .map(|file| DisplayName(&file.path).to_string());
            let path = path.unwrap_or_default();
            state.notice(format!(
                "cannot keep the values of {path}: it is gone since a week"
            ));
            state.put(id, &Entry::Forget { id });
            state.files.remove(id);
        }
        idle.into_iter().for_each(|id| state.files.remove(id));
        if state.journal.commit().is_err() {
            state.forget_introductions();
        }
    }

    /// Makes everything written so far durable, tells the journal, and takes its old files out of use.
    pub(crate) fn checkpoint(&self) {
        let Some((position, folders)) = self.begin_checkpoint() else {
            return;
        };
        let synced = self.sync_file_systems(&folders);
        let mut state = self.lock();
        let done = match synced {
            Ok(()) => self.put_checkpoint(&mut state, position),
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
            let first = state
                .files
                .iter()
                .map(|(_, file)| first_needed(file, state.epoch));
            let first = first
                .min()
                .unwrap_or(u64::MAX)
                .min(state.journal.sequence());
            if let Err(error) = state.journal.drop_before(first) {
                state.notice(format!("cannot remove old journal files: {error}"));
            }
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
    fn begin_checkpoint(&self) -> Option<(u64, Folders)> {
        let mut state = self.lock();
        if state.checkpointing || state.checkpoints_end || !state.journal.is_open() {
            return None;
        }
        state.checkpointing = true;
        state.checkpoint_ns = self.clock.mono_ns();
        let (position, old) = (state.journal.position, (state.epoch & 1) as usize);
        state.epoch += 1;
        while state.cycles[old] > 0 {
            state = self.wait(state);
        }
        let mut folders = BTreeSet::new();
        for (_, file) in state.files.iter() {
            if let Some(left) = &file.identity {
                let cut = file
                    .path
                    .iter()
                    .rposition(|&byte| byte == b'/')
                    .unwrap_or(0);
                folders.insert((left.device, file.path[..cut.max(1)].to_vec()));
            }
        }
        Some((position, folders))
    }

    fn put_checkpoint(&self, state: &mut State, position: u64) -> io::Result<u64> {
        state.prepare(&*self.clock)?;
        let sequence = state.journal.sequence();
        let epoch = state.epoch;
        let mut stale: Vec<u32> = Vec::new();
        for (id, file) in state.files.iter() {
            let pending = !file.values.is_empty() || file.taken.is_some();
            let old = file.pending_since + FILES_KEPT <= sequence && file.begun != epoch;
            if pending && (old || file.redo.is_some()) {
                stale.push(id);
            }
        }
        stale.sort_unstable();
        let mut before = Vec::new();
        for id in stale {
            let file = state.files.get(id);
            before.push((id, file.map_or(0, |file| file.pending_since)));
            if let Some(begin) = file.and_then(|file| file.redo.as_deref().cloned()) {
                state.put(id, &Entry::Begin { id, begin });
            }
            state.restate_file(id);
        }
        state.journal.put(&Entry::Checkpoint { position });
        let committed = state.journal.commit();
        if committed.is_err() {
            state.forget_introductions();
            for (id, pending_since) in before {
                if let Some(file) = state.files.get_mut(id) {
                    file.pending_since = pending_since;
                }
            }
        }
        committed
    }
}

/// The oldest journal file that has something this file still needs.
fn first_needed(file: &File, epoch: u32) -> u64 {
    let pending = !file.values.is_empty() || file.taken.is_some() || file.redo.is_some();
    let mut first = if pending {
        file.pending_since
    } else {
        u64::MAX
    };
    if file.begun == epoch {
        first = first.min(file.taken_since);
    }
    first
}
