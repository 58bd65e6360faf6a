//! What is under the store's lock.

use crate::entry::{self, Entry};
use crate::files::{File, Files};
use crate::journal::Journal;
use crate::store::Stats;
use kymo_sys::clock::Clock;
use kymo_sys::sim_disk::next_random;
use std::io;
use std::time::Duration;

/// Restated values are written in frames of about this size.
const FRAME_BYTES: usize = 1 << 20;
/// After a journal file could not be begun, the next try is so much later.
const RETRY_NS: u64 = 500_000_000;
const EIO: i32 = 5;
/// An entry's count of values is one byte.
pub(crate) const VALUES_MAX: usize = 127;

/// Everything a turn may change.
pub(crate) struct State {
    pub(crate) files: Files,
    pub(crate) journal: Journal,
    /// Files that are due; some may have been written meanwhile.
    pub(crate) queue: Vec<u32>,
    /// FLUSHALL came, and no thread has begun with it.
    pub(crate) flushes: bool,
    pub(crate) undo: Vec<Undo>,
    pub(crate) turns: u64,
    /// Rises when a checkpoint begins.
    pub(crate) epoch: u32,
    /// Writes of files that are under way, by the epoch's lowest bit.
    pub(crate) cycles: [u32; 2],
    pub(crate) syncing: bool,
    pub(crate) checkpointing: bool,
    /// A sync of the .rrd files failed: which of their pages are lost nobody knows, so the journal keeps all.
    pub(crate) checkpoints_end: bool,
    /// No journal file could be begun: when to try again, and the error's number.
    pub(crate) no_file: Option<(u64, i32)>,
    pub(crate) sweep_ns: u64,
    pub(crate) checkpoint_ns: u64,
    pub(crate) sync_ns: u64,
    pub(crate) random: u64,
    pub(crate) stats: Stats,
    pub(crate) notices: Vec<String>,
}

/// How a file was before a turn changed it.
pub(crate) struct Undo {
    pub(crate) id: u32,
    pub(crate) mark: (usize, u32),
    pub(crate) last: f64,
    pub(crate) introduced: u64,
    pub(crate) pending_since: u64,
    /// FORGET's victims.
    pub(crate) forgotten: Option<crate::values::Values>,
}

impl State {
    /// Makes sure that entries can be gathered: the journal has a file with room.
    pub(crate) fn prepare(&mut self, clock: &dyn Clock) -> io::Result<()> {
        if self.journal.is_open() && !self.journal.is_used_up() {
            self.journal.fill_ahead();
            return Ok(());
        }
        let now = clock.now();
        if let Some((until_ns, error)) = self.no_file
            && now.mono_ns < until_ns
        {
            return self.go_on_without(error);
        }
        let anew = !self.journal.is_open();
        let mut begun = self.journal.begin_file(anew, now.real_ns);
        if anew && begun.is_ok() {
            begun = self.restate();
            if begun.is_err() {
                // A file that begins with less than all would hide what is missing.
                self.journal.give_up();
            }
        }
        match begun {
            Ok(()) => {
                self.no_file = None;
                self.journal.fill_ahead();
                Ok(())
            }
            Err(error) => {
                let number = error.raw_os_error().unwrap_or(EIO);
                self.no_file = Some((now.mono_ns + RETRY_NS, number));
                self.go_on_without(number)
            }
        }
    }

    /// There is no new file: the old one grows, if there is one.
    fn go_on_without(&self, error: i32) -> io::Result<()> {
        match self.journal.is_open() {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Appends all that memory holds to a file that was just begun.
    fn restate(&mut self) -> io::Result<()> {
        let mut ids: Vec<u32> = self.files.iter().map(|(id, _)| id).collect();
        ids.sort_unstable();
        for id in ids {
            if let Some(file) = self.files.get_mut(id) {
                // Whether its BEGIN was in what is lost nobody knows.
                file.begun = 0;
                if file.forgotten {
                    self.put(id, &Entry::Forget { id });
                }
            }
            self.restate_file(id);
            if self.journal.entries().len() > FRAME_BYTES {
                self.journal.commit()?;
            }
        }
        self.journal.commit().map(|_| ())
    }

    /// Gathers the values of one file again; its oldest are then in the open journal file.
    pub(crate) fn restate_file(&mut self, id: u32) {
        let sequence = self.journal.sequence();
        let Some(file) = self.files.get_mut(id) else {
            return;
        };
        let taken = file.taken.clone().unwrap_or_default();
        if file.values.is_empty() && taken.is_empty() {
            return;
        }
        introduce(file, id, &mut self.journal);
        file.pending_since = sequence;
        let texts: Vec<&[u8]> = taken.iter().chain(file.values.iter()).collect();
        for some in texts.chunks(VALUES_MAX) {
            let (out, stamps) = self.journal.values();
            entry::put_values_head(out, id, some.len() as u64);
            some.iter()
                .for_each(|text| entry::put_value(out, stamps, text));
        }
    }

    /// Gathers an entry about a file.
    pub(crate) fn put(&mut self, id: u32, entry: &Entry<'_>) {
        if let Some(file) = self.files.get_mut(id) {
            introduce(file, id, &mut self.journal);
            self.journal.put(entry);
        }
    }

    /// Monotonic nanoseconds from which on a file's interval counts that is written now.
    pub(crate) fn flushed_at(&mut self, now_ns: u64, jitter: Duration) -> u64 {
        let jitter_ns = jitter.as_nanos() as u64;
        match jitter_ns {
            0 => now_ns,
            _ => now_ns + next_random(&mut self.random) % jitter_ns,
        }
    }

    /// Entries that introduced files were lost.
    pub(crate) fn forget_introductions(&mut self) {
        for (_, file) in self.files.iter_mut() {
            file.introduced = 0;
        }
    }

    /// Puts a file into the queue.
    pub(crate) fn queue(&mut self, id: u32) {
        if let Some(file) = self.files.get_mut(id).filter(|file| !file.queued) {
            file.queued = true;
            self.queue.push(id);
        }
    }

    /// What a turn did is undone.
    pub(crate) fn roll_back(&mut self) {
        self.journal.abandon();
        for undo in std::mem::take(&mut self.undo).into_iter().rev() {
            let Some(file) = self.files.get_mut(undo.id) else {
                continue;
            };
            if let Some(values) = undo.forgotten {
                file.values = values;
                file.forgotten = false;
            }
            file.values.truncate(undo.mark);
            file.last = undo.last;
            file.introduced = undo.introduced;
            file.pending_since = undo.pending_since;
        }
    }

    /// A line for the log.
    pub(crate) fn notice(&mut self, line: String) {
        const NOTICES_MAX: usize = 1000;
        if self.notices.len() < NOTICES_MAX {
            self.notices.push(line);
        }
    }
}

/// Says which path an id stands for, once a journal file.
pub(crate) fn introduce(file: &mut File, id: u32, journal: &mut Journal) {
    if file.introduced != journal.sequence() {
        file.introduced = journal.sequence();
        journal.put(&Entry::File {
            id,
            path: &file.path,
        });
    }
}
