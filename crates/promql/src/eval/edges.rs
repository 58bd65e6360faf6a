//! Windows that look beyond their ends: `anchored` begins at the last sample before, `smoothed` interpolates at both.

use kymo_series::Sample;

use crate::eval::number::whole;
use crate::eval::rate::Growth;
use crate::eval::window::Window;

/// Treatment of the samples around the ends of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    /// The last sample before it counts as one at its begin.
    Anchored,
    /// Values at its ends lie on lines between the samples around them.
    Smoothed,
}

/// The value at the end of a window that has samples on both sides of it.
pub(crate) fn smoothed_at(window: &Window) -> Option<f64> {
    let samples = window.samples();
    let next = samples.partition_point(|sample| sample.t_ms < window.end_ms);
    match (
        next.checked_sub(1).and_then(|at| samples.get(at)),
        samples.get(next),
    ) {
        (_, Some(exact)) if exact.t_ms == window.end_ms => Some(exact.v),
        (Some(before), Some(after)) => Some(between(before, after, window.end_ms, false)),
        (Some(before), None) => Some(before.v),
        (None, _) => None,
    }
}

/// A value on the line between two samples. A counter that began again did so at 0.
fn between(before: &Sample, after: &Sample, at_ms: i64, counts: bool) -> f64 {
    let begin = match counts && after.v < before.v {
        true => 0.0,
        false => before.v,
    };
    let part = whole(at_ms.saturating_sub(before.t_ms));
    begin + (after.v - begin) * part / whole(after.t_ms.saturating_sub(before.t_ms))
}

/// The samples that a window has, and the values at its ends.
struct Extended<'a> {
    left: f64,
    right: f64,
    inside: &'a [Sample],
}

impl<'a> Extended<'a> {
    fn new(window: &Window<'a>, extension: Extension, counts: bool) -> Option<Extended<'a>> {
        let samples = window.samples();
        let (begin_ms, end_ms) = (window.begin_ms, window.end_ms);
        let last = samples.len().checked_sub(1)?;
        let head = samples.get(..last)?;
        let after_begin = head.partition_point(|sample| sample.t_ms <= begin_ms);
        let first = after_begin.saturating_sub(1);
        let last = match extension {
            Extension::Anchored => last,
            Extension::Smoothed => head.partition_point(|sample| sample.t_ms < end_ms),
        };
        let (begin, end) = (samples.get(first)?, samples.get(last)?);
        if end.t_ms <= begin_ms || (extension == Extension::Smoothed && begin.t_ms > end_ms) {
            return None;
        }
        let left = match (extension, samples.get(first + 1)) {
            (Extension::Smoothed, Some(next)) if begin.t_ms < begin_ms => {
                between(begin, next, begin_ms, counts)
            }
            _ => begin.v,
        };
        let right = match last.checked_sub(1).and_then(|at| samples.get(at)) {
            Some(before) if end.t_ms > end_ms => match extension {
                Extension::Anchored => before.v,
                Extension::Smoothed => between(before, end, end_ms, counts),
            },
            _ => end.v,
        };
        let from = first + usize::from(begin.t_ms <= begin_ms);
        let behind = last + usize::from(end.t_ms < end_ms);
        Some(Extended {
            left,
            right,
            inside: samples.get(from..behind).unwrap_or_default(),
        })
    }
}

/// `rate`, `increase` and `delta` of such a window: nothing is extrapolated.
pub(crate) fn growth(
    window: &Window,
    extension: Extension,
    growth: Growth,
    length_s: f64,
) -> Option<f64> {
    let extended = Extended::new(window, extension, growth.counts())?;
    let mut grown = extended.right - extended.left;
    if growth.counts() {
        let mut before = extended.left;
        let inside = extended.inside.iter().map(|sample| sample.v);
        let mut lost = 0.0;
        for value in inside.chain([extended.right]) {
            if value < before {
                lost += before;
            }
            before = value;
        }
        grown += lost;
    }
    Some(match growth {
        Growth::Rate => grown / length_s,
        Growth::Increase | Growth::Delta => grown,
    })
}

/// The samples that `resets` and `changes` count, from the last one before the window.
pub(crate) fn anchored<'a>(window: &Window<'a>) -> Option<&'a [Sample]> {
    let samples = window.samples();
    let after = samples.partition_point(|sample| sample.t_ms <= window.begin_ms);
    match after < samples.len() {
        true => samples.get(after.saturating_sub(1)..),
        false => None,
    }
}

/// The samples of the window, with one at each end.
pub(crate) fn with_ends(window: &Window, extension: Extension) -> Vec<Sample> {
    let Some(extended) = Extended::new(window, extension, false) else {
        return Vec::new();
    };
    let mut samples = Vec::with_capacity(extended.inside.len() + 2);
    samples.push(Sample {
        t_ms: window.begin_ms,
        v: extended.left,
    });
    samples.extend_from_slice(extended.inside);
    samples.push(Sample {
        t_ms: window.end_ms,
        v: extended.right,
    });
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(samples: &[Sample]) -> Window<'_> {
        Window {
            all: samples,
            first: 0,
            behind: samples.len(),
            begin_ms: 10_000,
            end_ms: 20_000,
            t_ms: 20_000,
            step: 0,
        }
    }

    fn samples(list: &[(i64, f64)]) -> Vec<Sample> {
        list.iter()
            .map(|&(t_s, v)| Sample {
                t_ms: t_s * 1000,
                v,
            })
            .collect()
    }

    #[test]
    fn growth_between_the_ends() {
        let list = samples(&[(0, 1.0), (5, 2.0), (15, 6.0), (18, 1.0), (22, 5.0)]);
        let (anchored, window) = (window(&list[..4]), window(&list));
        let of = |extension, kind| growth(&window, extension, kind, 10.0);
        // From 2, over 6 and a reset, to 1.
        let grown = growth(&anchored, Extension::Anchored, Growth::Increase, 10.0);
        assert_eq!(grown, Some(5.0));
        // From 4 at 10 s to 3 at 20 s.
        assert_eq!(of(Extension::Smoothed, Growth::Increase), Some(5.0));
        assert_eq!(of(Extension::Smoothed, Growth::Rate), Some(0.5));
        assert_eq!(of(Extension::Smoothed, Growth::Delta), Some(-1.0));
        assert_eq!(smoothed_at(&window), Some(3.0));
    }

    #[test]
    fn a_window_begins_with_the_sample_before_it() {
        let list = samples(&[(0, 1.0), (5, 2.0), (15, 6.0)]);
        assert_eq!(anchored(&window(&list)).map(<[Sample]>::len), Some(2));
        let before = samples(&[(0, 1.0), (5, 2.0)]);
        assert_eq!(anchored(&window(&before)), None);
        let ends = with_ends(&window(&list), Extension::Anchored);
        assert_eq!(ends, samples(&[(10, 2.0), (15, 6.0), (20, 6.0)]));
    }
}
