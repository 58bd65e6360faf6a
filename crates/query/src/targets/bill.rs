//! Numbers that traffic is billed by, of one target or of several together: the 95th percentile of the rates of a period, amounts,
//! and the time above a rate. Rows that are not known count for nothing; how many there are is said.

use kymo_wire::keeper::{Range, Rows};
use kymo_wire::targets::DescribedTarget;

use super::graph::{Period, rows_of};
use super::percentile::nearest_rank;
use super::{column, columns};

/// Rates of a period, in rows from its begin on.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Begin of the first row, seconds since 1970.
    pub start: i64,
    /// Seconds of a row.
    pub row_s: u32,
    /// Rates in and out as they are stored; NaN: unknown.
    pub rows: Vec<[f64; 2]>,
}

/// The numbers of a bill.
#[derive(Clone, Debug, PartialEq)]
pub struct Bill {
    /// 95th percentiles of in, of out, of the larger of both in each row, and of their sum. NaN: nothing is known.
    pub rates: [f64; 4],
    /// Amounts in and out: rates by seconds, of the known rows.
    pub amounts: [f64; 2],
    /// Rows of which both rates are known.
    pub known: usize,
    /// Rows of the period, as far as it has passed.
    pub rows: usize,
    /// Seconds of a row.
    pub row_s: u32,
    /// Seconds in which the larger rate was above a limit; `None`: there is no limit.
    pub above_s: Option<u64>,
}

impl Traffic {
    /// Question for the keeper about a period, seconds since 1970.
    pub fn question(target: &DescribedTarget, (from, thru): (i64, i64)) -> Range {
        rows_of(target, from, thru, Period::Day.row_s())
    }

    /// Traffic of an answer about a period.
    pub fn new(rows: &Rows, (from, thru): (i64, i64)) -> Traffic {
        let stored_s = i64::from(rows.step.max(1));
        let [in_, out] = columns(rows).map(|of| column(rows, &rows.mean, of));
        // Rows of the store may be shorter than those of a bill.
        let row_s = match i64::from(Period::Day.row_s()) {
            bill_s if bill_s % stored_s == 0 => bill_s,
            _ => stored_s,
        };
        let start = from - from.rem_euclid(row_s);
        let start = if start < from { start + row_s } else { start };
        let count = (thru - start).max(0) / row_s;
        let mut sums = vec![[(0.0, 0_u32); 2]; usize::try_from(count).unwrap_or(0)];
        for (at, rates) in in_.iter().zip(&out).enumerate() {
            let begin = rows.start + i64::try_from(at).unwrap_or(0) * stored_s;
            let row = usize::try_from((begin - start).div_euclid(row_s)).ok();
            let Some(sums) = row.and_then(|row| sums.get_mut(row)) else {
                continue;
            };
            for (sum, rate) in sums.iter_mut().zip([rates.0, rates.1]) {
                if !rate.is_nan() {
                    *sum = (sum.0 + rate, sum.1 + 1);
                }
            }
        }
        // A row counts if at least half of it is known, as in rrdtool's archives.
        let least = u32::try_from(row_s / stored_s).unwrap_or(1).div_ceil(2);
        let mean = |(sum, count): (f64, u32)| match count >= least {
            true => sum / f64::from(count),
            false => f64::NAN,
        };
        Traffic {
            start,
            row_s: u32::try_from(row_s).unwrap_or(u32::MAX),
            rows: sums.into_iter().map(|row| row.map(mean)).collect(),
        }
    }

    /// Adds the traffic of another target. A row of which one does not know its rate is unknown. False: its rows are others.
    pub fn add(&mut self, other: &Traffic) -> bool {
        let shape = |of: &Traffic| (of.start, of.row_s, of.rows.len());
        if shape(self) != shape(other) {
            return false;
        }
        for (own, other) in self.rows.iter_mut().zip(&other.rows) {
            *own = [own[0] + other[0], own[1] + other[1]];
        }
        true
    }

    /// The bill; `limit`: the rate of [`Bill::above_s`].
    pub fn bill(&self, limit: Option<f64>) -> Bill {
        let of = |rate: fn(&[f64; 2]) -> f64| {
            let rates = self.rows.iter().map(rate);
            rates.filter(|rate| !rate.is_nan()).collect::<Vec<f64>>()
        };
        // Unknown, unless both are known.
        let larger = of(|[one, two]| if one > two { *one } else { two + 0.0 * one });
        let (in_, out) = (of(|row| row[0]), of(|row| row[1]));
        let seconds = f64::from(self.row_s);
        let above = |limit: f64| {
            let above = larger.iter().filter(|rate| **rate > limit);
            above.map(|_| u64::from(self.row_s)).sum()
        };
        Bill {
            // The sum of no rates is a zero with a sign.
            amounts: [&in_, &out].map(|rates| rates.iter().sum::<f64>() * seconds + 0.0),
            known: larger.len(),
            rows: self.rows.len(),
            row_s: self.row_s,
            above_s: limit.map(above),
            rates: [in_, out, larger, of(|[one, two]| one + two)].map(nearest_rank),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f64 = f64::NAN;

    fn rows(start: i64, step: u32, mean: Vec<f64>) -> Rows {
        Rows {
            start,
            step,
            columns: vec![b"ds0".to_vec(), b"ds1".to_vec()],
            mean,
            ..Rows::default()
        }
    }

    #[test]
    fn a_bill_counts_what_is_known() {
        let mut mean: Vec<f64> = (1..=100).flat_map(|rate| [f64::from(rate), 50.0]).collect();
        (mean[0], mean[5]) = (NAN, NAN);
        let traffic = Traffic::new(&rows(900, 300, mean), (1000, 900 + 300 * 100));
        // The first row begins before the period.
        assert_eq!((traffic.start, traffic.rows.len()), (1200, 99));
        let bill = traffic.bill(Some(90.0));
        assert_eq!((bill.known, bill.rows, bill.row_s), (98, 99, 300));
        assert_eq!(bill.rates, [96.0, 50.0, 96.0, 146.0]);
        assert_eq!(bill.above_s, Some(3000));
        let sum: f64 = (2..=100).map(f64::from).sum();
        assert_eq!(bill.amounts, [sum * 300.0, 98.0 * 50.0 * 300.0]);
    }

    #[test]
    fn shorter_rows_are_put_together_and_longer_ones_stay() {
        // Three of five rates in are known, and two of those out.
        let mean = vec![1.0, 2.0, 3.0, NAN, NAN, NAN, NAN, NAN, 5.0, 6.0];
        let traffic = Traffic::new(&rows(600, 60, mean), (600, 900));
        assert_eq!((traffic.row_s, traffic.rows.len()), (300, 1));
        assert_eq!(traffic.rows[0][0], 3.0);
        assert!(traffic.rows[0][1].is_nan());
        let mean = vec![1.0, 2.0, 3.0, 4.0];
        let traffic = Traffic::new(&rows(0, 1800, mean), (0, 3600));
        assert_eq!(
            (traffic.row_s, &traffic.rows[..]),
            (1800, &[[1.0, 2.0], [3.0, 4.0]][..])
        );
    }

    #[test]
    fn several_targets_are_one() {
        let one = |mean| Traffic::new(&rows(0, 300, mean), (0, 900));
        let mut all = one(vec![1.0, 2.0, 3.0, NAN, 5.0, 6.0]);
        assert!(all.add(&one(vec![10.0, 20.0, 30.0, 40.0, NAN, 60.0])));
        let bill = all.bill(None);
        assert_eq!((bill.known, bill.rates), (1, [33.0, 66.0, 22.0, 33.0]));
        let others = Traffic::new(&rows(0, 1800, vec![1.0, 1.0]), (0, 900));
        assert!(!all.add(&others));
        let nothing = one(Vec::new()).bill(None);
        assert!(nothing.rates.iter().all(|rate| rate.is_nan()));
        let has_sign = |amount: f64| amount.is_sign_negative();
        assert!(!nothing.amounts.into_iter().any(has_sign));
    }
}
