//! Series of points: they begin, and are read. Their samples come in a batch ([`crate::WriteBatch::append_points`]).

use crate::consolidation::points_schema::{PointsSchema, state_of};
use crate::consolidation::schema::Schema;
use crate::consolidation::tiers::{Tier, Tiers};
use crate::engine::{Inner, Store};
use crate::error::FileError;
use crate::layout::place_of;
use crate::memtable::file_state::FileState;
use crate::memtable::point_tail::PointTail;
use crate::memtable::state::{EIO, State};
use crate::segment::placed::Placed;
use crate::segment::point_column::PointDecoder;
use crate::segment::rows::ReadRows;
use crate::segment::samples::{each_entry, read_member};
use crate::wal::point::Point;
use crate::wal::record::{Birth, Packed};
use kymo_base::label_set::Labels;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

mod look;

/// A series of points, for as long as it is there: its number is never another one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PointSeries(pub(crate) u32);

/// Samples that were read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadSamples {
    /// By their time, one of each moment.
    pub points: Vec<Point>,
    /// Frames that could not be read: what they had is missing.
    pub damaged: u64,
}

/// A row that was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierRow {
    /// When it ends, seconds since 1970.
    pub end_s: i64,
    /// What the samples in it were.
    pub tier: Tier,
}

/// One series as it is at one moment.
struct PointsSnapshot {
    schema: Arc<Schema>,
    slot: u8,
    blocks: Arc<Vec<Placed>>,
    /// Samples that are in no block.
    tail: Vec<Point>,
}

impl Store {
    /// Makes series known, those that are nowhere begin; for each its number, or why there is none.
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

    /// How long samples of new series are kept, in seconds.
    pub fn samples_kept_s(&self) -> u32 {
        self.inner.settings.points.unwrap_or_default().samples_s
    }

    /// Refuses the label set of a new series that has more than there may be.
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

    /// The samples of a series between two moments, both included, as they were received.
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

    /// Rows of a series of this length whose ends lie between two moments: from samples, and where these are gone from the
    /// tier that has such rows.
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
    /// Gathers that a series of points begins, and takes its place.
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

    /// The journal knows of a series of points, and now memory does.
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

    /// A series that was found at a start has points, if those of its chunk have.
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
    fn points_snapshot(&self, PointSeries(id): PointSeries) -> Result<PointsSnapshot, FileError> {
        let state = self.lock();
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

    /// Frames with samples of blocks that may have some of this moment or later, the oldest first; `None`: a frame is damaged.
    fn frames(&self, from_ms: i64) -> impl Iterator<Item = io::Result<Option<Vec<u8>>>> + '_ {
        let (stripe, _) = place_of(self.slot);
        let may_have = move |placed: &&Placed| {
            let end_ms = i64::try_from(placed.stamp.saturating_add(1).saturating_mul(1000));
            placed.point_bytes > 0 && end_ms.is_ok_and(|end_ms| end_ms > from_ms)
        };
        let blocks = self.blocks.iter().filter(may_have);
        blocks.filter_map(move |placed| {
            let head = match placed.head() {
                Ok(Some(head)) => head,
                Ok(None) => return Some(Ok(None)),
                Err(error) => return Some(Err(error)),
            };
            let frame = head.part(stripe).and_then(|part| part.points)?;
            Some(placed.frame(&frame))
        })
    }

    fn samples(&self, (from_ms, thru_ms): (i64, i64)) -> io::Result<ReadSamples> {
        let (mut read, mut all) = (ReadSamples::default(), Vec::new());
        for raw in self.frames(from_ms) {
            all.clear();
            let is_whole = raw?.and_then(|raw| read_member(&raw, self.member(), &mut all));
            read.damaged += u64::from(is_whole.is_none());
            read.points.append(&mut all);
        }
        read.points.extend_from_slice(&self.tail);
        let in_range = |point: &Point| (from_ms..=thru_ms).contains(&point.t_ms);
        read.points.retain(in_range);
        if !read.points.is_sorted_by(|one, next| one.t_ms < next.t_ms) {
            // Of samples of one moment the first counts.
            read.points.sort_by_key(|point| point.t_ms);
            read.points.dedup_by_key(|point| point.t_ms);
        }
        Ok(read)
    }

    /// Rows `from..=thru` of a length.
    fn tiers(&self, step_s: u32, (from, thru): (u64, u64)) -> io::Result<Tiers> {
        let step = u64::from(step_s.max(1));
        let mut tiers = Tiers::default();
        let archive = self.schema.archives.iter().position(|it| it.step == step);
        if let Some(archive) = archive {
            self.stored_rows(archive, from, &mut tiers)?;
        }
        let start_s =
            i64::try_from(from.saturating_sub(1).saturating_mul(step)).unwrap_or(i64::MAX);
        let (mut decoder, mut points) = (PointDecoder::default(), Vec::new());
        let mut newest: Option<Point> = None;
        for raw in self.frames(start_s.saturating_mul(1000)) {
            let Some(raw) = raw? else { continue };
            for entry in each_entry(&raw) {
                points.clear();
                if entry.member != self.member() {
                    if entry.skip(&mut decoder).is_none() {
                        break;
                    }
                    continue;
                }
                if entry.read(&mut decoder, &mut points).is_none() {
                    break;
                }
                tiers.add(step, &points, entry.has_before);
                let last = points.last().copied();
                newest = newest.into_iter().chain(last).max_by_key(|it| it.t_ms);
            }
        }
        let mut tail = self.tail.clone();
        tail.sort_by_key(|point| point.t_ms);
        tail.dedup_by_key(|point| point.t_ms);
        let before = newest.filter(|newest| tail.first().is_some_and(|it| newest.t_ms < it.t_ms));
        points.clear();
        points.extend(before);
        points.append(&mut tail);
        tiers.add(step, &points, before.is_some());
        tiers
            .rows
            .retain(|&number, _| number >= from && number <= thru);
        Ok(tiers)
    }

    fn stored_rows(&self, archive: usize, from: u64, tiers: &mut Tiers) -> io::Result<()> {
        let (stripe, _) = place_of(self.slot);
        for placed in self.blocks.iter() {
            let Some(head) = placed.head()? else { continue };
            let part = head.part(stripe);
            let frame = part.and_then(|part| part.rows.get(archive).copied().flatten());
            let Some(frame) = frame else { continue };
            let raw = placed.frame(&frame)?;
            let column = raw
                .as_deref()
                .and_then(|raw| ReadRows::parse(raw, self.schema.width));
            if let Some(column) = column {
                tiers.add_rows(&column, self.member(), from);
            }
        }
        Ok(())
    }
}

/// Reads samples and rows of whatever blocks hold.
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
