//! Doubles as C's printf writes them: what rrdtool and its daemon print.

use std::io::Write;

/// printf's `%0.{digits}e`: `1.0000000000e+00`, `-nan`, `nan`, `-inf`, `inf`.
pub fn put_exp(out: &mut Vec<u8>, value: f64, digits: usize) {
    if !value.is_finite() {
        return put_special(out, value);
    }
    if let Some((digits_read, exponent)) = decimal(value.abs(), digits) {
        if value.is_sign_negative() {
            out.push(b'-');
        }
        return put_digits(out, digits_read, digits, exponent);
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

/// The first `digits` + 1 digits of a double, exactly rounded (a tie to the even one), and its power of ten: for those of
/// everyday size, which times a power of ten fit into 128 bits. `None`: the others.
fn decimal(value: f64, digits: usize) -> Option<(u64, i32)> {
    if digits > 17 || !(1e-3..1e17).contains(&value) {
        return (digits <= 17 && value == 0.0).then_some((0, 0));
    }
    let bits = value.to_bits();
    // The value is mantissa × 2^(power - 52), a power between -10 and 56.
    let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
    let power = (bits >> 52) as i32 - 1023;
    let cut = 56 - power;
    // The power of ten, or one less.
    let mut exponent = (power * 1233) >> 12;
    let scaled = |exponent: i32| {
        // Where fewer digits than those of the whole number are wanted, none are left to round by.
        let more = usize::try_from(digits as i32 - exponent).ok()?;
        Some((mantissa << 4) * POWERS[more])
    };
    let end = POWERS[digits + 1];
    let mut all = scaled(exponent)?;
    if all >> cut >= end {
        exponent += 1;
        all = scaled(exponent)?;
    }
    let (whole, rest) = (all >> cut, all & ((1 << cut) - 1));
    let half = (1 << cut) >> 1;
    let up = rest > half || (rest == half && cut > 0 && whole & 1 == 1);
    // 9.99… becomes 10.00….
    match whole + u128::from(up) {
        read if read == end => Some((POWERS[digits] as u64, exponent + 1)),
        read => Some((read as u64, exponent)),
    }
}

/// Powers of ten.
const POWERS: [u128; 22] = {
    let mut powers = [1; 22];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// `d.ddde+xx`.
fn put_digits(out: &mut Vec<u8>, read: u64, digits: usize, exponent: i32) {
    let mut text = [b'0'; 24];
    let mut left = read;
    for place in text[1..=digits + 1].iter_mut().rev() {
        *place = b'0' + (left % 10) as u8;
        left /= 10;
    }
    // The first digit stands before the point.
    text[0] = text[1];
    text[1] = b'.';
    out.extend_from_slice(&text[..if digits > 0 { digits + 2 } else { 1 }]);
    let size = exponent.unsigned_abs() as u8;
    let sign = if exponent < 0 { b'-' } else { b'+' };
    out.extend_from_slice(&[b'e', sign, b'0' + size / 10, b'0' + size % 10]);
}

/// printf's `%{width}lu`.
pub fn put_unsigned(out: &mut Vec<u8>, value: u64, width: usize) {
    let mut text = [b' '; 20];
    let (mut at, mut left) = (text.len(), value);
    loop {
        at -= 1;
        text[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[at.min(text.len().saturating_sub(width))..]);
}

/// printf's `%li`.
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    put_unsigned(out, value.unsigned_abs(), 0);
}

/// printf's `%.{digits}g`, 1 to 18 digits: those that count, without zeros at the end.
pub fn put_general(out: &mut Vec<u8>, value: f64, digits: usize) {
    if !value.is_finite() {
        return put_special(out, value);
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let (size, digits) = (value.abs(), digits.clamp(1, 18));
    // Most gauges are whole numbers, and those are their own digits.
    let whole = size as u64;
    if whole as f64 == size && u128::from(whole) < POWERS[digits] {
        return put_unsigned(out, whole, 0);
    }
    let quick = decimal(size, digits - 1);
    let (read, exponent) = quick.unwrap_or_else(|| decimal_slowly(out, size, digits - 1));
    put_shortened(out, read, digits, exponent);
}

/// The result of [`decimal`] for any double. Uses `out`, and leaves it as it was.
fn decimal_slowly(out: &mut Vec<u8>, value: f64, digits: usize) -> (u64, i32) {
    let from = out.len();
    put(out, format_args!("{value:.digits$e}"));
    let (mut read, mut exponent, mut power, mut sign) = (0u64, 0i32, false, 1);
    for &byte in &out[from..] {
        let digit = byte.wrapping_sub(b'0');
        match byte {
            b'e' => power = true,
            b'-' => sign = -1,
            b'0'..=b'9' if power => exponent = exponent * 10 + i32::from(digit),
            b'0'..=b'9' => read = read * 10 + u64::from(digit),
            _ => {}
        }
    }
    out.truncate(from);
    (read, sign * exponent)
}

/// A number of `digits` digits whose first stands for 10^`exponent`, as `%g` shows it.
fn put_shortened(out: &mut Vec<u8>, read: u64, digits: usize, exponent: i32) {
    let (mut text, mut left) = ([b'0'; 18], read);
    for place in text[..digits].iter_mut().rev() {
        *place = b'0' + (left % 10) as u8;
        left /= 10;
    }
    let used = text.iter().rposition(|&digit| digit != b'0');
    let used = used.map_or(1, |last| last + 1);
    if exponent < -4 || exponent >= digits as i32 {
        put_with_point(out, &text[..used], 1);
        let size = exponent.unsigned_abs();
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        if size < 10 {
            out.push(b'0');
        }
        return put_unsigned(out, u64::from(size), 0);
    }
    match usize::try_from(exponent) {
        Ok(exponent) => put_with_point(out, &text[..used.max(exponent + 1)], exponent + 1),
        Err(_) => {
            out.extend_from_slice(&b"0.000"[..1 + exponent.unsigned_abs() as usize]);
            out.extend_from_slice(&text[..used]);
        }
    }
}

/// The digits with a point behind the first `whole` of them, unless those are all.
fn put_with_point(out: &mut Vec<u8>, digits: &[u8], whole: usize) {
    let (whole, rest) = digits.split_at(whole);
    out.extend_from_slice(whole);
    if !rest.is_empty() {
        out.push(b'.');
        out.extend_from_slice(rest);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the standard library has it, which is exact.
    fn expected(value: f64, digits: usize) -> String {
        let text = format!("{value:.digits$e}");
        let (number, exponent) = text.split_once('e').unwrap();
        let exponent: i32 = exponent.parse().unwrap();
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{number}e{sign}{:02}", exponent.abs())
    }

    fn check(value: f64) {
        for digits in [0, 1, 9, 10, 16, 17, 18] {
            let mut out = Vec::new();
            put_exp(&mut out, value, digits);
            let shown = String::from_utf8(out).unwrap();
            assert_eq!(shown, expected(value, digits), "{value:?}, {digits} digits");
        }
    }

    #[test]
    fn numbers_at_edges_are_exact() {
        for power in -30..=30 {
            let ten = 10f64.powi(power);
            for value in [ten, ten.next_up(), ten.next_down(), 9.5 * ten, 0.5 * ten] {
                check(value);
                check(-value);
                check_general(value);
                check_general(-value);
            }
        }
        for value in [
            0.0,
            -0.0,
            0.5,
            1.5,
            2.5,
            1e15 + 0.5,
            9.999_999_999_95,
            1e-300,
        ] {
            check(value);
        }
        let mut out = Vec::new();
        put_unsigned(&mut out, 7, 3);
        put_unsigned(&mut out, u64::MAX, 10);
        put_unsigned(&mut out, 0, 0);
        assert_eq!(out, b"  7184467440737095516150");
    }

    /// `%.15g` by the rules of C, from the digits of the standard library.
    fn expected_general(value: f64, digits: usize) -> String {
        let text = expected(value, digits - 1);
        let (number, exponent) = text.split_once('e').unwrap();
        let exponent: i32 = exponent.parse().unwrap();
        let shortened = |text: &str| match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
            false => text.to_string(),
        };
        if exponent < -4 || exponent >= digits as i32 {
            let sign = if exponent < 0 { '-' } else { '+' };
            return format!("{}e{sign}{:02}", shortened(number), exponent.abs());
        }
        let behind = (digits as i32 - 1 - exponent) as usize;
        shortened(&format!("{value:.behind$}"))
    }

    fn check_general(value: f64) {
        for digits in [1, 6, 15, 17, 18] {
            let mut out = Vec::new();
            put_general(&mut out, value, digits);
            let shown = String::from_utf8(out).unwrap();
            let wanted = expected_general(value, digits);
            assert_eq!(shown, wanted, "{value:?}, {digits} digits");
        }
    }

    /// Results of Perl's printf, which is C's, for the doubles with these bits.
    #[test]
    fn general_is_cs() {
        for line in include_str!("printf_general.txt").lines() {
            let (bits, text) = line.split_once(' ').unwrap();
            let value = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
            let mut out = b"x".to_vec();
            put_general(&mut out, value, 15);
            assert_eq!(
                String::from_utf8(out).unwrap(),
                format!("x{text}"),
                "{bits}"
            );
        }
    }

    #[test]
    fn signed_numbers_are_cs() {
        for value in [0, 1, -1, 10, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            put_signed(&mut out, value);
            assert_eq!(out, value.to_string().into_bytes());
        }
    }

    proptest! {
        #[test]
        fn any_number_is_exact(bits in any::<u64>(), number in -1e18..1e18f64, small in -2000..2000i64) {
            for value in [f64::from_bits(bits), number, small as f64 / 8.0, small as f64 / 100.0] {
                if value.is_finite() {
                    check(value);
                    check_general(value);
                }
            }
        }
    }
}
