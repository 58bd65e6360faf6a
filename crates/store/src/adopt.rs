//! How groups begin: with a file that is taken over, one that others changed, one that was made or tuned.

use crate::drum::sent::{Sent, sent};
use crate::drum::shape;
use crate::edits::Live;
use crate::entry::{Birth, Entry, Identity, Packed};
use crate::error::FileError;
use crate::groups::Group;
use crate::hole;
use crate::pending::{Pending, Texts};
use crate::rrd_file::{require_modest, seasons};
use crate::state::State;
use crate::store::Inner;
use crate::turn::stamp_of;
use kymo_base::name::DisplayName;
use kymo_rrd::Header;
use kymo_sys::disk::DiskFile;
use std::sync::MutexGuard;

/// Why a group begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// CREATE made its file, maybe in the place of another.
    Created,
    /// Definitions of the one before were changed.
    Tuned,
    /// There is a file, and it counts as it is.
    Found,
}

/// How a group begins.
pub(crate) struct Beginning {
    /// Its file has rows up to this stamp.
    pub(crate) base: Option<i64>,
    /// Which file it is.
    pub(crate) seen: Option<Identity>,
    pub(crate) cause: Cause,
    /// Values up to this stamp are in its file.
    pub(crate) has: f64,
}

/// A group that the journal knows of.
struct Newcomer {
    id: u32,
    /// Whose path it has from now on.
    old: Option<u32>,
    birth: Birth,
    /// The stamp of its state, and its seconds as a header has them.
    stamp: f64,
    last_up: i64,
    live: Live,
    /// Values that were sent for the old one.
    carried: Pending,
    /// Up to where values count as written.
    shown: f64,
    forgotten: bool,
}

/// Values of a group that is to be replaced.
#[derive(Default)]
struct Carried {
    /// Those that are newer than the file which takes its place.
    values: Pending,
    /// How many are in no file.
    dropped: u64,
}

impl Inner {
    /// Takes a file over: a group with its definitions and its state; its rows stay where they are. The group that had
    /// its name before is gone, but for its values that are newer.
    pub(crate) fn adopt(
        &self,
        path: &[u8],
        header: &Header,
        file: &dyn DiskFile,
        seen: Identity,
    ) -> Result<u32, FileError> {
        require_modest(header)?;
        let seasons = seasons(file, header)?;
        let beginning = Beginning {
            base: Some(header.last_up),
            seen: Some(seen),
            cause: Cause::Found,
            has: f64::NEG_INFINITY,
        };
        self.adopt_as(path, header, seasons, beginning)
    }

    /// A group begins, first in the journal.
    pub(crate) fn adopt_as(
        &self,
        path: &[u8],
        header: &Header,
        seasons: Vec<Vec<f64>>,
        beginning: Beginning,
    ) -> Result<u32, FileError> {
        let front = shape::front(header);
        let cause = beginning.cause;
        let live = Live::of(header, &seasons);
        let (mut state, sent) = self.lock_with_sent(path, header, cause)?;
        state.prepare(&*self.clock).map_err(FileError::Journal)?;
        let shape = state.chunks.shape(&front);
        let shape = shape.ok_or_else(|| FileError::Rrd("has a damaged header".into()))?;
        let mut words = Vec::with_capacity(shape.words);
        let group = shape::Group {
            header: header.clone(),
            seasons,
        };
        shape.pack(&group, &mut words);
        let stamp = shape.stamp_of(&words);
        let old = state.groups.by_path(path);
        let id = state.groups.next_id();
        let (chunk, slot) = state.chunks.place(&shape, id);
        let birth = Birth {
            chunk,
            slot,
            base: beginning.base,
            state: words,
        };
        let replaced = old.and_then(|old| state.groups.get(old));
        let (forgotten, shown) = match (cause, replaced) {
            // A file that CREATE made is known from its first value on.
            (Cause::Created, replaced) => (replaced.is_none_or(|group| group.forgotten), stamp),
            (Cause::Tuned, Some(group)) => (group.forgotten, stamp.max(group.shown)),
            _ => (false, stamp),
        };
        let carried = replaced.map(|group| {
            carried(
                &state,
                group,
                (header, stamp),
                &sent,
                (cause, beginning.has),
            )
        });
        let mut carried = carried.unwrap_or_default();
        if state.has_lost && old.is_none() && cause == Cause::Found {
            // It may have had a group, and values.
            carried.values.push_hole(stamp);
        }
        let notice = replaced.and_then(|group| notice(group, stamp, &sent, &carried));
        let left = beginning.seen.map(|seen| (seen, stamp, live));
        state.put_adoption(old, id, path, &birth, &carried.values, left);
        if shown > stamp {
            state.journal.put(&Entry::Shown { id, upto: shown });
        }
        if forgotten {
            state.journal.put(&Entry::Forget { id });
        }
        if let Err(error) = state.journal.commit() {
            state.chunks.unplace(chunk, slot);
            return Err(FileError::Journal(error));
        }
        let notice = notice.filter(|_| cause == Cause::Found);
        notice.into_iter().for_each(|line| state.notice(line));
        let newcomer = Newcomer {
            id,
            old,
            birth,
            stamp,
            last_up: header.last_up,
            live,
            carried: carried.values,
            shown,
            forgotten,
        };
        self.begin_group(&mut state, path, &beginning, newcomer);
        Ok(id)
    }

    /// The lock, and what blocks have of the values that the file of a group lacks, or that which takes its place.
    fn lock_with_sent(
        &self,
        path: &[u8],
        header: &Header,
        cause: Cause,
    ) -> Result<(MutexGuard<'_, State>, Sent), FileError> {
        let stamp = header.last_up as f64 + header.last_up_usec as f64 / 1e6;
        let (mut found, mut seen) = (Sent::default(), None);
        loop {
            let state = self.lock();
            let old = state.groups.by_path(path);
            let group = old.and_then(|old| state.groups.get(old));
            // What counts as written was written to the file that is no more.
            let group = group.filter(|_| cause != Cause::Created);
            let Some(group) = group.filter(|group| group.applied > stamp.min(group.upto)) else {
                return Ok((state, found));
            };
            let now = Some((old, group.applied));
            if seen == now {
                return Ok((state, found));
            }
            // Blocks are read without the lock; one may come meanwhile.
            let (chunk, slot, after) = (group.chunk, group.slot, stamp.min(group.upto));
            seen = now;
            drop(state);
            found = sent(
                &self.drum.blocks(chunk),
                self.drum.points_from(),
                slot,
                after,
            )
            .map_err(FileError::Io)?;
        }
    }

    /// The journal knows of a group, and now memory does.
    fn begin_group(&self, state: &mut State, path: &[u8], beginning: &Beginning, new: Newcomer) {
        let now_ns = self.clock.mono_ns();
        let due_ns = state.due_at(now_ns, &self.settings);
        let (sequence, epoch) = (state.journal.sequence(), state.epoch);
        let replaced = new.old.and_then(|old| state.groups.get(old));
        let busy = replaced.is_some_and(|group| group.busy);
        let suspended = replaced.is_some_and(|group| group.suspended);
        if let Some(old) = new.old {
            state.replace_group(old, new.id, now_ns);
        }
        state.told.new += u64::from(new.old.is_none());
        let (chunk, slot) = (new.birth.chunk, new.birth.slot);
        let group = state.groups.insert(new.id, path, (chunk, slot));
        group.state = Some(Packed::of(&new.birth.state));
        group.base = beginning.base;
        group.live = beginning.seen.map(|_| new.live);
        group.shown = new.shown;
        for place in [&mut group.applied, &mut group.upto, &mut group.safe] {
            *place = new.stamp;
        }
        let texts = new.carried.texts();
        let stamps = texts.iter().filter_map(stamp_of);
        group.last = stamps.fold(new.last_up as f64, f64::max);
        group.pending = new.carried;
        group.due_ns = due_ns;
        group.shown_ns = now_ns;
        group.busy = busy;
        group.suspended = suspended && beginning.cause == Cause::Tuned;
        group.forgotten = new.forgotten;
        if beginning.base.is_none() && beginning.seen.is_some() {
            group.unsafe_birth = true;
            group.begun = epoch;
        }
        let (count, made) = (group.pending.len(), group.unsafe_birth);
        if made {
            state.groups.start(new.id, sequence);
            (state.made, state.made_ns) = (state.made + 1, now_ns);
        }
        if let Some(seen) = beginning.seen {
            state.groups.leave(new.id, seen);
        }
        state.count(chunk, 0, count);
        if let Some(chunk) = state.chunks.get_mut(chunk) {
            chunk.touch(sequence, now_ns);
        }
    }
}

/// Values of a group that are newer than the file which takes its place.
fn carried(
    state: &State,
    old: &Group,
    (header, stamp): (&Header, f64),
    sent: &Sent,
    (cause, has): (Cause, f64),
) -> Carried {
    let mut carried = Carried::default();
    let mut last = match cause {
        Cause::Created => stamp.max(old.shown),
        // The file's stamp may be a rounding less than the value's.
        Cause::Tuned => stamp.max(old.upto).max(has),
        _ => stamp,
    };
    // Since the last value that the file has.
    let mut hole = None;
    let mut carry = |texts: &Texts, fits: bool| {
        for text in texts.iter() {
            hole = hole::after(text).or(hole);
            let Some(at) = stamp_of(text) else { continue };
            let hole = hole.take();
            if at > last && fits {
                last = at;
                hole.into_iter()
                    .for_each(|after| carried.values.push_hole(after));
                carried.values.push(text);
            } else if at > old.upto && (at <= stamp || !fits) {
                carried.dropped += 1;
            }
        }
    };
    let definitions = state
        .chunks
        .get(old.chunk)
        .map(|chunk| chunk.shape.definitions());
    let fits = definitions.is_some_and(|before| readings(before) == readings(header));
    carry(&sent.texts, fits);
    let mut texts = Texts::default();
    old.all_values(&mut texts);
    carry(&texts, true);
    if let Some(after) = hole {
        carried.values.push_hole(after);
    }
    carried
}

/// How many numbers a value has.
fn readings(header: &Header) -> usize {
    let computed = |dst: &[u8]| dst == b"COMPUTE";
    let given = header.ds.iter().filter(|ds| !computed(ds.dst()));
    given.count()
}

/// What an administrator should know of a file that took the place of another: values that were in no file.
fn notice(old: &Group, stamp: f64, sent: &Sent, carried: &Carried) -> Option<String> {
    let (newer, dropped) = (carried.values.len(), carried.dropped);
    // Blocks may have had more.
    let lost = old.applied > stamp && (sent.from > stamp || sent.damaged > 0);
    if newer == 0 && dropped == 0 && !lost {
        return None;
    }
    let path = DisplayName(&old.path);
    let mut text = format!(
        "{path} was changed by others and counts as it is: {newer} newer values are applied to it, {dropped} that it does not take are dropped"
    );
    if lost {
        text += &format!(", those before {} may be lost", sent.from);
    }
    Some(text)
}
