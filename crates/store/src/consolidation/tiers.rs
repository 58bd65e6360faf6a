//! Rows of series of points: summaries of the samples of an interval. They are written when the samples expire, and may be
//! parts of a row; parts with the same number are joined.

use crate::consolidation::points_schema::ROW_CELLS;
use crate::consolidation::row_sink::Part;
use crate::consolidation::rows::{Column, ReadRows};
use std::collections::BTreeMap;

/// A row, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tier {
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Sum of all values.
    pub sum: f64,
    /// Number of values.
    pub count: f64,
    /// Last value.
    pub last: f64,
    /// Growth of a counter.
    pub increase: f64,
}

impl Tier {
    /// A row without values.
    pub(crate) const NONE: Tier = Tier {
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

    pub(crate) fn cells(self) -> [f64; ROW_CELLS] {
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

    /// Joins a later part to this one.
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

/// Rows of one series by number: row n has the samples up to and including n steps since 1970.
#[derive(Debug, Default)]
pub(crate) struct Tiers {
    pub(crate) rows: BTreeMap<u64, Tier>,
}

impl Tiers {
    /// Adds a part of a row, which must be later than the parts before.
    pub(crate) fn add(&mut self, number: u64, part: Tier) {
        self.rows.entry(number).or_insert(Tier::NONE).join(part);
    }

    /// Adds the rows of a member in a column, from number `from` on.
    pub(crate) fn add_rows(&mut self, column: &ReadRows<'_>, member: u8, from: u64) {
        column.parts(member, &mut |first, part, bytes| {
            let (rows, _) = bytes.as_chunks::<{ 8 * ROW_CELLS }>();
            // Tiers are never written as runs.
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
                self.add(number, Tier::of_cells(cells));
            }
        });
    }

    /// Appends the rows as those of a member; returns the newest number, or 0 if there are none.
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
