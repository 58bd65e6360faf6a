//! Numbers as JSON has them, as short as they are told apart on a screen.

/// Appends a value with six significant digits; `null` for what is not known.
pub fn push(out: &mut String, value: f64) {
    use std::fmt::Write as _;
    if !value.is_finite() {
        out.push_str("null");
        return;
    }
    let size = value.abs();
    let decimals = match size {
        _ if size >= 99_999.5 => 0,
        _ if size >= 9_999.95 => 1,
        _ if size >= 999.995 => 2,
        _ if size >= 99.9995 => 3,
        _ => 4,
    };
    let start = out.len();
    // Writing to a String cannot fail.
    let _ = write!(out, "{value:.decimals$}");
    if decimals > 0 {
        let kept = out[start..]
            .trim_end_matches('0')
            .trim_end_matches('.')
            .len();
        out.truncate(start + kept);
    }
    if &out[start..] == "-0" {
        out.replace_range(start.., "0");
    }
}

/// Appends a moment: seconds since 1970 with three decimals.
pub fn push_time(out: &mut String, ns: i64) {
    use std::fmt::Write as _;
    let _ = write!(out, "{}", seconds(ns));
}

/// Nanoseconds since 1970 as seconds, to the millisecond.
pub fn seconds(ns: i64) -> f64 {
    ns.div_euclid(1_000_000) as f64 / 1e3
}

/// Seconds since 1970 as nanoseconds; what no clock shows is brought within bounds.
pub fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e3) as i64 * 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_true() {
        for (value, expect) in [
            (0.0, "0"),
            (-0.00001, "0"),
            (1.5, "1.5"),
            (2.0 / 3.0, "0.6667"),
            (100.0, "100"),
            (123.456789, "123.457"),
            (1234.5678, "1234.57"),
            (24689123.0, "24689123"),
            (1e15 + 0.3, "1000000000000000"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
        ] {
            let mut out = String::new();
            push(&mut out, value);
            assert_eq!(out, expect);
        }
    }

    #[test]
    fn times() {
        for (ns, expect) in [
            (1_795_300_040_123_456_789, "1795300040.123"),
            (5_000_000_000, "5"),
            (0, "0"),
        ] {
            let mut out = String::new();
            push_time(&mut out, ns);
            assert_eq!(out, expect);
        }
        assert_eq!(nanoseconds(1795300040.123), 1_795_300_040_123_000_000);
    }
}
