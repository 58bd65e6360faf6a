//! Evaluation of expressions over a [`Reader`], with Prometheus' rules and results.
//!
//! An expression is evaluated node by node, each for all steps at once: a selector is read once for the whole range,
//! and a series is a column with a value a step. An instant is a range of one step.

mod aggregate;
mod calendar;
mod call;
mod column;
mod context;
mod edges;
mod elementwise;
mod error;
#[cfg(feature = "testing")]
pub(crate) mod fuzz;
mod grid;
mod histogram;
mod label_set;
mod matching;
mod merge;
mod meter;
mod note;
mod number;
mod operate;
mod over_time;
mod quantile;
mod range_call;
mod rank;
mod rate;
mod relabel;
mod rows;
mod run;
mod select;
mod sets;
mod steady;
mod sums;
mod window;

use kymo_series::{Reader, Sample};

use crate::ast::{Expr, ValueType};
use crate::duration::QueryTimes;
use column::is_there;
use context::Context;
use grid::{Grid, QuerySpan};
use run::{Evaluated, Evaluator, put_samples, untyped};

pub use context::Limits;
pub use error::EvalError;
pub use label_set::LabelSet;
pub use meter::Watch;
pub use note::{Note, NoteKind};

/// Answers questions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Engine {
    limits: Limits,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The value of the expression.
    pub value: Value,
    /// Doubts about the value.
    pub notes: Vec<Note>,
}

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number, at the moment that was asked for.
    Scalar(f64),
    /// A text.
    Text(String),
    /// Series with a value each, at the moment that was asked for: an instant vector.
    Vector(Vec<(LabelSet, f64)>),
    /// Series with samples, sorted by labels: a range vector, or the steps of a range.
    Matrix(Vec<Track>),
}

/// A series and its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// Labels; empty for a scalar.
    pub labels: LabelSet,
    /// Samples, by time.
    pub samples: Vec<Sample>,
}

impl Engine {
    /// An engine that keeps to limits.
    pub fn new(limits: Limits) -> Engine {
        Engine { limits }
    }

    /// The value of an expression at a moment.
    pub fn instant(
        &self,
        expr: &Expr,
        t_ms: i64,
        reader: &dyn Reader,
        watch: Watch,
    ) -> Result<Answer, EvalError> {
        let query = QuerySpan {
            from_ms: t_ms,
            thru_ms: t_ms,
            times: QueryTimes {
                step_ms: 0,
                range_ms: 0,
            },
        };
        let (context, grid) = (
            Context::new(self.limits, reader, query, watch),
            Grid::instant(t_ms),
        );
        let evaluator = Evaluator { context: &context };
        let value = match expr.value_type() {
            ValueType::Matrix => {
                let ranges = evaluator.ranges(expr.unwrapped(), grid)?.into_iter();
                let tracks = ranges.map(|(labels, samples)| Track { labels, samples });
                Value::Matrix(sorted(tracks.collect()))
            }
            ValueType::Scalar | ValueType::Vector | ValueType::String => {
                value_at(evaluator.eval(expr, grid)?)
            }
        };
        context.meter.check()?;
        Ok(Answer {
            value,
            notes: context.into_notes().take(),
        })
    }

    /// The values of an expression from one moment through another, as [`Value::Matrix`].
    pub fn range(
        &self,
        expr: &Expr,
        from_ms: i64,
        thru_ms: i64,
        step_ms: i64,
        reader: &dyn Reader,
        watch: Watch,
    ) -> Result<Answer, EvalError> {
        if !matches!(expr.value_type(), ValueType::Scalar | ValueType::Vector) {
            let found = expr.value_type().documented();
            return Err(EvalError::BadData(format!(
                "invalid expression type \"{found}\" for range query, must be Scalar or instant Vector"
            )));
        }
        let grid = Grid::range(from_ms, thru_ms, step_ms);
        let grid = grid.ok_or_else(|| {
            EvalError::BadData(
                "a range needs a step above 0 and an end that is not before its start".into(),
            )
        })?;
        let query = QuerySpan {
            from_ms,
            thru_ms,
            times: QueryTimes {
                step_ms,
                range_ms: thru_ms.saturating_sub(from_ms),
            },
        };
        let context = Context::new(self.limits, reader, query, watch);
        let evaluator = Evaluator { context: &context };
        let tracks = tracks(&context, evaluator.eval(expr, grid)?, grid)?;
        context.meter.check()?;
        Ok(Answer {
            value: Value::Matrix(tracks),
            notes: context.into_notes().take(),
        })
    }
}

/// The value of the only step.
fn value_at(evaluated: Evaluated) -> Value {
    let first = |values: &[f64]| values.first().copied();
    match evaluated {
        Evaluated::Text(text) => Value::Text(text),
        Evaluated::Scalar(values) => Value::Scalar(first(&values).unwrap_or(f64::NAN)),
        Evaluated::Vector(columns) => {
            let series = columns.into_iter();
            Value::Vector(
                series
                    .filter_map(|of| Some((of.labels, first(&of.values)?)))
                    .collect(),
            )
        }
    }
}

fn tracks(context: &Context, evaluated: Evaluated, grid: Grid) -> Result<Vec<Track>, EvalError> {
    let track = |labels, values: Vec<f64>| {
        let count = values.iter().filter(|&&value| is_there(value)).count();
        // A sample takes the memory of two values.
        context.meter.hold(count.saturating_mul(2))?;
        let mut samples = Vec::with_capacity(count);
        put_samples(&values, grid, &mut samples);
        context.meter.release(values.len());
        Ok(Track { labels, samples })
    };
    match evaluated {
        Evaluated::Scalar(values) => Ok(vec![track(LabelSet::empty(), values)?]),
        Evaluated::Vector(columns) => {
            let tracks = columns.into_iter();
            let tracks: Result<Vec<Track>, EvalError> = tracks
                .map(|column| track(column.labels, column.values))
                .collect();
            Ok(sorted(tracks?))
        }
        Evaluated::Text(_) => Err(untyped()),
    }
}

fn sorted(mut tracks: Vec<Track>) -> Vec<Track> {
    tracks.sort_by(|a, b| a.labels.cmp(&b.labels));
    tracks
}
