//! Operators of two numbers.

use crate::eval::column::{Column, is_missing, missing};
use crate::operators::BinaryOp;

/// How a comparison of series answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparing {
    /// Values of which it is not true are left out.
    Filters,
    /// 1 or 0 (`bool`).
    Answers,
}

impl Comparing {
    /// True if a result is no longer a value of its metric.
    pub(crate) fn drops_metric(self, op: BinaryOp) -> bool {
        !op.is_comparison() || self == Comparing::Answers
    }
}

/// Result of an operator: a number, or of a comparison 1 or 0.
pub(crate) fn number(op: BinaryOp, left: f64, right: f64) -> f64 {
    let truth = |is_true: bool| if is_true { 1.0 } else { 0.0 };
    match op {
        BinaryOp::Add => left + right,
        BinaryOp::Subtract => left - right,
        BinaryOp::Multiply => left * right,
        BinaryOp::Divide => left / right,
        BinaryOp::Modulo => left % right,
        BinaryOp::Power => left.powf(right),
        BinaryOp::Atan2 => left.atan2(right),
        BinaryOp::Equal => truth(left == right),
        BinaryOp::NotEqual => truth(left != right),
        BinaryOp::Less => truth(left < right),
        BinaryOp::LessOrEqual => truth(left <= right),
        BinaryOp::Greater => truth(left > right),
        BinaryOp::GreaterOrEqual => truth(left >= right),
        // The parser takes these for series only.
        BinaryOp::And | BinaryOp::Or | BinaryOp::Unless => f64::NAN,
    }
}

/// Result for two series, of which `kept` is the value that a comparison keeps.
#[inline]
pub(crate) fn of_series(
    op: BinaryOp,
    comparing: Comparing,
    left: f64,
    right: f64,
    kept: f64,
) -> f64 {
    let result = number(op, left, right);
    match comparing {
        Comparing::Filters if op.is_comparison() => {
            if result == 1.0 {
                kept
            } else {
                missing()
            }
        }
        Comparing::Filters | Comparing::Answers => result,
    }
}

/// On which side of an operator the series stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Series and a scalar. Some may have no value then.
pub(crate) fn with_scalar(
    op: BinaryOp,
    comparing: Comparing,
    columns: &mut [Column],
    scalars: &[f64],
    side: Side,
) {
    for column in columns.iter_mut() {
        for (value, &scalar) in column.values.iter_mut().zip(scalars) {
            if is_missing(*value) {
                continue;
            }
            let (left, right) = match side {
                Side::Left => (*value, scalar),
                Side::Right => (scalar, *value),
            };
            *value = of_series(op, comparing, left, right, *value);
        }
        if comparing.drops_metric(op) {
            column.labels = column.labels.without_metric();
        }
    }
}

/// Two scalars.
pub(crate) fn scalars(op: BinaryOp, left: &mut [f64], right: &[f64]) {
    for (left, &right) in left.iter_mut().zip(right) {
        *left = number(op, *left, right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::label_set::LabelSet;

    #[test]
    fn comparisons_keep_values_or_answer() {
        let column = || Column {
            labels: LabelSet::new(&[("__name__", "x"), ("a", "1")]),
            values: vec![1.0, 3.0, missing()],
        };
        for (op, comparing, side, expected, is_named) in [
            (
                BinaryOp::Greater,
                Comparing::Filters,
                Side::Left,
                [None, Some(3.0), None],
                true,
            ),
            (
                BinaryOp::Less,
                Comparing::Filters,
                Side::Right,
                [None, Some(3.0), None],
                true,
            ),
            (
                BinaryOp::Greater,
                Comparing::Answers,
                Side::Left,
                [Some(0.0), Some(1.0), None],
                false,
            ),
            (
                BinaryOp::Subtract,
                Comparing::Filters,
                Side::Right,
                [Some(1.0), Some(-1.0), None],
                false,
            ),
        ] {
            let mut columns = vec![column()];
            with_scalar(op, comparing, &mut columns, &[2.0; 3], side);
            let values = columns[0]
                .values
                .iter()
                .map(|&value| (!is_missing(value)).then_some(value));
            assert_eq!(values.collect::<Vec<_>>(), expected);
            assert_eq!(columns[0].labels.metric() == "x", is_named);
        }
        let mut none = [column()];
        with_scalar(
            BinaryOp::Equal,
            Comparing::Filters,
            &mut none,
            &[f64::NAN; 3],
            Side::Left,
        );
        assert!(none[0].is_void());
    }

    #[test]
    fn numbers_meet() {
        for (op, left, right, expected) in [
            (BinaryOp::Modulo, -5.0, 3.0, -2.0),
            (BinaryOp::Power, 2.0, 10.0, 1024.0),
            (BinaryOp::Divide, 1.0, 0.0, f64::INFINITY),
            (BinaryOp::NotEqual, f64::NAN, f64::NAN, 1.0),
        ] {
            assert_eq!(number(op, left, right), expected);
        }
    }
}
