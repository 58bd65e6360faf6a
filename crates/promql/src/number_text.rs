//! Numbers as Go writes them: the fewest digits that stand for a number. Of two texts that are equally near, Go takes the even one,
//! and Rust's own printer does not.

use std::ops::Range;

/// Sizes that values of the API have without an exponent.
const API: Range<f64> = 1e-6..1e21;

/// Appends a number as values of Prometheus' API have it: with an exponent if it is very small or large.
pub fn push_number(out: &mut String, value: f64) {
    push_within(out, value, &API);
}

/// A number without an exponent (Go's `%f` with the fewest digits).
pub(crate) fn plain(value: f64) -> String {
    let mut out = String::new();
    push_within(&mut out, value, &(0.0..f64::INFINITY));
    out
}

/// A number that has an exponent if its size is not in a range.
pub(crate) fn within(value: f64, sizes: &Range<f64>) -> String {
    let mut out = String::new();
    push_within(&mut out, value, sizes);
    out
}

fn push_within(out: &mut String, value: f64, sizes: &Range<f64>) {
    if value.is_nan() {
        return out.push_str("NaN");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    let is_plain = value == 0.0 || sizes.contains(&value.abs());
    if is_plain && !text.contains('e') {
        return out.push_str(text.strip_suffix(".0").unwrap_or(text));
    }
    let (text, sign) = match text.strip_prefix('-') {
        Some(text) => (text, "-"),
        None => (text, ""),
    };
    out.push_str(sign);
    let (digits, exponent) = scientific(text);
    match is_plain {
        true => push_plain(out, &digits, exponent),
        false => push_exponent(out, &digits, exponent),
    }
}

/// Digits of a positive number, without zeros at either end, and the exponent of the first one.
fn scientific(text: &str) -> (String, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, part].concat();
    let digits = all.trim_start_matches('0');
    let zeros = all.len() - digits.len();
    let places = i32::try_from(whole.len()).unwrap_or(0) - i32::try_from(zeros).unwrap_or(0);
    let digits = digits.trim_end_matches('0').to_string();
    (digits, exponent.saturating_add(places).saturating_sub(1))
}

fn push_exponent(out: &mut String, digits: &str, exponent: i32) {
    let (first, rest) = digits.split_at(digits.len().min(1));
    out.push_str(first);
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    out.push_str(&format!("e{sign}{:02}", exponent.unsigned_abs()));
}

fn push_plain(out: &mut String, digits: &str, exponent: i32) {
    // Digits before the point, and zeros where there are more than digits.
    let Ok(before) = usize::try_from(exponent.saturating_add(1)) else {
        return push_fraction(out, digits, exponent);
    };
    if before == 0 {
        return push_fraction(out, digits, exponent);
    }
    let (whole, part) = digits.split_at(before.min(digits.len()));
    out.push_str(whole);
    out.extend(std::iter::repeat_n(
        '0',
        before.saturating_sub(digits.len()),
    ));
    if !part.is_empty() {
        out.push('.');
        out.push_str(part);
    }
}

/// Appends a number below 1.
fn push_fraction(out: &mut String, digits: &str, exponent: i32) {
    let zeros = exponent.unsigned_abs().saturating_sub(1);
    out.push_str("0.");
    out.extend(std::iter::repeat_n(
        '0',
        usize::try_from(zeros).unwrap_or(0),
    ));
    out.push_str(digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_prometheus_digits() {
        let tie = f64::from_bits(4_792_589_808_664_660_032);
        for (value, api, without) in [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (1.0, "1", "1"),
            (0.1, "0.1", "0.1"),
            (1e-6, "0.000001", "0.000001"),
            (9.5e-7, "9.5e-07", "0.00000095"),
            (-1e-7, "-1e-07", "-0.0000001"),
            (-1.5e-6, "-0.0000015", "-0.0000015"),
            (1.25e-5, "0.0000125", "0.0000125"),
            (1e20, "100000000000000000000", "100000000000000000000"),
            (1e21, "1e+21", "1000000000000000000000"),
            (tie, "2570021860265.0312", "2570021860265.0312"),
            (-1.234_5e3, "-1234.5", "-1234.5"),
            (f64::NAN, "NaN", "NaN"),
            (f64::INFINITY, "+Inf", "+Inf"),
            (f64::NEG_INFINITY, "-Inf", "-Inf"),
        ] {
            let mut out = String::new();
            push_number(&mut out, value);
            assert_eq!((&*out, &*plain(value)), (api, without));
        }
        assert_eq!(within(1.5e300, &API), "1.5e+300");
        assert_eq!(within(5e-324, &API), "5e-324");
        assert_eq!(within(12_000.0, &(1e-4..100.0)), "1.2e+04");
    }

    proptest::proptest! {
        /// Digits are as few as those of Rust's own printer, and read back.
        #[test]
        fn numbers_are_the_shortest(bits: u64, exponent in -8i32..23) {
            let near = f64::from_bits(bits % (1 << 52) + (1023 << 52)) * 10f64.powi(exponent);
            for value in [f64::from_bits(bits), near].into_iter().filter(|value| value.is_finite()) {
                for text in [plain(value), within(value, &API), within(value, &(1e-4..100.0))] {
                    proptest::prop_assert_eq!(text.parse::<f64>(), Ok(value));
                }
                proptest::prop_assert_eq!(plain(value).len(), value.to_string().len());
            }
        }
    }
}
