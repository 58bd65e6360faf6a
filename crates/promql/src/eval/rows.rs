//! Rows that stand for samples which are no longer kept.
//!
//! A window that is shorter than the rows in it would find none or too few of them, so it is widened; a warning says so.

use kymo_series::{RowValue, RowsAs, Sample};

use crate::functions::FunctionId;

/// A stretch of time in which the samples of a series are rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowSpan {
    /// Begin of the first row.
    from_ms: i64,
    /// End of the last row.
    thru_ms: i64,
    /// The last row stands until then: to the next samples, or for its own length.
    stands_ms: i64,
    row_ms: i64,
}

/// Where the samples of a series are rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowSpans {
    spans: Vec<RowSpan>,
    /// True if later rows belong to the last stretch.
    is_open: bool,
}

/// The rows of a series that has none.
pub(crate) static NO_ROWS: RowSpans = RowSpans {
    spans: Vec::new(),
    is_open: false,
};

impl RowSpans {
    /// Forgets all rows.
    pub(crate) fn clear(&mut self) {
        self.spans.clear();
        self.is_open = false;
    }

    /// Adds later samples, which are rows of this length; 0: they are single samples.
    pub(crate) fn add(&mut self, samples: &[Sample], resolution_s: u32) {
        let row_ms = i64::from(resolution_s).saturating_mul(1000);
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            return;
        };
        let open = self.spans.last_mut().filter(|_| self.is_open);
        match open {
            Some(span) if span.row_ms == row_ms => {
                span.thru_ms = last.t_ms;
                span.stands_ms = last.t_ms.saturating_add(row_ms);
                return;
            }
            Some(span) => span.stands_ms = span.thru_ms,
            None => {}
        }
        self.is_open = row_ms > 0;
        if self.is_open {
            self.spans.push(RowSpan {
                from_ms: first.t_ms.saturating_sub(row_ms),
                thru_ms: last.t_ms,
                stands_ms: last.t_ms.saturating_add(row_ms),
                row_ms,
            });
        }
    }

    /// Length of the rows at a moment; 0: there are none.
    #[inline]
    pub(crate) fn at(&self, t_ms: i64) -> i64 {
        self.length(|span| (span.from_ms < t_ms) && (t_ms <= span.thru_ms))
    }

    /// Length of the rows in the first part of a window; 0: there are none.
    #[inline]
    pub(crate) fn within(&self, begin_ms: i64, end_ms: i64) -> i64 {
        self.length(|span| begin_ms < span.stands_ms && end_ms > span.from_ms)
    }

    fn length(&self, is_it: impl Fn(&RowSpan) -> bool) -> i64 {
        let mut spans = self.spans.iter();
        spans.find(|span| is_it(span)).map_or(0, |span| span.row_ms)
    }

    /// Length of the longest rows; 0: there are none.
    pub(crate) fn longest_ms(&self) -> i64 {
        let lengths = self.spans.iter().map(|span| span.row_ms);
        lengths.max().unwrap_or(0)
    }
}

/// The samples of a series, and where they are rows.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'a> {
    pub(crate) samples: &'a [Sample],
    pub(crate) rows: &'a RowSpans,
}

impl Stored<'_> {
    /// Samples of which none is a row.
    pub(crate) fn points(samples: &[Sample]) -> Stored<'_> {
        Stored {
            samples,
            rows: &NO_ROWS,
        }
    }
}

/// Rows as a function of a range vector wants them, and as many of them as it needs.
pub(crate) fn wanted(function: FunctionId) -> RowsAs {
    let (value, before) = match function {
        FunctionId::Rate | FunctionId::Increase | FunctionId::Irate => (RowValue::Growth, 2),
        FunctionId::Delta
        | FunctionId::Idelta
        | FunctionId::Resets
        | FunctionId::Changes
        | FunctionId::Deriv
        | FunctionId::PredictLinear => (RowValue::Last, 2),
        FunctionId::MinOverTime => (RowValue::Min, 1),
        FunctionId::MaxOverTime => (RowValue::Max, 1),
        FunctionId::FirstOverTime | FunctionId::LastOverTime => (RowValue::Last, 1),
        _ => (RowValue::Mean, 1),
    };
    RowsAs { value, before }
}

/// A length of time, as an expression would have it.
pub(crate) fn length_text(ms: i64) -> String {
    let units = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1000, "s"),
    ];
    let unit = units.into_iter().find(|(unit, _)| ms % unit == 0);
    match unit {
        Some((unit, letter)) => format!("{}{letter}", ms / unit),
        None => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_with_the_last_one_and_begin_before_the_first_one() {
        let samples = |seconds: &[i64]| -> Vec<Sample> {
            let of = seconds.iter();
            of.map(|t_s| Sample {
                t_ms: t_s * 1000,
                v: 0.0,
            })
            .collect()
        };
        let mut rows = RowSpans::default();
        rows.add(&samples(&[3600]), 3600);
        rows.add(&samples(&[7200]), 3600);
        // Nothing follows: the last row stands for its length.
        assert_eq!(rows.within(10_000_000, 10_100_000), 3_600_000);
        assert_eq!(rows.within(10_800_000, 10_900_000), 0);
        rows.add(&samples(&[7500, 7800]), 300);
        rows.add(&samples(&[7801]), 0);
        let at = [0, 1, 3600, 7200, 7201, 7800, 7801].map(|t_s| rows.at(t_s * 1000) / 1000);
        assert_eq!(at, [0, 3600, 3600, 3600, 300, 300, 0]);
        let within = [(-10, 0), (-10, 1), (7100, 7300), (7700, 7900), (7800, 7900)];
        let within = within.map(|(begin, end)| rows.within(begin * 1000, end * 1000) / 1000);
        assert_eq!(within, [0, 3600, 3600, 300, 0]);
        assert_eq!(rows.longest_ms(), 3_600_000);
        rows.clear();
        assert_eq!(rows, NO_ROWS);
        let texts = [86_400_000, 3_600_000, 5_400_000, 10_000, 1500].map(length_text);
        assert_eq!(texts, ["1d", "1h", "90m", "10s", "1500ms"]);
    }
}
