//! Functions of one value at a time.

use crate::eval::calendar::{Date, date, days_in_month, hour, minute};
use crate::eval::number::{larger, smaller, whole, whole_part};
use crate::functions::FunctionId;

/// The function of one value that a name stands for.
pub(crate) fn of_value(id: FunctionId) -> Option<fn(f64) -> f64> {
    Some(match id {
        FunctionId::Abs => f64::abs,
        FunctionId::Ceil => f64::ceil,
        FunctionId::Floor => f64::floor,
        FunctionId::Exp => f64::exp,
        FunctionId::Sqrt => f64::sqrt,
        FunctionId::Ln => f64::ln,
        FunctionId::Log2 => f64::log2,
        FunctionId::Log10 => f64::log10,
        FunctionId::Sin => f64::sin,
        FunctionId::Cos => f64::cos,
        FunctionId::Tan => f64::tan,
        FunctionId::Asin => f64::asin,
        FunctionId::Acos => f64::acos,
        FunctionId::Atan => f64::atan,
        FunctionId::Sinh => f64::sinh,
        FunctionId::Cosh => f64::cosh,
        FunctionId::Tanh => f64::tanh,
        FunctionId::Asinh => f64::asinh,
        FunctionId::Acosh => f64::acosh,
        FunctionId::Atanh => f64::atanh,
        FunctionId::Rad => |value| value * (std::f64::consts::PI / 180.0),
        FunctionId::Deg => |value| value * (180.0 / std::f64::consts::PI),
        FunctionId::Sgn => sign,
        _ => return None,
    })
}

fn sign(value: f64) -> f64 {
    match () {
        () if value < 0.0 => -1.0,
        () if value > 0.0 => 1.0,
        () => value,
    }
}

/// The function of a moment, in seconds, that a name stands for.
pub(crate) fn of_moment(id: FunctionId) -> Option<fn(f64) -> f64> {
    Some(match id {
        FunctionId::Minute => |t| of_seconds(t, minute),
        FunctionId::Hour => |t| of_seconds(t, hour),
        FunctionId::DayOfMonth => |t| of_date(t, |date| date.day),
        FunctionId::DayOfWeek => |t| of_date(t, |date| date.weekday),
        FunctionId::DayOfYear => |t| of_date(t, |date| date.day_of_year),
        FunctionId::DaysInMonth => |t| of_date(t, |date| days_in_month(date.year, date.month)),
        FunctionId::Month => |t| of_date(t, |date| date.month),
        FunctionId::Year => |t| of_date(t, |date| date.year),
        _ => return None,
    })
}

fn of_date(t: f64, part: fn(Date) -> i64) -> f64 {
    whole(part(date(moment(t))))
}

fn of_seconds(t: f64, part: fn(i64) -> i64) -> f64 {
    whole(part(moment(t)))
}

/// Seconds since 1970. Whatever is no such number, NaN too, has the last date of all, as in Go on x86_64.
fn moment(t: f64) -> i64 {
    whole_part(t).unwrap_or(i64::MAX)
}

/// `clamp`
pub(crate) fn clamped(value: f64, min: f64, max: f64) -> f64 {
    larger(min, smaller(max, value))
}

/// `round`: to the nearest multiple, halves up.
pub(crate) fn rounded(value: f64, to: f64) -> f64 {
    // Fewer rounding errors than a division by `to` has.
    let inverse = 1.0 / to;
    (value * inverse + 0.5).floor() / inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_moments() {
        let value = |id, value| of_value(id).map(|function| function(value));
        assert_eq!(value(FunctionId::Sgn, -5.0), Some(-1.0));
        assert_eq!(value(FunctionId::Deg, std::f64::consts::PI), Some(180.0));
        assert_eq!(value(FunctionId::Hour, 1.0), None);
        let moment = |id, t| of_moment(id).map(|function| function(t));
        for (id, expected) in [
            (FunctionId::Minute, 46.0),
            (FunctionId::Hour, 23.0),
            (FunctionId::DayOfMonth, 29.0),
            (FunctionId::DaysInMonth, 29.0),
            (FunctionId::Month, 2.0),
            (FunctionId::Year, 2000.0),
        ] {
            assert_eq!(moment(id, 951_868_000.9), Some(expected));
        }
        let year = moment(FunctionId::Year, f64::NAN);
        assert_eq!(year, Some(292_277_026_596.0));
    }

    #[test]
    fn values_within_bounds() {
        assert_eq!((clamped(5.0, 1.0, 3.0), clamped(0.0, 1.0, 3.0)), (3.0, 1.0));
        assert!(clamped(f64::NAN, 1.0, 3.0).is_nan());
        assert_eq!(
            (rounded(2.5, 1.0), rounded(-2.5, 1.0), rounded(5.2, 0.5)),
            (3.0, -2.0, 5.0)
        );
    }
}
