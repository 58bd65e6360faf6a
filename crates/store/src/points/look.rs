//! Rows with peaks of series of points, for display. A sample covers the time since the previous one, like a value of rrdtool;
//! the rows of a counter are its growth a second.

use super::PointsSnapshot;
use crate::consolidation::tiers::Tiers;
use crate::engine::Store;
use crate::error::{FetchError, FileError};
use crate::fetch::{LookRange, RowsWithExtremes};
use crate::segment::block::AGELESS;
use crate::wal::point::Point;
use kymo_base::label_set::Labels;
use kymo_rrd::fetch::Fetched;
use std::io;

/// Smallest covered part of a known row.
const COVERED_LEAST: f64 = 0.5;

/// Consecutive rows of one length.
struct Rows {
    start_s: i64,
    step_s: u32,
    rows: Vec<Row>,
}

#[derive(Clone, Copy)]
struct Row {
    /// Milliseconds covered by samples, and the sum of their values weighted by time.
    covered_ms: f64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Rows {
    fn of(range: &LookRange, step_s: u32) -> Rows {
        let step = i64::from(step_s);
        let start = range.from.div_euclid(step);
        let end = range.thru.saturating_add(step - 1).div_euclid(step);
        let count = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
        let row = Row {
            covered_ms: 0.0,
            sum: 0.0,
            min: f64::NAN,
            max: f64::NAN,
        };
        Rows {
            start_s: start.saturating_mul(step),
            step_s,
            rows: vec![row; count],
        }
    }

    fn end_s(&self) -> i64 {
        let rows = i64::try_from(self.rows.len()).unwrap_or(i64::MAX);
        let length = rows.saturating_mul(self.step_s.into());
        self.start_s.saturating_add(length)
    }

    /// Adds a value that covers the time between two moments.
    fn add(&mut self, (from_ms, thru_ms): (i64, i64), value: f64) {
        let step_ms = i64::from(self.step_s) * 1000;
        let start_ms = self.start_s.saturating_mul(1000);
        let from_ms = from_ms.max(start_ms);
        let first = from_ms.saturating_sub(start_ms).div_euclid(step_ms);
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        for (at, row) in (0_i64..).zip(&mut self.rows).skip(first) {
            let begin_ms = start_ms + at * step_ms;
            if begin_ms >= thru_ms {
                break;
            }
            let part_ms = thru_ms.min(begin_ms + step_ms) - from_ms.max(begin_ms);
            if part_ms > 0 {
                row.covered_ms += part_ms as f64;
                row.sum += value * part_ms as f64;
                row.min = row.min.min(value);
                row.max = row.max.max(value);
            }
        }
    }

    fn fetched(&self, cell: impl Fn(&Row) -> f64) -> Fetched {
        let least_ms = f64::from(self.step_s) * 1000.0 * COVERED_LEAST;
        let cells = self
            .rows
            .iter()
            .map(|row| match row.covered_ms >= least_ms {
                true => cell(row),
                false => f64::NAN,
            });
        Fetched {
            start: self.start_s,
            end: self.end_s(),
            step: self.step_s.into(),
            names: vec![b"value".to_vec()],
            rows: cells.collect(),
        }
    }

    fn looked(&self, has_peaks: bool) -> RowsWithExtremes {
        let mean = self.fetched(|row| row.sum / row.covered_ms);
        match has_peaks {
            true => RowsWithExtremes {
                mean,
                min: Some(self.fetched(|row| row.min)),
                max: Some(self.fetched(|row| row.max)),
            },
            false => RowsWithExtremes::plain(mean),
        }
    }
}

impl Store {
    /// Rows of a series of points; `None` if the series has archives or does not exist.
    pub(crate) fn look_at_points(
        &self,
        labels: &Labels,
        range: &LookRange,
    ) -> Result<Option<RowsWithExtremes>, FetchError> {
        let Some(series) = self.find_points(labels) else {
            return Ok(None);
        };
        let snapshot = self.inner.points_snapshot(series)?;
        let (step_s, source) = snapshot.source_of(range)?;
        let mut rows = Rows::of(range, step_s);
        let interval_s = snapshot.schema.template.pdp_step;
        match source {
            Source::Samples => snapshot.add_samples(&mut rows)?,
            Source::Tier => snapshot.add_tier(&mut rows)?,
        }
        Ok(Some(rows.looked(u64::from(step_s) > interval_s)))
    }
}

/// Source of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Samples,
    Tier,
}

impl PointsSnapshot {
    fn counts(&self) -> bool {
        let points = self.schema.points.as_ref();
        points.is_some_and(|points| points.kind.counts())
    }

    /// Length of rows for a range, in seconds, and their source: a tier if samples do not reach back far enough.
    fn source_of(&self, range: &LookRange) -> Result<(u32, Source), FetchError> {
        let wanted = u32::try_from(range.step).unwrap_or(u32::MAX);
        let interval = u32::try_from(self.schema.template.pdp_step).unwrap_or(1);
        let own = wanted.max(interval).max(1);
        let span = range.thru.saturating_sub(range.from);
        let fits = |step: &u32| {
            let rows = u64::try_from(span / i64::from(*step)).unwrap_or(0);
            rows < range.cells_max
        };
        if range.from >= self.samples_gone_before() && fits(&own) {
            return Ok((own, Source::Samples));
        }
        let tiers = self.schema.archives.iter();
        let tiers = tiers.filter_map(|tier| u32::try_from(tier.step).ok());
        let last = tiers.clone().next_back();
        let tiers = tiers.filter(|&tier| tier >= wanted || Some(tier) == last);
        let tiers: Vec<u32> = tiers.filter(fits).collect();
        let tier = self.finest_that_reaches(&tiers, range.from)?;
        Ok((tier.ok_or(FetchError::Large)?, Source::Tier))
    }

    /// The second before which samples may have become rows.
    pub(super) fn samples_gone_before(&self) -> i64 {
        let Some(finest) = self.schema.archives.first() else {
            return i64::MIN;
        };
        let ends = self.blocks.iter().filter_map(|placed| {
            let has_rows = placed.newest.iter().any(|&newest| newest > 0);
            has_rows.then(|| match (placed.newest[0], placed.oldest) {
                // Rows of lagging series, and younger samples.
                (AGELESS, Some(oldest)) if placed.point_bytes > 0 => oldest,
                (0 | AGELESS, _) => placed.stamp,
                (newest, _) => newest.saturating_mul(finest.step),
            })
        });
        ends.max()
            .map_or(i64::MIN, |end| i64::try_from(end).unwrap_or(i64::MAX))
    }

    /// The finest tier whose rows after `from_s` reach back as far as those of the next tier.
    fn finest_that_reaches(&self, tiers: &[u32], from_s: i64) -> Result<Option<u32>, FileError> {
        let mut tiers = tiers.iter().peekable();
        while let Some(&tier) = tiers.next() {
            let Some(&&coarser) = tiers.peek() else {
                return Ok(Some(tier));
            };
            let reaches = |step_s| self.oldest_row_s(step_s, from_s).map_err(FileError::Io);
            let (mine, theirs) = (reaches(tier)?, reaches(coarser)?);
            let is_as_old = |theirs| mine.is_some_and(|mine| mine <= theirs);
            if theirs.is_none_or(is_as_old) {
                return Ok(Some(tier));
            }
        }
        Ok(None)
    }

    /// End of the oldest row of a tier after a second.
    fn oldest_row_s(&self, step_s: u32, from_s: i64) -> io::Result<Option<i64>> {
        let step = u64::from(step_s);
        let archive = self.schema.archives.iter().position(|it| it.step == step);
        let Some(archive) = archive else {
            return Ok(None);
        };
        let from = u64::try_from(from_s).unwrap_or(0) / step + 1;
        for placed in self.blocks.iter() {
            let mut tiers = Tiers::default();
            self.stored_rows(placed, archive, from, &mut tiers)?;
            if let Some(&first) = tiers.rows.keys().next() {
                return Ok(i64::try_from(first.saturating_mul(step)).ok());
            }
        }
        Ok(None)
    }

    fn add_samples(&self, rows: &mut Rows) -> Result<(), FileError> {
        let points = self.schema.points.as_ref();
        let heartbeat_s = points.map_or(0, |points| points.heartbeat_s.max(points.interval_s));
        let heartbeat_ms = match heartbeat_s {
            0 => i64::from(rows.step_s) * 1000,
            seconds => i64::from(seconds) * 1000,
        };
        let from_ms = rows
            .start_s
            .saturating_mul(1000)
            .saturating_sub(heartbeat_ms);
        let thru_ms = rows
            .end_s()
            .saturating_mul(1000)
            .saturating_add(heartbeat_ms);
        let read = self.samples((from_ms, thru_ms)).map_err(FileError::Io)?;
        let counts = self.counts();
        // After a gap, a sample covers one interval.
        let interval_ms = points.map_or(0, |points| i64::from(points.interval_s) * 1000);
        let mut before: Option<Point> = None;
        for point in read.points {
            let last = before.replace(point);
            if point.v.is_nan() {
                continue;
            }
            let near = last.filter(|last| point.t_ms - last.t_ms <= heartbeat_ms);
            let Some(last) = near else {
                if !counts {
                    rows.add((point.t_ms - interval_ms, point.t_ms), point.v);
                }
                continue;
            };
            let length_ms = point.t_ms - last.t_ms;
            let grown = match point.v < last.v {
                true => point.v,
                false => point.v - last.v,
            };
            let value = match counts {
                true if last.v.is_nan() => continue,
                true => grown * 1000.0 / length_ms as f64,
                false => point.v,
            };
            rows.add((last.t_ms, point.t_ms), value);
        }
        Ok(())
    }

    fn add_tier(&self, rows: &mut Rows) -> Result<(), FileError> {
        let step = i64::from(rows.step_s);
        let first = rows.start_s.div_euclid(step) + 1;
        let last = rows.end_s().div_euclid(step);
        let number = |number: i64| u64::try_from(number).unwrap_or(0);
        let tiers = self.tiers(rows.step_s, (number(first), number(last)));
        let step_ms = f64::from(rows.step_s) * 1000.0;
        for (&at, tier) in &tiers.map_err(FileError::Io)?.rows {
            let place = at
                .checked_sub(number(first))
                .and_then(|at| usize::try_from(at).ok());
            let row = place.and_then(|at| rows.rows.get_mut(at));
            let Some(row) = row.filter(|_| tier.count > 0.0) else {
                continue;
            };
            let mean = match self.counts() {
                true => tier.increase / f64::from(rows.step_s),
                false => tier.mean(),
            };
            let (min, max) = match self.counts() {
                true => (mean, mean),
                false => (tier.min, tier.max),
            };
            *row = Row {
                covered_ms: step_ms,
                sum: mean * step_ms,
                min,
                max,
            };
        }
        Ok(())
    }
}
