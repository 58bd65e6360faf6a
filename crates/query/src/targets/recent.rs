//! How a target is now, for lists of many: its rates, and how much of the last hour is missing.

use kymo_wire::keeper::Rows;

use super::{column, columns};

/// Seconds that are looked at.
const SPAN_S: i64 = 3600;
/// Intervals, or rows, for which a rate counts as the one of now.
const CURRENT: i64 = 3;
/// Rows of them at most.
const ROWS_MAX: u32 = 14;

/// How a target is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recent {
    /// The newest rates, as they are stored; NaN: not known.
    pub rates: [f64; 2],
    /// Rows of the last hour of which nothing is known.
    pub missing: u32,
    /// Rows of the last hour.
    pub rows: u32,
}

impl Recent {
    /// Values of a target without data.
    pub const NONE: Recent = Recent {
        rates: [f64::NAN; 2],
        missing: 0,
        rows: 0,
    };

    /// From when to when the keeper is asked, and for how many rows.
    pub fn question(now: i64) -> (i64, i64, u32) {
        (now - SPAN_S, now, ROWS_MAX)
    }

    /// The present state by these rows, of a target that is polled each `interval_s`. The value of a row comes with the
    /// poll after its end: the rows of the last two intervals cannot be missing yet.
    pub fn new(rows: &Rows, interval_s: u32, now: i64) -> Recent {
        let step = i64::from(rows.step.max(1));
        let [in_, out] = columns(rows).map(|of| column(rows, &rows.mean, of));
        let due = now - 2 * i64::from(interval_s);
        let mut recent = Recent::NONE;
        let mut newest = i64::MIN;
        for (end, (&in_, &out)) in (1..).zip(in_.iter().zip(&out)) {
            let end = rows.start + end * step;
            let is_known = !in_.is_nan() || !out.is_nan();
            if is_known {
                (newest, recent.rates) = (end, [in_, out]);
            }
            if end > now - SPAN_S && end <= due {
                recent.rows += 1;
                recent.missing += u32::from(!is_known);
            }
        }
        if newest <= now - CURRENT * i64::from(interval_s).max(step) {
            recent.rates = [f64::NAN; 2];
        }
        recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_what_is_missing() {
        let nan = f64::NAN;
        let recent = |cells: &[f64], now| {
            let rows = Rows {
                start: 0,
                step: 300,
                columns: vec![b"ds0".to_vec(), b"ds1".to_vec()],
                mean: cells.iter().flat_map(|&cell| [cell, cell * 2.0]).collect(),
                ..Rows::default()
            };
            let recent = Recent::new(&rows, 300, now);
            (recent.rates[1], recent.missing, recent.rows)
        };
        // The last row may still come.
        assert_eq!(recent(&[1.0, 2.0, 3.0, nan], 1201), (6.0, 0, 2));
        assert_eq!(recent(&[1.0, nan, 3.0, 4.0], 1201), (8.0, 1, 2));
        // One that is due has not come: there is no rate now.
        let (rate, missing, rows) = recent(&[1.0, 2.0, nan, nan], 1501);
        assert!(rate.is_nan(), "{rate}");
        assert_eq!((missing, rows), (1, 3));
        assert_eq!(recent(&[], 1201).1, 0);
    }
}
