//! The 95th percentile of 5-minute rates over the month that is shown, which is what traffic is billed by.

use kymo_wire::keeper::{Range, Rows};
use kymo_wire::targets::DescribedTarget;

use super::graph::{Period, rows_of};
use super::{column, columns};

/// Which percentile.
pub const PERCENT: usize = 95;

/// Percentiles of in and out, and their range.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentile {
    /// Rates as they are stored: 95 % of them are no larger. NaN: nothing is known.
    pub rates: [f64; 2],
    /// How many rates are known.
    pub values: [usize; 2],
    /// Since when they are, seconds since 1970.
    pub from: i64,
    /// Seconds that each is of.
    pub step: u32,
}

impl Percentile {
    /// Question for the keeper.
    pub fn question(target: &DescribedTarget, now: i64) -> Range {
        let (from, thru) = Period::Month.range(target, now);
        rows_of(target, from, thru, Period::Day.row_s())
    }

    /// Percentiles of the rows of an answer.
    pub fn new(rows: &Rows) -> Percentile {
        let lines = columns(rows).map(|of| column(rows, &rows.mean, of));
        let first = lines
            .iter()
            .filter_map(|line| line.iter().position(|rate| !rate.is_nan()));
        let first = i64::try_from(first.min().unwrap_or(0)).unwrap_or(0);
        let known = lines.map(|mut line| {
            line.retain(|rate| !rate.is_nan());
            line
        });
        Percentile {
            values: [known[0].len(), known[1].len()],
            rates: known.map(nearest_rank),
            from: rows.start + first * i64::from(rows.step),
            step: rows.step,
        }
    }
}

/// The least of the values that is no less than 95 % of them: when the largest 5 % are struck off, the largest that is left.
pub(super) fn nearest_rank(mut values: Vec<f64>) -> f64 {
    let rank = (values.len() * PERCENT).div_ceil(100);
    let Some(at) = rank.checked_sub(1) else {
        return f64::NAN;
    };
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_that_is_left() {
        for (values, expect) in [
            (vec![7.0], 7.0),
            (vec![1.0, 2.0], 2.0),
            ((1..=20).map(f64::from).collect(), 19.0),
            ((1..=100).rev().map(f64::from).collect(), 95.0),
            ((1..=8640).map(f64::from).collect(), 8208.0),
        ] {
            assert_eq!(nearest_rank(values), expect);
        }
        assert!(nearest_rank(Vec::new()).is_nan());
    }

    #[test]
    fn it_says_of_what_it_is() {
        let nan = f64::NAN;
        let rows = Rows {
            start: 900,
            step: 300,
            columns: vec![b"ds1".to_vec(), b"ds0".to_vec()],
            mean: vec![nan, nan, nan, 5.0, 2.0, 6.0, nan, nan],
            ..Rows::default()
        };
        let found = Percentile::new(&rows);
        assert_eq!((found.rates, found.values), ([6.0, 2.0], [2, 1]));
        assert_eq!((found.from, found.step), (1200, 300));
        assert!(Percentile::new(&Rows::default()).rates[0].is_nan());
    }
}
