//! Numbers in JSON, with no more digits than a screen can show.

/// From this size on a number is written without decimals, because it may not fit into the integer
/// below.
const WHOLE_MAX: f64 = 1e15;

/// Appends a value with six significant digits; `null` for an unknown one.
pub(crate) fn push(out: &mut String, value: f64) {
    use std::fmt::Write as _;
    if !value.is_finite() {
        out.push_str("null");
        return;
    }
    // One event in a month is 4e-7 a second: small numbers keep their digits as well.
    let size = value.abs();
    let decimals = match size {
        _ if size >= 99_999.5 => 0,
        _ if size >= 9_999.95 => 1,
        _ if size >= 999.995 => 2,
        _ if size >= 99.9995 => 3,
        _ if size >= 0.1 => 4,
        _ if size >= 1e-3 => 7,
        _ if size >= 1e-6 => 10,
        _ => 12,
    };
    if size >= WHOLE_MAX {
        // Writing to a String cannot fail.
        let _ = write!(out, "{value:.0}");
        return;
    }
    // By integers: the general way is exact to hundreds of digits, and was a quarter of the time of a
    // long answer.
    let scale = 10u64.pow(decimals);
    let scaled = (size * scale as f64).round() as u64;
    if value < 0.0 && scaled > 0 {
        out.push('-');
    }
    let _ = write!(out, "{}", scaled / scale);
    push_decimals(out, scaled % scale, decimals);
}

/// Appends a point and this number of digits, without zeros at the end.
fn push_decimals(out: &mut String, mut part: u64, mut decimals: u32) {
    use std::fmt::Write as _;
    if part == 0 {
        return;
    }
    while part.is_multiple_of(10) {
        part /= 10;
        decimals -= 1;
    }
    let _ = write!(out, ".{part:0width$}", width = decimals as usize);
}

/// Appends a moment: seconds since 1970 with three decimals.
pub(crate) fn push_time(out: &mut String, ns: i64) {
    use std::fmt::Write as _;
    let _ = write!(out, "{}", seconds(ns));
}

/// Nanoseconds since 1970 as seconds, to the millisecond.
pub(crate) fn seconds(ns: i64) -> f64 {
    ns.div_euclid(1_000_000) as f64 / 1e3
}

/// Seconds since 1970 as nanoseconds, to the millisecond. Times that have no such number are the first or the last that has.
pub(crate) fn nanoseconds(seconds: f64) -> i64 {
    ((seconds * 1e3) as i64).saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_true() {
        for (value, expect) in [
            (0.0, "0"),
            (-1e-14, "0"),
            (1.5, "1.5"),
            (2.0 / 3.0, "0.6667"),
            (1.0 / 86_400.0, "0.0000115741"),
            (1e-13, "0"),
            (0.05, "0.05"),
            (100.0, "100"),
            (123.456789, "123.457"),
            (1234.5678, "1234.57"),
            (24689123.0, "24689123"),
            (-1.25, "-1.25"),
            (0.0501, "0.0501"),
            (99_999.49, "99999.5"),
            (999.995, "1000"),
            (1e15 + 0.3, "1000000000000000"),
            (1e20, "100000000000000000000"),
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
        // A sender's stamp can be any number.
        assert_eq!(
            [1e300, -1e300, f64::NAN].map(nanoseconds),
            [i64::MAX, i64::MIN, 0]
        );
    }
}
