//! Decimal numbers of any size, with the arithmetic of Perl's Math::BigFloat, which MRTG uses.

use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;

/// `digits × 10^exponent`
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    digits: BigInt,
    exponent: i64,
}

/// Digits to which an inexact quotient is rounded.
const QUOTIENT_DIGITS: usize = 40;
/// Most digits in computations; MRTG refuses results of more than 190.
const DIGITS_MAX: i64 = 4096;

fn ten_to(exponent: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).unwrap_or(0))
}

impl Decimal {
    /// Parses `[-+]?digits[.digits]`, and nothing else.
    pub(super) fn parse(text: &[u8]) -> Option<Decimal> {
        let text = std::str::from_utf8(text).ok()?;
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
        let is_number = |text: &str| super::perl::is_digits(text.as_bytes());
        let has_fraction = text.contains('.');
        if !is_number(unsigned) || has_fraction && !is_number(fraction) {
            return None;
        }
        let digits = [whole, fraction].concat();
        Some(Decimal {
            digits: digits.parse().ok()?,
            exponent: -i64::try_from(fraction.len()).ok()?,
        })
    }

    /// Converts a double as Perl does: to 15 digits.
    pub(super) fn from_double(number: f64) -> Option<Decimal> {
        let text = format!("{number:.14e}");
        let (digits, exponent) = text.split_once('e')?;
        let mut decimal = Decimal::parse(digits.as_bytes())?;
        decimal.exponent += exponent.parse::<i64>().ok()?;
        Some(decimal)
    }

    pub(super) fn from_integer(number: i64) -> Decimal {
        Decimal {
            digits: number.into(),
            exponent: 0,
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.sign() == Sign::NoSign
    }

    pub(super) fn is_negative(&self) -> bool {
        self.digits.sign() == Sign::Minus
    }

    pub(super) fn negated(self) -> Decimal {
        Decimal {
            digits: -self.digits,
            ..self
        }
    }

    /// The digits of both numbers for the smaller exponent, and that exponent.
    fn aligned(&self, other: &Decimal) -> Option<(BigInt, BigInt, i64)> {
        let exponent = self.exponent.min(other.exponent);
        let at = |number: &Decimal| {
            let shift = number.exponent - exponent;
            (shift <= DIGITS_MAX).then(|| &number.digits * ten_to(shift))
        };
        Some((at(self)?, at(other)?, exponent))
    }

    pub(super) fn plus(&self, other: &Decimal) -> Option<Decimal> {
        let (left, right, exponent) = self.aligned(other)?;
        let digits = left + right;
        Some(Decimal { digits, exponent })
    }

    pub(super) fn times(&self, other: &Decimal) -> Option<Decimal> {
        let number = Decimal {
            digits: &self.digits * &other.digits,
            exponent: self.exponent + other.exponent,
        };
        number.within_bounds()
    }

    fn within_bounds(self) -> Option<Decimal> {
        let is_so = self.exponent.abs() <= DIGITS_MAX
            && self.digits.bits() < 4 * u64::try_from(DIGITS_MAX).unwrap_or(0);
        is_so.then_some(self)
    }

    /// Divides as Math::BigFloat 1.9998 does: computes a few digits more than needed, truncates, and rounds to 40 digits.
    pub(super) fn divided_by(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let (left, right) = (self.normalized(), other.normalized());
        let (left_len, right_len) = (left.digit_count(), right.digit_count());
        let longer = right_len.saturating_sub(left_len);
        let scale = (QUOTIENT_DIGITS + 4).max(left_len).max(right_len) + longer;
        let scale = i64::try_from(scale).ok()?;
        let quotient = Decimal {
            digits: left.digits * ten_to(scale) / right.digits,
            exponent: left.exponent - right.exponent - scale,
        };
        quotient.to_digits(QUOTIENT_DIGITS).within_bounds()
    }

    /// `self` to the power of an integer.
    pub(super) fn to_the(&self, exponent: i64) -> Option<Decimal> {
        let size = u32::try_from(exponent.unsigned_abs()).ok()?;
        let base = self.normalized();
        let bits = base.digits.bits().max(1).checked_mul(size.into())?;
        let shift = base.exponent.checked_mul(size.into())?;
        if bits > 4 * u64::try_from(DIGITS_MAX).ok()? || shift.abs() > DIGITS_MAX {
            return None;
        }
        let power = Decimal {
            digits: base.digits.pow(size),
            exponent: shift,
        };
        match exponent < 0 {
            true => Decimal::from_integer(1).divided_by(&power),
            false => Some(power),
        }
    }

    pub(super) fn compare(&self, other: &Decimal) -> Option<Ordering> {
        let (left, right, _) = self.aligned(other)?;
        Some(left.cmp(&right))
    }

    /// The integer part, rounded towards zero.
    pub(super) fn truncated(&self) -> Option<Decimal> {
        if self.exponent >= 0 {
            return Some(self.clone());
        }
        if -self.exponent > 2 * DIGITS_MAX {
            return None;
        }
        let digits = &self.digits / ten_to(-self.exponent);
        let exponent = 0;
        Some(Decimal { digits, exponent })
    }

    /// The nearest integer; a half goes to the even one.
    pub(super) fn rounded(&self) -> Option<Decimal> {
        match self.exponent >= 0 {
            true => Some(self.clone()),
            false if -self.exponent > 2 * DIGITS_MAX => None,
            false => Some(self.without_last(-self.exponent)),
        }
    }

    /// Rounds to at most `count` digits; a half goes to even.
    fn to_digits(&self, count: usize) -> Decimal {
        let excess = i64::try_from(self.digit_count().saturating_sub(count)).unwrap_or(0);
        self.without_last(excess)
    }

    fn without_last(&self, count: i64) -> Decimal {
        let unit = ten_to(count);
        let mut digits = &self.digits / &unit;
        let rest = &self.digits - &digits * &unit;
        let twice = rest.magnitude() * 2u32;
        let is_odd = digits.bit(0);
        let goes_away = match twice.cmp(unit.magnitude()) {
            Ordering::Less => false,
            Ordering::Equal => is_odd,
            Ordering::Greater => true,
        };
        if goes_away {
            digits += match self.is_negative() {
                true => -1,
                false => 1,
            };
        }
        Decimal {
            digits,
            exponent: self.exponent + count,
        }
    }

    fn digit_count(&self) -> usize {
        self.digits.magnitude().to_string().len()
    }

    /// Moves trailing zeros into the exponent, which leaves the number's value.
    fn normalized(&self) -> Decimal {
        let text = self.digits.magnitude().to_string();
        let zeros = text.len() - text.trim_end_matches('0').len();
        match zeros {
            _ if self.is_zero() => Decimal::from_integer(0),
            0 => self.clone(),
            zeros => {
                let zeros = i64::try_from(zeros).unwrap_or(0);
                Decimal {
                    digits: &self.digits / ten_to(zeros),
                    exponent: self.exponent + zeros,
                }
            }
        }
    }

    /// The number as an integer. `None`: it has a fraction, or is too large.
    pub(super) fn to_integer(&self) -> Option<i64> {
        let number = self.normalized();
        if number.exponent < 0 || number.exponent > 18 {
            return None;
        }
        i64::try_from(number.digits * ten_to(number.exponent)).ok()
    }

    /// Appends the number without an exponent.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let number = self.normalized();
        if number.is_negative() {
            out.push(b'-');
        }
        let mut text = number.digits.magnitude().to_string();
        let exponent = usize::try_from(number.exponent.unsigned_abs()).unwrap_or(0);
        if number.exponent >= 0 {
            text.extend(std::iter::repeat_n('0', exponent));
        } else {
            if text.len() <= exponent {
                text.insert_str(0, &"0".repeat(exponent + 1 - text.len()));
            }
            text.insert(text.len() - exponent, '.');
        }
        out.extend_from_slice(text.as_bytes());
    }
}
