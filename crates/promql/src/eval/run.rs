//! Evaluation of an expression, node by node, each for all steps at once.

use kymo_series::Sample;

use crate::ast::{Aggregation, BinaryExpr, Expr};
use crate::eval::aggregate::{Fold, folded, quantiles};
use crate::eval::column::{Column, is_there};
use crate::eval::context::Context;
use crate::eval::error::EvalError;
use crate::eval::grid::Grid;
use crate::eval::histogram::check_shares;
use crate::eval::matching::Joining;
use crate::eval::merge::{merged, without_void};
use crate::eval::meter::Meter;
use crate::eval::operate::{Comparing, Side, scalars, with_scalar};
use crate::eval::rank::{Pick, count_values, picked};
use crate::eval::select::{Shown, instants};
use crate::eval::sets::{SetOp, combined};
use crate::eval::steady::is_steady;
use crate::operators::{AggregateOp, BinaryOp, UnaryOp};

/// The value of an expression at every step.
pub(crate) enum Evaluated {
    /// A number a step.
    Scalar(Vec<f64>),
    /// Series.
    Vector(Vec<Column>),
    /// A text.
    Text(String),
}

/// Evaluates expressions of one question.
pub(crate) struct Evaluator<'a> {
    pub(crate) context: &'a Context<'a>,
}

impl Evaluator<'_> {
    /// The value of an expression at every moment of a grid.
    pub(crate) fn eval(&self, expr: &Expr, grid: Grid) -> Result<Evaluated, EvalError> {
        self.context.meter.check()?;
        match grid.count > 1 && is_steady(expr) {
            true => self.spread(self.node(expr, grid.first())?, grid),
            false => self.node(expr, grid),
        }
    }

    /// The value of an instant vector.
    pub(crate) fn vector(&self, expr: &Expr, grid: Grid) -> Result<Vec<Column>, EvalError> {
        match self.eval(expr, grid)? {
            Evaluated::Vector(columns) => Ok(columns),
            Evaluated::Scalar(_) | Evaluated::Text(_) => Err(untyped()),
        }
    }

    /// The value of a scalar.
    pub(crate) fn scalar(&self, expr: &Expr, grid: Grid) -> Result<Vec<f64>, EvalError> {
        match self.eval(expr, grid)? {
            Evaluated::Scalar(values) => Ok(values),
            Evaluated::Vector(_) | Evaluated::Text(_) => Err(untyped()),
        }
    }

    fn node(&self, expr: &Expr, grid: Grid) -> Result<Evaluated, EvalError> {
        let meter = &self.context.meter;
        match expr {
            Expr::Number(number) => Ok(Evaluated::Scalar(meter.filled(grid, number.value)?)),
            Expr::String(string) => Ok(Evaluated::Text(string.value.clone())),
            Expr::Paren(paren) => self.eval(&paren.expr, grid),
            Expr::Unary(unary) => Ok(match (unary.op, self.eval(&unary.expr, grid)?) {
                (UnaryOp::Plus, value) => value,
                (UnaryOp::Minus, value) => negated(meter, value)?,
            }),
            Expr::Vector(selector) => {
                let columns = instants(self.context, selector, grid, Shown::Value)?;
                Ok(Evaluated::Vector(columns))
            }
            Expr::Aggregation(aggregation) => {
                Ok(Evaluated::Vector(self.aggregation(aggregation, grid)?))
            }
            Expr::Binary(binary) => self.binary(binary, grid),
            Expr::Call(call) => self.call(call, grid),
            Expr::Matrix(_) | Expr::Subquery(_) => Err(untyped()),
        }
    }

    /// Copies the value of one step to all.
    fn spread(&self, once: Evaluated, grid: Grid) -> Result<Evaluated, EvalError> {
        let spread = |values: &[f64]| {
            let value = values.first().copied().unwrap_or(f64::NAN);
            self.context.meter.release(values.len());
            self.context.meter.filled(grid, value)
        };
        Ok(match once {
            Evaluated::Scalar(values) => Evaluated::Scalar(spread(&values)?),
            Evaluated::Vector(mut columns) => {
                for column in &mut columns {
                    column.values = spread(&column.values)?;
                }
                Evaluated::Vector(columns)
            }
            Evaluated::Text(text) => Evaluated::Text(text),
        })
    }

    fn aggregation(&self, aggregation: &Aggregation, grid: Grid) -> Result<Vec<Column>, EvalError> {
        let (meter, grouping) = (&self.context.meter, &aggregation.grouping);
        let parameter = match &aggregation.parameter {
            Some(parameter) => Some((self.eval(parameter, grid)?, parameter.span())),
            None => None,
        };
        let columns = self.vector(aggregation.expr.unwrapped(), grid)?;
        let fold = match (aggregation.op, parameter) {
            (AggregateOp::TopK, Some((Evaluated::Scalar(counts), _))) => {
                meter.release(counts.len());
                return picked(meter, grid, columns, grouping, Pick::Largest, &counts);
            }
            (AggregateOp::BottomK, Some((Evaluated::Scalar(counts), _))) => {
                meter.release(counts.len());
                return picked(meter, grid, columns, grouping, Pick::Smallest, &counts);
            }
            (AggregateOp::Quantile, Some((Evaluated::Scalar(shares), span))) => {
                check_shares(self.context, &shares, span);
                meter.release(shares.len());
                return quantiles(meter, grid, columns, grouping, &shares);
            }
            (AggregateOp::CountValues, Some((Evaluated::Text(label), _))) => {
                return count_values(meter, grid, columns, grouping, &label);
            }
            (AggregateOp::Sum, _) => Fold::Sum,
            (AggregateOp::Avg, _) => Fold::Avg,
            (AggregateOp::Min, _) => Fold::Min,
            (AggregateOp::Max, _) => Fold::Max,
            (AggregateOp::Count, _) => Fold::Count,
            (AggregateOp::Group, _) => Fold::Group,
            (AggregateOp::Stddev, _) => Fold::Stddev,
            (AggregateOp::Stdvar, _) => Fold::Stdvar,
            (
                AggregateOp::TopK
                | AggregateOp::BottomK
                | AggregateOp::Quantile
                | AggregateOp::CountValues,
                _,
            ) => return Err(untyped()),
        };
        folded(meter, grid, columns, grouping, fold)
    }

    fn binary(&self, binary: &BinaryExpr, grid: Grid) -> Result<Evaluated, EvalError> {
        let (left, right) = (
            self.eval(&binary.left, grid)?,
            self.eval(&binary.right, grid)?,
        );
        let meter = &self.context.meter;
        let comparing = match binary.is_bool {
            true => Comparing::Answers,
            false => Comparing::Filters,
        };
        match (left, right) {
            (Evaluated::Scalar(mut left), Evaluated::Scalar(right)) => {
                scalars(binary.op, &mut left, &right);
                meter.release(right.len());
                Ok(Evaluated::Scalar(left))
            }
            (Evaluated::Vector(mut columns), Evaluated::Scalar(values)) => {
                with_scalar(binary.op, comparing, &mut columns, &values, Side::Left);
                meter.release(values.len());
                let columns = without_void(meter, columns);
                Ok(Evaluated::Vector(merged(meter, columns)?))
            }
            (Evaluated::Scalar(values), Evaluated::Vector(mut columns)) => {
                with_scalar(binary.op, comparing, &mut columns, &values, Side::Right);
                meter.release(values.len());
                let columns = without_void(meter, columns);
                Ok(Evaluated::Vector(merged(meter, columns)?))
            }
            (Evaluated::Vector(left), Evaluated::Vector(right)) => {
                let columns = self.vectors(binary, comparing, grid, left, right)?;
                Ok(Evaluated::Vector(columns))
            }
            (Evaluated::Text(_), _) | (_, Evaluated::Text(_)) => Err(untyped()),
        }
    }

    fn vectors(
        &self,
        binary: &BinaryExpr,
        comparing: Comparing,
        grid: Grid,
        left: Vec<Column>,
        right: Vec<Column>,
    ) -> Result<Vec<Column>, EvalError> {
        let meter = &self.context.meter;
        let matching = binary.matching.as_ref().ok_or_else(untyped)?;
        let set = match binary.op {
            BinaryOp::And => SetOp::And,
            BinaryOp::Or => SetOp::Or,
            BinaryOp::Unless => SetOp::Unless,
            op => {
                let joining = Joining {
                    meter,
                    grid,
                    op,
                    comparing,
                    matching,
                };
                return joining.join(left, right);
            }
        };
        combined(meter, grid, set, matching, left, right)
    }
}

/// The parser checks types, so that this is met by trees that were not parsed only.
pub(crate) fn untyped() -> EvalError {
    EvalError::Execution("the expression has a value of a wrong type".into())
}

fn negated(meter: &Meter, value: Evaluated) -> Result<Evaluated, EvalError> {
    let negate = |values: &mut [f64]| {
        let there = values.iter_mut().filter(|value| is_there(**value));
        there.for_each(|value| *value = -*value);
    };
    Ok(match value {
        Evaluated::Scalar(mut values) => {
            negate(&mut values);
            Evaluated::Scalar(values)
        }
        Evaluated::Vector(mut columns) => {
            for column in &mut columns {
                negate(&mut column.values);
                column.labels = column.labels.without_metric();
            }
            Evaluated::Vector(merged(meter, columns)?)
        }
        Evaluated::Text(_) => return Err(untyped()),
    })
}

/// The values of a column that are there, with their moments.
pub(crate) fn put_samples(values: &[f64], grid: Grid, samples: &mut Vec<Sample>) {
    samples.clear();
    let there = values.iter().enumerate().filter(|&(_, &v)| is_there(v));
    samples.extend(there.map(|(step, &v)| Sample {
        t_ms: grid.at(step),
        v,
    }));
}
