//! Parses numbers like rrdtool. Its parser does not round correctly (each digit and each power of ten rounds again), and it
//! subtracts counters as decimal text. Both are copied step by step, as a better parser would give other bits.

use crate::UNKNOWN;

/// Longest counter that can be subtracted, in digits.
const DIFF_DIGITS_MAX: usize = 30;
/// Valid exponents: `DBL_MIN_EXP` to `DBL_MAX_EXP`. These count powers of two, but rrdtool compares with them.
const EXPONENTS: std::ops::RangeInclusive<i32> = -1021..=1024;

/// Result of `rrd_strtodbl`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parsed {
    /// The whole text is a number, or it begins with nan, inf, -nan or -inf (rrdtool's 2).
    All(f64),
    /// A number, followed by something else from this byte on (rrdtool's 1).
    Trailing(f64, usize),
    /// No number (rrdtool's 0).
    Nothing,
}

/// `rrd_strtod`: the value and its length in bytes; length 0: there is no number.
pub fn strtod(text: &[u8]) -> (f64, usize) {
    let byte = |at: usize| text.get(at).copied().unwrap_or(0);
    let mut at = text.iter().take_while(|&&byte| is_space(byte)).count();
    let negative = byte(at) == b'-';
    at += usize::from(matches!(byte(at), b'-' | b'+'));
    let (mut number, first) = (0.0, at);
    at = digits(text, at, &mut number);
    let (mut digit_count, mut exponent) = (at - first, 0i32);
    if byte(at) == b'.' {
        let end = digits(text, at + 1, &mut number);
        let decimal_count = end - at - 1;
        digit_count += decimal_count;
        exponent = exponent.wrapping_sub(decimal_count as i32);
        at = end;
    }
    if digit_count == 0 {
        return (0.0, 0);
    }
    if negative {
        number = -number;
    }
    if matches!(byte(at), b'e' | b'E') {
        let (written, end) = written_exponent(text, at + 1);
        exponent = exponent.wrapping_add(written);
        at = end;
    }
    if !EXPONENTS.contains(&exponent) {
        return (f64::INFINITY, 0);
    }
    (scaled(number, exponent), at)
}

/// Value of [`strtod`] for these digits, `fraction` of which are decimals; `None`: too many digits for a double.
pub fn decimal(digits: u64, fraction: u8) -> Option<f64> {
    (digits < 1 << f64::MANTISSA_DIGITS).then(|| scaled(digits as f64, -i32::from(fraction)))
}

/// Appends digits to `number`; returns their end.
fn digits(text: &[u8], from: usize, number: &mut f64) -> usize {
    let mut at = from;
    while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
        *number = *number * 10.0 + f64::from(digit - b'0');
        at += 1;
    }
    at
}

/// Parses an exponent behind `e`: a sign and digits, both optional. The sum wraps like an int.
fn written_exponent(text: &[u8], from: usize) -> (i32, usize) {
    let sign = text.get(from).copied().unwrap_or(0);
    let mut at = from + usize::from(matches!(sign, b'-' | b'+'));
    let mut sum = 0i32;
    while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
        sum = sum.wrapping_mul(10).wrapping_add(i32::from(digit - b'0'));
        at += 1;
    }
    (
        if sign == b'-' {
            sum.wrapping_neg()
        } else {
            sum
        },
        at,
    )
}

/// Multiplies by a power of ten, computed by squaring with a rounding each; 0 times an infinite power is NaN.
fn scaled(mut number: f64, exponent: i32) -> f64 {
    let (mut bits, mut power) = (exponent.unsigned_abs(), 10.0);
    while bits > 0 {
        if bits & 1 == 1 {
            if exponent < 0 {
                number /= power;
            } else {
                number *= power;
            }
        }
        bits >>= 1;
        power *= power;
    }
    number
}

/// C's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// `rrd_strtodbl`: parses a whole text.
pub fn strtodbl(text: &[u8]) -> Parsed {
    match strtod(text) {
        (_, 0) => special(text).map_or(Parsed::Nothing, Parsed::All),
        (value, used) if used == text.len() => Parsed::All(value),
        (value, used) => Parsed::Trailing(value, used),
    }
}

/// Parses names of values at the beginning of a text, in any case. As in rrdtool, the signs of nan are swapped.
fn special(text: &[u8]) -> Option<f64> {
    let begins = |word: &[u8]| {
        text.get(..word.len())
            .is_some_and(|front| front.eq_ignore_ascii_case(word))
    };
    if begins(b"-nan") {
        Some(UNKNOWN)
    } else if begins(b"nan") {
        Some(-UNKNOWN)
    } else if begins(b"inf") {
        Some(f64::INFINITY)
    } else {
        begins(b"-inf").then_some(f64::NEG_INFINITY)
    }
}

/// `rrd_diff`: `a - b` of two decimal integers of at most 30 digits, exact before the conversion to a double. Unknown if one has
/// no digits, or their signs differ.
pub fn diff(a: &[u8], b: &[u8]) -> f64 {
    let ((a, a_negative), (b, b_negative)) = (run_of_digits(a), run_of_digits(b));
    let len = a.len().max(b.len());
    if a.is_empty() || b.is_empty() || a_negative != b_negative || len > DIFF_DIGITS_MAX {
        return UNKNOWN;
    }
    let mut result = [b'0'; DIFF_DIGITS_MAX];
    let result = &mut result[..len];
    let borrow = subtract(a, b, result);
    if borrow {
        complement(result);
    }
    let (mut value, _) = strtod(result);
    if borrow {
        value = -value;
    }
    if a_negative {
        value = -value;
    }
    value
}

/// The first run of digits, and true if a minus comes anywhere before it.
fn run_of_digits(text: &[u8]) -> (&[u8], bool) {
    let first = text.iter().position(u8::is_ascii_digit);
    let (before, rest) = text.split_at(first.unwrap_or(text.len()));
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (&rest[..len], before.contains(&b'-'))
}

/// Subtracts digit by digit from the right. True if the result is negative; then it is the tens' complement.
fn subtract(a: &[u8], b: &[u8], result: &mut [u8]) -> bool {
    let digit = |text: &[u8], i: usize| text.iter().rev().nth(i).map_or(0, |byte| byte - b'0');
    let mut borrow = 0;
    for (i, out) in result.iter_mut().rev().enumerate() {
        let (from, take) = (digit(a, i), digit(b, i) + borrow);
        borrow = u8::from(from < take);
        *out = b'0' + from + 10 * borrow - take;
    }
    borrow == 1
}

fn complement(result: &mut [u8]) {
    let mut carry = 1;
    for digit in result.iter_mut().rev() {
        let sum = 9 - (*digit - b'0') + carry;
        carry = u8::from(sum > 9);
        *digit = b'0' + sum % 10;
    }
}

/// C's `(long) double` on x86_64: truncates; values out of range become the least `long`.
pub(crate) fn to_i64(value: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// C's `(unsigned long) double` of gcc on x86_64: negative numbers wrap.
pub(crate) fn to_u64(value: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if value >= HALF {
        to_i64(value - HALF) as u64 ^ 1 << 63
    } else {
        to_i64(value) as u64
    }
}

/// C's `(int) double` on x86_64.
pub(crate) fn to_i32(value: f64) -> i32 {
    if -2_147_483_649.0 < value && value < 2_147_483_648.0 {
        value as i32
    } else {
        i32::MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_base::printf::{put_exp, put_fixed};

    /// Bits and lengths of librrd's rrd_strtod.
    const NUMBERS: &[(&str, u64, usize)] = &[
        ("0.1", 0x3fb9_9999_9999_999a, 3),
        ("0.3", 0x3fd3_3333_3333_3333, 3),
        ("1e23", 0x44b5_2d02_c7e1_4af6, 4),
        ("123456789012345678", 0x437b_69b4_ba63_0f36, 18),
        ("3.14159265358979323846", 0x4009_21fb_5444_2d17, 22),
        ("1e-7", 0x3e7a_d7f2_9abc_af48, 4),
        ("17.29e-3", 0x3f91_b478_4230_fcf8, 8),
        ("9007199254740993", 0x4340_0000_0000_0000, 16),
        ("1.7976931348623157e308", 0x7ff0_0000_0000_0000, 22),
        ("4.9e-324", 1, 8),
        ("1e308", 0x7fe1_ccf3_85eb_c8a3, 5),
        ("1e-300", 0x01a5_6e1f_c2f8_f355, 6),
        ("  +5x", 0x4014_0000_0000_0000, 4),
        ("\u{b}7", 0x401c_0000_0000_0000, 2),
        ("\u{1f}7", 0, 0),
        ("-0", 0x8000_0000_0000_0000, 2),
        (".5", 0x3fe0_0000_0000_0000, 2),
        ("5.", 0x4014_0000_0000_0000, 2),
        ("1.2.3", 0x3ff3_3333_3333_3333, 3),
        ("0x10", 0, 1),
        (".", 0, 0),
        ("", 0, 0),
        ("-", 0, 0),
        ("1e", 0x3ff0_0000_0000_0000, 2),
        ("1e+", 0x3ff0_0000_0000_0000, 3),
        ("1E2", 0x4059_0000_0000_0000, 3),
        ("2e1024", 0x7ff0_0000_0000_0000, 6),
        ("2e1025", 0x7ff0_0000_0000_0000, 0),
        ("1e-1021", 0, 7),
        ("0.0e-1021", 0x7ff0_0000_0000_0000, 0),
        ("0e999", 0xfff8_0000_0000_0000, 5),
        ("1e4294967296", 0x3ff0_0000_0000_0000, 12),
        ("1e99999999999", 0x7ff0_0000_0000_0000, 0),
    ];

    #[test]
    fn numbers_are_read_as_rrdtool_reads_them() {
        for &(text, bits, used) in NUMBERS {
            let (value, len) = strtod(text.as_bytes());
            assert_eq!((value.to_bits(), len), (bits, used), "{text:?}");
        }
    }

    #[test]
    fn a_text_is_a_number_as_a_whole_or_says_where_not() {
        let cases: &[(&str, Parsed)] = &[
            ("12", Parsed::All(12.0)),
            ("12foo", Parsed::Trailing(12.0, 2)),
            ("foo", Parsed::Nothing),
            ("", Parsed::Nothing),
            (" ", Parsed::Nothing),
            ("1e2000", Parsed::Nothing),
            ("INFoo", Parsed::All(f64::INFINITY)),
            ("-inf", Parsed::All(f64::NEG_INFINITY)),
            ("+inf", Parsed::Nothing),
        ];
        for &(text, parsed) in cases {
            assert_eq!(strtodbl(text.as_bytes()), parsed, "{text:?}");
        }
        for (text, bits) in [("nan", 0x7ff8 << 48), ("-NaNx", 0xfff8 << 48)] {
            let Parsed::All(value) = strtodbl(text.as_bytes()) else {
                panic!("{text}")
            };
            assert_eq!(value.to_bits(), bits, "{text}");
        }
    }

    #[test]
    fn counters_are_subtracted_as_text() {
        let cases: &[(&str, &str, f64)] = &[
            ("5", "3", 2.0),
            ("3", "5", -2.0),
            ("1000", "1", 999.0),
            ("1", "1000", -999.0),
            ("0", "0", 0.0),
            ("18446744073709551616", "18446744073709551615", 1.0),
            ("-7", "-5", -2.0),
            ("-5", "-7", 2.0),
            ("x-9 12y5", "-3", -6.0),
            ("000012", "3", 9.0),
            (
                "123456789012345678901234567890",
                "023456789012345678901234567890",
                1e29,
            ),
        ];
        for &(a, b, difference) in cases {
            assert_eq!(diff(a.as_bytes(), b.as_bytes()), difference, "{a} - {b}");
        }
        let long = "1".repeat(31);
        for (a, b) in [("-5", "5"), ("", "5"), ("5", "-"), (&long, "1")] {
            assert_eq!(
                diff(a.as_bytes(), b.as_bytes()).to_bits(),
                UNKNOWN.to_bits()
            );
        }
    }

    #[test]
    fn numbers_are_printed_as_printf_prints_them() {
        let cases: &[(f64, &str, &str)] = &[
            (0.5, "5.0000000000e-01", "0.500000"),
            (1.525_878_906_25e-5, "1.5258789062e-05", "0.000015"),
            (7.629_394_531_25e-6, "7.6293945312e-06", "0.000008"),
            (1e22, "1.0000000000e+22", "10000000000000000000000.000000"),
            (99_999_999_999.5, "1.0000000000e+11", "99999999999.500000"),
            (5e-324, "4.9406564584e-324", "0.000000"),
            (1e100, "1.0000000000e+100", ""),
            (0.0, "0.0000000000e+00", "0.000000"),
            (-0.0, "-0.0000000000e+00", "-0.000000"),
            (f64::INFINITY, "inf", "inf"),
            (f64::NEG_INFINITY, "-inf", "-inf"),
            (UNKNOWN, "-nan", "-nan"),
            (-UNKNOWN, "nan", "nan"),
        ];
        for &(value, exponential, fixed) in cases {
            let mut out = Vec::new();
            put_exp(&mut out, value, 10);
            assert_eq!(String::from_utf8_lossy(&out), exponential);
            out.clear();
            put_fixed(&mut out, value, 6);
            assert!(fixed.is_empty() || String::from_utf8_lossy(&out) == fixed);
        }
        let mut out = Vec::new();
        put_exp(&mut out, 123_456_789_012_345_680.0, 17);
        assert_eq!(out, b"1.23456789012345680e+17");
    }

    #[test]
    fn conversions_are_the_processors() {
        let cases: &[(f64, i64, u64, i32)] = &[
            (1.9, 1, 1, 1),
            (-1.9, -1, u64::MAX, -1),
            (2_147_483_648.0, 2_147_483_648, 2_147_483_648, i32::MIN),
            (
                -2_147_483_648.9,
                -2_147_483_648,
                (-2_147_483_648i64) as u64,
                i32::MIN,
            ),
            (2_147_483_647.9, 2_147_483_647, 2_147_483_647, i32::MAX),
            (1e19, i64::MIN, 10_000_000_000_000_000_000, i32::MIN),
            (1e20, i64::MIN, 0, i32::MIN),
            (f64::NAN, i64::MIN, 1 << 63, i32::MIN),
            (f64::NEG_INFINITY, i64::MIN, 1 << 63, i32::MIN),
        ];
        for &(value, long, unsigned, int) in cases {
            assert_eq!(
                (to_i64(value), to_u64(value), to_i32(value)),
                (long, unsigned, int),
                "{value}"
            );
        }
    }
}
