//! Decimal numbers as monitoring protocols write them: a sign, digits with a point, and an exponent. Hexadecimal numbers,
//! blanks and digits with `_` between them are refused, although some reference implementations accept them.

use kymo_base::scan;

/// Latest second since 1970 that is accepted as a time, in the year 5138. Any time since 1973 in milliseconds, which senders
/// confuse with seconds, is above this limit.
pub(crate) const SECONDS_MAX: u64 = 99_999_999_999;

/// Why a text is not a finite number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// `nan`.
    NotANumber,
    /// `inf`, or more than an f64 can hold.
    Infinite,
    /// Anything else.
    NotDecimal,
}

/// Parses `text` as a finite decimal number.
pub(crate) fn decimal(text: &[u8]) -> Result<f64, Unreadable> {
    if !is_decimal(text) {
        return Err(spelled_out(text));
    }
    let text = std::str::from_utf8(text).map_err(|_| Unreadable::NotDecimal)?;
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(_) => Err(Unreadable::Infinite),
        Err(_) => Err(Unreadable::NotDecimal),
    }
}

/// True for a text that begins with a sign.
pub(crate) fn is_signed(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'+' | b'-'))
}

/// Seconds as milliseconds, rounded; `None`: not a number, or more than an i64 can hold.
pub(crate) fn whole_ms(seconds: f64) -> Option<i64> {
    let ms = (seconds * 1000.0).round();
    // The least bound is a power of two, and so is the first number that is too large.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&ms) {
        return None;
    }
    let bits = ms.abs().to_bits();
    let (exponent, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
    // The fraction of a number from 2^52 on is whole. A smaller one has bits behind the point, all of them 0 here.
    let mantissa = fraction | 1 << 52;
    let magnitude = match exponent.checked_sub(1075) {
        Some(left) => i128::from(mantissa) << left.min(63),
        None => i128::from(mantissa >> (1075 - exponent).min(63)),
    };
    let signed = if ms < 0.0 { -magnitude } else { magnitude };
    i64::try_from(signed).ok()
}

fn unsigned(text: &[u8]) -> &[u8] {
    text.get(usize::from(is_signed(text))..).unwrap_or_default()
}

fn is_decimal(text: &[u8]) -> bool {
    let (mut digits, mut rest) = take_digits(unsigned(text));
    if let Some(behind) = rest.strip_prefix(b".") {
        let (fraction, behind) = take_digits(behind);
        (digits, rest) = (digits + fraction, behind);
    }
    if let Some((b'e' | b'E', exponent)) = rest.split_first() {
        let (count, behind) = take_digits(unsigned(exponent));
        return digits > 0 && count > 0 && behind.is_empty();
    }
    digits > 0 && rest.is_empty()
}

fn take_digits(text: &[u8]) -> (usize, &[u8]) {
    let count = scan::digit_run(text);
    (count, text.get(count..).unwrap_or_default())
}

fn spelled_out(text: &[u8]) -> Unreadable {
    let word = unsigned(text);
    let is = |spelling: &[u8]| word.eq_ignore_ascii_case(spelling);
    match () {
        () if is(b"nan") => Unreadable::NotANumber,
        () if is(b"inf") || is(b"infinity") => Unreadable::Infinite,
        () => Unreadable::NotDecimal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_strict() {
        use Unreadable::{Infinite, NotANumber, NotDecimal};
        let table: &[(&str, Result<f64, Unreadable>)] = &[
            ("0", Ok(0.0)),
            ("-0", Ok(-0.0)),
            ("007", Ok(7.0)),
            ("+1.5", Ok(1.5)),
            (".5", Ok(0.5)),
            ("5.", Ok(5.0)),
            ("1e3", Ok(1000.0)),
            ("1.25E-2", Ok(0.0125)),
            ("-2e+2", Ok(-200.0)),
            ("1e-999", Ok(0.0)),
            ("9007199254740993", Ok(9_007_199_254_740_992.0)),
            ("0.1", Ok(0.1)),
            ("nan", Err(NotANumber)),
            ("-NaN", Err(NotANumber)),
            ("inf", Err(Infinite)),
            ("+Infinity", Err(Infinite)),
            ("1e999", Err(Infinite)),
            ("-1e999", Err(Infinite)),
            ("", Err(NotDecimal)),
            ("+", Err(NotDecimal)),
            (".", Err(NotDecimal)),
            ("e5", Err(NotDecimal)),
            (".e5", Err(NotDecimal)),
            ("1e", Err(NotDecimal)),
            ("1e+", Err(NotDecimal)),
            ("1e5.5", Err(NotDecimal)),
            ("1.2.3", Err(NotDecimal)),
            ("--1", Err(NotDecimal)),
            ("0x10", Err(NotDecimal)),
            ("1_000", Err(NotDecimal)),
            (" 1", Err(NotDecimal)),
            ("1 ", Err(NotDecimal)),
            ("12ms", Err(NotDecimal)),
            ("1,5", Err(NotDecimal)),
            ("\u{661}", Err(NotDecimal)),
        ];
        for (text, expected) in table {
            let read = decimal(text.as_bytes());
            assert_eq!(read, *expected, "{text}");
            let sign = read.map(f64::is_sign_negative);
            assert_eq!(sign, expected.map(f64::is_sign_negative), "{text}");
        }
    }

    #[test]
    fn seconds_become_milliseconds() {
        for (seconds, expected) in [
            (0.0, Some(0)),
            (-0.0, Some(0)),
            (1.0, Some(1000)),
            (-1.5, Some(-1500)),
            (0.0004, Some(0)),
            (0.0005, Some(1)),
            (1_395_066_363.119, Some(1_395_066_363_119)),
            (9_007_199_254_740_993.0, Some(9_007_199_254_740_992_000)),
            (9.2e15, Some(9_200_000_000_000_000_000)),
            (-9.2e15, Some(-9_200_000_000_000_000_000)),
            (9.3e15, None),
            (-9.3e15, None),
            (f64::MIN_POSITIVE, Some(0)),
            (f64::MAX, None),
            (f64::INFINITY, None),
            (f64::NAN, None),
        ] {
            assert_eq!(whole_ms(seconds), expected, "{seconds}");
        }
        for ms in
            (-100_000..100_000).chain((-50i64..50).map(|n| n * 180_000_000_000_000_007 / 1_000))
        {
            assert_eq!(
                whole_ms(ms as f64 / 1000.0),
                Some(((ms as f64 / 1000.0) * 1000.0).round() as i64)
            );
        }
    }
}
