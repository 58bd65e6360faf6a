//! Formats doubles like a dump: `%0.10e`, but different from the C library's.
//!
//! rrdtool has its own printf for dumps. It scales by powers of ten that it computes by multiplication and rounds at
//! each step, so that the last digit is sometimes off by one. It also omits the minus of zero. This module repeats its
//! steps.

use std::io::Write;

/// Digits behind the decimal point.
const DIGITS: usize = 10;
/// Ten to the power of DIGITS.
const SCALE: u64 = 10_000_000_000;
/// `DBL_MIN_10_EXP` and `DBL_MAX_10_EXP`.
const EXPONENT_MIN: i32 = -307;
const EXPONENT_MAX: i32 = 308;

/// Appends a number that is not NaN.
pub(crate) fn put(value: f64, out: &mut Vec<u8>) {
    if value < 0.0 {
        out.push(b'-');
    }
    if value.is_infinite() {
        return out.extend_from_slice(b"inf");
    }
    let mut exponent = exponent_of(value.abs());
    let value = value.abs() / power_of_ten(exponent);
    let mut whole = value as u64;
    let mut fraction = round(SCALE as f64 * (value - whole as f64));
    if fraction >= SCALE {
        (whole, fraction) = (whole + 1, 0);
        if whole == 10 {
            (whole, exponent) = (1, exponent + 1);
        }
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let exponent = exponent.unsigned_abs();
    // Writing to a Vec does not fail.
    let _ = write!(out, "{whole}.{fraction:0DIGITS$}e{sign}{exponent:02}");
}

/// The decimal exponent, found by repeated divisions or multiplications.
fn exponent_of(mut value: f64) -> i32 {
    let mut exponent = 0;
    while value < 1.0 && value > 0.0 {
        exponent -= 1;
        if exponent < EXPONENT_MIN {
            break;
        }
        value *= 10.0;
    }
    while value >= 10.0 {
        exponent += 1;
        if exponent > EXPONENT_MAX {
            break;
        }
        value /= 10.0;
    }
    exponent
}

/// Ten to this power, by repeated multiplications or divisions.
fn power_of_ten(exponent: i32) -> f64 {
    (0..exponent.unsigned_abs()).fold(1.0, |power, _| {
        if exponent > 0 {
            power * 10.0
        } else {
            power / 10.0
        }
    })
}

/// Rounds to the nearest whole number, halves up.
fn round(value: f64) -> u64 {
    let whole = value as u64;
    if value - (whole as f64) < 0.5 {
        whole
    } else {
        whole + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_in_a_dump() {
        let cases = [
            (0.0, "0.0000000000e+00"),
            (-0.0, "0.0000000000e+00"),
            (1.0, "1.0000000000e+00"),
            (-12.5, "-1.2500000000e+01"),
            (9.99999999999, "1.0000000000e+01"),
            (1e308, "1.0000000000e+308"),
            (5e-324, "0.0000000000e-308"),
            (70303.25995850, "7.0303259959e+04"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, expected) in cases {
            let mut out = Vec::new();
            put(value, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }
}
