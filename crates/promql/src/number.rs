//! Numbers and durations as they are written: `1_000`, `0x1f`, `0755`, `1e-3`, `Inf`, `1h30m`.

use crate::span::Span;
use crate::token::TokenKind;

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberLiteral {
    /// Seconds if it is a duration.
    pub value: f64,
    /// True if it was written as a duration, such as `5m`.
    pub is_duration: bool,
    /// Where it stands.
    pub span: Span,
}

/// Units of a duration from the longest, and their milliseconds.
pub(crate) const UNITS: [(&str, i64); 7] = [
    ("y", 365 * 86_400_000),
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// Milliseconds that a duration may have: Go keeps nanoseconds in an i64.
pub(crate) const DURATION_MS_MAX: i64 = i64::MAX / 1_000_000;

/// The number or duration at the start of a text that begins with a digit or a dot: its kind, if it is one, and its
/// bytes.
pub(crate) fn extent(text: &str) -> (Option<TokenKind>, usize) {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut end = 0;
    while let Some(&byte) = bytes.get(end) {
        let is_sign_of_exponent = matches!(byte, b'+' | b'-')
            && matches!(bytes.get(end.wrapping_sub(1)), Some(b'e' | b'E'))
            && !is_hexadecimal(text);
        if !is_word(byte) && byte != b'.' && !is_sign_of_exponent {
            break;
        }
        end += 1;
    }
    let word = text.get(..end).unwrap_or_default();
    let kind = match () {
        () if is_number(word) => Some(TokenKind::Number),
        () if is_duration(word) => Some(TokenKind::Duration),
        () => None,
    };
    (kind, end)
}

fn is_hexadecimal(text: &str) -> bool {
    matches!(text.as_bytes(), [b'0', b'x' | b'X', ..])
}

/// True for digits parted by single underscores, of which there is at least one.
fn are_digits(text: &str, is_digit: fn(char) -> bool) -> bool {
    let parts_are = text
        .split('_')
        .all(|part| !part.is_empty() && part.chars().all(is_digit));
    parts_are && !text.is_empty()
}

fn is_decimal(text: &str) -> bool {
    are_digits(text, |c| c.is_ascii_digit())
}

fn is_number(word: &str) -> bool {
    if let Some(digits) = hexadecimal_digits(word) {
        return are_digits(digits, |c| c.is_ascii_hexdigit());
    }
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (word, None),
    };
    let is_exponent = |text: &str| is_decimal(text.strip_prefix(['+', '-']).unwrap_or(text));
    let is_mantissa = match mantissa.split_once('.') {
        Some((whole, "")) => is_decimal(whole),
        Some(("", part)) => is_decimal(part),
        Some((whole, part)) => is_decimal(whole) && is_decimal(part),
        None => is_decimal(mantissa),
    };
    is_mantissa && exponent.is_none_or(is_exponent)
}

/// The digits of `0x1f` or `0x_1f`.
fn hexadecimal_digits(word: &str) -> Option<&str> {
    let digits = word.strip_prefix("0x").or(word.strip_prefix("0X"))?;
    Some(digits.strip_prefix('_').unwrap_or(digits))
}

/// True for numbers with letters that a duration's unit may begin or end with.
fn is_duration(word: &str) -> bool {
    let mut rest = word;
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let Some(first) = unit.chars().next() else {
            return false;
        };
        if unit.len() == rest.len() || !"smhdwy".contains(first) {
            return false;
        }
        let after = unit.get(1..).unwrap_or_default();
        rest = after.strip_prefix('s').unwrap_or(after);
    }
    true
}

/// The value of a number.
pub(crate) fn number(word: &str) -> Result<f64, String> {
    let lower = word.to_ascii_lowercase();
    match lower.as_str() {
        "inf" => return Ok(f64::INFINITY),
        "nan" => return Ok(f64::NAN),
        _ => {}
    }
    let plain = lower.replace('_', "");
    if let Some(digits) = plain.strip_prefix("0x") {
        let value = i64::from_str_radix(digits, 16);
        return (value.map(rounded)).map_err(|_| "error parsing number: value out of range".into());
    }
    // As in Go, a leading zero makes an integer octal, if its digits are.
    let octal = plain
        .strip_prefix('0')
        .map(|digits| i64::from_str_radix(digits, 8));
    if let Some(Ok(value)) = octal {
        return Ok(rounded(value));
    }
    match plain.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err("error parsing number: value out of range".into()),
        Err(_) => Err(format!("error parsing number: {word:?}")),
    }
}

/// The nearest number of an integer.
fn rounded(value: i64) -> f64 {
    value as f64
}

/// Milliseconds of a duration.
pub(crate) fn duration_ms(word: &str) -> Result<i64, String> {
    let invalid = || format!("not a valid duration string: {word:?}");
    let mut rest = word;
    let mut units = UNITS.iter();
    let mut total = 0i64;
    while !rest.is_empty() {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let (digits, after) = rest.split_at(rest.len() - after.len());
        let unit_end = (after.find(|c: char| c.is_ascii_digit())).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        if !UNITS.iter().any(|(known, _)| *known == unit) {
            return Err(format!("unknown unit {unit:?} in duration {word:?}"));
        }
        // Each unit comes once, the longest first.
        let (_, unit_ms) = units
            .find(|(known, _)| *known == unit)
            .ok_or_else(invalid)?;
        let ms = (digits.parse::<i64>().ok()).and_then(|count| count.checked_mul(*unit_ms));
        total = (ms.and_then(|ms| total.checked_add(ms)))
            .filter(|total| *total <= DURATION_MS_MAX)
            .ok_or("duration out of range")?;
        rest = after;
    }
    Ok(total)
}

/// Whole milliseconds of seconds that stand for a duration; `None`: more than 292 years.
pub(crate) fn ms_of_seconds(seconds: f64) -> Option<i64> {
    let ms = seconds * 1000.0;
    // Go rounds to nanoseconds first, and what a multiplication loses of a long duration may be more than one.
    let slack = (ms.abs() * 5e-16).max(5e-7);
    let ms = whole(ms + slack.copysign(ms));
    let fits = !seconds.is_nan() && ms.unsigned_abs() <= DURATION_MS_MAX.unsigned_abs();
    fits.then_some(ms)
}

/// The whole part of a number; the nearest i64 where it has none.
pub(crate) fn whole(value: f64) -> i64 {
    value as i64
}

/// Milliseconds as seconds.
pub(crate) fn seconds_of(ms: i64) -> f64 {
    rounded(ms) / 1000.0
}

/// Appends a duration as Prometheus writes it: `1h30m`, `0s`.
pub(crate) fn put_duration(out: &mut String, ms: i64) {
    if ms < 0 {
        out.push('-');
    }
    let mut left = ms.unsigned_abs();
    if left == 0 {
        out.push_str("0s");
    }
    for (unit, unit_ms) in UNITS {
        let unit_ms = unit_ms.unsigned_abs();
        // Years and weeks stand alone: 8 days are 8d, 14 are 2w.
        let is_whole = !matches!(unit, "y" | "w") || left.is_multiple_of(unit_ms);
        if left >= unit_ms && is_whole {
            out.push_str(&format!("{}{unit}", left / unit_ms));
            left %= unit_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_gos() {
        for (word, wanted) in [
            ("1", Ok(1.0)),
            ("1.", Ok(1.0)),
            (".5", Ok(0.5)),
            ("1_000.5e-1_0", Ok(1_000.5e-10)),
            ("0x_1F", Ok(31.0)),
            ("0x7fffffffffffffff", Ok(9_223_372_036_854_775_807.0)),
            ("0755", Ok(493.0)),
            ("0_7", Ok(7.0)),
            ("089", Ok(89.0)),
            ("00.5", Ok(0.5)),
            ("9007199254740993", Ok(9_007_199_254_740_992.0)),
            ("INF", Ok(f64::INFINITY)),
            ("1e999", Err(())),
            ("0xffffffffffffffff", Err(())),
        ] {
            assert_eq!(number(word).map_err(drop), wanted, "{word}");
        }
        assert!(number("NaN").is_ok_and(f64::is_nan));
    }

    #[test]
    fn extents_end_where_words_do() {
        for (text, kind, length) in [
            ("1+2", Some(TokenKind::Number), 1),
            ("1e+2-", Some(TokenKind::Number), 4),
            ("0x1e+2", Some(TokenKind::Number), 4),
            ("5m:1s", Some(TokenKind::Duration), 2),
            ("1h30m)", Some(TokenKind::Duration), 5),
            ("5hs", Some(TokenKind::Duration), 3),
            ("5mm", None, 3),
            ("1__0", None, 4),
            ("1_", None, 2),
            ("1.2.3", None, 5),
            ("1e", None, 2),
            ("0x", None, 2),
            ("1é", Some(TokenKind::Number), 1),
        ] {
            assert_eq!(extent(text), (kind, length), "{text}");
        }
    }

    #[test]
    fn durations_have_units_in_their_order() {
        for (word, wanted) in [
            (
                "1y2w3d4h5m6s7ms",
                Ok(31_536_000_000 + 1_209_600_000 + 273_906_007),
            ),
            ("0s", Ok(0)),
            ("292y", Ok(292 * 365 * 86_400_000)),
            ("293y", Err("duration out of range")),
            ("99999999999999999999s", Err("duration out of range")),
            ("1m1m", Err("not a valid duration string: \"1m1m\"")),
            ("1s1m", Err("not a valid duration string: \"1s1m\"")),
            ("5hs", Err("unknown unit \"hs\" in duration \"5hs\"")),
        ] {
            let found = duration_ms(word);
            assert_eq!(
                found.as_ref().map_err(String::as_str),
                wanted.as_ref().map_err(|e| *e),
                "{word}"
            );
        }
    }

    /// Seconds in a float gave a millisecond less than was written, in years.
    #[test]
    fn milliseconds_come_back_from_seconds() {
        let mut ms = 1i64;
        while ms <= DURATION_MS_MAX {
            for ms in [ms - 1, ms, -ms, DURATION_MS_MAX - ms] {
                assert_eq!(ms_of_seconds(seconds_of(ms)), Some(ms));
            }
            ms = ms * 9 / 8 + 1;
        }
        for (seconds, wanted) in [
            (4.018, Some(4018)),
            (0.0015, Some(1)),
            (-0.0015, Some(-1)),
            (0.000_999_999_9, Some(1)),
            (9.3e9, None),
            (f64::NAN, None),
            (f64::NEG_INFINITY, None),
        ] {
            assert_eq!(ms_of_seconds(seconds), wanted, "{seconds}");
        }
    }

    #[test]
    fn durations_are_written_as_prometheus_does() {
        for (ms, wanted) in [
            (0, "0s"),
            (1, "1ms"),
            (-90_000, "-1m30s"),
            (7 * 86_400_000, "1w"),
            (8 * 86_400_000, "8d"),
            (365 * 86_400_000, "1y"),
            (366 * 86_400_000, "366d"),
            (3_600_001, "1h1ms"),
        ] {
            let mut out = String::new();
            put_duration(&mut out, ms);
            assert_eq!(out, wanted);
        }
    }
}
