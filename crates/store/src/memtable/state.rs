//! The state under the store's lock.

use crate::bell::Bell;
use crate::consolidation::schema::Schema;
use crate::memtable::buffer::{Mark, Pending, Texts};
use crate::memtable::chunks::Chunks;
use crate::memtable::departed::Departed;
use crate::memtable::epochs::Epochs;
use crate::memtable::file_state::Left;
use crate::memtable::pins::Pins;
use crate::memtable::point_tail::PointUndo;
use crate::memtable::series::SeriesTable;
use crate::names;
use crate::settings::PointsRetention;
use crate::settings::Settings;
use crate::stats::Stats;
use crate::wal::live::Live;
use crate::wal::record::{Birth, Identity, Record, ValuesHead};
use crate::wal::value;
use crate::wal::value::Value;
use crate::wal::writer::Journal;
use kymo_base::random::next_random;
use kymo_sys::clock::Clock;
use kymo_sys::disk::is_full;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Approximate size of the frames with carried-over values.
pub(crate) const FRAME_BYTES: usize = 1 << 20;
/// Pause after a failed attempt to begin a journal file.
const RETRY_NS: u64 = 500_000_000;
pub(crate) const EIO: i32 = 5;
/// Number of samples in memory that count as one other value, since they need less memory.
const SAMPLES_OF_VALUES: u64 = 2;
/// Time over which overdue updates of files are spread after a start.
const LATE_SPREAD_NS: u64 = 3600 * 1_000_000_000;

/// The state that the store's lock guards.
pub(crate) struct State {
    pub(crate) series: SeriesTable,
    pub(crate) chunks: Chunks,
    pub(crate) journal: Journal,
    /// The current batch.
    pub(crate) batch: OpenBatch,
    /// Tasks of the background threads.
    pub(crate) tasks: Tasks,
    /// Series without new values, and the time since which this is known (monotonic).
    pub(crate) silent: HashMap<u32, u64>,
    /// Removed series that a block still has, each with its chunk.
    pub(crate) gone: Vec<(u32, u32)>,
    /// Series that are gone, for tails.
    pub(crate) departed: Departed,
    /// True if tails no longer wait for new records.
    pub(crate) tails_end: bool,
    /// Series of which the disk has another name than is written now.
    pub(crate) to_rename: BTreeSet<u32>,
    /// Stored data was damaged, so an adopted file may lack values.
    pub(crate) has_lost: bool,
    /// Average number of values of a series at which its chunk is saved.
    pub(crate) chunk_values: u64,
    /// The series that the next value is probably for.
    pub(crate) next: u32,
    pub(crate) epochs: Epochs,
    pub(crate) pins: Pins,
    /// After a failed attempt to begin a journal file: time of the next attempt, and the error number.
    pub(crate) no_file: Option<(u64, i32)>,
    pub(crate) random: u64,
    pub(crate) stats: Stats,
    /// Warnings that the log has had, with their times.
    pub(crate) reported_at: ReportedAt,
    pub(crate) notices: Vec<String>,
}

/// The changes of a batch, for its rollback if the journal cannot be written.
#[derive(Default)]
pub(crate) struct OpenBatch {
    pub(crate) undo: Vec<Undo>,
    pub(crate) undo_points: Vec<PointUndo>,
    /// Counters before the batch.
    pub(crate) stats_before: Stats,
    /// Values dropped by FORGET, and if the series was suspended.
    pub(crate) dropped: Vec<(u32, Pending, bool)>,
    /// Buffer for the value being parsed.
    pub(crate) value: Value,
    /// Number of batches so far.
    pub(crate) batches: u64,
}

/// Tasks of the background threads, and their progress.
pub(crate) struct Tasks {
    /// Rings when files or chunks may need writing.
    pub(crate) work: Bell,
    /// Series whose files are queued for an update; some may be current by now.
    pub(crate) queue: Vec<u32>,
    /// Number of series taken from the queue whose files are being written.
    pub(crate) writing_back: usize,
    /// Set by FLUSHALL until a thread begins with it.
    pub(crate) flushes: bool,
    /// Chunks to save.
    pub(crate) due: Vec<u32>,
    /// Set while segments may be worth merging.
    pub(crate) merges_left: bool,
    pub(crate) syncing: bool,
    pub(crate) checkpointing: bool,
    /// A sync of the .rrd files failed. It is unknown which data is lost, so the journal keeps everything.
    pub(crate) checkpoints_end: bool,
    pub(crate) sweep_ns: u64,
    pub(crate) checkpoint_ns: u64,
    pub(crate) sync_ns: u64,
    /// Number of files created since the start of the last checkpoint,
    /// and time of the last one; a start would create them again.
    pub(crate) made: u64,
    pub(crate) made_ns: u64,
}

impl Tasks {
    /// Tasks whose intervals begin now.
    fn new(now_ns: u64) -> Tasks {
        Tasks {
            work: Bell::default(),
            queue: Vec::new(),
            writing_back: 0,
            flushes: false,
            due: Vec::new(),
            merges_left: true,
            syncing: false,
            checkpointing: false,
            checkpoints_end: false,
            sweep_ns: now_ns,
            checkpoint_ns: now_ns,
            sync_ns: now_ns,
            made: 0,
            made_ns: now_ns,
        }
    }
}

/// Counts for limits, and times of the warnings in the log (monotonic).
#[derive(Debug, Default)]
pub(crate) struct ReportedAt {
    /// Number of series that began in this minute.
    pub(crate) new: u64,
    pub(crate) minute_ns: u64,
    /// The log has the warning about too many series.
    pub(crate) is_many: bool,
    /// Times of the warnings about too many new series and about the size of archives.
    pub(crate) fast_ns: Option<u64>,
    pub(crate) bytes_ns: Option<u64>,
    /// The log has the warnings about lack of space for samples and for the finest rows.
    pub(crate) no_room: [bool; 2],
}

/// State of a series before a batch changed it.
pub(crate) struct Undo {
    pub(crate) id: u32,
    pub(crate) mark: Mark,
    pub(crate) version: u64,
    pub(crate) last: f64,
    pub(crate) published: f64,
    pub(crate) published_ns: u64,
    pub(crate) since: (u64, u64),
}

impl State {
    /// Returns a state without series.
    pub(crate) fn new(
        journal: Journal,
        clock: &dyn Clock,
        chunk_values: u64,
        retention: Option<PointsRetention>,
    ) -> State {
        let now = clock.now();
        State {
            series: SeriesTable::default(),
            chunks: Chunks::keeping(retention),
            journal,
            batch: OpenBatch::default(),
            tasks: Tasks::new(now.mono_ns),
            silent: HashMap::new(),
            gone: Vec::new(),
            departed: Departed::default(),
            tails_end: false,
            to_rename: BTreeSet::new(),
            has_lost: false,
            chunk_values,
            next: 0,
            epochs: Epochs::default(),
            pins: Pins::default(),
            no_file: None,
            random: now.real_ns as u64,
            stats: Stats::default(),
            reported_at: ReportedAt::default(),
            notices: Vec::new(),
        }
    }

    /// Makes sure that the journal has a file with room for entries.
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
        let begun = match self.journal.begin_file(now) {
            Ok(true) => self.carry_over().inspect_err(|_| {
                // A file that lacks something but claims to carry all over would hide the loss.
                self.journal.give_up();
            }),
            begun => begun.map(drop),
        };
        match begun {
            Ok(()) => {
                self.no_file = None;
                self.journal.fill_ahead();
                // The journal may be too long now.
                self.tasks.work.ring();
                Ok(())
            }
            Err(error) => {
                if is_full(&error) {
                    self.journal.miss_room();
                }
                let number = error.raw_os_error().unwrap_or(EIO);
                self.no_file = Some((now.mono_ns + RETRY_NS, number));
                self.go_on_without(number)
            }
        }
    }

    /// Continues without a new file: the old one grows, if there is one.
    fn go_on_without(&self, error: i32) -> io::Result<()> {
        match self.journal.is_open() {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Writes all that memory holds to a newly begun file.
    fn carry_over(&mut self) -> io::Result<()> {
        for (_, id) in self.gone.clone() {
            self.journal.put(&Record::Gone { id });
        }
        self.carry_over_places();
        let ids: Vec<u32> = self.series.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.carry_over_series(id);
            if self.journal.records().len() > FRAME_BYTES {
                self.journal.commit()?;
            }
        }
        self.journal.commit().map(|_| ())
    }

    /// Notes the lowered newest stamps of these series. If the disk
    /// is full, no values are written either, so an error is ignored.
    pub(crate) fn put_newest(&mut self, series: Vec<(u32, f64)>, clock: &dyn Clock) {
        if series.is_empty() || self.prepare(clock).is_err() {
            return;
        }
        for (id, stamp) in series {
            self.put(id, &Record::Newest { id, stamp }, clock.mono_ns());
        }
        let _without = self.journal.commit();
    }

    /// Adds the positions up to which chunks are saved; these must be the first entries of a frame.
    pub(crate) fn put_saved(&mut self, saved: impl IntoIterator<Item = (u32, u64)>) {
        for (chunk, position) in saved {
            self.journal.put(&Record::Saved { chunk, position });
        }
    }

    /// Notes that values of a series after the present ones are lost.
    pub(crate) fn lose(&mut self, id: u32) {
        let sequence = self.journal.oldest().max(1);
        let Some(series) = self.series.get_mut(id) else {
            return;
        };
        if series.values.points.is_some() {
            // Lost samples need no hole; they are missing.
            return;
        }
        let (chunk, before) = (series.chunk, series.values.pending.len());
        series.values.pending.push_hole(series.values.last);
        let after = series.values.pending.len();
        self.count(chunk, before, after);
        if let Some(chunk) = self.chunks.get_mut(chunk) {
            chunk.touch(sequence, 0);
        }
    }

    /// The path of a series with this name on the disk; `None` if the name is invalid.
    pub(crate) fn restored(&mut self, id: u32, name: &[u8]) -> Option<Vec<u8>> {
        let path = names::restored(&self.journal.base, name)?.into_owned();
        match names::stored(&self.journal.base, &path) == name {
            true => self.to_rename.remove(&id),
            false => self.to_rename.insert(id),
        };
        Some(path)
    }

    /// Writes the paths of these series' files to the journal.
    pub(crate) fn put_renamed(&mut self, ids: &[u32], now_ns: u64) -> io::Result<()> {
        for &id in ids {
            if let Some(path) = self.series.get(id).map(|series| series.path.clone()) {
                self.put(id, &Record::Renamed { id, path: &path }, now_ns);
            }
        }
        self.journal.commit().map(drop)
    }

    /// Adds all records of one series that are in no block.
    fn carry_over_series(&mut self, id: u32) {
        let Some(series) = self.series.get(id) else {
            return;
        };
        let (file, published, forgotten) = (series.file, series.values.published, series.forgotten);
        let (upto, started) = (file.upto(), file.started().is_some());
        let mut texts = Texts::default();
        series.values.texts_into(&mut texts);
        let moved = series.path.clone();
        if series.values.state.is_some() {
            self.put_series(id);
        } else if series.renamed {
            self.journal.put(&Record::Renamed { id, path: &moved });
        }
        let start = Record::Start { id, upto };
        if started && !file.is_busy() {
            self.journal.put(&start);
        }
        if let Some(identity) = file.left() {
            self.put_end(id, upto, identity, file.live());
        }
        if started && file.is_busy() {
            // A write that has not ended.
            self.journal.put(&start);
        }
        self.put_values(id, &texts);
        self.carry_over_points(id);
        if published.is_finite() {
            self.journal.put(&Record::Published {
                id,
                upto: published,
            });
        }
        if forgotten {
            self.journal.put(&Record::Forget { id });
        }
    }

    /// Adds the entry of a series that is in no block.
    pub(crate) fn put_series(&mut self, id: u32) {
        let Some(chunk) = self.series.get(id).map(|series| series.chunk) else {
            return;
        };
        self.introduce(chunk);
        let Some(series) = self.series.get(id) else {
            return;
        };
        let Some(state) = &series.values.state else {
            return;
        };
        self.journal.put(&Record::Series {
            id,
            path: &series.path,
            birth: Birth {
                chunk: series.chunk,
                slot: series.slot,
                base: series.base,
                state: state.words(),
            },
        });
    }

    /// Adds the state in which a file was left.
    pub(crate) fn put_end(&mut self, id: u32, upto: f64, identity: Identity, live: Option<Live>) {
        self.journal.put(&Record::End { id, upto, identity });
        if let Some(live) = live {
            self.journal.put(&Record::Live { id, live });
        }
    }

    /// Adds an entry about a series, and notes that its chunk has records that are in no block.
    pub(crate) fn put(&mut self, id: u32, entry: &Record<'_>, now_ns: u64) {
        self.touch(id, now_ns);
        self.journal.put(entry);
    }

    /// Notes that a series' chunk has records that are in no block.
    pub(crate) fn touch(&mut self, id: u32, now_ns: u64) {
        let sequence = self.journal.sequence();
        let chunk = self.series.get(id).map(|series| series.chunk);
        if let Some(chunk) = chunk.and_then(|chunk| self.chunks.get_mut(chunk)) {
            chunk.touch(sequence, now_ns);
        }
    }

    /// Time at which an update of a file written now is due, in monotonic nanoseconds.
    pub(crate) fn due_at(&mut self, now_ns: u64, settings: &Settings) -> u64 {
        let after_ns = nanos(settings.files.may_lag());
        let jitter_ns = self.random_below(nanos(settings.jitter));
        now_ns.saturating_add(after_ns).saturating_add(jitter_ns)
    }

    /// Time at which an update is due of a file written that long ago by an earlier process. Overdue updates are spread.
    pub(crate) fn due_after(&mut self, now_ns: u64, age_ns: u64, settings: &Settings) -> u64 {
        let after_ns = nanos(settings.files.may_lag());
        match after_ns.checked_sub(age_ns).filter(|&left| left > 0) {
            Some(_) => self.due_at(now_ns, settings).saturating_sub(age_ns),
            None => now_ns + self.random_below((after_ns / 8).min(LATE_SPREAD_NS)),
        }
    }

    fn random_below(&mut self, limit: u64) -> u64 {
        match limit {
            0 => 0,
            _ => next_random(&mut self.random) % limit,
        }
    }

    /// For each slot of a chunk, a second up to which its series is saved; `None` for a free slot.
    pub(crate) fn saved_stamps(&self, chunk: u32) -> Vec<Option<i64>> {
        let members = self.chunks.get(chunk).map(|chunk| &chunk.members[..]);
        let series = |id: &Option<u32>| self.series.get((*id)?);
        // The stamp in a state may be smaller than the value's by rounding.
        let stamp = |id| series(id).map(|series| (series.values.applied - 1.0) as i64);
        members.unwrap_or_default().iter().map(stamp).collect()
    }

    /// Queues a file for an update.
    pub(crate) fn queue(&mut self, id: u32) {
        if self
            .series
            .get_mut(id)
            .is_some_and(|series| series.may_have_file() && series.file.enqueue())
        {
            self.tasks.queue.push(id);
            self.tasks.work.ring();
        }
    }

    /// Queues a chunk for saving.
    pub(crate) fn queue_chunk(&mut self, id: u32) {
        if let Some(chunk) = self.chunks.get_mut(id).filter(|chunk| !chunk.queued) {
            chunk.queued = true;
            self.tasks.due.push(id);
            self.tasks.work.ring();
        }
    }

    /// Notes a changed number of a series' pending values, and queues its chunk if there are many.
    pub(crate) fn count(&mut self, chunk_id: u32, before: usize, after: usize) {
        let Some(chunk) = self.chunks.get_mut(chunk_id) else {
            return;
        };
        let values = match chunk.schema.points {
            Some(_) => self.chunk_values * SAMPLES_OF_VALUES,
            None => self.chunk_values,
        };
        chunk.pending = (chunk.pending + after as u64).saturating_sub(before as u64);
        match (before, after) {
            (0, 1..) => chunk.active += 1,
            (1.., 0) => chunk.active = chunk.active.saturating_sub(1),
            _ => {}
        }
        if !chunk.queued && chunk.pending >= values * chunk.active && chunk.active > 0 {
            self.queue_chunk(chunk_id);
        }
    }

    /// Takes a place for a series that will begin after its rows have been written, and adds entries by which a start sees a
    /// removed series there. Returns chunk and slot.
    pub(crate) fn put_place(&mut self, schema: &Arc<Schema>, now_ns: u64) -> (u32, u8) {
        let id = self.series.next_id();
        self.series.go_on_at(id + 1);
        let place = self.chunks.place(schema, id);
        let sequence = self.journal.sequence();
        if let Some(chunk) = self.chunks.get_mut(place.0) {
            chunk.touch(sequence, now_ns);
        }
        self.put_taken(id, place);
        self.gone.push((place.0, id));
        place
    }

    fn put_taken(&mut self, id: u32, (chunk, slot): (u32, u8)) {
        self.introduce(chunk);
        let words = self.chunks.get(chunk).map_or(0, |chunk| chunk.schema.words);
        let birth = Birth {
            chunk,
            slot,
            base: None,
            state: vec![0; words],
        };
        // No series has this path.
        let path = b"/";
        self.journal.put(&Record::Series { id, path, birth });
        self.journal.put(&Record::Gone { id });
    }

    /// Adds the entries of all taken places again.
    fn carry_over_places(&mut self) {
        let mut taken = Vec::new();
        for (number, chunk) in self.chunks.iter() {
            for (slot, id) in (0..=u8::MAX).zip(&chunk.members) {
                let id = id.filter(|&id| self.series.get(id).is_none());
                taken.extend(id.map(|id| (id, (number, slot))));
            }
        }
        for (id, place) in taken {
            self.put_taken(id, place);
        }
    }

    /// Adds the entries of a new series, which may replace another one and take over its values.
    pub(crate) fn put_adoption(
        &mut self,
        old: Option<u32>,
        id: u32,
        path: &[u8],
        birth: &Birth,
        values: &Pending,
        left: Option<Left>,
    ) {
        if let Some(old) = old {
            self.journal.put(&Record::Gone { id: old });
        }
        self.introduce(birth.chunk);
        let birth = birth.clone();
        let blank = birth.base.is_none();
        self.journal.put(&Record::Series { id, path, birth });
        if let Some(Left {
            identity,
            live,
            upto,
        }) = left
        {
            if blank {
                // The file is not synced yet, so the next start has to create it again.
                self.journal.put(&Record::Start { id, upto });
            }
            self.put_end(id, upto, identity, Some(live));
        }
        self.put_values(id, &values.texts());
    }

    /// Adds values again.
    fn put_values(&mut self, id: u32, texts: &Texts) {
        let mut head: Option<ValuesHead> = None;
        let (out, stamps) = self.journal.values();
        for text in texts.iter() {
            if !head.as_mut().is_some_and(|head| head.another(out)) {
                head = Some(ValuesHead::begin(out, stamps, id));
            }
            value::put_value(out, stamps, text);
        }
    }

    /// Adds the definitions of a chunk, once in each journal file.
    pub(crate) fn introduce(&mut self, chunk: u32) {
        let sequence = self.journal.sequence();
        let Some(known) = self.chunks.get_mut(chunk) else {
            return;
        };
        if known.introduced != sequence {
            known.introduced = sequence;
            self.journal.put(&Record::Schema {
                chunk,
                front: Cow::Borrowed(&known.schema.front),
            });
        }
    }

    /// Replaces a series by another one.
    pub(crate) fn replace_series(&mut self, old: u32, new: u32, now_ns: u64) {
        let Some(series) = self.series.get(old) else {
            return;
        };
        let (chunk, slot, pending) = (series.chunk, series.slot, series.values.unsaved_len());
        self.count(chunk, pending, 0);
        self.depart(old);
        let sequence = self.journal.sequence();
        if let Some(known) = self.chunks.get_mut(chunk) {
            known.members[usize::from(slot)] = None;
            known.touch(sequence, now_ns);
        }
        self.gone.push((chunk, old));
        self.series.rename(old, new);
    }

    /// Removes a series; the next block of its chunk will not have it.
    pub(crate) fn forget_series(&mut self, id: u32) {
        let Some(series) = self.series.get(id) else {
            return;
        };
        let (chunk, slot, pending) = (series.chunk, series.slot, series.values.unsaved_len());
        self.count(chunk, pending, 0);
        self.depart(id);
        if let Some(known) = self.chunks.get_mut(chunk) {
            known.members[usize::from(slot)] = None;
        }
        self.gone.push((chunk, id));
        self.series.remove(id);
    }

    /// Tails may have values of a series before them that goes.
    fn depart(&mut self, id: u32) {
        let Some(series) = self.series.get(id) else {
            return;
        };
        if let Some(chunk) = self.chunks.get(series.chunk) {
            let (path, schema) = (series.path.clone(), chunk.schema.clone());
            self.departed
                .insert(id, path, schema, self.journal.position);
        }
    }

    /// Undoes the effects of a batch.
    pub(crate) fn roll_back(&mut self) {
        self.journal.abandon();
        self.roll_back_points();
        if !self.batch.undo.is_empty() {
            self.stats = self.batch.stats_before;
        }
        for undo in std::mem::take(&mut self.batch.undo).into_iter().rev() {
            let Some(series) = self.series.get_mut(undo.id) else {
                continue;
            };
            let (chunk, before) = (series.chunk, series.values.pending.len());
            let dropped = self
                .batch
                .dropped
                .iter()
                .position(|(id, ..)| *id == undo.id);
            match dropped {
                Some(at) => {
                    (_, series.values.pending, series.suspended) =
                        self.batch.dropped.swap_remove(at);
                    series.forgotten = false;
                }
                None => series.values.pending.truncate(undo.mark),
            }
            series.values.version = undo.version;
            series.values.last = undo.last;
            series.values.published = undo.published;
            series.values.published_ns = undo.published_ns;
            let after = series.values.pending.len();
            self.count(chunk, before, after);
            if let Some(chunk) = self.chunks.get_mut(chunk) {
                (chunk.since, chunk.since_ns) = undo.since;
            }
        }
        self.batch.dropped.clear();
    }

    /// Adds a message for the log.
    pub(crate) fn notice(&mut self, line: String) {
        const NOTICES_MAX: usize = 1000;
        if self.notices.len() < NOTICES_MAX {
            self.notices.push(line);
            self.journal.written.ring();
        }
    }

    /// Returns true if the journal is synced and the log has all messages.
    pub(crate) fn needs_no_sync(&self) -> bool {
        !self.journal.is_behind() && self.notices.is_empty() && !self.journal.lacks_room_for_tails()
    }

    /// Returns true if no files or chunks wait for writing and no segments for merging.
    pub(crate) fn needs_no_thread(&self) -> bool {
        self.tasks.queue.is_empty()
            && self.tasks.due.is_empty()
            && !self.tasks.merges_left
            && !self.tasks.flushes
    }
}

/// A duration in nanoseconds, limited to the largest number.
pub(crate) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
