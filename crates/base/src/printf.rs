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

    proptest! {
        #[test]
        fn any_number_is_exact(bits in any::<u64>(), number in -1e18..1e18f64, small in -2000..2000i64) {
            for value in [f64::from_bits(bits), number, small as f64 / 8.0, small as f64 / 100.0] {
                if value.is_finite() {
                    check(value);
                }
            }
        }
    }
}
