//! Functions over the samples of a window.

use kymo_series::Sample;

use crate::eval::number::{count, seconds};
use crate::eval::quantile::quantile;
use crate::eval::sums::{Mean, Sum};

/// `sum_over_time`
pub(crate) fn sum(samples: &[Sample]) -> f64 {
    let mut sum = Sum::default();
    for sample in samples {
        sum.add(sample.v);
    }
    sum.value()
}

/// `avg_over_time`
pub(crate) fn mean(samples: &[Sample]) -> Option<f64> {
    let (first, rest) = samples.split_first()?;
    let mut mean = Mean::new(first.v);
    for sample in rest {
        mean.add(sample.v);
    }
    Some(mean.value())
}

/// `max_over_time`; NaN only if all are.
pub(crate) fn max(samples: &[Sample]) -> Option<f64> {
    let replaces = |new: f64, old: f64| new > old || old.is_nan();
    best(samples, replaces)
}

/// `min_over_time`; NaN only if all are.
pub(crate) fn min(samples: &[Sample]) -> Option<f64> {
    let replaces = |new: f64, old: f64| new < old || old.is_nan();
    best(samples, replaces)
}

fn best(samples: &[Sample], replaces: impl Fn(f64, f64) -> bool) -> Option<f64> {
    let values = samples.iter().map(|sample| sample.v);
    values.reduce(|old, new| if replaces(new, old) { new } else { old })
}

/// `stdvar_over_time`
pub(crate) fn variance(samples: &[Sample]) -> f64 {
    let (mut mean, mut squares) = (Sum::default(), Sum::default());
    let mut seen = 0.0;
    for sample in samples {
        seen += 1.0;
        let before = sample.v - mean.value();
        mean.add(before / seen);
        squares.add(before * (sample.v - mean.value()));
    }
    squares.value() / seen
}

/// `quantile_over_time`. `values` is room for work.
pub(crate) fn quantile_of(share: f64, samples: &[Sample], values: &mut Vec<f64>) -> f64 {
    values.clear();
    values.extend(samples.iter().map(|sample| sample.v));
    quantile(share, values)
}

/// A line through samples by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    /// Growth a second.
    pub(crate) slope: f64,
    /// Value at the moment that was asked for.
    pub(crate) value: f64,
}

/// The line through two samples or more, and its value at a moment.
pub(crate) fn line(samples: &[Sample], at_ms: i64) -> Option<Line> {
    let first = samples.first().filter(|_| samples.len() > 1)?;
    let (mut x_sum, mut y_sum) = (Sum::default(), Sum::default());
    let (mut xy_sum, mut xx_sum) = (Sum::default(), Sum::default());
    let mut is_level = true;
    for sample in samples {
        is_level &= sample.v == first.v || std::ptr::eq(sample, first);
        let (x, y) = (seconds(sample.t_ms.saturating_sub(at_ms)), sample.v);
        x_sum.add(x);
        y_sum.add(y);
        xy_sum.add(x * y);
        xx_sum.add(x * x);
    }
    if is_level {
        let (slope, value) = match first.v.is_infinite() {
            true => (f64::NAN, f64::NAN),
            false => (0.0, first.v),
        };
        return Some(Line { slope, value });
    }
    let n = count(samples.len());
    let (x, y) = (x_sum.value(), y_sum.value());
    let slope = (xy_sum.value() - x * y / n) / (xx_sum.value() - x * x / n);
    Some(Line {
        slope,
        value: y / n - slope * x / n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Vec<Sample> {
        let at = |(at, &v)| Sample {
            t_ms: i64::try_from(at).unwrap() * 1000,
            v,
        };
        values.iter().enumerate().map(at).collect()
    }

    #[test]
    fn functions_of_a_window() {
        let nan = f64::NAN;
        let window = samples(&[3.0, nan, 1.0, 2.0]);
        assert_eq!((max(&window), min(&window)), (Some(3.0), Some(1.0)));
        assert_eq!(max(&samples(&[nan, nan])).map(f64::is_nan), Some(true));
        let window = samples(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((sum(&window), mean(&window)), (40.0, Some(5.0)));
        assert_eq!(variance(&window), 4.0);
        assert_eq!(quantile_of(0.5, &window, &mut Vec::new()), 4.5);
    }

    #[test]
    fn lines() {
        let rising = samples(&[1.0, 3.0, 5.0]);
        let line_at = line(&rising, 10_000);
        let expected = Line {
            slope: 2.0,
            value: 21.0,
        };
        assert_eq!(line_at, Some(expected));
        let level = line(&samples(&[7.0, 7.0]), 0);
        assert_eq!(level.map(|line| (line.slope, line.value)), Some((0.0, 7.0)));
        assert!(line(&samples(&[f64::INFINITY; 2]), 0).is_some_and(|line| line.slope.is_nan()));
        assert_eq!(line(&samples(&[1.0]), 0), None);
    }
}
