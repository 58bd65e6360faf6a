//! Functions of operators. The order of numbers is that of rrd_rpncalc, which is no order with infinities, so the
//! sort has to be the C library's merge sort.

use super::op;
use crate::UNKNOWN;

pub(super) fn unary(op: u8) -> Option<fn(f64) -> f64> {
    Some(match op {
        op::SIN => f64::sin,
        op::COS => f64::cos,
        op::ATAN => f64::atan,
        op::LOG => f64::ln,
        op::EXP => f64::exp,
        op::SQRT => f64::sqrt,
        op::ABS => f64::abs,
        op::CEIL => f64::ceil,
        op::FLOOR => f64::floor,
        op::ROUND => f64::round,
        op::RAD2DEG => |value| 57.295_779_51 * value,
        op::DEG2RAD => |value| 0.017_453_295_2 * value,
        op::UN => |value| truth(value.is_nan()),
        op::ISINF => |value| truth(value.is_infinite()),
        _ => return None,
    })
}

pub(super) fn binary(op: u8) -> Option<fn(f64, f64) -> f64> {
    Some(match op {
        op::ADD => |a, b| arithmetic(a, b, a + b),
        op::SUB => |a, b| arithmetic(a, b, a - b),
        op::MUL => |a, b| arithmetic(a, b, a * b),
        op::DIV => |a, b| arithmetic(a, b, a / b),
        op::MOD => |a, b| a % b,
        op::POW => f64::powf,
        op::ATAN2 => f64::atan2,
        op::ADDNAN => |a, b| {
            if a.is_nan() {
                b
            } else if b.is_nan() {
                a
            } else {
                arithmetic(a, b, a + b)
            }
        },
        op::LT => |a, b| unknown_of(a, b).unwrap_or(truth(a < b)),
        op::LE => |a, b| unknown_of(a, b).unwrap_or(truth(a <= b)),
        op::GT => |a, b| unknown_of(a, b).unwrap_or(truth(a > b)),
        op::GE => |a, b| unknown_of(a, b).unwrap_or(truth(a >= b)),
        op::EQ => |a, b| unknown_of(a, b).unwrap_or(truth(a == b)),
        op::NE => |a, b| unknown_of(a, b).unwrap_or(truth(a != b)),
        op::MIN => |a, b| unknown_of(a, b).unwrap_or(if a > b { b } else { a }),
        op::MAX => |a, b| unknown_of(a, b).unwrap_or(if a < b { b } else { a }),
        op::MINNAN => |a, b| if a.is_nan() || a > b { b } else { a },
        op::MAXNAN => |a, b| if a.is_nan() || a < b { b } else { a },
        _ => return None,
    })
}

pub(super) fn choose(op: u8, [first, second, third]: [f64; 3]) -> f64 {
    if op == op::IF {
        let is_false = first.is_nan() || first == 0.0;
        return if is_false { third } else { second };
    }
    let unknown = [first, second, third]
        .into_iter()
        .find(|value| value.is_nan());
    match unknown {
        Some(unknown) => unknown,
        None if first < second || first > third => UNKNOWN,
        None => first,
    }
}

fn truth(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}

/// The first of two values that is NaN.
pub(super) fn unknown_of(a: f64, b: f64) -> Option<f64> {
    [a, b].into_iter().find(|value| value.is_nan())
}

/// Result of an arithmetic instruction. The processor, not the language, decides on the NaN of two, and sets the
/// sign of a new one.
fn arithmetic(a: f64, b: f64, result: f64) -> f64 {
    if result.is_nan() {
        unknown_of(a, b).unwrap_or(UNKNOWN)
    } else {
        result
    }
}

pub(super) fn average(values: &[f64]) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for value in values.iter().rev().filter(|value| !value.is_nan()) {
        sum += value;
        count += 1;
    }
    if count > 0 {
        sum / f64::from(count)
    } else {
        UNKNOWN
    }
}

/// Median of the known values, which are swapped to the front first.
pub(super) fn median(below: f64, values: &mut [f64]) -> f64 {
    let (mut good, mut count) = (0, values.len());
    let mut bad = count.saturating_sub(1);
    while good < bad {
        if values[good].is_nan() {
            values[good] = values[bad];
            bad -= 1;
            count -= 1;
        } else {
            good += 1;
        }
    }
    if values.get(good).is_some_and(|value| value.is_nan()) {
        count -= 1;
    }
    if count == 0 {
        // As in rrdtool, this is the mean of two values at wrong places: the first one, and the one below.
        return values
            .first()
            .map_or(UNKNOWN, |&first| unknown_of(below, first).unwrap_or(first));
    }
    sort(&mut values[..count]);
    if count % 2 == 1 {
        values[count / 2]
    } else {
        0.5 * (values[count / 2] + values[count / 2 - 1])
    }
}

pub(super) fn deviation(values: &[f64]) -> f64 {
    let (mut count, mut mean, mut squares) = (0, 0.0, 0.0);
    for value in values.iter().rev().filter(|value| !value.is_nan()) {
        count += 1;
        let delta = value - mean;
        mean += delta / f64::from(count);
        squares += delta * (value - mean);
    }
    if count < 2 {
        UNKNOWN
    } else {
        (squares / f64::from(count - 1)).sqrt()
    }
}

pub(super) fn extreme(values: &[f64], beyond: fn(f64, f64) -> bool) -> f64 {
    let mut found = UNKNOWN;
    for &value in values.iter().rev() {
        if found.is_nan() || beyond(value, found) {
            found = value;
        }
    }
    found
}

/// True if `a` comes after `b`. NaNs come first. An infinity decides by its own sign: 5 comes after infinity, and
/// infinity after 5.
fn is_after(a: f64, b: f64) -> bool {
    if a.is_nan() {
        return false;
    }
    if b.is_nan() {
        return true;
    }
    if a.is_infinite() {
        return a > 0.0;
    }
    if b.is_infinite() {
        return b > 0.0;
    }
    a - b > 0.0
}

/// The C library's merge sort: as the order is inconsistent, its steps determine the result.
pub(super) fn sort(values: &mut [f64]) {
    if values.len() < 2 {
        return;
    }
    let (left, right) = values.split_at_mut(values.len() / 2);
    sort(left);
    sort(right);
    let (left, right) = (left.to_vec(), right.to_vec());
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    for value in values {
        let from_right = match (left.peek(), right.peek()) {
            (Some(&&a), Some(&&b)) => is_after(a, b),
            (None, _) => true,
            (_, None) => false,
        };
        let next = if from_right {
            right.next()
        } else {
            left.next()
        };
        *value = next.copied().unwrap_or(UNKNOWN);
    }
}
