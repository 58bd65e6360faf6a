//! Removes a time range of a series of points: samples in it, and rows of tiers that overlap it. Rows of remaining samples are
//! made of these when read.
//!
//! The remaining data is written and synced as blocks at a new place, before one frame of the journal removes the series and
//! begins it there. Handles of the series stay valid.

use super::TimeRange;
use crate::consolidation::points_schema::{last, state_of};
use crate::consolidation::rows::Column;
use crate::consolidation::schema::Schema;
use crate::consolidation::tiers::Tiers;
use crate::engine::Inner;
use crate::error::FileError;
use crate::layout::place_of;
use crate::memtable::file_state::FileState;
use crate::memtable::point_tail::PointTail;
use crate::memtable::state::State;
use crate::points::{PointSeries, PointsSnapshot};
use crate::rrd_file::reconcile::Held;
use crate::segment::block::AGELESS;
use crate::segment::builder::Builder;
use crate::segment::samples::SamplesWriter;
use crate::wal::point::Point;
use crate::wal::point_records::put_run;
use crate::wal::record::{Birth, Packed, Record};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// Limit of the samples of a series that are in memory at once: 256 MiB.
const SAMPLES_MAX: usize = 1 << 24;
/// Length of a block of samples: one day, and at most this number of samples.
const DAY_MS: i64 = 86_400_000;
const BLOCK_SAMPLES_MAX: usize = 1 << 18;

impl TimeRange {
    fn has(self, point: Point) -> bool {
        let from_ms = self.from.saturating_mul(1000);
        let end_ms = self.thru.saturating_add(1).saturating_mul(1000);
        (from_ms..end_ms).contains(&point.t_ms)
    }

    /// Returns true if a row that ends at this second may have a sample in the range.
    fn has_row(self, end_s: i64, step_s: i64) -> bool {
        self.from <= end_s && end_s.saturating_sub(step_s) <= self.thru
    }
}

/// The data of a series in blocks, with which it begins again.
pub(crate) struct Remainder {
    schema: Arc<Schema>,
    /// The sample before the first one.
    pub(crate) before: Option<Point>,
    pub(crate) points: Vec<Point>,
    /// Rows of each tier.
    pub(crate) tiers: Vec<Tiers>,
    /// The newest saved sample.
    pub(crate) last: Option<Point>,
}

/// Makes the data of a series in blocks from its present data.
type Remain<'a> = dyn Fn(&PointsSnapshot) -> Result<Remainder, FileError> + 'a;
/// Changes the samples that are in no block.
type Edit<'a> = dyn Fn(&mut Vec<Point>) + 'a;

impl Inner {
    /// Removes the range from a reserved series.
    pub(super) fn erase_points(&self, id: u32, range: TimeRange) -> Result<(), FileError> {
        self.begin_points_again(id, &|snapshot| snapshot.left(range), &|points| {
            points.retain(|&point| !range.has(point));
        })
    }

    /// Has a reserved series begin again.
    pub(crate) fn begin_points_again(
        &self,
        id: u32,
        remain: &Remain<'_>,
        edit: &Edit<'_>,
    ) -> Result<(), FileError> {
        let (schema, old) = {
            let state = self.lock();
            let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
            let chunk = state.chunks.get(series.chunk);
            let chunk = chunk.ok_or(FileError::NoSuchFile)?;
            (chunk.schema.clone(), series.chunk)
        };
        let place = self.reserve_place(&schema)?;
        let done = self.begin_at(id, (old, place), remain, edit);
        if done.is_err() {
            self.lock().chunks.unplace(place.0, place.1);
        }
        done
    }

    /// Reserves a place that no other series ever gets.
    fn reserve_place(&self, schema: &Arc<Schema>) -> Result<(u32, u8), FileError> {
        let mut state = self.lock();
        state.prepare(&*self.clock).map_err(FileError::Journal)?;
        let place = state.put_place(schema, self.clock.mono_ns());
        match state.journal.commit() {
            Ok(_) => Ok(place),
            Err(error) => {
                state.chunks.unplace(place.0, place.1);
                Err(FileError::Journal(error))
            }
        }
    }

    fn begin_at(
        &self,
        id: u32,
        (old, place): (u32, (u32, u8)),
        remain: &Remain<'_>,
        edit: &Edit<'_>,
    ) -> Result<(), FileError> {
        // While this is held, no sample moves from memory to a block.
        let chunks = BTreeSet::from([old, place.0]);
        let held: Vec<Held<'_>> = chunks.into_iter().map(|chunk| self.hold(chunk)).collect();
        let left = remain(&self.points_snapshot(PointSeries(id))?)?;
        self.sync_to(u64::MAX)
            .and_then(|()| self.append_left(&left, place))
            .and_then(|()| self.segments.sync())
            .map_err(FileError::Io)?;
        let mut state = self.lock();
        state.prepare(&*self.clock).map_err(FileError::Journal)?;
        let now_ns = self.clock.mono_ns();
        let begun = state.replace_points(id, (&left, place), edit, now_ns);
        drop(state);
        drop(held);
        begun
    }

    /// Writes blocks with the remaining data: first the samples from before the newest row, which stayed while later ones became
    /// rows, then the rows, then the other samples.
    fn append_left(&self, left: &Remainder, (chunk, slot): (u32, u8)) -> io::Result<()> {
        let mut builder = Builder::new(left.tiers.len())?;
        let mut before = left.before;
        let (early, rest) = left.points.split_at(left.early());
        let none: &[Point] = &[];
        let with_rows = [(none, true)].into_iter();
        let days = |points| days(points).map(|points| (points, false));
        for (points, has_rows) in days(early).chain(with_rows).chain(days(rest)) {
            builder.begin(chunk, self.segments.position(chunk), left.tiers.len());
            left.put_block(&mut builder, slot, (before, points), has_rows)?;
            if !builder.is_empty() {
                self.segments.append(&mut builder)?;
            }
            before = points.last().copied().or(before);
        }
        Ok(())
    }
}

/// Splits samples by day, so that they expire as before, and into blocks that are not too large.
fn days(points: &[Point]) -> impl Iterator<Item = &[Point]> {
    let day = |point: &Point| point.t_ms.div_euclid(DAY_MS);
    let days = points.chunk_by(move |one, next| day(one) == day(next));
    days.flat_map(|day| day.chunks(BLOCK_SAMPLES_MAX))
}

impl PointsSnapshot {
    /// The data in blocks without that of a range.
    pub(crate) fn left(&self, range: TimeRange) -> Result<Remainder, FileError> {
        let saved = self.saved_samples().map_err(FileError::Io)?;
        require_few(&saved.points)?;
        if saved.damaged > 0 {
            let why = "some of its samples are damaged: kymo verify says which".into();
            return Err(FileError::Rrd(why));
        }
        let mut points = saved.points;
        points.retain(|&point| !range.has(point));
        let last = points.last().copied();
        let saved = self.last_saved().map_err(FileError::Io)?;
        let before = self.before_first().map_err(FileError::Io)?;
        let [saved, before] = [saved, before].map(|it| it.filter(|&point| !range.has(point)));
        let first = points.first().map_or(i64::MAX, |first| first.t_ms);
        Ok(Remainder {
            schema: self.schema.clone(),
            before: before.filter(|before| before.t_ms < first),
            last: last.into_iter().chain(saved).max_by_key(|it| it.t_ms),
            points,
            tiers: self.rows_without(range).map_err(FileError::Io)?,
        })
    }

    /// Rows of expired samples, by tier, without those of a range.
    pub(crate) fn rows_without(&self, range: TimeRange) -> io::Result<Vec<Tiers>> {
        let archives = self.schema.archives.iter().enumerate();
        let tiers = archives.map(|(at, archive)| {
            let mut tiers = Tiers::default();
            for placed in self.blocks.iter() {
                self.stored_rows(placed, at, 0, &mut tiers)?;
            }
            let step_s = i64::try_from(archive.step).unwrap_or(i64::MAX);
            tiers.rows.retain(|&number, _| {
                let end_s = i64::try_from(number.saturating_mul(archive.step));
                !range.has_row(end_s.unwrap_or(i64::MAX), step_s)
            });
            // These parts of a row will follow the row's samples, and the last value of the latest part counts.
            let step = u32::try_from(archive.step).unwrap_or(u32::MAX);
            let whole = self.tiers(step, (0, u64::MAX))?;
            for (number, row) in &mut tiers.rows {
                row.last = whole.rows.get(number).map_or(row.last, |whole| whole.last);
            }
            Ok(tiers)
        });
        tiers.collect()
    }
}

/// Refuses more samples than may be in memory.
fn require_few(points: &[Point]) -> Result<(), FileError> {
    match points.len() > SAMPLES_MAX {
        true => Err(FileError::Large(
            u64::try_from(points.len()).unwrap_or(u64::MAX),
        )),
        false => Ok(()),
    }
}

impl Remainder {
    /// Refuses more samples than may be in memory.
    pub(crate) fn check_size(&self) -> Result<(), FileError> {
        require_few(&self.points)
    }

    /// Number of samples before the newest row.
    fn early(&self) -> usize {
        let tiers = self.tiers.iter().zip(&self.schema.archives);
        let begins = tiers.filter_map(|(tiers, archive)| {
            let (&newest, _) = tiers.rows.last_key_value()?;
            let begin_s = newest.saturating_sub(1).saturating_mul(archive.step);
            i64::try_from(begin_s.saturating_mul(1000)).ok()
        });
        let end_ms = begins.max().unwrap_or(i64::MIN);
        self.points.partition_point(|point| point.t_ms <= end_ms)
    }

    fn put_block(
        &self,
        builder: &mut Builder,
        slot: u8,
        (before, points): (Option<Point>, &[Point]),
        has_rows: bool,
    ) -> io::Result<()> {
        let (stripe, member) = place_of(slot);
        builder.part(stripe);
        let second = |point: &Point| u64::try_from(point.t_ms.div_euclid(1000)).ok();
        if let (Some(oldest), Some(newest)) = (points.first(), points.last()) {
            let (mut writer, mut frame) = (SamplesWriter::default(), Vec::new());
            writer.begin();
            writer.put(&mut frame, member, before, points);
            builder.points(&frame)?;
            builder.set_oldest(second(oldest));
            builder.stamp = second(newest).unwrap_or(0);
        }
        let tiers = self.tiers.iter().zip(&self.schema.archives).enumerate();
        for (at, (tiers, archive)) in tiers.filter(|_| has_rows) {
            let mut column = Column::default();
            let newest = tiers.put(member, &mut column);
            if newest > 0 {
                let begin_s = (newest - 1).saturating_mul(archive.step);
                builder.stamp = builder.stamp.max(begin_s);
            }
            builder.rows(at, &column, AGELESS)?;
        }
        builder.drop_empty_part();
        Ok(())
    }
}

impl State {
    /// Replaces the series by one at the place where blocks have its remaining data, with the samples that are in no block.
    fn replace_points(
        &mut self,
        old: u32,
        (left, (chunk, slot)): (&Remainder, (u32, u8)),
        edit: &Edit<'_>,
        now_ns: u64,
    ) -> Result<(), FileError> {
        let series = self.series.get(old).ok_or(FileError::NoSuchFile)?;
        let (path, hold) = (series.path.clone(), series.hold);
        let tail = series.values.points.as_ref().ok_or(FileError::NoSuchFile)?;
        let mut points = tail.points();
        edit(&mut points);
        let birth = Birth {
            chunk,
            slot,
            base: None,
            state: state_of(left.last),
        };
        let id = self.series.next_id();
        self.journal.put(&Record::Gone { id: old });
        self.introduce(chunk);
        self.journal.put(&Record::Series {
            id,
            path: &path,
            birth: birth.clone(),
        });
        let mut tail = PointTail::of_newest(last(&birth.state));
        let sequence = self.journal.sequence();
        if !points.is_empty() {
            let (out, stamps) = self.journal.values();
            let run = points.iter().copied();
            put_run(out, stamps, id, tail.journalled(sequence), run);
        }
        self.journal.commit().map_err(FileError::Journal)?;
        self.chunks.put(chunk, slot, &left.schema, Some(id));
        self.replace_series(old, id, now_ns);
        self.series.move_points(old, id);
        points.iter().for_each(|&point| tail.push(point));
        let seconds = |point: Option<Point>| point.map_or(f64::NEG_INFINITY, Point::seconds);
        let file = FileState::none(f64::NEG_INFINITY);
        let series = self.series.insert(id, &path, (chunk, slot), file);
        series.hold = hold;
        series.values.applied = seconds(left.last);
        let stamps = points.iter().map(|point| point.seconds());
        series.values.last = stamps.fold(series.values.applied, f64::max);
        series.values.published = series.values.last;
        series.values.published_ns = now_ns;
        series.values.state = Some(Packed::of(&birth.state));
        series.values.points = Some(Box::new(tail));
        self.count(chunk, 0, points.len());
        if let Some(chunk) = self.chunks.get_mut(chunk) {
            chunk.touch(sequence, now_ns);
        }
        Ok(())
    }
}
