//! Windows that slide over the samples of a series.

use kymo_series::Sample;

use crate::eval::column::missing;
use crate::eval::error::EvalError;
use crate::eval::grid::{Ends, Grid};
use crate::eval::meter::Meter;
use crate::eval::rows::{RowSpans, Stored};

/// The samples of a series from behind one moment up to another.
#[derive(Clone, Copy)]
pub(crate) struct Window<'a> {
    /// All samples of the series.
    pub(crate) all: &'a [Sample],
    /// The first one in the window.
    pub(crate) first: usize,
    /// Behind the last one.
    pub(crate) behind: usize,
    /// A sample at this moment is no longer in it.
    pub(crate) begin_ms: i64,
    /// A sample at this moment is in it.
    pub(crate) end_ms: i64,
    /// The moment of the step.
    pub(crate) t_ms: i64,
    /// Number of the step.
    pub(crate) step: usize,
}

impl<'a> Window<'a> {
    /// The samples in it.
    #[inline]
    pub(crate) fn samples(&self) -> &'a [Sample] {
        self.all.get(self.first..self.behind).unwrap_or_default()
    }
}

/// How far a window reaches, and how much beyond both ends is still looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Length from begin to end.
    pub(crate) length_ms: i64,
    /// Where samples are rows, a window is long enough for this many.
    pub(crate) least_rows: u8,
    /// Before the begin.
    pub(crate) before_ms: i64,
    /// Behind the end.
    pub(crate) behind_ms: i64,
}

impl Reach {
    /// A window and nothing else.
    pub(crate) fn plain(length_ms: i64) -> Reach {
        Reach {
            length_ms,
            least_rows: 0,
            before_ms: 0,
            behind_ms: 0,
        }
    }

    #[inline]
    fn begin_ms(&self, end_ms: i64, rows: &RowSpans) -> i64 {
        let begin_ms = end_ms.saturating_sub(self.length_ms);
        if self.least_rows == 0 {
            return begin_ms;
        }
        let least_ms = rows.within(begin_ms, end_ms) * i64::from(self.least_rows);
        begin_ms.min(end_ms.saturating_sub(least_ms))
    }
}

/// Evaluates a function of the window of each step, where that has a sample. `None` leaves the value out.
pub(crate) fn slide(
    meter: &Meter,
    stored: Stored,
    grid: Grid,
    ends: Ends,
    reach: Reach,
    values: &mut [f64],
    mut function: impl FnMut(&Window) -> Option<f64>,
) -> Result<(), EvalError> {
    let Stored { samples, rows } = stored;
    let (mut first, mut behind) = (0, 0);
    for (step, value) in values.iter_mut().enumerate() {
        let end_ms = ends.at(step);
        let begin_ms = reach.begin_ms(end_ms, rows);
        let (from_ms, thru_ms) = (
            begin_ms.saturating_sub(reach.before_ms),
            end_ms.saturating_add(reach.behind_ms),
        );
        while samples
            .get(behind)
            .is_some_and(|sample| sample.t_ms <= thru_ms)
        {
            behind += 1;
        }
        while first < behind
            && samples
                .get(first)
                .is_some_and(|sample| sample.t_ms <= from_ms)
        {
            first += 1;
        }
        meter.worked(behind - first)?;
        *value = match first < behind {
            true => function(&Window {
                all: samples,
                first,
                behind,
                begin_ms,
                end_ms,
                t_ms: grid.at(step),
                step,
            })
            .unwrap_or(missing()),
            false => missing(),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::column::is_missing;

    #[test]
    fn a_window_leaves_out_its_begin_and_has_its_end() {
        let samples: Vec<Sample> = (0..10)
            .map(|at| Sample {
                t_ms: at * 10,
                v: 1.0,
            })
            .collect();
        let grid = Grid::range(0, 120, 20).unwrap();
        let mut values = vec![0.0; grid.count];
        let ends = Ends::new(grid, None, 0);
        let mut begins = Vec::new();
        let meter = Meter::unlimited();
        let slid = slide(
            &meter,
            Stored::points(&samples),
            grid,
            ends,
            Reach::plain(20),
            &mut values,
            |window| {
                begins.push(window.samples().first().unwrap().t_ms);
                u8::try_from(window.samples().len()).ok().map(f64::from)
            },
        );
        assert_eq!(slid, Ok(()));
        assert_eq!(values[..6], [1.0, 2.0, 2.0, 2.0, 2.0, 1.0]);
        assert!(is_missing(values[6]));
        assert_eq!(begins, [0, 10, 30, 50, 70, 90]);
    }
}
