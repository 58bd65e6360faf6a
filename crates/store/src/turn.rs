//! One turn of the event loop: all requests that are ready, one lock, one write of the journal.

use crate::entry::{Entry, ValuesHead};
use crate::error::Refusal;
use crate::fence;
use crate::groups::Group;
use crate::names;
use crate::state::{State, Undo};
use crate::store::{Inner, Stats};
use crate::value::Value;
use kymo_rrd::number::{Parsed, strtodbl};
use std::io;
use std::sync::MutexGuard;
use std::time::Duration;

/// Integers up to so many digits are doubles without rounding.
const EXACT_DIGITS: usize = 15;

/// A place in the journal; what lies before it is in the kernel, and durable after `Store::durable`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// What SUSPEND and RESUME found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    /// `%s suspended`, `%s resumed`.
    Now,
    /// `%s already suspended`, `%s not suspended`.
    Already,
    /// The file is not known: `%s - No such file or directory`.
    Unknown,
}

/// All requests of a turn. Dropped without [`Turn::commit`], it has done nothing.
pub struct Turn<'a> {
    inner: &'a Inner,
    state: MutexGuard<'a, State>,
    now_ns: u64,
    prepared: io::Result<()>,
    /// FLUSHALL came.
    flushes: bool,
    committed: bool,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(inner: &'a Inner) -> Turn<'a> {
        let mut state = inner.lock();
        state.turns += 1;
        let prepared = state.prepare(&*inner.clock);
        Turn {
            inner,
            state,
            now_ns: inner.clock.mono_ns(),
            prepared,
            flushes: false,
            committed: false,
        }
    }

    /// Takes values for a file as UPDATE does: each stamp must be a number followed by `:` and newer than
    /// the last; the rest is not looked at. Values before a refused one stay taken.
    pub fn update<'v>(
        &mut self,
        name: &[u8],
        values: impl IntoIterator<Item = &'v [u8]>,
    ) -> Result<usize, Refusal> {
        let id = self.next(name).ok_or(Refusal::Untouched)?;
        let state = &mut *self.state;
        let group = state.groups.get_mut(id).ok_or(Refusal::Untouched)?;
        if group.gone_since.is_some() {
            return Err(Refusal::Untouched);
        }
        let chunk_id = group.chunk;
        let chunk = state.chunks.get_mut(chunk_id).ok_or(Refusal::Untouched)?;
        let since = (chunk.since, chunk.since_ns);
        if state.undo.is_empty() {
            state.stats_before = state.stats;
        }
        remember(&mut state.undo, state.turns, id, group, since);
        chunk.touch(state.journal.sequence(), self.now_ns);
        let before = group.pending.len();
        let mut taken = 0;
        let mut refusal = None;
        let mut head: Option<ValuesHead> = None;
        let value = &mut state.value;
        for text in values {
            value.read(text);
            let stamp = match accept(value, text, group.last) {
                Ok(stamp) => stamp,
                // Its file may have been replaced while no daemon ran: then this value may be new to it.
                Err(Refusal::Past { .. }) if group.unseen && taken == 0 => {
                    refusal = Some(Refusal::Untouched);
                    break;
                }
                Err(refused) => {
                    refusal = Some(refused);
                    break;
                }
            };
            group.last = stamp;
            group.version += 1;
            group.pending.push_value(value);
            let (out, stamps) = state.journal.values();
            if !head.as_mut().is_some_and(|head| head.another(out)) {
                head = Some(ValuesHead::begin(out, stamps, id));
            }
            value.put(out, stamps);
            taken += 1;
        }
        let settings = &self.inner.settings;
        let age = |since_ns| self.now_ns.saturating_sub(since_ns);
        let is_old = |since_ns, limit: Duration| age(since_ns) >= limit.as_nanos() as u64;
        if taken > 0 && !group.suspended {
            if is_old(group.shown_ns, settings.write_after) {
                // Another daemon would write its file about now.
                group.show(self.now_ns, &mut state.stats);
            }
            let due = settings.files.is_some() && self.now_ns >= group.due_ns;
            if due && !group.queued {
                state.queue(id);
            }
        }
        let after = before + taken;
        state.count(chunk_id, before, after);
        match refusal {
            Some(refusal) => Err(refusal),
            None if taken == 0 => Err(Refusal::NoValues),
            None => Ok(taken),
        }
    }

    /// FORGET: drops what is known of a file, its pending values too (as rrdcached does). `false`: not known.
    pub fn forget(&mut self, name: &[u8]) -> bool {
        let Some(id) = self.find(name) else {
            return false;
        };
        let state = &mut *self.state;
        let Some(group) = state.groups.get_mut(id) else {
            return false;
        };
        let chunk_id = group.chunk;
        let chunk = state.chunks.get(chunk_id);
        let since = chunk.map_or((0, 0), |chunk| (chunk.since, chunk.since_ns));
        let before = group.pending.len();
        if state.undo.is_empty() {
            state.stats_before = state.stats;
        }
        remember(&mut state.undo, state.turns, id, group, since);
        // As it was before the turn.
        if let Some(undo) = state.undo.iter().rev().find(|undo| undo.id == id) {
            let mut before = group.pending.clone();
            before.truncate(undo.mark);
            state.dropped.push((id, before, group.suspended));
        }
        group.pending.cut_after(group.shown);
        group.forgotten = true;
        group.suspended = false;
        let (shown, after) = (group.shown, group.pending.len());
        let upto = shown;
        state.put(id, &Entry::Shown { id, upto }, self.now_ns);
        state.put(id, &Entry::Forget { id }, self.now_ns);
        state.count(chunk_id, before, after);
        true
    }

    /// SUSPEND: values are kept and not written until RESUME.
    pub fn suspend(&mut self, name: &[u8]) -> Switched {
        self.switch(name, true)
    }

    /// RESUME.
    pub fn resume(&mut self, name: &[u8]) -> Switched {
        self.switch(name, false)
    }

    fn switch(&mut self, name: &[u8], suspended: bool) -> Switched {
        let id = self.find(name);
        match id.and_then(|id| self.state.groups.get_mut(id)) {
            None => Switched::Unknown,
            Some(file) if file.suspended == suspended => Switched::Already,
            Some(file) => {
                file.suspended = suspended;
                Switched::Now
            }
        }
    }

    /// SUSPENDALL; how many were not suspended before.
    pub fn suspend_all(&mut self) -> usize {
        self.switch_all(true)
    }

    /// RESUMEALL; how many were suspended before.
    pub fn resume_all(&mut self) -> usize {
        self.switch_all(false)
    }

    fn switch_all(&mut self, suspended: bool) -> usize {
        let mut switched = 0;
        for (_, file) in self.state.groups.iter_mut() {
            if !file.forgotten && file.suspended != suspended {
                file.suspended = suspended;
                switched += 1;
            }
        }
        switched
    }

    /// PENDING: the values not yet handed to the file, as they were sent. `None`: the file is not known.
    pub fn pending(&self, name: &[u8], each: &mut dyn FnMut(&[u8])) -> Option<usize> {
        let group = self.state.groups.get(self.find(name)?)?;
        Some(group.unshown(each))
    }

    /// QUEUE: the files that are due and how many values they have.
    pub fn queue(&self, each: &mut dyn FnMut(usize, &[u8])) {
        for &id in &self.state.queue {
            if let Some(group) = self.state.groups.get(id).filter(|group| is_due(group)) {
                each(group.count_after(group.upto), &group.path);
            }
        }
    }

    /// Numbers for STATS.
    pub fn stats(&self) -> Stats {
        let state = &*self.state;
        let queue = state.queue.iter().filter_map(|&id| state.groups.get(id));
        Stats {
            queue_length: (queue.filter(|group| is_due(group)).count() + state.flushing) as u64,
            files: state
                .groups
                .iter()
                .filter(|(_, file)| !file.forgotten)
                .count() as u64,
            journal_bytes: state.journal.bytes_written,
            journal_rotate: state.journal.rotations,
            journals_given_up: state.journal.given_up,
            ..state.stats
        }
    }

    /// Newest stamp of a known file (of its values, pending or written), for LAST.
    pub fn last_stamp(&self, name: &[u8]) -> Option<f64> {
        Some(self.state.groups.get(self.find(name)?)?.last)
    }

    /// FLUSHALL: everything that is not suspended becomes due.
    pub fn flush_all(&mut self) {
        if self.inner.settings.files.is_none() {
            let state = &mut *self.state;
            for (_, group) in state
                .groups
                .iter_mut()
                .filter(|(_, group)| !group.suspended)
            {
                group.show(self.now_ns, &mut state.stats);
            }
            return;
        }
        let wanted = self.state.groups.iter();
        let wanted = wanted.filter(|(_, group)| is_wanted(group));
        let mut ids: Vec<u32> = wanted.map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids.into_iter().for_each(|id| self.state.queue(id));
        self.flushes = true;
    }

    /// Writes the turn into the journal, with one write. On an error nothing of the turn has happened:
    /// answer `cannot write journal: ...` to its updates and forgets.
    pub fn commit(mut self) -> io::Result<Position> {
        self.committed = true;
        let prepared = std::mem::replace(&mut self.prepared, Ok(()));
        let needed = self.state.journal.has_entries();
        let written = match prepared {
            Err(error) if needed => Err(error),
            _ => self.state.journal.commit(),
        };
        match written {
            Ok(position) => {
                self.state.undo.clear();
                self.state.dropped.clear();
                if self.flushes {
                    self.state.flushes = true;
                    self.inner.flushes.notify_one();
                }
                Ok(Position(position))
            }
            Err(error) => {
                self.state.roll_back();
                Err(error)
            }
        }
    }

    /// The group of a name, likely the one behind the last: clients send the same series in the same order.
    fn next(&mut self, name: &[u8]) -> Option<u32> {
        let guess = self.state.next;
        let groups = &self.state.groups;
        let id = match groups.get(guess) {
            Some(group) if group.is_spelled(name) => (!group.forgotten).then_some(guess),
            _ => {
                let found = self.find(name);
                if let Some(id) = found.filter(|_| groups.by_name(name).is_none()) {
                    // After a start names are found by their text alone.
                    self.state.groups.spell(id, name);
                }
                found
            }
        };
        let next = id.unwrap_or(guess).wrapping_add(1);
        self.state.next = next;
        self.state.groups.expect_next(next);
        id
    }

    fn find(&self, name: &[u8]) -> Option<u32> {
        let spelled = || names::spelled(&self.inner.settings, name);
        let id = self.state.groups.find(name, spelled)?;
        let group = self.state.groups.get(id)?;
        // What an earlier daemon let in is refused by those who open files.
        let own = fence::keeps(&self.inner.settings, &group.path);
        (!own && self.state.groups.is_known(id)).then_some(id)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.committed {
            self.state.roll_back();
        }
    }
}

/// Whether its file lacks values.
fn is_wanted(group: &Group) -> bool {
    !group.suspended && !group.is_current()
}

fn is_due(group: &Group) -> bool {
    group.queued && is_wanted(group)
}

/// Notes once a turn how a group was before it.
fn remember(undo: &mut Vec<Undo>, turn: u64, id: u32, group: &mut Group, since: (u64, u64)) {
    if group.turn != turn {
        group.turn = turn;
        undo.push(Undo {
            id,
            mark: group.pending.mark(),
            version: group.version,
            last: group.last,
            shown: group.shown,
            shown_ns: group.shown_ns,
            since,
        });
    }
}

/// The stamp of a value, if it is newer than the last.
fn accept(value: &Value, text: &[u8], last: f64) -> Result<f64, Refusal> {
    let stamp = value.seconds().or_else(|| stamp_of(text));
    let stamp = stamp.ok_or_else(|| Refusal::NoStamp {
        value: text.to_vec(),
    })?;
    match stamp <= last {
        true => Err(Refusal::Past { stamp, last }),
        false => Ok(stamp),
    }
}

/// The number before the first `:`, read as rrdtool reads numbers.
pub(crate) fn stamp_of(text: &[u8]) -> Option<f64> {
    let mut seconds = 0u64;
    for (i, &byte) in text.iter().enumerate().take(EXACT_DIGITS + 1) {
        match byte {
            b'0'..=b'9' if i < EXACT_DIGITS => seconds = seconds * 10 + u64::from(byte - b'0'),
            b':' if i > 0 => return Some(seconds as f64),
            _ => break,
        }
    }
    match strtodbl(text) {
        Parsed::Trailing(stamp, used) if text.get(used) == Some(&b':') => Some(stamp),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_rrd::number::strtod;

    #[test]
    fn stamps_are_read_as_rrdtool_does() {
        for (text, stamp) in [
            (&b"1000000010:1"[..], Some(1000000010.0)),
            (b"1000000010.5:1", Some(1000000010.5)),
            (b"1000000010:", Some(1000000010.0)),
            (b"-5:1", Some(-5.0)),
            (b" 7:1", Some(7.0)),
            (b"1e3:1", Some(1000.0)),
            (b"N:1", None),
            (b"", None),
            (b":", None),
            (b"1000000010", None),
            (b"1000000010@1", None),
            (b"nan:1", None),
            (b"10x:1", None),
        ] {
            assert_eq!(stamp_of(text), stamp, "{}", String::from_utf8_lossy(text));
        }
        for text in [&b"123456789012345:1"[..], b"1234567890123456:1", b"0010:2"] {
            assert_eq!(stamp_of(text), Some(strtod(text).0));
        }
    }
}
