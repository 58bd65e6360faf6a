//! Numbers as rrdtool reads and prints them. Its parser is not correctly rounded (each digit and each
//! power of ten rounds anew) and its counters are subtracted as decimal text; both are copied step by step,
//! for a better parser would give other bits.

use std::io::Write;

use crate::UNKNOWN;

/// Longest text of a counter that is subtracted, in digits.
const DIFF_DIGITS_MAX: usize = 30;
/// Exponents outside are not numbers: `DBL_MIN_EXP` to `DBL_MAX_EXP`, which count powers of two, but are what stock compares with.
const EXPONENTS: std::ops::RangeInclusive<i32> = -1021..=1024;

/// What `rrd_strtodbl` makes of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parsed {
    /// All of it is a number (its 2), or it begins with nan, inf, -nan or -inf.
    All(f64),
    /// A number and, from that byte on, something else (its 1).
    Trailing(f64, usize),
    /// No number (its 0).
    Nothing,
}

/// `rrd_strtod`: the value and how many bytes it took; 0 bytes when there is no number.
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

/// Takes digits into `number`; where they end.
fn digits(text: &[u8], from: usize, number: &mut f64) -> usize {
    let mut at = from;
    while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
        *number = *number * 10.0 + f64::from(digit - b'0');
        at += 1;
    }
    at
}

/// What follows the `e`: a sign and digits, neither of them needed. The sum wraps as an int does.
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

/// Powers of ten by squaring, one rounding each; 0 × the infinite tenth power is not a number.
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

/// `rrd_strtodbl`: a text as a whole.
pub fn strtodbl(text: &[u8]) -> Parsed {
    match strtod(text) {
        (_, 0) => special(text).map_or(Parsed::Nothing, Parsed::All),
        (value, used) if used == text.len() => Parsed::All(value),
        (value, used) => Parsed::Trailing(value, used),
    }
}

/// A beginning in any case. The signs of nan are the wrong way round, as in stock.
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

/// `rrd_diff`: `a - b` of two decimal integers of any length up to 30 digits, exact until it becomes a double.
/// Unknown if one has no digits, or their signs differ.
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

/// The first run of digits, and whether a minus stands anywhere before it.
fn run_of_digits(text: &[u8]) -> (&[u8], bool) {
    let first = text.iter().position(u8::is_ascii_digit);
    let (before, rest) = text.split_at(first.unwrap_or(text.len()));
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (&rest[..len], before.contains(&b'-'))
}

/// Digit by digit from the right; true if the result is negative, which is then the tens' complement.
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

/// printf's `%0.{digits}e`: `1.0000000000e+00`, `-nan`, `nan`, `-inf`, `inf`.
pub fn put_exp(out: &mut Vec<u8>, value: f64, digits: usize) {
    if !value.is_finite() {
        return put_special(out, value);
    }
    let from = out.len();
    put(out, format_args!("{value:.digits$e}"));
    let exponent = out[from..].iter().rposition(|&byte| byte == b'e');
    let Some(at) = exponent.map(|at| from + at + 1) else {
        unreachable!("BUG: an exponential form has an e")
    };
    if out[at] != b'-' {
        out.insert(at, b'+');
    }
    if out.len() == at + 2 {
        out.insert(at + 1, b'0');
    }
}

/// printf's `%.{digits}f`.
pub fn put_fixed(out: &mut Vec<u8>, value: f64, digits: usize) {
    if value.is_finite() {
        put(out, format_args!("{value:.digits$}"));
    } else {
        put_special(out, value);
    }
}

fn put_special(out: &mut Vec<u8>, value: f64) {
    if value.is_sign_negative() {
        out.push(b'-');
    }
    out.extend_from_slice(if value.is_nan() { b"nan" } else { b"inf" });
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let Ok(()) = out.write_fmt(text) else {
        unreachable!("BUG: a Vec takes all")
    };
}

/// C's `(long) double` on x86_64: toward zero, and the least `long` for whatever does not fit.
pub(crate) fn to_i64(value: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// C's `(unsigned long) double` as gcc compiles it on x86_64: negative numbers wrap.
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
    if (-2_147_483_649.0..2_147_483_648.0).contains(&value) && value > -2_147_483_649.0 {
        value as i32
    } else {
        i32::MIN
    }
}
