//! Durations of ranges, steps and offsets: fixed ones, and those computed from the times of the query, such as
//! `step() * 2`.

use std::fmt;

use crate::number::{DURATION_MS_MAX, NumberLiteral, seconds_of, whole};
use crate::span::Span;

/// A duration.
#[derive(Clone, Debug, PartialEq)]
pub enum Duration {
    /// Milliseconds.
    Fixed(i64),
    /// Known when the query's times are.
    Computed(Box<DurationExpr>),
}

/// Arithmetic of durations.
#[derive(Clone, Debug, PartialEq)]
pub enum DurationExpr {
    /// Seconds.
    Number(NumberLiteral),
    /// `step()`
    Step(Span),
    /// `range()`
    Range(Span),
    /// `-x`
    Negative(Box<DurationExpr>, Span),
    /// `x + y`, `min_of(x, y)`
    Binary(DurationOp, Box<(DurationExpr, DurationExpr)>, Span),
    /// `(x)`
    Paren(Box<DurationExpr>, Span),
}

/// An operator of two durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `^`
    Power,
    /// `min_of`
    Min,
    /// `max_of`
    Max,
}

/// Times of a query that durations may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryTimes {
    /// Between two steps; 0 for an instant.
    pub step_ms: i64,
    /// From the first step to the last; 0 for an instant.
    pub range_ms: i64,
}

/// Why a duration has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationError {
    /// Where it stands.
    pub span: Span,
    /// For people.
    pub message: &'static str,
}

impl fmt::Display for DurationError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Span { start, end } = self.span;
        write!(out, "{start}:{end}: {}", self.message)
    }
}

impl std::error::Error for DurationError {}

impl Duration {
    /// No time.
    pub const ZERO: Duration = Duration::Fixed(0);

    /// Milliseconds of an offset, which may be negative.
    pub fn offset_ms(&self, times: QueryTimes) -> Result<i64, DurationError> {
        match self {
            Duration::Fixed(ms) => Ok(*ms),
            Duration::Computed(expr) => milliseconds(expr, times),
        }
    }

    /// Milliseconds of a range or a step, above 0.
    pub fn length_ms(&self, times: QueryTimes) -> Result<i64, DurationError> {
        match self {
            Duration::Fixed(ms) => Ok(*ms),
            Duration::Computed(expr) => match milliseconds(expr, times)? {
                ms if ms > 0 => Ok(ms),
                _ => Err(expr.error("duration must be greater than 0")),
            },
        }
    }
}

fn milliseconds(expr: &DurationExpr, times: QueryTimes) -> Result<i64, DurationError> {
    let seconds = expr.seconds(times)?;
    if !seconds.is_finite() {
        return Err(expr.error("duration is NaN or infinite"));
    }
    match whole(seconds * 1000.0) {
        ms if ms.unsigned_abs() <= DURATION_MS_MAX.unsigned_abs() => Ok(ms),
        _ => Err(expr.error("duration is out of range")),
    }
}

impl DurationExpr {
    /// The bytes in the text.
    pub fn span(&self) -> Span {
        match self {
            DurationExpr::Number(number) => number.span,
            DurationExpr::Step(span)
            | DurationExpr::Range(span)
            | DurationExpr::Negative(_, span)
            | DurationExpr::Binary(_, _, span)
            | DurationExpr::Paren(_, span) => *span,
        }
    }

    fn error(&self, message: &'static str) -> DurationError {
        DurationError {
            span: self.span(),
            message,
        }
    }

    fn seconds(&self, times: QueryTimes) -> Result<f64, DurationError> {
        match self {
            DurationExpr::Number(number) => Ok(number.value),
            DurationExpr::Step(_) => Ok(seconds_of(times.step_ms)),
            DurationExpr::Range(_) => Ok(seconds_of(times.range_ms)),
            DurationExpr::Negative(inner, _) => Ok(-inner.seconds(times)?),
            DurationExpr::Paren(inner, _) => inner.seconds(times),
            DurationExpr::Binary(op, sides, _) => {
                let (left, right) = (sides.0.seconds(times)?, sides.1.seconds(times)?);
                op.apply(left, right).map_err(|message| self.error(message))
            }
        }
    }
}

impl DurationOp {
    /// As it is written.
    pub fn text(self) -> &'static str {
        match self {
            DurationOp::Add => "+",
            DurationOp::Subtract => "-",
            DurationOp::Multiply => "*",
            DurationOp::Divide => "/",
            DurationOp::Modulo => "%",
            DurationOp::Power => "^",
            DurationOp::Min => "min_of",
            DurationOp::Max => "max_of",
        }
    }

    fn apply(self, left: f64, right: f64) -> Result<f64, &'static str> {
        match self {
            DurationOp::Add => Ok(left + right),
            DurationOp::Subtract => Ok(left - right),
            DurationOp::Multiply => Ok(left * right),
            DurationOp::Divide if right == 0.0 => Err("division by zero"),
            DurationOp::Divide => Ok(left / right),
            DurationOp::Modulo if right == 0.0 => Err("modulo by zero"),
            DurationOp::Modulo => Ok(left % right),
            DurationOp::Power => Ok(left.powf(right)),
            // As in Go, NaN wins.
            DurationOp::Min | DurationOp::Max if left.is_nan() || right.is_nan() => Ok(f64::NAN),
            DurationOp::Min => Ok(left.min(right)),
            DurationOp::Max => Ok(left.max(right)),
        }
    }
}
