//! Samples of one series from several blocks, sorted by time, and the rows made of those that leave.
//!
//! The growth of a counter at a sample is the difference to the sample before it, which may be in another block, since a late
//! sample is in a later block. A sample that stays is counted again when it leaves, by the samples left then, so that rows
//! made now have only the difference.

use crate::consolidation::tiers::Tier;
use crate::wal::point::Point;

/// The stale marker, which ends a series and is not a value.
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// Limit of older blocks that are read to find the sample before a late one.
pub(crate) const BLOCKS_BACK: usize = 8;

/// Fate of an entry's samples in a merge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// They become rows now.
    Leaves,
    /// They become rows later.
    Stays,
}

/// A sample, or the value of the previous sample with which an entry begins.
struct OrderedSample {
    point: Point,
    source: usize,
    /// True for a sample that is counted, now or later; false for the value of a previous sample.
    is_sample: bool,
    leaves: bool,
    /// Samples that stay have it as the sample before them.
    stays_known: bool,
}

/// Samples of one series; the blocks they come from are numbered as sources.
#[derive(Default)]
pub(crate) struct Timeline {
    marks: Vec<OrderedSample>,
}

impl Timeline {
    /// Adds samples of a source. With `has_before` the first one only gives the previous value of a counter.
    pub(crate) fn add(&mut self, source: usize, fate: Fate, points: &[Point], has_before: bool) {
        let marks = points.iter().enumerate();
        self.marks.extend(marks.map(|(at, &point)| {
            let is_sample = at > 0 || !has_before;
            OrderedSample {
                point,
                source,
                is_sample,
                leaves: is_sample && fate == Fate::Leaves,
                stays_known: fate == Fate::Stays,
            }
        }));
    }

    /// Sorts the samples; of samples with the same time, the first one added counts.
    pub(crate) fn sort(&mut self) {
        self.marks.retain(|mark| mark.point.v.to_bits() != STALE);
        let order = |mark: &OrderedSample| (mark.point.t_ms, !mark.is_sample);
        self.marks.sort_by_key(order);
        self.marks.dedup_by(|other, first| {
            let is_same = other.point.t_ms == first.point.t_ms;
            if is_same {
                first.stays_known |= other.stays_known;
                // A copy that stays is counted when it leaves.
                first.leaves &= other.leaves || !other.is_sample;
            }
            is_same
        });
    }

    /// Calls `each` with source, number and part of each row of this length, in the order of time.
    pub(crate) fn rows(&self, step_s: u64, each: &mut dyn FnMut(usize, u64, Tier)) {
        let step_ms = i64::try_from(step_s.max(1).saturating_mul(1000)).unwrap_or(i64::MAX);
        let number = |point: Point| point.t_ms.saturating_add(step_ms - 1).div_euclid(step_ms);
        let (mut before, mut before_that_stays) = (None, None);
        for (at, mark) in self.marks.iter().enumerate() {
            let (v, row) = (mark.point.v, number(mark.point));
            let Ok(to) = u64::try_from(row) else { continue };
            if v.is_nan() {
                if mark.leaves {
                    each(mark.source, to, Tier::NONE);
                }
                continue;
            }
            let increase = growth(before, v);
            if mark.leaves {
                let mut later = self.marks[at + 1..].iter().map(|later| later.point);
                let next = later.find(|later| !later.v.is_nan());
                let is_last = next.is_none_or(|next| number(next) > row);
                let part = Tier {
                    min: v,
                    max: v,
                    sum: v,
                    count: 1.0,
                    last: if is_last { v } else { f64::NAN },
                    increase,
                };
                each(mark.source, to, part);
            } else if mark.is_sample {
                let increase = increase - growth(before_that_stays, v);
                if increase != 0.0 {
                    let part = Tier {
                        increase,
                        ..Tier::NONE
                    };
                    each(mark.source, to, part);
                }
            }
            before = Some(v);
            if mark.stays_known {
                before_that_stays = Some(v);
            }
        }
    }

    /// Returns true if no sample leaves, or if the newest staying sample before the first leaving one is known.
    pub(crate) fn knows_what_stays_before(&self) -> bool {
        let first = self.marks.iter().position(|mark| mark.leaves);
        let before = &self.marks[..first.unwrap_or(0)];
        first.is_none() || before.iter().any(|mark| mark.stays_known)
    }

    /// Returns true if the sample before the first one after `t_ms` is known, or if there are none after it.
    pub(crate) fn knows_what_is_before(&self, t_ms: i64) -> bool {
        let first = self.marks.first();
        first.is_none_or(|mark| !mark.is_sample || mark.point.t_ms <= t_ms)
    }

    /// The value before the first sample.
    pub(crate) fn before_first(&self) -> Option<Point> {
        let first = self.marks.iter().position(|mark| mark.is_sample);
        let before = &self.marks[..first.unwrap_or(self.marks.len())];
        before.last().map(|mark| mark.point)
    }

    /// Time of the first and the last leaving sample, in milliseconds.
    pub(crate) fn span_ms(&self) -> Option<(i64, i64)> {
        let mut leaving = self.marks.iter().filter(|mark| mark.leaves);
        let first = leaving.next()?;
        let last = leaving.next_back().unwrap_or(first);
        Some((first.point.t_ms, last.point.t_ms))
    }
}

/// Growth of a counter; a value below the previous one is a restart at 0.
fn growth(before: Option<f64>, v: f64) -> f64 {
    let grown = match before {
        None => 0.0,
        Some(before) if v < before => v,
        Some(before) => v - before,
    };
    if grown.is_finite() { grown } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consolidation::points_schema::ROW_CELLS;
    use crate::consolidation::rows::{Column, ReadRows};
    use crate::consolidation::tiers::Tiers;
    use kymo_base::random::next_random;

    fn points(of: &[(i64, f64)]) -> Vec<Point> {
        let of = of.iter();
        of.map(|&(t, v)| Point { t_ms: t * 1000, v }).collect()
    }

    fn tiers(samples: &[Point], has_before: bool) -> Tiers {
        let (mut timeline, mut tiers) = (Timeline::default(), Tiers::default());
        timeline.add(0, Fate::Leaves, samples, has_before);
        timeline.sort();
        timeline.rows(300, &mut |_, number, part| tiers.add(number, part));
        tiers
    }

    #[test]
    fn rows_of_samples() {
        let stale = f64::from_bits(STALE);
        let samples = points(&[
            (290, 5.0),
            (300, 7.0),
            (301, 8.0),
            (310, 2.0),
            (320, stale),
            (600, 4.0),
            (601, f64::NAN),
        ]);
        let rows = tiers(&samples, true).rows;
        let rows: Vec<(u64, [f64; ROW_CELLS])> =
            rows.iter().map(|(n, row)| (*n, row.cells())).collect();
        assert_eq!(rows[0], (1, [7.0, 7.0, 7.0, 1.0, 7.0, 2.0]));
        assert_eq!(rows[1], (2, [2.0, 8.0, 14.0, 3.0, 4.0, 5.0]));
        assert_eq!((rows[2].0, rows[2].1[3]), (3, 0.0));
    }

    /// Rows are the same however the samples are split, if each part has the sample before it.
    #[test]
    fn parts_of_rows_are_put_together() {
        let value = |t: i64| (t * 37 % 101 + if t % 50 < 25 { 1000 } else { 0 }) as f64;
        let samples: Vec<(i64, f64)> = (1..400).map(|t| (t * 7, value(t))).collect();
        let samples = points(&samples);
        let whole = tiers(&samples, false);
        for cut in [1, 13, 200, 398] {
            let mut parts = Tiers::default();
            for (part, has_before) in [(&samples[..cut], false), (&samples[cut - 1..], true)] {
                let (mut column, mut raw) = (Column::default(), Vec::new());
                tiers(part, has_before).put(4, &mut column);
                column.encode(&mut raw);
                parts.add_rows(&ReadRows::parse(&raw, ROW_CELLS).unwrap(), 4, 0);
            }
            assert_eq!(parts.rows, whole.rows, "{cut}");
        }
    }

    /// Regression test: a late sample that hid a restart was not counted, and the samples after it were counted twice.
    #[test]
    fn growth_is_known_whatever_comes_late_and_leaves_first() {
        let mut random = 7;
        for round in 0..2000 {
            // Samples in blocks of a counter that sometimes restarts; some samples are in a later block.
            let (mut value, mut blocks) = (0.0, vec![Vec::new(); 4]);
            let mut all = Vec::new();
            for at in 0..24_i64 {
                value += (next_random(&mut random) % 9) as f64;
                if next_random(&mut random).is_multiple_of(4) {
                    value = 1.0;
                }
                all.push((at * 40, value));
                let late = u64::from(next_random(&mut random).is_multiple_of(3));
                let block = (at as u64 / 6 + late).min(3) as usize;
                blocks[block].push((at * 40, value));
            }
            let whole = tiers(&points(&all), false);
            // An entry of late samples, and one that begins with the newest sample of the blocks before.
            let mut newest: Option<(i64, f64)> = None;
            let mut entries = Vec::new();
            for block in &blocks {
                let late = |point: &&(i64, f64)| newest.is_some_and(|newest| point.0 < newest.0);
                let (late, rest): (Vec<_>, Vec<_>) = block.iter().partition(late);
                let rest: Vec<(i64, f64)> = newest.into_iter().chain(rest).collect();
                entries.push([(points(&late), false), (points(&rest), newest.is_some())]);
                newest = rest.last().copied().or(newest);
            }
            let mut left: Vec<usize> = (0..4).collect();
            let mut rows = Tiers::default();
            while !left.is_empty() {
                let gone = next_random(&mut random) % (1 << left.len());
                let mut timeline = Timeline::default();
                let leaves = |at: usize| gone & 1 << at != 0;
                for (at, &block) in left.iter().enumerate() {
                    let fate = if leaves(at) {
                        Fate::Leaves
                    } else {
                        Fate::Stays
                    };
                    for (samples, has_before) in &entries[block] {
                        timeline.add(block, fate, samples, *has_before);
                    }
                }
                timeline.sort();
                timeline.rows(300, &mut |_, number, part| rows.add(number, part));
                let mut at = 0..;
                left.retain(|_| at.next().is_some_and(|at| !leaves(at)));
            }
            let grown = |tiers: &Tiers| -> Vec<(u64, f64, f64)> {
                let rows = tiers.rows.iter();
                rows.map(|(n, row)| (*n, row.count, row.increase)).collect()
            };
            assert_eq!(grown(&rows), grown(&whole), "{round}");
        }
    }
}
