//! Begins series: with an adopted file, a file that another program changed, or a file that was created or tuned.

use crate::consolidation::schema;
use crate::engine::Inner;
use crate::error::FileError;
use crate::hole;
use crate::layout::POINTS_KEPT_S;
use crate::memtable::buffer::{Pending, Texts};
use crate::memtable::file_state::{FileState, Left};
use crate::memtable::series::Series;
use crate::memtable::state::State;
use crate::read::raw_points::{Sent, sent};
use crate::rrd_file::header::{require_modest, seasons};
use crate::wal::live::Live;
use crate::wal::record::{Birth, Identity, Packed, Record};
use crate::wal::value::stamp_of;
use kymo_base::name::DisplayName;
use kymo_rrd::{Header, Rrd};
use kymo_sys::disk::DiskFile;
use std::sync::{Arc, MutexGuard};

/// Reason for a new series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// CREATE made its file, possibly in place of another file.
    Created,
    /// The definitions of the previous series were changed.
    Tuned,
    /// A listener has values for it, and no series or file has its name.
    Defined,
    /// A listener has values that do not fit the definitions; the new
    /// series has other definitions and the rows of the previous one.
    Redefined,
    /// An administrator removed values of it.
    Erased,
    /// Rows of a series from elsewhere were added to it.
    Joined,
    /// A file was found, and is adopted as it is.
    Found,
}

/// Initial state of a new series.
#[derive(Clone, Copy)]
pub(crate) struct Beginning {
    /// Stamp up to which its file has rows.
    pub(crate) base: Option<i64>,
    /// Identity of its file.
    pub(crate) seen: Option<Identity>,
    pub(crate) cause: Cause,
    /// Stamp up to which its file has values.
    pub(crate) has: f64,
    /// Chunk and slot, if blocks already have its rows.
    pub(crate) place: Option<(u32, u8)>,
}

/// A new series that begins with rows.
pub(crate) struct Whole {
    /// Path; the series that had it is removed, except for newer values.
    pub(crate) path: Arc<[u8]>,
    pub(crate) rrd: Rrd,
    pub(crate) beginning: Beginning,
    /// Points: values as they were sent.
    pub(crate) points: Pending,
}

impl Beginning {
    /// A beginning without a file and without rows.
    pub(crate) fn of(cause: Cause) -> Beginning {
        Beginning {
            base: None,
            seen: None,
            cause,
            has: f64::NEG_INFINITY,
            place: None,
        }
    }
}

/// A new series that is in the journal's buffer.
pub(crate) struct Newcomer {
    id: u32,
    /// The series that it replaces, which has the same path.
    old: Option<u32>,
    birth: Birth,
    /// The stamp of its state, and the whole seconds of that stamp, as in a header.
    stamp: f64,
    last_up: i64,
    /// State of its file.
    left: Option<Left>,
    /// Values of the replaced series.
    carried: Pending,
    /// Stamp up to which readers may see values.
    published: f64,
    forgotten: bool,
    /// A message for the log.
    notice: Option<String>,
}

/// Values of a series that is being replaced.
#[derive(Default)]
struct Carried {
    /// Values newer than the file that replaces it.
    values: Pending,
    /// Number of values that are in no file.
    dropped: u64,
}

/// State that a new series inherits from the replaced one.
struct Inherited {
    forgotten: bool,
    published: f64,
    values: Pending,
    /// A message for the log.
    notice: Option<String>,
}

fn inherit(
    state: &State,
    old: Option<u32>,
    (header, stamp): (&Header, f64),
    sent: &Sent,
    beginning: &Beginning,
) -> Inherited {
    let cause = beginning.cause;
    let replaced = old.and_then(|old| state.series.get(old));
    let (forgotten, published) = match (cause, replaced) {
        // A file made by CREATE is unknown until its first value.
        (Cause::Created, replaced) => (replaced.is_none_or(|series| series.forgotten), stamp),
        (Cause::Tuned | Cause::Redefined, Some(series)) => {
            (series.forgotten, stamp.max(series.values.published))
        }
        (Cause::Erased | Cause::Joined, Some(series)) => (series.forgotten, stamp),
        _ => (false, stamp),
    };
    // After FORGET a found file is adopted as it is, and a new series begins without the old one's values.
    let is_another = matches!(cause, Cause::Found | Cause::Defined);
    let replaced = replaced.filter(|series| !(series.forgotten && is_another));
    let carried = replaced
        .map(|series| carried(state, series, (header, stamp), sent, (cause, beginning.has)));
    let mut carried = carried.unwrap_or_default();
    if state.has_lost && old.is_none() && cause == Cause::Found {
        // Damage may have lost an earlier series of this file and its values.
        carried.values.push_hole(stamp);
    }
    let notice = replaced
        .filter(|_| cause == Cause::Found)
        .and_then(|series| notice(series, stamp, sent, &carried));
    Inherited {
        forgotten,
        published,
        values: carried.values,
        notice,
    }
}

/// Gives a new series a place, and prepares its journal entries.
pub(crate) fn put_newcomer(
    state: &mut State,
    (id, path): (u32, &[u8]),
    series: &schema::SeriesState,
    sent: &Sent,
    beginning: &Beginning,
) -> Result<Newcomer, FileError> {
    let header = &series.header;
    let schema = state.chunks.schema(&schema::front(header));
    let schema = schema.ok_or_else(|| FileError::Rrd("has a damaged header".into()))?;
    let mut words = Vec::with_capacity(schema.words);
    schema.pack(series, &mut words);
    let stamp = schema.stamp_of(&words);
    let old = state.series.by_path(path);
    let (chunk, slot) = match beginning.place {
        Some((chunk, slot)) => {
            state.chunks.put(chunk, slot, &schema, Some(id));
            (chunk, slot)
        }
        None => state.chunks.place(&schema, id),
    };
    let birth = Birth {
        chunk,
        slot,
        base: beginning.base,
        state: words,
    };
    let Inherited {
        forgotten,
        published,
        values,
        notice,
    } = inherit(state, old, (header, stamp), sent, beginning);
    let left = beginning.seen.map(|identity| Left {
        identity,
        live: Live::of(header, &series.seasons),
        upto: stamp,
    });
    state.put_adoption(old, id, path, &birth, &values, left);
    if published > stamp {
        let upto = published;
        state.journal.put(&Record::Published { id, upto });
    }
    if forgotten {
        state.journal.put(&Record::Forget { id });
    }
    Ok(Newcomer {
        id,
        old,
        birth,
        stamp,
        last_up: header.last_up,
        left,
        carried: values,
        published,
        forgotten,
        notice,
    })
}

impl Newcomer {
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Gives the place back, after the journal entries were not written.
    pub(crate) fn withdraw(self, state: &mut State) {
        state.chunks.unplace(self.birth.chunk, self.birth.slot);
    }
}

impl Inner {
    /// Adopts a file: creates a series with its definitions and state, whose rows stay in the file. It replaces the
    /// series of the same name, except for newer values.
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
            ..Beginning::of(Cause::Found)
        };
        self.adopt_as(path, header, seasons, beginning)
    }

    /// Begins a series, first in the journal.
    pub(crate) fn adopt_as(
        &self,
        path: &[u8],
        header: &Header,
        seasons: Vec<Vec<f64>>,
        beginning: Beginning,
    ) -> Result<u32, FileError> {
        let (mut state, sent) = self.lock_with_sent(path, header, beginning.cause)?;
        state.prepare(&*self.clock).map_err(FileError::Journal)?;
        let id = state.series.next_id();
        let states = schema::SeriesState {
            header: header.clone(),
            seasons,
        };
        let newcomer = put_newcomer(&mut state, (id, path), &states, &sent, &beginning)?;
        if let Err(error) = state.journal.commit() {
            newcomer.withdraw(&mut state);
            return Err(FileError::Journal(error));
        }
        self.begin_series(&mut state, path, &beginning, newcomer);
        Ok(id)
    }

    /// Takes the lock, and reads from blocks the values that the file, or its replacement, lacks.
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
            let old = state.series.by_path(path);
            let series = old.and_then(|old| state.series.get(old));
            // Values that readers may see were written to the replaced file, so they are not carried over.
            let series = series.filter(|_| cause != Cause::Created);
            let has = |series: &Series| match cause {
                // All values, whatever the file has.
                Cause::Redefined | Cause::Erased | Cause::Joined => stamp,
                _ => stamp.min(series.file.upto()),
            };
            let lacks = |series: &&Series| series.values.applied > has(series);
            let Some(series) = series.filter(lacks) else {
                return Ok((state, found));
            };
            let now = Some((old, series.values.applied));
            if seen == now {
                return Ok((state, found));
            }
            // Blocks are read without the lock, so the loop checks if new ones were added meanwhile.
            let (chunk, slot) = (series.chunk, series.slot);
            let after = has(series);
            let schema = state.chunks.get(chunk).map(|chunk| chunk.schema.clone());
            let kept_s = schema.map_or(POINTS_KEPT_S, |schema| schema.points_kept_s);
            seen = now;
            drop(state);
            let kept = (kept_s, self.segments.points_from());
            let blocks = self.segments.blocks(chunk);
            found = sent(&blocks, kept, slot, after).map_err(FileError::Io)?;
        }
    }

    /// Adds a series to memory after its journal entries are written.
    pub(crate) fn begin_series(
        &self,
        state: &mut State,
        path: &[u8],
        beginning: &Beginning,
        new: Newcomer,
    ) {
        new.notice.into_iter().for_each(|line| state.notice(line));
        let now_ns = self.clock.mono_ns();
        let due_ns = state.due_at(now_ns, &self.settings);
        let (sequence, epoch) = (state.journal.sequence(), state.epochs.now());
        let replaced = new.old.and_then(|old| state.series.get(old));
        let busy = replaced.is_some_and(|series| series.file.is_busy());
        let suspended = replaced.is_some_and(|series| series.suspended);
        let hold = replaced.map(|series| series.hold);
        let is_same = matches!(
            beginning.cause,
            Cause::Tuned | Cause::Redefined | Cause::Erased | Cause::Joined
        );
        if let Some(old) = new.old {
            state.replace_series(old, new.id, now_ns);
        }
        state.reported_at.new += u64::from(new.old.is_none());
        let (chunk, slot) = (new.birth.chunk, new.birth.slot);
        let file = match (&new.left, beginning.base) {
            (None, _) => FileState::none(new.stamp),
            (Some(left), Some(_)) => FileState::found(left),
            (Some(left), None) => FileState::made(left, sequence, epoch),
        };
        let series = state.series.insert(new.id, path, (chunk, slot), file);
        series.values.state = Some(Packed::of(&new.birth.state));
        series.base = beginning.base;
        series.values.published = new.published;
        series.values.applied = new.stamp;
        let texts = new.carried.texts();
        let stamps = texts.iter().filter_map(stamp_of);
        series.values.last = stamps.fold(new.last_up as f64, f64::max);
        series.values.pending = new.carried;
        series.file.put_off(due_ns);
        series.values.published_ns = now_ns;
        if busy {
            // The thread that replaced the file still holds it.
            series.file.reserve();
        }
        series.suspended = suspended && is_same;
        series.hold = hold.filter(|_| is_same).unwrap_or_default();
        series.forgotten = new.forgotten;
        let count = series.values.pending.len();
        if file.is_create_unsynced() {
            (state.tasks.made, state.tasks.made_ns) = (state.tasks.made + 1, now_ns);
        }
        state.count(chunk, 0, count);
        if let Some(chunk) = state.chunks.get_mut(chunk) {
            chunk.touch(sequence, now_ns);
        }
    }
}

/// The values of a series that are newer than the file that replaces it.
fn carried(
    state: &State,
    old: &Series,
    (header, stamp): (&Header, f64),
    sent: &Sent,
    (cause, has): (Cause, f64),
) -> Carried {
    let mut carried = Carried::default();
    let mut last = match cause {
        Cause::Created => stamp.max(old.values.published),
        // The stamp in a file may be smaller than the value's by rounding.
        Cause::Tuned => stamp.max(old.file.upto()).max(has),
        Cause::Redefined | Cause::Erased | Cause::Joined => stamp.max(has),
        _ => stamp,
    };
    // A hole since the last value that the file has.
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
            } else if at > old.file.upto() && (at <= stamp || !fits) {
                carried.dropped += 1;
            }
        }
    };
    let definitions = state
        .chunks
        .get(old.chunk)
        .map(|chunk| chunk.schema.definitions());
    let fits = definitions.is_some_and(|before| readings(before) == readings(header));
    carry(&sent.texts, fits);
    let mut texts = Texts::default();
    old.values.texts_into(&mut texts);
    carry(&texts, true);
    if let Some(after) = hole {
        carried.values.push_hole(after);
    }
    carried
}

/// Number of fields of a value, without computed sources.
fn readings(header: &Header) -> usize {
    let computed = |dst: &[u8]| dst == b"COMPUTE";
    let given = header.ds.iter().filter(|ds| !computed(ds.dst()));
    given.count()
}

/// The message for the administrator about values that were in no file when another file replaced it.
fn notice(old: &Series, stamp: f64, sent: &Sent, carried: &Carried) -> Option<String> {
    let (newer, dropped) = (carried.values.len(), carried.dropped);
    // Blocks may have had more values.
    let lost = old.values.applied > stamp && (sent.from > stamp || sent.damaged > 0);
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
