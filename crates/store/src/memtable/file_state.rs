//! State of the .rrd file of a series: how the store left it, the values in it, and possible damage by a crash.
//!
//! A write is announced in the journal (START) before it begins, and END has the state in which it left the file. A checkpoint
//! settles the ended writes: they are on the disk. After a write that may have been cut short, the next one begins at the last
//! stamp that is certainly on the disk. This module knows no paths and opens no files.

use crate::wal::live::Live;
use crate::wal::record::Identity;

#[cfg(test)]
mod tests;

/// State in which a write left a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) identity: Identity,
    /// Checksums of its header.
    pub(crate) live: Live,
    /// Stamp up to which it has values.
    pub(crate) upto: f64,
}

/// State of one file. A copy of it keeps the state at the start of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileState {
    /// Identity after the last write; `None` if there never was a file.
    left: Option<Identity>,
    /// Checksums of the header after the last write, if known.
    live: Option<Live>,
    /// Stamp up to which the file has values, and stamp up to which these are certainly on the disk.
    upto: f64,
    safe: f64,
    /// The journal file with the oldest START since a checkpoint; 0 if there is none.
    started: u64,
    /// Epoch of the newest START.
    begun: u32,
    /// A write may have been cut short, so the next one begins at `safe`.
    redo: bool,
    /// The store created the file, which may not be on the disk.
    create_unsynced: bool,
    /// A write was announced, and no END followed: an earlier process ended, or the write failed.
    writing: bool,
    /// A thread writes or replaces the file.
    busy: bool,
    /// The file is queued for an update.
    queued: bool,
    /// The file has not been checked since the start, and may be another one.
    unseen: bool,
    /// Time since which the file is missing (monotonic).
    gone_since: Option<u64>,
    /// The file is missing and is created again on request.
    removed: bool,
    /// Time at which an update is due, in monotonic nanoseconds.
    due_ns: u64,
}

/// Creation of states.
impl FileState {
    /// No file; a file would need values after this stamp only.
    pub(crate) fn none(stamp: f64) -> FileState {
        FileState {
            left: None,
            live: None,
            upto: stamp,
            safe: stamp,
            started: 0,
            begun: 0,
            redo: false,
            create_unsynced: false,
            writing: false,
            busy: false,
            queued: false,
            unseen: false,
            gone_since: None,
            removed: false,
            due_ns: 0,
        }
    }

    /// An adopted file, which is on the disk.
    pub(crate) fn found(left: &Left) -> FileState {
        FileState {
            left: Some(left.identity),
            live: Some(left.live),
            ..FileState::none(left.upto)
        }
    }

    /// A file that the store created, and that is on the disk once a
    /// checkpoint has settled it. Its START is in this journal file.
    pub(crate) fn made(left: &Left, sequence: u64, epoch: u32) -> FileState {
        FileState {
            started: sequence,
            begun: epoch,
            create_unsynced: true,
            ..FileState::found(left)
        }
    }

    /// State of a new series in the journal. With `base`, its file has
    /// earlier rows; otherwise the store created its file, if there is one.
    pub(crate) fn of_birth(base: Option<i64>, stamp: f64) -> FileState {
        FileState {
            create_unsynced: base.is_none(),
            ..FileState::none(stamp)
        }
    }

    /// State in a block: the inverse of [`FileState::for_block`].
    pub(crate) fn of_block(
        left: Option<(Identity, f64, f64)>,
        live: Option<Live>,
        create_unsynced: bool,
    ) -> FileState {
        let none = FileState {
            create_unsynced,
            ..FileState::none(f64::NEG_INFINITY)
        };
        match left {
            None => none,
            Some((left, upto, safe)) => FileState {
                left: Some(left),
                live,
                upto,
                safe,
                ..none
            },
        }
    }
}

/// Changes of the state. [`super::series::SeriesTable`] makes those that affect how it finds files.
impl FileState {
    /// Reserves the file for one thread; returns `false` if another thread has it.
    pub(crate) fn reserve(&mut self) -> bool {
        !std::mem::replace(&mut self.busy, true)
    }

    /// Releases the reserved file.
    pub(crate) fn release(&mut self) {
        self.busy = false;
    }

    /// Notes that a START is in the journal. From now on a crash may leave rows half written. The file must be reserved. The
    /// journal must keep the oldest START.
    pub(super) fn begin_write(&mut self, sequence: u64, epoch: u32) {
        debug_assert!(self.busy, "BUG: a write of a file that is not reserved");
        self.announce(sequence, epoch);
    }

    fn announce(&mut self, sequence: u64, epoch: u32) {
        self.begun = epoch;
        if self.started == 0 {
            self.started = sequence;
        }
    }

    /// Notes the end of a write: the file has all values up to a stamp, though they may not be on the disk. A file that was
    /// torn before is whole now, and a missing one exists.
    pub(super) fn finish_write(&mut self, left: &Left, due_ns: u64) {
        debug_assert!(self.started > 0, "BUG: a write that was not announced");
        self.left = Some(left.identity);
        self.live = Some(left.live);
        self.upto = left.upto;
        self.redo = false;
        self.writing = false;
        self.come_back();
        self.due_ns = due_ns;
    }

    /// Notes a failed write, of which a part may be in the file. The next write begins at the stamp that is certainly on the
    /// disk, since the data of an earlier write may not be there.
    pub(crate) fn abort_write(&mut self) {
        self.redo = true;
        self.writing = true;
    }

    /// Notes that a checkpoint has synced the file. No thread may be writing the file.
    pub(super) fn settle(&mut self) {
        self.started = 0;
        self.redo = false;
        self.create_unsynced = false;
        self.safe = self.upto;
    }

    /// Returns true if a checkpoint that began with this epoch settles
    /// the file: all its writes began before, and none was cut short.
    pub(super) fn is_settled_by(&self, epoch: u32) -> bool {
        self.begun != epoch && !self.redo
    }

    /// Notes a new identity of the file with unchanged content.
    pub(super) fn confirm(&mut self, identity: Identity) {
        self.left = Some(identity);
        self.come_back();
    }

    /// Notes that the file is missing; the time stays that of the first call.
    pub(crate) fn miss(&mut self, now_ns: u64) {
        self.gone_since.get_or_insert(now_ns);
    }

    /// Notes that the file is missing, counted from now on.
    pub(crate) fn miss_from(&mut self, now_ns: u64) {
        self.gone_since = Some(now_ns);
    }

    /// Notes that the file is there again.
    pub(crate) fn come_back(&mut self) {
        self.gone_since = None;
        self.removed = false;
    }

    /// Notes that the file was checked, and that its changes have been taken in.
    pub(crate) fn look(&mut self) {
        self.come_back();
        self.unseen = false;
    }

    /// Notes that the file is missing and is created again on request.
    pub(crate) fn remove(&mut self) {
        self.removed = true;
    }

    /// Has a missing file created again, with all rows. Only for series whose rows are all in blocks.
    pub(crate) fn make_again(&mut self) {
        self.redo = true;
    }

    /// Queues the file for an update; returns `false` if it is queued already.
    pub(crate) fn enqueue(&mut self) -> bool {
        !std::mem::replace(&mut self.queued, true)
    }

    /// Notes that the file is not queued any more.
    pub(crate) fn dequeue(&mut self) {
        self.queued = false;
    }

    /// Sets the time at which an update is due (monotonic).
    pub(crate) fn put_off(&mut self, due_ns: u64) {
        self.due_ns = due_ns;
    }
}

/// Replay of an earlier process's journal, in its order.
impl FileState {
    /// START: unless an END follows, the write may have been cut short.
    pub(super) fn replay_start(&mut self, sequence: u64) {
        // Epochs of this process begin at 1.
        self.announce(sequence, 0);
        self.redo = true;
        self.writing = true;
    }

    /// END: the write may not be on the disk, so the file must be written again unless a checkpoint follows.
    pub(super) fn replay_end(&mut self, identity: Identity, upto: f64) {
        self.writing = false;
        self.left = Some(identity);
        self.live = None;
        self.upto = upto;
    }

    /// LIVE: checksums of the header.
    pub(crate) fn replay_live(&mut self, live: Live) {
        self.live = Some(live);
    }

    /// NOT_STARTED: the write did not touch the file. Earlier ended writes may not be on the disk.
    pub(crate) fn replay_not_started(&mut self) {
        self.writing = false;
    }

    /// Gives up rewriting a torn file.
    pub(crate) fn leave_as_it_is(&mut self) {
        self.redo = false;
    }

    /// Ends the replay. Other programs may have changed the file while no daemon ran.
    pub(crate) fn begin_life(&mut self, due_ns: u64) {
        self.unseen = true;
        self.due_ns = due_ns;
    }
}

/// Queries of the state.
impl FileState {
    /// Identity after the last write; `None` if there never was a file.
    pub(crate) fn left(&self) -> Option<Identity> {
        self.left
    }

    /// Checksums of the header after the last write.
    pub(crate) fn live(&self) -> Option<Live> {
        self.live
    }

    /// Stamp up to which the file has values.
    pub(crate) fn upto(&self) -> f64 {
        self.upto
    }

    /// Stamp after which the next write begins.
    pub(crate) fn from(&self) -> f64 {
        match self.redo {
            true => self.safe,
            false => self.upto,
        }
    }

    /// State for a block: identity after the last write, stamp up to which
    /// the file has values, and stamp up to which these are on the disk.
    pub(crate) fn for_block(&self) -> Option<(Identity, f64, f64)> {
        self.left.map(|left| (left, self.upto, self.safe))
    }

    /// Returns true if the store created the file and it may not be on the disk.
    pub(crate) fn is_create_unsynced(&self) -> bool {
        self.create_unsynced
    }

    /// The journal file with the oldest START that no checkpoint has settled.
    pub(crate) fn started(&self) -> Option<u64> {
        (self.started > 0).then_some(self.started)
    }

    /// Returns true if the file has all values up to a stamp and is whole.
    pub(crate) fn has(&self, stamp: f64) -> bool {
        self.left.is_some() && stamp <= self.upto && !self.redo && !self.removed
    }

    /// Returns true if a write may have been cut short.
    pub(crate) fn must_redo(&self) -> bool {
        self.redo
    }

    /// Returns true if a write was announced and has not ended.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.writing
    }

    /// Returns true if no earlier write was or may have been cut short.
    pub(crate) fn is_whole(&self) -> bool {
        !self.writing && !self.redo
    }

    /// Returns true if this is the store's file, cut short by a crash: either a write was running, or a finished write is not
    /// completely on the disk.
    pub(crate) fn was_cut_short(&self, seen: &Identity) -> bool {
        self.redo
            && self.left.is_some_and(|left| {
                let same = left.may_be(seen) && left.size_bytes == seen.size_bytes;
                same && (self.writing || seen.mtime_ns <= left.mtime_ns)
            })
    }

    /// Returns true if this is the store's file, and shorter than it was left.
    pub(crate) fn was_cut_off(&self, seen: &Identity) -> bool {
        let is_less = |left: Identity| left.may_be(seen) && seen.size_bytes < left.size_bytes;
        self.redo && self.left.is_some_and(is_less)
    }

    /// Returns true if the whole content is invalid, whatever it looks like:
    /// the store created the file, and a crash came before it was synced.
    pub(crate) fn was_half_made(&self) -> bool {
        self.redo && self.create_unsynced
    }

    /// Returns true if a thread writes or replaces the file.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Returns true if no thread writes the file and it needs no rewrite; it is as it was left, or other programs changed it.
    pub(crate) fn is_at_rest(&self) -> bool {
        !self.busy && !self.redo
    }

    /// Returns true if the file is queued for an update.
    pub(crate) fn is_queued(&self) -> bool {
        self.queued
    }

    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// Returns true if the file has not been checked since the start.
    pub(crate) fn is_unseen(&self) -> bool {
        self.unseen
    }

    /// Time since which the file is missing (monotonic).
    pub(crate) fn gone_since(&self) -> Option<u64> {
        self.gone_since
    }
}
