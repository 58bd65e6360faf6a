//! Numbers as Prometheus converts, compares and writes them.

use std::cmp::Ordering;

use crate::number_text::within;

/// Milliseconds as seconds.
#[inline]
pub(crate) fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

/// A count as a number.
#[inline]
pub(crate) fn count(things: usize) -> f64 {
    things as f64
}

/// Seconds since 1970 as a number.
pub(crate) fn whole(value: i64) -> f64 {
    value as f64
}

/// The whole part of a number; `None`: it has none, or it does not fit.
pub(crate) fn whole_part(value: f64) -> Option<i64> {
    const I64_MAX: f64 = 9_223_372_036_854_775_808.0;
    let whole = value.trunc();
    if !(-I64_MAX < whole && whole < I64_MAX) {
        return None;
    }
    let bits = whole.abs().to_bits();
    let exponent = i64::try_from(bits >> 52).ok()? - 1075;
    let digits = i64::try_from(bits & ((1 << 52) - 1)).ok()? | 1 << 52;
    let size = match exponent {
        ..=-53 => 0,
        -52..=0 => digits >> -exponent,
        1.. => digits << exponent,
    };
    Some(if whole < 0.0 { -size } else { size })
}

/// The place in a list that a number from 0 up says.
pub(crate) fn place(value: f64) -> usize {
    whole_part(value)
        .and_then(|at| usize::try_from(at).ok())
        .unwrap_or(0)
}

/// The larger of two numbers; NaN if one is, unless the other is infinite.
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    match () {
        () if a == f64::INFINITY || b == f64::INFINITY => f64::INFINITY,
        () if a.is_nan() || b.is_nan() => f64::NAN,
        () => a.max(b),
    }
}

/// The smaller of two numbers; NaN if one is, unless the other is infinite.
pub(crate) fn smaller(a: f64, b: f64) -> f64 {
    match () {
        () if a == f64::NEG_INFINITY || b == f64::NEG_INFINITY => f64::NEG_INFINITY,
        () if a.is_nan() || b.is_nan() => f64::NAN,
        () => a.min(b),
    }
}

/// Order of numbers in which NaN comes first.
pub(crate) fn nan_first(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b)
        .unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// True if two numbers differ by less than a share of their sum.
pub(crate) fn almost_equal(a: f64, b: f64, share: f64) -> bool {
    if a == b || (a.is_nan() && b.is_nan()) {
        return true;
    }
    let (sum, difference) = (a.abs() + b.abs(), (a - b).abs());
    if a == 0.0 || b == 0.0 || sum < f64::MIN_POSITIVE {
        return difference < share * f64::MIN_POSITIVE;
    }
    difference / sum.min(f64::MAX) < share
}

/// A number as messages have it (Go's `%g`).
pub(crate) fn message_text(value: f64) -> String {
    within(value, &(1e-4..1e21))
}

/// A number with two digits that count (Go's `%.2g`).
pub(crate) fn short_text(value: f64) -> String {
    let rounded = format!("{value:.1e}").parse().unwrap_or(value);
    within(rounded, &(1e-4..100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_parts() {
        for (value, part) in [
            (0.0, Some(0)),
            (-0.0, Some(0)),
            (0.99, Some(0)),
            (-1.5, Some(-1)),
            (1.0, Some(1)),
            (1.7e9, Some(1_700_000_000)),
            (-12_345.9, Some(-12_345)),
            (9_007_199_254_740_992.0, Some(9_007_199_254_740_992)),
            (-4e18, Some(-4_000_000_000_000_000_000)),
            (9_223_372_036_854_775_808.0, None),
            (1e300, None),
            (f64::NAN, None),
            (f64::NEG_INFINITY, None),
        ] {
            assert_eq!(whole_part(value), part, "{value}");
        }
    }

    #[test]
    fn numbers_are_compared_as_go_compares_them() {
        let nan = f64::NAN;
        assert!(larger(nan, 1.0).is_nan() && smaller(1.0, nan).is_nan());
        assert_eq!(larger(nan, f64::INFINITY), f64::INFINITY);
        assert_eq!((larger(1.0, 2.0), smaller(1.0, 2.0)), (2.0, 1.0));
        let mut values = [2.0, nan, f64::NEG_INFINITY, 1.0];
        values.sort_by(nan_first);
        assert!(values[0].is_nan());
        assert_eq!(values[1..], [f64::NEG_INFINITY, 1.0, 2.0]);
        assert!(almost_equal(1.0, 1.0 + 1e-13, 1e-12) && !almost_equal(1.0, 1.0 + 1e-11, 1e-12));
        assert!(!almost_equal(0.0, 1e-300, 1e-12) && almost_equal(nan, nan, 1e-12));
    }

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (value, message, short) in [
            (0.5, "0.5", "0.5"),
            (1e21, "1e+21", "1e+21"),
            (12.345, "12.345", "12"),
            (12_345.0, "12345", "1.2e+04"),
            (0.00001, "1e-05", "1e-05"),
            (f64::INFINITY, "+Inf", "+Inf"),
            (f64::NAN, "NaN", "NaN"),
            (-0.0, "-0", "-0"),
        ] {
            let texts = (message_text(value), short_text(value));
            assert_eq!(texts, (message.into(), short.into()));
        }
    }
}
