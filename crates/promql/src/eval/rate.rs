//! Functions of counters: what a window of samples says of growth, with resets, as Prometheus extrapolates it.

use kymo_series::Sample;

use crate::eval::number::{count, seconds};
use crate::eval::rows::RowSpans;
use crate::eval::window::Window;

/// Kinds of growth: those of `rate`, `increase` and `delta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// Growth of a counter, a second.
    Rate,
    /// Growth of a counter.
    Increase,
    /// Difference of a gauge.
    Delta,
}

impl Growth {
    /// True if a smaller value means that counting began again.
    pub(crate) fn counts(self) -> bool {
        match self {
            Growth::Rate | Growth::Increase => true,
            Growth::Delta => false,
        }
    }
}

/// Where counting began again: numbers of the samples that are less than the one before.
#[derive(Default)]
pub(crate) struct Resets {
    places: Vec<usize>,
    /// The first place that a window has not passed yet. Windows only move on.
    next: usize,
}

impl Resets {
    /// Finds those of a series.
    pub(crate) fn find(&mut self, samples: &[Sample]) {
        self.places.clear();
        self.next = 0;
        for (at, pair) in samples.windows(2).enumerate() {
            if let [before, after] = pair
                && after.v < before.v
            {
                self.places.push(at + 1);
            }
        }
    }

    /// Counts that resets took away between two samples, the first left out.
    fn lost(&mut self, samples: &[Sample], first: usize, behind: usize, mut grown: f64) -> f64 {
        while self
            .places
            .get(self.next)
            .is_some_and(|&place| place <= first)
        {
            self.next += 1;
        }
        let left = self.places.get(self.next..).unwrap_or_default();
        for &place in left.iter().take_while(|&&place| place < behind) {
            grown += samples.get(place - 1).map_or(0.0, |sample| sample.v);
        }
        grown
    }
}

/// Growth over a window, extrapolated to its ends if samples lie near enough to them.
#[inline]
pub(crate) fn extrapolated(
    window: &Window,
    growth: Growth,
    length_ms: i64,
    resets: &mut Resets,
    rows: &RowSpans,
) -> Option<f64> {
    let samples = window.samples();
    let (first, last) = (samples.first()?, samples.last()?);
    if samples.len() < 2 {
        return None;
    }
    let mut grown = last.v - first.v;
    if growth.counts() {
        grown = resets.lost(window.all, window.first, window.behind, grown);
    }
    let sampled = between(first.t_ms, last.t_ms);
    let distance = sampled / count(samples.len() - 1);
    // A row stands for all of its time, however near the samples beside it lie.
    let [first_distance, last_distance] = [first, last].map(|sample| match rows.at(sample.t_ms) {
        0 => distance,
        row_ms => distance.max(seconds(row_ms)),
    });
    let mut to_begin = between(window.begin_ms, first.t_ms);
    let mut to_end = between(last.t_ms, window.end_ms);
    if to_begin >= first_distance * 1.1 {
        to_begin = first_distance / 2.0;
    }
    if growth.counts() && grown > 0.0 && first.v >= 0.0 {
        // A counter was 0 at one time and never less.
        let to_zero = sampled * (first.v / grown);
        if to_zero < to_begin {
            to_begin = to_zero;
        }
    }
    if to_end >= last_distance * 1.1 {
        to_end = last_distance / 2.0;
    }
    let mut factor = match sampled != 0.0 {
        true => (sampled + to_begin + to_end) / sampled,
        false => 1.0,
    };
    // Rows may have widened the window.
    let window_ms = window.end_ms.saturating_sub(window.begin_ms);
    if growth == Growth::Rate {
        factor /= seconds(window_ms);
    } else if window_ms != length_ms {
        factor *= seconds(length_ms) / seconds(window_ms);
    }
    Some(grown * factor)
}

/// Seconds from one moment to another.
#[inline]
fn between(from_ms: i64, thru_ms: i64) -> f64 {
    seconds(thru_ms.saturating_sub(from_ms))
}

/// `irate`: growth a second between the last two samples.
pub(crate) fn irate(window: &Window) -> Option<f64> {
    let (before, last) = last_two(window)?;
    let grown = match last.v < before.v {
        true => last.v,
        false => last.v - before.v,
    };
    Some(grown / between(before.t_ms, last.t_ms))
}

/// `idelta`: difference of the last two samples.
pub(crate) fn idelta(window: &Window) -> Option<f64> {
    let (before, last) = last_two(window)?;
    Some(last.v - before.v)
}

fn last_two<'a>(window: &Window<'a>) -> Option<(&'a Sample, &'a Sample)> {
    match window.samples() {
        [.., before, last] if last.t_ms != before.t_ms => Some((before, last)),
        _ => None,
    }
}

/// `resets`: how often a value is less than the one before.
pub(crate) fn resets(samples: &[Sample]) -> f64 {
    pairs(samples, |before, after| after < before)
}

/// `changes`: how often a value is another one than that before.
pub(crate) fn changes(samples: &[Sample]) -> f64 {
    pairs(samples, |before, after| {
        after != before && !(after.is_nan() && before.is_nan())
    })
}

fn pairs(samples: &[Sample], is_counted: impl Fn(f64, f64) -> bool) -> f64 {
    let counted = samples.windows(2).filter(|pair| match pair {
        [before, after] => is_counted(before.v, after.v),
        _ => false,
    });
    count(counted.count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::grid::{Ends, Grid};
    use crate::eval::meter::Meter;
    use crate::eval::rows::{NO_ROWS, Stored};
    use crate::eval::window::{Reach, slide};

    fn growth(growth: Growth, samples: &[(i64, f64)], end_s: i64, length_s: i64) -> f64 {
        let samples: Vec<Sample> = samples
            .iter()
            .map(|&(t_s, v)| Sample {
                t_ms: t_s * 1000,
                v,
            })
            .collect();
        let mut resets = Resets::default();
        resets.find(&samples);
        let grid = Grid::instant(end_s * 1000);
        let (ends, length_ms) = (Ends::new(grid, None, 0), length_s * 1000);
        let mut values = [0.0];
        let (meter, reach) = (Meter::unlimited(), Reach::plain(length_ms));
        let slid = slide(
            &meter,
            Stored::points(&samples),
            grid,
            ends,
            reach,
            &mut values,
            |window| extrapolated(window, growth, length_ms, &mut resets, &NO_ROWS),
        );
        slid.map(|()| values[0]).unwrap()
    }

    #[test]
    fn growth_is_extrapolated_to_the_ends_of_its_window() {
        let steady = [(0, 0.0), (10, 10.0), (20, 20.0), (30, 30.0), (40, 40.0)];
        // From 10 to 40 s, and 10 s more at the begin: a counter that may have been 0 there.
        assert_eq!(growth(Growth::Increase, &steady, 40, 40), 40.0);
        assert_eq!(growth(Growth::Rate, &steady, 40, 40), 1.0);
        // Far from both ends: half a distance each.
        assert_eq!(
            growth(Growth::Delta, &[(100, 5.0), (110, 15.0)], 200, 200),
            20.0
        );
        // A counter does not begin below 0.
        assert_eq!(
            growth(Growth::Increase, &[(100, 1.0), (110, 11.0)], 200, 200),
            16.0
        );
        // Two resets.
        let resets = [
            (10, 5.0),
            (20, 9.0),
            (30, 1.0),
            (40, 3.0),
            (50, 0.0),
            (60, 4.0),
        ];
        assert_eq!(
            growth(Growth::Increase, &resets, 60, 51),
            (4.0 - 5.0 + 9.0 + 3.0) * 51.0 / 50.0
        );
        assert!(growth(Growth::Delta, &resets, 10, 5).is_nan());
    }

    #[test]
    fn the_last_two_samples() {
        let samples = [(10_000, 5.0), (20_000, 7.0), (40_000, 1.0)];
        let samples = samples.map(|(t_ms, v)| Sample { t_ms, v });
        let window = |behind| Window {
            all: &samples,
            first: 0,
            behind,
            begin_ms: 0,
            end_ms: 0,
            t_ms: 0,
            step: 0,
        };
        assert_eq!(
            (irate(&window(2)), idelta(&window(2))),
            (Some(0.2), Some(2.0))
        );
        assert_eq!(
            (irate(&window(3)), idelta(&window(3))),
            (Some(0.05), Some(-6.0))
        );
        assert_eq!((irate(&window(1)), idelta(&window(1))), (None, None));
        assert_eq!((resets(&samples), changes(&samples)), (1.0, 2.0));
    }
}
