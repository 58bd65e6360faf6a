//! Rows of series of points: what the samples of an interval were together. They are written when the samples leave, and may
//! be parts of a row: those of one number are put together.

use crate::consolidation::points_schema::ROW_CELLS;
use crate::consolidation::row_sink::Part;
use crate::segment::rows::{Column, ReadRows};
use crate::wal::point::Point;
use std::collections::BTreeMap;

/// The stale marker says that a series ended, and is no value.
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// A row, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tier {
    /// The least value.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Sum of all values.
    pub sum: f64,
    /// How many there are.
    pub count: f64,
    /// The last one.
    pub last: f64,
    /// By how much a counter grew.
    pub increase: f64,
}

impl Tier {
    const NONE: Tier = Tier {
        min: f64::NAN,
        max: f64::NAN,
        sum: 0.0,
        count: 0.0,
        last: f64::NAN,
        increase: 0.0,
    };

    fn of_cells(cells: [f64; ROW_CELLS]) -> Tier {
        let [min, max, sum, count, last, increase] = cells;
        Tier {
            min,
            max,
            sum,
            count,
            last,
            increase,
        }
    }

    fn cells(self) -> [f64; ROW_CELLS] {
        [
            self.min,
            self.max,
            self.sum,
            self.count,
            self.last,
            self.increase,
        ]
    }

    /// The mean of the values.
    pub fn mean(self) -> f64 {
        self.sum / self.count
    }

    /// Adds a later part.
    fn join(&mut self, later: Tier) {
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.sum += later.sum;
        self.count += later.count;
        if !later.last.is_nan() {
            self.last = later.last;
        }
        self.increase += later.increase;
    }
}

/// Rows of one series by their numbers: a row of number n ends at n steps since 1970, which belong to it.
#[derive(Debug, Default)]
pub(crate) struct Tiers {
    pub(crate) rows: BTreeMap<u64, Tier>,
}

impl Tiers {
    /// Adds samples, sorted by time; the first one only says where a counter was, if it was there before.
    pub(crate) fn add(&mut self, step_s: u64, points: &[Point], has_before: bool) {
        let step_ms = i64::try_from(step_s.max(1).saturating_mul(1000)).unwrap_or(i64::MAX);
        let mut before: Option<f64> = None;
        for (at, point) in points.iter().enumerate() {
            if point.v.to_bits() == STALE {
                continue;
            }
            let grown = before.map_or(0.0, |before| match point.v < before {
                // It began again at 0.
                true => point.v,
                false => point.v - before,
            });
            before = Some(point.v).filter(|value| !value.is_nan()).or(before);
            if at == 0 && has_before {
                continue;
            }
            let number = point.t_ms.saturating_add(step_ms - 1).div_euclid(step_ms);
            let Ok(number) = u64::try_from(number) else {
                continue;
            };
            let row = self.rows.entry(number).or_insert(Tier::NONE);
            if point.v.is_nan() {
                continue;
            }
            row.join(Tier {
                min: point.v,
                max: point.v,
                sum: point.v,
                count: 1.0,
                last: point.v,
                increase: if grown.is_finite() { grown } else { 0.0 },
            });
        }
    }

    /// Adds the rows of a member from number `from` on that a column has.
    pub(crate) fn add_rows(&mut self, column: &ReadRows<'_>, member: u8, from: u64) {
        column.parts(member, &mut |first, part, bytes| {
            let (rows, _) = bytes.as_chunks::<{ 8 * ROW_CELLS }>();
            // A run of equal rows is none of ours.
            let rows = rows.iter().take(match part {
                Part::Rows(_) => rows.len(),
                Part::Run(_) => 0,
            });
            for (number, row) in (first..).zip(rows) {
                if number < from {
                    continue;
                }
                let (cells, _) = row.as_chunks::<8>();
                let cells = std::array::from_fn(|cell| f64::from_le_bytes(cells[cell]));
                let row = self.rows.entry(number).or_insert(Tier::NONE);
                row.join(Tier::of_cells(cells));
            }
        });
    }

    /// Appends them as rows of a member; the newest number, 0 if there is none.
    pub(crate) fn put(&self, member: u8, column: &mut Column) -> u64 {
        let mut rows = self.rows.iter().peekable();
        let mut newest = 0;
        while let Some((&first, row)) = rows.next() {
            let mut bytes = bytes_of(row);
            let mut count = 1;
            while let Some((_, row)) = rows.next_if(|(number, _)| **number - first == count) {
                bytes.extend(bytes_of(row));
                count += 1;
            }
            column.push_raw(member, first, &[Part::Rows(count)], &bytes);
            newest = first + count - 1;
        }
        newest
    }
}

fn bytes_of(row: &Tier) -> Vec<u8> {
    row.cells().into_iter().flat_map(f64::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: &[(i64, f64)]) -> Vec<Point> {
        let of = of.iter();
        of.map(|&(t, v)| Point { t_ms: t * 1000, v }).collect()
    }

    #[test]
    fn rows_of_samples() {
        let mut tiers = Tiers::default();
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
        tiers.add(300, &samples, true);
        let row = |cells| Tier::of_cells(cells);
        let rows: Vec<(u64, Tier)> = tiers.rows.iter().map(|(n, row)| (*n, *row)).collect();
        assert_eq!(rows[0], (1, row([7.0, 7.0, 7.0, 1.0, 7.0, 2.0])));
        assert_eq!(rows[1], (2, row([2.0, 8.0, 14.0, 3.0, 4.0, 5.0])));
        assert_eq!((rows[2].0, rows[2].1.count), (3, 0.0));
    }

    /// However samples are cut into parts that know the sample before them, their rows are the same.
    #[test]
    fn parts_of_rows_are_put_together() {
        let value = |t: i64| (t * 37 % 101 + if t % 50 < 25 { 1000 } else { 0 }) as f64;
        let samples: Vec<(i64, f64)> = (1..400).map(|t| (t * 7, value(t))).collect();
        let samples = points(&samples);
        let mut whole = Tiers::default();
        whole.add(300, &samples, false);
        for cut in [1, 13, 200, 398] {
            let mut parts = Tiers::default();
            for (part, has_before) in [(&samples[..cut], false), (&samples[cut - 1..], true)] {
                let mut one = Tiers::default();
                one.add(300, part, has_before);
                let (mut column, mut raw) = (Column::default(), Vec::new());
                one.put(4, &mut column);
                column.encode(&mut raw);
                parts.add_rows(&ReadRows::parse(&raw, ROW_CELLS).unwrap(), 4, 0);
            }
            assert_eq!(parts.rows, whole.rows, "{cut}");
        }
    }
}
