//! A batch of the event loop: all waiting requests under one lock, with one write of the journal.

use crate::engine::{Inner, Store};
use crate::error::Refusal;
use crate::folder::fence;
use crate::memtable::point_tail::PointRefusal;
use crate::memtable::series::Series;
use crate::memtable::state::{State, Undo};
use crate::memtable::writer::Writer;
use crate::names;
use crate::settings::Files;
use crate::stats::Stats;
use crate::wal::point::Point;
use crate::wal::record::{Record, ValuesHead};
use crate::wal::value::Value;
use crate::wal::value::stamp_of;
use kymo_base::label_set::Labels;
use std::io::{self, Write as _};
use std::sync::MutexGuard;

mod points;

/// A position in the journal; all before it is in the kernel, and on the disk after `Store::durable`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// Result of SUSPEND and RESUME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    /// `%s suspended`, `%s resumed`.
    Now,
    /// `%s already suspended`, `%s not suspended`.
    Already,
    /// The file is unknown: `%s - No such file or directory`.
    Unknown,
}

impl Store {
    /// Takes the store's lock for a batch.
    pub fn write_batch(&self) -> WriteBatch<'_> {
        WriteBatch::new(&self.inner)
    }

    /// Waits until all before `position` is on the disk (group commit: the first waiting thread syncs for all).
    pub fn durable(&self, position: Position) -> io::Result<()> {
        self.inner.sync_to(position.0)
    }
}

/// The requests of a batch. Without [`WriteBatch::commit`] a dropped batch has no effect.
pub struct WriteBatch<'a> {
    inner: &'a Inner,
    state: MutexGuard<'a, State>,
    now_ns: u64,
    prepared: io::Result<()>,
    /// Set by FLUSHALL.
    flushes: bool,
    committed: bool,
    /// The writer of the values.
    writer: Writer,
    /// Buffer for one value.
    text: Vec<u8>,
    /// Buffer for accepted samples.
    accepted: Vec<(u32, Point)>,
}

impl<'a> WriteBatch<'a> {
    pub(crate) fn new(inner: &'a Inner) -> WriteBatch<'a> {
        let mut state = inner.lock();
        state.batch.batches += 1;
        let prepared = state.prepare(&*inner.clock);
        WriteBatch {
            inner,
            state,
            now_ns: inner.clock.mono_ns(),
            prepared,
            flushes: false,
            committed: false,
            writer: Writer::ANYBODY,
            text: Vec::new(),
            accepted: Vec::new(),
        }
    }

    /// Sets the writer of the following values; while it writes a series, values of other writers are refused.
    pub fn by(&mut self, writer: Writer) {
        self.writer = writer;
    }

    /// Returns true if another writer holds a series, so that this one may not change it.
    pub fn is_held(&self, name: &[u8]) -> bool {
        let series = self.find(name).and_then(|id| self.state.series.get(id));
        series.is_some_and(|series| {
            let chunk = self.state.chunks.get(series.chunk);
            let interval_s = chunk.map_or(0, |chunk| chunk.schema.definitions().pdp_step);
            !series.hold.allows(self.writer, self.now_ns, interval_s)
        })
    }

    /// Accepts values for a file as UPDATE does: each stamp must be a number followed by `:` and newer than the last; the
    /// fields are not checked. Values before a refused one stay accepted.
    pub fn update<'v>(
        &mut self,
        name: &[u8],
        values: impl IntoIterator<Item = &'v [u8]>,
    ) -> Result<usize, Refusal> {
        let id = self.next(name).ok_or(Refusal::Untouched)?;
        self.update_series(id, values)
    }

    /// Accepts a value for a series with a label set, with a cell for
    /// each column; a cell that is not a finite number is unknown.
    pub fn append(
        &mut self,
        labels: &Labels,
        stamp_ms: i64,
        cells: &[f64],
    ) -> Result<usize, Refusal> {
        let id = self.state.series.by_path(labels.text());
        let id = id.ok_or(Refusal::Untouched)?;
        let series = self.state.series.get(id);
        if series.is_some_and(|series| series.values.points.is_some()) {
            return self.append_cell(id, stamp_ms, cells);
        }
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        put_numbers(&mut text, stamp_ms, cells);
        let taken = self.update_series(id, [&text[..]]);
        self.text = text;
        taken
    }

    /// Accepts a value for a series of points.
    fn append_cell(&mut self, id: u32, t_ms: i64, cells: &[f64]) -> Result<usize, Refusal> {
        let &[v] = cells else {
            return Err(Refusal::NoValues);
        };
        let point = Point { t_ms, v };
        match self.accept_point(id, point) {
            Ok(true) => {
                self.put_points(&[(id, point)]);
                Ok(1)
            }
            Ok(false) => Ok(0),
            Err(PointRefusal::NoSeries) => Err(Refusal::Untouched),
            Err(PointRefusal::Held) => Err(Refusal::Held),
            Err(PointRefusal::TooOld | PointRefusal::Duplicate) => Err(Refusal::Past {
                stamp: point.seconds(),
                last: self
                    .state
                    .series
                    .get(id)
                    .map_or(0.0, |series| series.values.last),
            }),
        }
    }

    fn update_series<'v>(
        &mut self,
        id: u32,
        values: impl IntoIterator<Item = &'v [u8]>,
    ) -> Result<usize, Refusal> {
        let state = &mut *self.state;
        let series = state.series.get_mut(id).ok_or(Refusal::Untouched)?;
        if series.file.gone_since().is_some() && !self.inner.outlives_file(series) {
            return Err(Refusal::Untouched);
        }
        let chunk_id = series.chunk;
        let chunk = state.chunks.get_mut(chunk_id).ok_or(Refusal::Untouched)?;
        let interval_s = || chunk.schema.definitions().pdp_step;
        if self.writer != Writer::ANYBODY
            && !series.hold.admits(self.writer, self.now_ns, interval_s())
        {
            return Err(Refusal::Held);
        }
        let since = (chunk.since, chunk.since_ns);
        if state.batch.undo.is_empty() {
            state.batch.stats_before = state.stats;
        }
        remember(
            &mut state.batch.undo,
            state.batch.batches,
            id,
            series,
            since,
        );
        chunk.touch(state.journal.sequence(), self.now_ns);
        let before = series.values.pending.len();
        let mut taken = 0;
        let mut refusal = None;
        let mut head: Option<ValuesHead> = None;
        let value = &mut state.batch.value;
        // A series with a label set has no file.
        let may_differ = series.file.is_unseen() && names::is_file(&series.path);
        for text in values {
            value.read(text);
            let stamp = match accept(value, text, series.values.last) {
                Ok(stamp) => stamp,
                // The file may have been replaced while no daemon ran, so the value may be new to it.
                Err(Refusal::Past { .. }) if may_differ && taken == 0 => {
                    refusal = Some(Refusal::Untouched);
                    break;
                }
                Err(refused) => {
                    refusal = Some(refused);
                    break;
                }
            };
            series.values.last = stamp;
            series.values.version += 1;
            series.values.pending.push_value(value);
            let (out, stamps) = state.journal.values();
            if !head.as_mut().is_some_and(|head| head.another(out)) {
                head = Some(ValuesHead::begin(out, stamps, id));
            }
            value.put(out, stamps);
            taken += 1;
        }
        if taken > 0 && !series.suspended {
            self.grow_old(id);
        }
        self.state.count(chunk_id, before, before + taken);
        match refusal {
            Some(refusal) => Err(refusal),
            None if taken == 0 => Err(Refusal::NoValues),
            None => Ok(taken),
        }
    }

    /// Publishes values and queues the file when these are due.
    fn grow_old(&mut self, id: u32) {
        let settings = &self.inner.settings;
        let state = &mut *self.state;
        let Some(series) = state.series.get_mut(id) else {
            return;
        };
        let age_ns = self.now_ns.saturating_sub(series.values.published_ns);
        if age_ns >= settings.write_after.as_nanos() as u64 {
            // Another daemon would write its file at about this time.
            series.values.publish(self.now_ns, &mut state.stats);
        }
        let due = settings.files != Files::Never && series.file.is_due(self.now_ns);
        if due && !series.file.is_queued() {
            state.queue(id);
        }
    }

    /// FORGET: drops a file and its pending values, as rrdcached does; values that are being saved stay and are published.
    /// Returns `false` if the file is not known.
    pub fn forget(&mut self, name: &[u8]) -> bool {
        let Some(id) = self.find(name) else {
            return false;
        };
        let state = &mut *self.state;
        let Some(series) = state.series.get_mut(id) else {
            return false;
        };
        let chunk_id = series.chunk;
        let chunk = state.chunks.get(chunk_id);
        let since = chunk.map_or((0, 0), |chunk| (chunk.since, chunk.since_ns));
        let before = series.values.pending.len();
        if state.batch.undo.is_empty() {
            state.batch.stats_before = state.stats;
        }
        remember(
            &mut state.batch.undo,
            state.batch.batches,
            id,
            series,
            since,
        );
        // The values as they were before the batch.
        if let Some(undo) = state.batch.undo.iter().rev().find(|undo| undo.id == id) {
            let mut before = series.values.pending.clone();
            before.truncate(undo.mark);
            state.batch.dropped.push((id, before, series.suspended));
        }
        series.values.publish_taken(&mut state.stats);
        series.values.pending.cut_after(series.values.published);
        series.forgotten = true;
        series.suspended = false;
        let (published, after) = (series.values.published, series.values.pending.len());
        let upto = published;
        state.put(id, &Record::Published { id, upto }, self.now_ns);
        state.put(id, &Record::Forget { id }, self.now_ns);
        state.count(chunk_id, before, after);
        true
    }

    /// SUSPEND: keeps values and does not write them until RESUME.
    pub fn suspend(&mut self, name: &[u8]) -> Switched {
        self.switch(name, true)
    }

    /// RESUME: ends a SUSPEND.
    pub fn resume(&mut self, name: &[u8]) -> Switched {
        self.switch(name, false)
    }

    fn switch(&mut self, name: &[u8], suspended: bool) -> Switched {
        let id = self.find(name);
        match id.and_then(|id| self.state.series.get_mut(id)) {
            None => Switched::Unknown,
            Some(file) if file.suspended == suspended => Switched::Already,
            Some(file) => {
                file.suspended = suspended;
                Switched::Now
            }
        }
    }

    /// SUSPENDALL; returns the number of series that were not suspended before.
    pub fn suspend_all(&mut self) -> usize {
        self.switch_all(true)
    }

    /// RESUMEALL; returns the number of series that were suspended before.
    pub fn resume_all(&mut self) -> usize {
        self.switch_all(false)
    }

    fn switch_all(&mut self, suspended: bool) -> usize {
        let mut switched = 0;
        for (_, file) in self.state.series.iter_mut() {
            if !file.forgotten && file.suspended != suspended {
                file.suspended = suspended;
                switched += 1;
            }
        }
        switched
    }

    /// PENDING: calls `each` with the unpublished values as they were
    /// sent; returns their number, or `None` for an unknown file.
    pub fn pending(&self, name: &[u8], each: &mut dyn FnMut(&[u8])) -> Option<usize> {
        let series = self.state.series.get(self.find(name)?)?;
        Some(series.values.each_unpublished(each))
    }

    /// QUEUE: calls `each` with the number of values and the path of each due file.
    pub fn queue(&self, each: &mut dyn FnMut(usize, &[u8])) {
        for &id in &self.state.tasks.queue {
            if let Some(series) = self.state.series.get(id).filter(|series| is_due(series)) {
                each(series.values.count_after(series.file.upto()), &series.path);
            }
        }
    }

    /// Numbers for STATS.
    pub fn stats(&self) -> Stats {
        let state = &*self.state;
        let queue = state
            .tasks
            .queue
            .iter()
            .filter_map(|&id| state.series.get(id));
        Stats {
            queue_length: (queue.filter(|series| is_due(series)).count() + state.tasks.writing_back)
                as u64,
            files: state
                .series
                .iter()
                .filter(|(_, file)| !file.forgotten)
                .count() as u64,
            journal_bytes: state.journal.bytes_written,
            journal_rotate: state.journal.rotations,
            journals_given_up: state.journal.given_up,
            ..state.stats
        }
    }

    /// Newest stamp of a known file, for LAST; pending values count too.
    pub fn last_stamp(&self, name: &[u8]) -> Option<f64> {
        Some(self.state.series.get(self.find(name)?)?.values.last)
    }

    /// FLUSHALL: makes all files due whose series are not suspended.
    pub fn flush_all(&mut self) {
        if self.inner.is_without_files() {
            let state = &mut *self.state;
            for (_, series) in state
                .series
                .iter_mut()
                .filter(|(_, series)| !series.suspended)
            {
                series.values.publish(self.now_ns, &mut state.stats);
            }
            return;
        }
        let wanted = self.state.series.iter();
        let wanted = wanted.filter(|(_, series)| is_wanted(series));
        let mut ids: Vec<u32> = wanted.map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids.into_iter().for_each(|id| self.state.queue(id));
        self.flushes = true;
    }

    /// Writes the batch to the journal with one write. After an error the batch has no effect: answer
    /// `cannot write journal: ...` to its updates and forgets.
    pub fn commit(mut self) -> io::Result<Position> {
        self.committed = true;
        let prepared = std::mem::replace(&mut self.prepared, Ok(()));
        let needed = self.state.journal.has_records();
        let written = match prepared {
            Err(error) if needed => Err(error),
            _ => self.state.journal.commit(),
        };
        match written {
            Ok(position) => {
                self.state.batch.undo.clear();
                self.state.batch.undo_points.clear();
                self.state.batch.dropped.clear();
                if self.flushes {
                    self.state.tasks.flushes = true;
                    self.inner.flushes.notify_one();
                    self.state.tasks.work.ring();
                }
                Ok(Position(position))
            }
            Err(error) => {
                self.state.roll_back();
                Err(error)
            }
        }
    }

    /// The series of a name. Tries the one after the last series
    /// first, since clients send the same series in the same order.
    fn next(&mut self, name: &[u8]) -> Option<u32> {
        let guess = self.state.next;
        let series = &self.state.series;
        let id = match series.get(guess) {
            Some(series) if series.is_spelled(name) => (!series.forgotten).then_some(guess),
            _ => {
                let found = self.find(name);
                if let Some(id) = found.filter(|_| series.by_name(name).is_none()) {
                    // After a start the spellings of names are unknown, so names are found by their paths.
                    self.state.series.spell(id, name);
                }
                found
            }
        };
        let next = id.unwrap_or(guess).wrapping_add(1);
        self.state.next = next;
        self.state.series.expect_next(next);
        id
    }

    fn find(&self, name: &[u8]) -> Option<u32> {
        let spelled = || names::spelled(&self.inner.settings, name);
        let id = self.state.series.find(name, spelled)?;
        let series = self.state.series.get(id)?;
        // An earlier daemon may have allowed a path that is the store's own.
        let own = fence::keeps(&self.inner.settings, &series.path);
        (!own && self.state.series.is_known(id)).then_some(id)
    }
}

impl Drop for WriteBatch<'_> {
    fn drop(&mut self) {
        if !self.committed {
            self.state.roll_back();
        }
    }
}

/// Formats a value so that rrdtool's arithmetic parses the same numbers.
fn put_numbers(text: &mut Vec<u8>, stamp_ms: i64, cells: &[f64]) {
    let (seconds, ms) = (stamp_ms.div_euclid(1000), stamp_ms.rem_euclid(1000));
    // Writing to memory cannot fail.
    let _ = match ms {
        0 => write!(text, "{seconds}"),
        _ => write!(text, "{seconds}.{ms:03}000"),
    };
    for cell in cells {
        let _ = match cell.abs() {
            size if !size.is_finite() => write!(text, ":U"),
            0.0 => write!(text, ":0"),
            1e-6..1e17 => write!(text, ":{cell}"),
            _ => write!(text, ":{cell:e}"),
        };
    }
}

/// Returns true if the file lacks values.
fn is_wanted(series: &Series) -> bool {
    !series.suspended && !series.is_current()
}

fn is_due(series: &Series) -> bool {
    series.file.is_queued() && is_wanted(series)
}

/// Notes once in a batch the state of a series before it.
fn remember(undo: &mut Vec<Undo>, batch: u64, id: u32, series: &mut Series, since: (u64, u64)) {
    if series.values.batch != batch {
        series.values.batch = batch;
        undo.push(Undo {
            id,
            mark: series.values.pending.mark(),
            version: series.values.version,
            last: series.values.last,
            published: series.values.published,
            published_ns: series.values.published_ns,
            since,
        });
    }
}

/// The stamp of a value, if it is newer than the last one.
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
