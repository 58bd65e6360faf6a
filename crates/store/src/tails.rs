//! Tails: readers that follow the journal and carry everything on. Each has a name and a position up to which it has everything; the
//! files of the journal from there on stay, up to a limit. Beyond the limit the oldest file goes, and the tail learns how many values
//! it has missed.

mod decode;
mod reader;

use std::io;
use std::sync::PoisonError;
use std::time::Duration;

use crate::engine::{Inner, Store};
use crate::error::Error;
use crate::tail_table::{NAME_MAX, TAILS_MAX, TAILS_NAME, TailState};

pub use reader::{TailReader, TailSink, TailStep};

/// Where a tail begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailFrom {
    /// Where it has got to; if it is new, with the values that come from now on.
    Acknowledged,
    /// With the values that come from now on.
    Now,
    /// With the oldest values that the journal has.
    Oldest,
    /// At a position. A tail with a name has everything before it.
    At(u64),
}

impl Store {
    /// The tails that files are kept for.
    pub fn tails(&self) -> Vec<TailState> {
        self.inner.tails.table().tails.clone()
    }

    /// Bytes of the journal that a tail has not got.
    pub fn tail_backlog(&self, position: u64) -> u64 {
        self.inner.lock().journal.position.saturating_sub(position)
    }

    /// Begins a tail, or goes on with it: the position to read from. With a name the tail is remembered, and files of the journal are
    /// kept for it from that position on.
    pub fn begin_tail(&self, name: &str, from: TailFrom) -> Result<u64, Error> {
        let inner = &*self.inner;
        let (now, oldest) = {
            let state = inner.lock();
            let first = state.journal.spans().next();
            let oldest = first.map_or(state.journal.position, |(span, _)| span.base);
            (state.journal.position, oldest)
        };
        let mut table = inner.tails.table();
        let known = table.tails.iter().find(|tail| tail.name == name).cloned();
        let position = match (from, &known) {
            (TailFrom::Acknowledged, Some(known)) => known.position,
            (TailFrom::Acknowledged | TailFrom::Now, _) => now,
            (TailFrom::Oldest, _) => oldest,
            // Behind the end there is nothing yet.
            (TailFrom::At(position), _) => position.min(now),
        };
        if name.is_empty() {
            return Ok(position);
        }
        if known.is_none() && table.tails.len() >= TAILS_MAX {
            let cause = io::Error::other(format!("there are {TAILS_MAX}"));
            return Err(self.tail_error("remember one more tail in", cause));
        }
        if name.len() > NAME_MAX || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            let cause = io::Error::other("its name is no word of at most 64 letters");
            return Err(self.tail_error("remember a tail in", cause));
        }
        let missed = known.as_ref().map_or(0, |known| known.missed);
        if known.is_none_or(|known| known.position != position) {
            let tail = TailState {
                name: name.into(),
                position,
                missed,
            };
            table
                .put(tail)
                .map_err(|cause| self.tail_error("remember a tail in", cause))?;
        }
        drop(table);
        inner.drop_kept_files();
        Ok(position)
    }

    /// Forgets a tail. `false`: there is none of that name.
    pub fn end_tail(&self, name: &str) -> Result<bool, Error> {
        let mut table = self.inner.tails.table();
        let forgotten = table.forget(name);
        if !forgotten.map_err(|cause| self.tail_error("forget a tail in", cause))? {
            return Ok(false);
        }
        drop(table);
        self.inner.drop_kept_files();
        Ok(true)
    }

    /// Values that a tail has missed since it is there.
    pub fn missed_by_tail(&self, name: &str) -> u64 {
        let table = self.inner.tails.table();
        let tail = table.tails.iter().find(|tail| tail.name == name);
        tail.map_or(0, |tail| tail.missed)
    }

    /// Waits until something behind a position is on the disk, or for so long. `true`: there is.
    pub fn wait_for_tail(&self, position: u64, longest: Duration) -> bool {
        let inner = &*self.inner;
        let has_none = |state: &mut crate::memtable::state::State| state.journal.synced <= position;
        let waited = inner
            .changed
            .wait_timeout_while(inner.lock(), longest, has_none);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.journal.synced > position
    }

    fn tail_error(&self, verb: &'static str, cause: io::Error) -> Error {
        Error::Io {
            verb,
            path: self.inner.settings.folder.join(TAILS_NAME),
            cause,
        }
    }
}

impl Inner {
    /// Removes kept files that no tail needs.
    fn drop_kept_files(&self) {
        let pinned = self.tails.pinned();
        let mut state = self.lock();
        if let Err(error) = state.journal.drop_kept(pinned) {
            state.notice(format!("cannot remove a journal file: {error}"));
        }
    }

    /// Removes kept files that no tail needs, and then the oldest ones until the rest is within the limits.
    pub(crate) fn release_kept_files(&self) {
        loop {
            self.drop_kept_files();
            let Some((base, end)) = self.kept_file_beyond_limits() else {
                return;
            };
            if let Err(error) = self.skip(base, end) {
                let mut state = self.lock();
                state.notice(format!(
                    "cannot remember what tails have missed: {error}; their files stay"
                ));
                return;
            }
        }
    }

    /// The oldest kept file, if it has to go: where it begins and ends.
    fn kept_file_beyond_limits(&self) -> Option<(u64, u64)> {
        let now_ns = self.clock.now().real_ns;
        let age_ns = i64::try_from(self.settings.tail_age.as_nanos()).unwrap_or(i64::MAX);
        let state = self.lock();
        let kept = state.journal.spans().filter(|(span, _)| span.is_kept);
        let bytes: u64 = kept.map(|(span, end)| end - span.base).sum();
        let mut spans = state.journal.spans();
        let (oldest, end) = spans.next().filter(|(span, _)| span.is_kept)?;
        // The file ended when the next one was begun.
        let ended_ns = spans.next().map_or(now_ns, |(next, _)| next.real_ns);
        let is_old = now_ns.saturating_sub(ended_ns) > age_ns;
        (bytes > self.settings.tail_bytes || is_old).then_some((oldest.base, end))
    }

    /// Has all tails go on behind a file, and counts what each of them misses.
    fn skip(&self, base: u64, end: u64) -> io::Result<()> {
        let behind = self.tails.table().tails.clone();
        for tail in behind.iter().filter(|tail| tail.position < end) {
            let count = reader::count(self, tail.position.max(base), end);
            let mut table = self.tails.table();
            // The tail may have got further meanwhile.
            let now = table.tails.iter().find(|now| now.name == tail.name);
            let Some(now) = now.filter(|now| now.position == tail.position).cloned() else {
                continue;
            };
            let missed = now.missed.saturating_add(count);
            table.put(TailState {
                position: end,
                missed,
                ..now
            })?;
            drop(table);
            self.lock().notice(format!(
                "{} was too far behind: {count} values that it has not got are no longer in the journal",
                tail.name
            ));
        }
        Ok(())
    }
}
