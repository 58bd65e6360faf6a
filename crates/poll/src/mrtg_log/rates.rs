//! From two values of a counter to a rate, as rateup computes it.

use super::{Log, LogUpdate, UNKNOWN, whole};

/// Longest time between two updates that makes a rate, seconds.
const PERIOD_MAX_S: i64 = 3600;
/// Number of values of a counter of 32 bits.
const WRAP: f64 = 4_294_967_296.0;
/// Begins the counter of a log without an update.
pub(super) const NO_VALUE: &[u8] = b"x";

/// Rules by which the values of a target become rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogRule {
    /// Kind of the values.
    pub kind: RateKind,
    /// Largest rate; a higher one is unknown.
    pub bound: i64,
    /// Rates that stand in for unknown ones.
    pub unknown: Unknown,
}

/// Kinds of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateKind {
    /// A counter; rates are per second.
    #[default]
    Counter,
    /// A counter; rates are per hour (`perhour`).
    PerHour,
    /// A counter; rates are per minute (`perminute`).
    PerMinute,
    /// A counter that each reading resets (`absolute`).
    Absolute,
    /// A value as it is (`gauge`).
    Gauge,
}

/// Rates that stand in for unknown ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// The rate of the newest row.
    #[default]
    Repeat,
    /// 0 (`unknaszero`).
    Zero,
}

impl Log {
    /// The rates of an update.
    pub(super) fn rates(&self, update: &LogUpdate) -> [i64; 2] {
        let newest = self.rows.first().map_or([0.0; 2], |row| row.rates);
        let instead = newest.map(|rate| match update.rule.unknown {
            Unknown::Repeat => whole(rate),
            Unknown::Zero => 0,
        });
        let period_s = update.now_s - self.last_s;
        if !(1..=PERIOD_MAX_S).contains(&period_s) || self.last[0].starts_with(NO_VALUE) {
            return [0, 1].map(|at| update.rule.bounded(instead[at], instead[at]));
        }
        [0, 1].map(|at| {
            let (now, before) = (update.values[at], &self.last[at][..]);
            let rate = update.rule.kind.rate(now, before, period_s as f64);
            let rate = rate.map_or(instead[at], |rate| whole(rate + 0.5));
            update.rule.bounded(rate, instead[at])
        })
    }
}

impl LogRule {
    fn bounded(&self, rate: i64, instead: i64) -> i64 {
        match (0..=self.bound).contains(&rate) {
            true => rate,
            false => instead,
        }
    }
}

impl RateKind {
    /// The rate between two values; `None`: one of them is unknown.
    fn rate(self, now: &[u8], before: &[u8], period_s: f64) -> Option<f64> {
        if now == UNKNOWN || before == UNKNOWN {
            return None;
        }
        let growth = || match difference(now, before)? {
            growth if growth >= 0.0 => Some(growth),
            wrapped if wrapped > -WRAP => Some(wrapped + WRAP),
            _ => Some(0.0),
        };
        let value = || difference(now, b"0");
        match self {
            RateKind::Counter => growth().map(|growth| growth / period_s),
            RateKind::PerHour => growth().map(|growth| growth * (3600.0 / period_s)),
            RateKind::PerMinute => growth().map(|growth| growth * (60.0 / period_s)),
            RateKind::Absolute => value().map(|value| value / period_s),
            RateKind::Gauge => value(),
        }
    }
}

/// `a - b`, digit by digit, with what rateup makes of signs: that of one number alone is ignored, and two negative ones change
/// places. `None`: one has no digit, as can only be in a damaged file; rateup reads beyond its end.
fn difference(a: &[u8], b: &[u8]) -> Option<f64> {
    let (a, b) = match (a.first(), b.first()) {
        (Some(b'-'), Some(b'-')) => (b, a),
        _ => (a, b),
    };
    let (a, b) = (from_digit(a)?, from_digit(b)?);
    let width = a.len().max(b.len());
    let mut digits = vec![0u8; width];
    let mut borrow = 0;
    for place in 0..width {
        let digit = |of: &[u8]| {
            let at = of.len().checked_sub(place + 1);
            i32::from(at.map_or(b'0', |at| of[at]).cast_signed())
        };
        let difference = digit(a) - digit(b) - borrow + i32::from(b'0');
        (digits[width - 1 - place], borrow) = one_digit(difference);
    }
    Some(match borrow {
        0 => number(&digits),
        _ => {
            complement(&mut digits);
            -number(&digits)
        }
    })
}

/// The digit of this character code, and 1 if the next place has to lend or take one.
fn one_digit(code: i32) -> (u8, i32) {
    let [low, ..] = code.to_le_bytes();
    match low.cast_signed() {
        under if under < b'0'.cast_signed() => (low.wrapping_add(10), 1),
        over if over > b'9'.cast_signed() => (low.wrapping_sub(10), 1),
        _ => (low, 0),
    }
}

/// Makes the complement of 10 of the last digits.
fn complement(digits: &mut [u8]) {
    let mut carry = 1;
    for digit in digits.iter_mut().rev() {
        if !digit.is_ascii_digit() {
            return;
        }
        *digit = b'9' - *digit + carry + b'0';
        carry = u8::from(*digit > b'9');
        if carry == 1 {
            *digit -= 10;
        }
    }
}

fn from_digit(text: &[u8]) -> Option<&[u8]> {
    let first = text.iter().position(u8::is_ascii_digit)?;
    Some(&text[first..])
}

/// The number that a text begins with, as C's atof reads digits and a point.
fn number(text: &[u8]) -> f64 {
    let mut has_point = false;
    let is_part = |byte: &&u8| match byte {
        b'.' if !has_point => {
            has_point = true;
            true
        }
        byte => byte.is_ascii_digit(),
    };
    let length = text.iter().take_while(is_part).count();
    let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
    text.parse().unwrap_or(0.0)
}
