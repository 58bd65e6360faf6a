//! How the .rrd file of a series stands: how we left it, what is in it, and what a crash may have made of it.
//!
//! A write is announced in the journal (START) before it begins, and END says how it left the file. A checkpoint settles the
//! writes that have ended: they are on the disk. Where one may have been cut short, the next begins at the last stamp
//! that is on the disk for certain. Nothing here knows paths or opens files.

use crate::wal::live::Live;
use crate::wal::record::Identity;

#[cfg(test)]
mod tests;

/// How a write left a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) identity: Identity,
    /// Checksums of its header.
    pub(crate) live: Live,
    /// The stamp of what it has.
    pub(crate) upto: f64,
}

/// How one file stands. A copy of it says how it stood when a write began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileState {
    /// How we left it; `None`: there never was one.
    left: Option<Identity>,
    /// Checksums of its header then, if they are known.
    live: Option<Live>,
    /// The stamp of what it has, and of what it has on the disk for certain.
    upto: f64,
    safe: f64,
    /// The journal file that has the oldest START since a checkpoint; 0: none.
    started: u64,
    /// And the newest one's epoch.
    begun: u32,
    /// A write may have been cut short: the next one begins at `safe`.
    redo: bool,
    /// We made it, and it may not be on the disk.
    create_unsynced: bool,
    /// A write was announced, and not that it ended: in an earlier life, or because it failed.
    writing: bool,
    /// One thread writes or replaces it.
    busy: bool,
    /// It waits to be brought up to date.
    queued: bool,
    /// No one has looked at it since the start: it may be another one.
    unseen: bool,
    /// Since when it is missing, monotonic.
    gone_since: Option<u64>,
    /// The file is missing, and whoever asks for it has it made again.
    removed: bool,
    /// Monotonic nanoseconds when it is to be brought up to date.
    due_ns: u64,
}

/// How a file begins.
impl FileState {
    /// There is none; it would have nothing that blocks have not, up to this stamp.
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

    /// One that counts as it is, and is on the disk.
    pub(crate) fn found(left: &Left) -> FileState {
        FileState {
            left: Some(left.identity),
            live: Some(left.live),
            ..FileState::none(left.upto)
        }
    }

    /// One that we made, which is on the disk when a checkpoint has settled it. START is in this journal file.
    pub(crate) fn made(left: &Left, sequence: u64, epoch: u32) -> FileState {
        FileState {
            started: sequence,
            begun: epoch,
            create_unsynced: true,
            ..FileState::found(left)
        }
    }

    /// What the journal says of a series that begins. `base`: its file has rows from before; without them we made it, if
    /// there is one.
    pub(crate) fn of_birth(base: Option<i64>, stamp: f64) -> FileState {
        FileState {
            create_unsynced: base.is_none(),
            ..FileState::none(stamp)
        }
    }

    /// What a block says: the inverse of [`FileState::for_block`].
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

/// What becomes of it. What [`super::series::SeriesTable`] finds files by changes only there.
impl FileState {
    /// Reserves it for one thread; `false`: it is another's.
    pub(crate) fn reserve(&mut self) -> bool {
        !std::mem::replace(&mut self.busy, true)
    }

    /// Whoever reserved it has done.
    pub(crate) fn release(&mut self) {
        self.busy = false;
    }

    /// START is in the journal: from now on, rows may change that a crash leaves half written. Only who has reserved it
    /// may begin. The oldest START is the one that the journal must keep.
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

    /// A write has ended: the file has all up to a stamp, though not on the disk for certain. What was cut short before
    /// is whole, and a file that was missing is there.
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

    /// A write failed, and some of it may be there. The next one begins at what is on the disk for certain: what an earlier
    /// one wrote may not be.
    pub(crate) fn abort_write(&mut self) {
        self.redo = true;
        self.writing = true;
    }

    /// A checkpoint has put it on the disk. Not while a write of it is under way.
    pub(super) fn settle(&mut self) {
        self.started = 0;
        self.redo = false;
        self.create_unsynced = false;
        self.safe = self.upto;
    }

    /// Whether a checkpoint with which this epoch began settles it: all its writes began before, and none was cut short.
    pub(super) fn is_settled_by(&self, epoch: u32) -> bool {
        self.begun != epoch && !self.redo
    }

    /// Others put the same in its place, or touched it: it has what it had.
    pub(super) fn confirm(&mut self, identity: Identity) {
        self.left = Some(identity);
        self.come_back();
    }

    /// It is missing; since when does not change until it is there again.
    pub(crate) fn miss(&mut self, now_ns: u64) {
        self.gone_since.get_or_insert(now_ns);
    }

    /// It is missing, and that counts from now on.
    pub(crate) fn miss_from(&mut self, now_ns: u64) {
        self.gone_since = Some(now_ns);
    }

    /// It is there again.
    pub(crate) fn come_back(&mut self) {
        self.gone_since = None;
        self.removed = false;
    }

    /// Somebody has looked at it, and what was left is there or has been taken in.
    pub(crate) fn look(&mut self) {
        self.come_back();
        self.unseen = false;
    }

    /// The file is missing, and is to be made when somebody asks for it.
    pub(crate) fn remove(&mut self) {
        self.removed = true;
    }

    /// It is missing, and is to be made: what it had on the disk does not count. Only where blocks have all its rows.
    pub(crate) fn make_again(&mut self) {
        self.redo = true;
    }

    /// It waits to be brought up to date; `false`: it did already.
    pub(crate) fn enqueue(&mut self) -> bool {
        !std::mem::replace(&mut self.queued, true)
    }

    /// It waits no longer.
    pub(crate) fn dequeue(&mut self) {
        self.queued = false;
    }

    /// When it is due, monotonic.
    pub(crate) fn put_off(&mut self, due_ns: u64) {
        self.due_ns = due_ns;
    }
}

/// What the journal of an earlier life says, in its order, and what a start makes of it.
impl FileState {
    /// START: unless END follows, that write may have been cut short.
    pub(super) fn replay_start(&mut self, sequence: u64) {
        // Epochs of this life begin at 1.
        self.announce(sequence, 0);
        self.redo = true;
        self.writing = true;
    }

    /// END. It may not be on the disk: until a checkpoint follows, the file is to be written again.
    pub(super) fn replay_end(&mut self, identity: Identity, upto: f64) {
        self.writing = false;
        self.left = Some(identity);
        self.live = None;
        self.upto = upto;
    }

    /// LIVE.
    pub(crate) fn replay_live(&mut self, live: Live) {
        self.live = Some(live);
    }

    /// NOT_STARTED: the write did not touch the file. Those before it that ended may not be on the disk.
    pub(crate) fn replay_not_started(&mut self) {
        self.writing = false;
    }

    /// What a crash left stays: the file cannot be written again.
    pub(crate) fn leave_as_it_is(&mut self) {
        self.redo = false;
    }

    /// All is replayed. Others may have changed it while no daemon ran.
    pub(crate) fn begin_life(&mut self, due_ns: u64) {
        self.unseen = true;
        self.due_ns = due_ns;
    }
}

/// How it stands.
impl FileState {
    /// How we left it; `None`: there never was one.
    pub(crate) fn left(&self) -> Option<Identity> {
        self.left
    }

    /// Checksums of its header as we left it.
    pub(crate) fn live(&self) -> Option<Live> {
        self.live
    }

    /// The stamp of what it has.
    pub(crate) fn upto(&self) -> f64 {
        self.upto
    }

    /// The stamp behind which a write begins.
    pub(crate) fn from(&self) -> f64 {
        match self.redo {
            true => self.safe,
            false => self.upto,
        }
    }

    /// For a block: how it was left, the stamp of what it has, and of what it has on the disk for certain.
    pub(crate) fn for_block(&self) -> Option<(Identity, f64, f64)> {
        self.left.map(|left| (left, self.upto, self.safe))
    }

    /// We made it, and it may not be on the disk.
    pub(crate) fn is_create_unsynced(&self) -> bool {
        self.create_unsynced
    }

    /// The journal file that has the oldest START which no checkpoint has settled.
    pub(crate) fn started(&self) -> Option<u64> {
        (self.started > 0).then_some(self.started)
    }

    /// Whether it has everything up to a stamp, and all of it is whole.
    pub(crate) fn has(&self, stamp: f64) -> bool {
        self.left.is_some() && stamp <= self.upto && !self.redo && !self.removed
    }

    /// A write may have been cut short.
    pub(crate) fn must_redo(&self) -> bool {
        self.redo
    }

    /// A write was announced, and not that it ended.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.writing
    }

    /// No write before was cut short, or may have been.
    pub(crate) fn is_whole(&self) -> bool {
        !self.writing && !self.redo
    }

    /// Whether this is our file, which a crash cut short: what we were writing when it all stopped, or what has not got all of
    /// what we wrote.
    pub(crate) fn was_cut_short(&self, seen: &Identity) -> bool {
        self.redo
            && self.left.is_some_and(|left| {
                let same = left.may_be(seen) && left.size_bytes == seen.size_bytes;
                same && (self.writing || seen.mtime_ns <= left.mtime_ns)
            })
    }

    /// Whether this is a file that we made, of which the power left less than all.
    pub(crate) fn was_cut_off(&self, seen: &Identity) -> bool {
        let is_less = |left: Identity| left.may_be(seen) && seen.size_bytes < left.size_bytes;
        self.redo && self.left.is_some_and(is_less)
    }

    /// Whether nothing of it counts, whatever it looks like: we made it, and the crash came before that was on the disk.
    pub(crate) fn was_half_made(&self) -> bool {
        self.redo && self.create_unsynced
    }

    /// One thread writes or replaces it.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// No thread writes it, and nothing is to be written again: it is as we left it, or others changed it.
    pub(crate) fn is_at_rest(&self) -> bool {
        !self.busy && !self.redo
    }

    /// It waits to be brought up to date.
    pub(crate) fn is_queued(&self) -> bool {
        self.queued
    }

    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// No one has looked at it since the start.
    pub(crate) fn is_unseen(&self) -> bool {
        self.unseen
    }

    /// Since when it is missing, monotonic.
    pub(crate) fn gone_since(&self) -> Option<u64> {
        self.gone_since
    }
}
