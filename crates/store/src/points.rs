//! Beginning and reading series of points. Their samples arrive in batches ([`crate::WriteBatch::append_points`]).

use crate::consolidation::points_schema::{PointsSchema, last, state_of};
use crate::consolidation::rows::ReadRows;
use crate::consolidation::schema::Schema;
use crate::consolidation::tiers::{Tier, Tiers};
use crate::consolidation::timeline::{BLOCKS_BACK, Fate, Timeline};
use crate::engine::{Inner, Store};
use crate::error::FileError;
use crate::layout::place_of;
use crate::memtable::file_state::FileState;
use crate::memtable::point_tail::PointTail;
use crate::memtable::state::{EIO, State};
use crate::segment::placed::Placed;
use crate::segment::point_column::PointDecoder;
use crate::segment::samples::{each_entry, read_member};
use crate::segment::set::states_again;
use crate::wal::point::Point;
use crate::wal::record::{Birth, Packed};
use kymo_base::label_set::Labels;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

mod expired;
mod look;

/// Handle of a series of points while it exists; its number is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PointSeries(pub(crate) u32);

/// Result of reading samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadSamples {
    /// Samples in the order of time, one for each time.
    pub points: Vec<Point>,
    /// Number of unreadable frames, whose samples are missing.
    pub damaged: u64,
    /// Number of blocks that were read.
    pub blocks: u64,
}

/// Result row of reading tiers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierRow {
    /// End of the row, in seconds since 1970.
    pub end_s: i64,
    /// Summary of the samples in it.
    pub tier: Tier,
}

/// Rows that stand for expired samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpiredRows {
    /// Rows by time, with the length of each in seconds.
    pub rows: Vec<(u32, TierRow)>,
    /// No sample after this moment has expired, in milliseconds since 1970.
    pub thru_ms: i64,
}

/// A series at one moment.
pub(crate) struct PointsSnapshot {
    pub(crate) schema: Arc<Schema>,
    slot: u8,
    pub(crate) blocks: Arc<Vec<Placed>>,
    /// Samples that are in no block.
    tail: Vec<Point>,
}

impl Store {
    /// Makes series known, and begins those that do not exist; returns the handle of each.
    pub fn define_points(
        &self,
        definitions: &[(Labels, PointsSchema)],
    ) -> Vec<Result<PointSeries, FileError>> {
        let mut state = self.inner.lock();
        if let Err(error) = state.prepare(&*self.inner.clock) {
            return definitions.iter().map(|_| Err(journal(&error))).collect();
        }
        let mut began: Vec<(u32, &Labels, Birth)> = Vec::new();
        let mut id = state.series.next_id();
        let mut new: HashMap<&[u8], u32> = HashMap::new();
        let outcomes = definitions.iter().map(|(labels, points)| {
            if let Some(&known) = new.get(labels.text()) {
                return Ok(PointSeries(known));
            }
            if let Some(known) = state.series.by_path(labels.text()) {
                return points_of(&state, known);
            }
            self.admit_labels(labels)?;
            let schema = self.points_schema(&mut state, points)?;
            let birth = state.put_points_series(id, labels, &schema);
            new.insert(labels.text(), id);
            began.push((id, labels, birth));
            id += 1;
            Ok(PointSeries(id - 1))
        });
        let outcomes: Vec<Result<PointSeries, FileError>> = outcomes.collect();
        match state.journal.commit() {
            Ok(_) => {
                let now_ns = self.inner.clock.mono_ns();
                for (id, labels, birth) in began {
                    state.begin_points(id, labels, &birth, now_ns);
                }
                outcomes
            }
            Err(error) => {
                for (_, _, birth) in began {
                    state.chunks.unplace(birth.chunk, birth.slot);
                }
                definitions.iter().map(|_| Err(journal(&error))).collect()
            }
        }
    }

    /// True if blocks have samples and rows, see [`Settings::keeps_values`](crate::Settings::keeps_values).
    pub fn keeps_values(&self) -> bool {
        self.inner.settings.keeps_values
    }

    /// Retention of samples of new series, in seconds.
    pub fn samples_kept_s(&self) -> u32 {
        self.inner.settings.points.unwrap_or_default().samples_s
    }

    /// Checks the label set of a new series against the limits.
    pub fn admit_labels(&self, labels: &Labels) -> Result<(), FileError> {
        let admitted = self.inner.settings.labels.admit(labels);
        admitted.map_err(|excess| FileError::Rrd(excess.to_string()))
    }

    fn points_schema(
        &self,
        state: &mut State,
        points: &PointsSchema,
    ) -> Result<Arc<Schema>, FileError> {
        let points = match self.inner.settings.points {
            Some(retention) => points.clone().kept(retention),
            None => points.clone(),
        };
        let schema = Some(points).filter(PointsSchema::is_valid);
        let schema = schema.and_then(|points| state.chunks.schema(&points.front()));
        schema.ok_or_else(|| FileError::Rrd("its definition is wrong".into()))
    }

    /// The series of points with these labels.
    pub fn find_points(&self, labels: &Labels) -> Option<PointSeries> {
        let state = self.inner.lock();
        let id = state.series.by_path(labels.text())?;
        points_of(&state, id).ok()
    }

    /// The samples of a series between two times, both included, as they were received.
    pub fn samples(
        &self,
        series: PointSeries,
        (from_ms, thru_ms): (i64, i64),
    ) -> Result<ReadSamples, FileError> {
        self.inner
            .points_snapshot(series)?
            .samples((from_ms, thru_ms))
            .map_err(FileError::Io)
    }

    /// Rows of a range in which samples may have expired, and the moment after which none has, in milliseconds since 1970. The
    /// rows of each tier end where those of the next finer one begin. `before` rows before the range are there, too.
    pub fn expired_rows(
        &self,
        series: PointSeries,
        (from_ms, thru_ms): (i64, i64),
        before: u8,
    ) -> Result<ExpiredRows, FileError> {
        let snapshot = self.inner.points_snapshot(series)?;
        let rows = snapshot.expired_rows((from_ms, thru_ms), before);
        rows.map_err(FileError::Io)
    }

    /// Rows of this length whose ends lie between two times: made of
    /// samples, and where these have expired, from the tier with such rows.
    pub fn tier_rows(
        &self,
        series: PointSeries,
        step_s: u32,
        (from_s, thru_s): (i64, i64),
    ) -> Result<Vec<TierRow>, FileError> {
        let snapshot = self.inner.points_snapshot(series)?;
        let step = i64::from(step_s.max(1));
        let from = u64::try_from(from_s.saturating_add(step - 1).div_euclid(step)).unwrap_or(0);
        let thru = u64::try_from(thru_s.div_euclid(step)).unwrap_or(0);
        let tiers = snapshot
            .tiers(step_s, (from, thru))
            .map_err(FileError::Io)?;
        let rows = tiers.rows.range(from..=thru.max(from));
        let rows = rows.filter(|(number, _)| **number <= thru);
        let rows = rows.map(|(&number, &tier)| TierRow {
            end_s: i64::try_from(number).unwrap_or(0).saturating_mul(step),
            tier,
        });
        Ok(rows.collect())
    }
}

fn journal(error: &io::Error) -> FileError {
    let number = error.raw_os_error().unwrap_or(EIO);
    FileError::Journal(io::Error::from_raw_os_error(number))
}

fn points_of(state: &State, id: u32) -> Result<PointSeries, FileError> {
    let series = state.series.get(id).filter(|series| !series.forgotten);
    let series = series.ok_or(FileError::NoSuchFile)?;
    match series.values.points.is_some() {
        true => Ok(PointSeries(id)),
        false => Err(FileError::Rrd("it has archives and no points".into())),
    }
}

impl State {
    /// Gives a new series of points a place, and adds its entry to the journal's buffer.
    fn put_points_series(&mut self, id: u32, labels: &Labels, schema: &Arc<Schema>) -> Birth {
        let (chunk, slot) = self.chunks.place(schema, id);
        let birth = Birth {
            chunk,
            slot,
            base: None,
            state: state_of(None),
        };
        self.introduce(chunk);
        self.journal.put(&crate::wal::record::Record::Series {
            id,
            path: labels.text(),
            birth: birth.clone(),
        });
        birth
    }

    /// Adds a series of points to memory after its journal entry is written.
    fn begin_points(&mut self, id: u32, labels: &Labels, birth: &Birth, now_ns: u64) {
        self.reported_at.new += 1;
        let place = (birth.chunk, birth.slot);
        let file = FileState::none(f64::NEG_INFINITY);
        let series = self.series.insert(id, labels.text(), place, file);
        series.values.state = Some(Packed::of(&birth.state));
        series.values.published_ns = now_ns;
        series.values.points = Some(Box::default());
        let sequence = self.journal.sequence();
        if let Some(chunk) = self.chunks.get_mut(birth.chunk) {
            chunk.touch(sequence, now_ns);
        }
    }

    /// Gives a series that a start has found a tail of points, if its chunk is one of points.
    pub(crate) fn restore_points(&mut self, id: u32) {
        let Some(series) = self.series.get_mut(id) else {
            return;
        };
        let schema = self.chunks.get(series.chunk).map(|chunk| &chunk.schema);
        if schema.is_some_and(|schema| schema.points.is_some()) {
            let tail = PointTail::of_saved(series.values.applied);
            series.values.points = Some(Box::new(tail));
        }
    }
}

impl Inner {
    /// The time of the newest sample of a series, milliseconds since 1970.
    pub(crate) fn newest_point(
        &self,
        PointSeries(id): PointSeries,
    ) -> Result<Option<i64>, FileError> {
        let state = self.lock();
        let series = state.series.get(state.series.moved(id));
        let series = series.ok_or(FileError::NoSuchFile)?;
        let tail = series.values.points.as_ref();
        Ok(tail.and_then(|tail| tail.newest).map(|(t_ms, _)| t_ms))
    }

    pub(crate) fn points_snapshot(
        &self,
        PointSeries(id): PointSeries,
    ) -> Result<PointsSnapshot, FileError> {
        let state = self.lock();
        let id = state.series.moved(id);
        points_of(&state, id)?;
        let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
        let chunk = state.chunks.get(series.chunk);
        let chunk = chunk.ok_or(FileError::NoSuchFile)?;
        let tail = series.values.points.as_ref();
        Ok(PointsSnapshot {
            schema: chunk.schema.clone(),
            slot: series.slot,
            blocks: self.segments.visible_blocks(series.chunk),
            tail: tail.map(|tail| tail.points()).unwrap_or_default(),
        })
    }
}

impl PointsSnapshot {
    fn member(&self) -> u8 {
        place_of(self.slot).1
    }

    /// The frame with samples of a block, which the series of a stripe share; `None` if it is damaged.
    fn frame(&self, placed: &Placed) -> io::Result<Option<Rc<[u8]>>> {
        let (stripe, _) = place_of(self.slot);
        let Some(head) = placed.head()? else {
            return Ok(None);
        };
        match head.part(stripe).and_then(|part| part.points) {
            Some(frame) => placed.shared_frame(&frame),
            None => Ok(Some(Rc::default())),
        }
    }

    /// The time of the oldest sample that is in no block.
    pub(crate) fn oldest_in_memory(&self) -> Option<i64> {
        self.tail.iter().map(|point| point.t_ms).min()
    }

    pub(crate) fn samples(&self, (from_ms, thru_ms): (i64, i64)) -> io::Result<ReadSamples> {
        let (mut read, mut all) = (ReadSamples::default(), Vec::new());
        let may_have = |placed: &&Placed| placed.may_have_samples((from_ms, thru_ms));
        for placed in self.blocks.iter().filter(may_have) {
            all.clear();
            let raw = self.frame(placed)?;
            let is_whole = raw.and_then(|raw| read_member(&raw, self.member(), &mut all));
            read.blocks += 1;
            read.damaged += u64::from(is_whole.is_none());
            read.points.append(&mut all);
        }
        read.points.extend_from_slice(&self.tail);
        let in_range = |point: &Point| (from_ms..=thru_ms).contains(&point.t_ms);
        read.points.retain(in_range);
        if !read.points.is_sorted_by(|one, next| one.t_ms < next.t_ms) {
            // The first of several samples with the same time counts.
            read.points.sort_by_key(|point| point.t_ms);
            read.points.dedup_by_key(|point| point.t_ms);
        }
        Ok(read)
    }

    /// Rows `from..=thru` of this length. Parts of a row are joined in the order of the blocks.
    pub(crate) fn tiers(&self, step_s: u32, (from, thru): (u64, u64)) -> io::Result<Tiers> {
        let step = u64::from(step_s.max(1));
        let ms = |number: u64| {
            let ms = number.saturating_mul(step).saturating_mul(1000);
            i64::try_from(ms).unwrap_or(i64::MAX)
        };
        // The sample with which a block begins may be the last one of a row.
        let range_ms = (ms(from.saturating_sub(1)), ms(thru.saturating_add(1)));
        let timeline = self.timeline(range_ms)?;
        let mut parts = vec![Vec::new(); self.blocks.len() + 1];
        timeline.rows(step, &mut |source, number, part| {
            if (from..=thru).contains(&number) {
                parts[source].push((number, part));
            }
        });
        let archive = self.schema.archives.iter().position(|it| it.step == step);
        let mut tiers = Tiers::default();
        let blocks = self.blocks.iter().map(Some).chain([None]);
        for (placed, parts) in blocks.zip(parts) {
            if let (Some(archive), Some(placed)) = (archive, placed) {
                self.stored_rows(placed, archive, from, &mut tiers)?;
            }
            parts
                .into_iter()
                .for_each(|(number, part)| tiers.add(number, part));
        }
        tiers.rows.retain(|&number, _| number <= thru);
        Ok(tiers)
    }

    /// The samples of blocks that may overlap a range, and those in memory, which are the last source.
    fn timeline(&self, range_ms: (i64, i64)) -> io::Result<Timeline> {
        let mut timeline = Timeline::default();
        let blocks = self.blocks.iter().enumerate();
        let (near, far): (Vec<_>, Vec<_>) =
            blocks.partition(|(_, placed)| placed.may_have_samples(range_ms));
        for &(at, placed) in &near {
            self.add_block(&mut timeline, at, placed)?;
        }
        let memory = self.blocks.len();
        if let Some(saved) = self.last_saved()?.filter(|_| !self.tail.is_empty()) {
            timeline.add(memory, Fate::Leaves, &[saved], true);
        }
        timeline.add(memory, Fate::Leaves, &self.tail, false);
        timeline.sort();
        let first = near.first().map_or(memory, |(at, _)| *at);
        let older = far.into_iter().rev().filter(|(at, _)| *at < first);
        for (at, placed) in older.take(BLOCKS_BACK) {
            if timeline.knows_what_is_before(range_ms.0) {
                break;
            }
            self.add_block(&mut timeline, at, placed)?;
            timeline.sort();
        }
        Ok(timeline)
    }

    fn add_block(&self, timeline: &mut Timeline, at: usize, placed: &Placed) -> io::Result<()> {
        let Some(raw) = self.frame(placed)? else {
            return Ok(());
        };
        let (mut decoder, mut points) = (PointDecoder::default(), Vec::new());
        for entry in each_entry(&raw) {
            points.clear();
            let read = match entry.member == self.member() {
                true => entry.read(&mut decoder, &mut points),
                false => entry.skip(&mut decoder),
            };
            if read.is_none() {
                break;
            }
            timeline.add(at, Fate::Leaves, &points, entry.has_before);
        }
        Ok(())
    }

    /// The samples in blocks.
    pub(crate) fn saved_samples(&self) -> io::Result<ReadSamples> {
        let saved = PointsSnapshot {
            schema: self.schema.clone(),
            slot: self.slot,
            blocks: self.blocks.clone(),
            tail: Vec::new(),
        };
        saved.samples((i64::MIN, i64::MAX))
    }

    /// The newest sample before those in blocks, which has become part of a row.
    pub(crate) fn before_first(&self) -> io::Result<Option<Point>> {
        Ok(self.timeline((i64::MIN, i64::MAX))?.before_first())
    }

    /// The newest sample in blocks.
    pub(crate) fn last_saved(&self) -> io::Result<Option<Point>> {
        let (stripe, member) = place_of(self.slot);
        let states = states_again(&self.blocks, &self.schema, stripe)?;
        let state = states.iter().find(|(at, _)| *at == member);
        Ok(state.and_then(|(_, words)| last(words)))
    }

    pub(crate) fn stored_rows(
        &self,
        placed: &Placed,
        archive: usize,
        from: u64,
        tiers: &mut Tiers,
    ) -> io::Result<()> {
        let newest = placed.newest.get(archive).copied().unwrap_or(0);
        if newest < from.max(1) {
            return Ok(());
        }
        let (stripe, member) = place_of(self.slot);
        let Some(head) = placed.head()? else {
            return Ok(());
        };
        let part = head.part(stripe);
        let frame = part.and_then(|part| part.rows.get(archive).copied().flatten());
        let Some(frame) = frame else { return Ok(()) };
        let raw = placed.shared_frame(&frame)?;
        let column = raw
            .as_deref()
            .and_then(|raw| ReadRows::parse(raw, self.schema.width));
        if let Some(column) = column {
            tiers.add_rows(&column, member, from);
        }
        Ok(())
    }
}

/// Reads samples and rows of arbitrary blocks, for fuzzing.
#[cfg(feature = "testing")]
pub(crate) fn read_hostile(
    schema: &Arc<Schema>,
    blocks: &Arc<Vec<Placed>>,
    slot: u8,
) -> io::Result<()> {
    let snapshot = PointsSnapshot {
        schema: schema.clone(),
        slot,
        blocks: blocks.clone(),
        tail: Vec::new(),
    };
    snapshot.samples((i64::MIN, i64::MAX))?;
    for step_s in [1, 300, 3600] {
        snapshot.tiers(step_s, (0, u64::MAX))?;
    }
    Ok(())
}
