//! Numbers as Perl computes with them: whole ones exactly while they fit into 64 bits, all others as doubles.

use super::whole;

/// Whole numbers beyond this lose digits as doubles; then Perl tries to divide them as whole numbers.
const DOUBLE_WHOLE_MAX: i128 = 1 << 53;

/// A number of Perl.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// A whole number of 64 bits, with or without a sign.
    Int(i128),
    /// Any other.
    Real(f64),
}

impl Default for Number {
    fn default() -> Number {
        Number::Int(0)
    }
}

impl Number {
    pub(super) fn real(self) -> f64 {
        match self {
            Number::Int(whole) => whole as f64,
            Number::Real(real) => real,
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self.real() == 0.0
    }

    /// As an `i64`; 0 if it does not fit.
    pub(super) fn whole(self) -> i64 {
        match self.settled() {
            Number::Int(whole) => i64::try_from(whole).unwrap_or(0),
            Number::Real(_) => 0,
        }
    }

    pub(super) fn times(self, other: Number) -> Number {
        self.both(other, i128::checked_mul, |a, b| a * b)
    }

    pub(super) fn plus(self, other: Number) -> Number {
        self.both(other, i128::checked_add, |a, b| a + b)
    }

    /// The quotient; `None` for a division by 0.
    pub(super) fn by(self, other: Number) -> Option<Number> {
        if other.is_zero() {
            return None;
        }
        if let (Number::Int(a), Number::Int(b)) = (self.settled(), other.settled())
            && a.abs() >= b.abs()
            && a.abs() > DOUBLE_WHOLE_MAX
            && a % b == 0
        {
            return Some(Number::Int(a / b));
        }
        Some(Number::Real(self.real() / other.real()))
    }

    fn both(
        self,
        other: Number,
        exact: fn(i128, i128) -> Option<i128>,
        double: fn(f64, f64) -> f64,
    ) -> Number {
        if let (Number::Int(a), Number::Int(b)) = (self.settled(), other.settled())
            && let Some(result) = exact(a, b).filter(|&result| fits(result))
        {
            return Number::Int(result);
        }
        Number::Real(double(self.real(), other.real()))
    }

    /// A double without a fraction counts as a whole number.
    fn settled(self) -> Number {
        match self {
            Number::Real(real) if real.fract() == 0.0 && real.abs() < DOUBLE_WHOLE_MAX as f64 => {
                Number::Int(whole(real).into())
            }
            number => number,
        }
    }
}

fn fits(whole: i128) -> bool {
    i64::try_from(whole).is_ok() || u64::try_from(whole).is_ok()
}

/// The words of a line, as Perl splits it: blanks in front make an empty first word.
pub(super) fn words(line: &[u8]) -> Vec<&[u8]> {
    let mut words: Vec<&[u8]> = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .take(8)
        .collect();
    if line.first().is_some_and(u8::is_ascii_whitespace) {
        words.insert(0, b"");
    }
    words
}

/// The number that a word begins with, or else 0.
pub(super) fn number_of(word: Option<&&[u8]>) -> Number {
    let word = word.copied().unwrap_or_default();
    let is_part = |byte: &&u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let length = word.iter().take_while(is_part).count();
    let text = std::str::from_utf8(&word[..length]).unwrap_or_default();
    let whole = text.parse::<i128>().ok().filter(|&whole| fits(whole));
    whole.map_or_else(|| Number::Real(text.parse().unwrap_or(0.0)), Number::Int)
}
