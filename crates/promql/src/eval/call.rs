//! Functions of instant vectors and scalars.

use crate::ast::{Call, Expr, Span};
use crate::duration::Duration;
use crate::eval::column::{Column, is_there, missing};
use crate::eval::elementwise::{clamped, of_moment, of_value, rounded};
use crate::eval::error::EvalError;
use crate::eval::grid::Grid;
use crate::eval::histogram::{HistogramQuery, check_shares, of_histograms};
use crate::eval::label_set::LabelSet;
use crate::eval::merge::{merged, without_void};
use crate::eval::number::seconds;
use crate::eval::rank::Pick;
use crate::eval::relabel::{Replacement, joined};
use crate::eval::run::{Evaluated, Evaluator, untyped};
use crate::eval::select::{Shown, instants};
use crate::functions::FunctionId;

impl Evaluator<'_> {
    /// The value of a function.
    pub(crate) fn call(&self, call: &Call, grid: Grid) -> Result<Evaluated, EvalError> {
        let vector = match call.function.id {
            FunctionId::Time => {
                let mut values = self.context.meter.filled(grid, 0.0)?;
                put_moments(&mut values, grid);
                return Ok(Evaluated::Scalar(values));
            }
            FunctionId::Pi => {
                let values = self.context.meter.filled(grid, std::f64::consts::PI)?;
                return Ok(Evaluated::Scalar(values));
            }
            FunctionId::Scalar => {
                let columns = self.vector(arg(call, 0)?, grid)?;
                return Ok(Evaluated::Scalar(self.only(columns, grid)?));
            }
            FunctionId::Vector => vec![Column {
                labels: LabelSet::empty(),
                values: self.scalar(arg(call, 0)?, grid)?,
            }],
            FunctionId::Absent => {
                let of = arg(call, 0)?;
                self.absent(self.vector(of, grid)?, grid, of)?
            }
            FunctionId::Sort => self.sorted(call, grid, Pick::Smallest)?,
            FunctionId::SortDesc => self.sorted(call, grid, Pick::Largest)?,
            FunctionId::Timestamp => self.moments(arg(call, 0)?, grid)?,
            FunctionId::LabelReplace => self.label_replace(call, grid)?,
            FunctionId::LabelJoin => self.label_join(call, grid)?,
            FunctionId::Clamp | FunctionId::ClampMin | FunctionId::ClampMax => {
                self.clamp(call, grid)?
            }
            FunctionId::Round => self.round(call, grid)?,
            FunctionId::HistogramQuantile => self.histogram_quantile(call, grid)?,
            FunctionId::HistogramFraction => self.histogram_fraction(call, grid)?,
            id => match (of_value(id), of_moment(id)) {
                (Some(function), _) => {
                    self.mapped(arg(call, 0)?, grid, |_, value| function(value))?
                }
                (None, Some(function)) => self.calendar(call, grid, function)?,
                (None, None) => self.range_call(call, grid)?,
            },
        };
        Ok(Evaluated::Vector(vector))
    }

    /// The series of a vector with other values, which are no longer those of their metric.
    fn mapped(
        &self,
        vector: &Expr,
        grid: Grid,
        function: impl Fn(usize, f64) -> f64,
    ) -> Result<Vec<Column>, EvalError> {
        let mut columns = self.vector(vector, grid)?;
        for column in &mut columns {
            self.context.meter.worked(grid.count)?;
            for (step, value) in column.values.iter_mut().enumerate() {
                if is_there(*value) {
                    *value = function(step, *value);
                }
            }
            column.labels = column.labels.without_metric();
        }
        merged(&self.context.meter, columns)
    }

    fn calendar(
        &self,
        call: &Call,
        grid: Grid,
        function: fn(f64) -> f64,
    ) -> Result<Vec<Column>, EvalError> {
        if let Some(of) = call.args.first() {
            return self.mapped(of.unwrapped(), grid, |_, value| function(value));
        }
        let mut values = self.context.meter.filled(grid, 0.0)?;
        put_moments(&mut values, grid);
        values
            .iter_mut()
            .for_each(|value| *value = function(*value));
        Ok(vec![Column {
            labels: LabelSet::empty(),
            values,
        }])
    }

    /// The value of the only series at each step; NaN: there is not exactly one.
    fn only(&self, columns: Vec<Column>, grid: Grid) -> Result<Vec<f64>, EvalError> {
        let mut values = self.context.meter.filled(grid, f64::NAN)?;
        let mut is_found = vec![false; grid.count];
        for column in &columns {
            let found = values.iter_mut().zip(&mut is_found);
            for ((value, is_found), &new) in found.zip(&column.values) {
                if is_there(new) {
                    *value = if *is_found { f64::NAN } else { new };
                    *is_found = true;
                }
            }
        }
        self.context.meter.drop_all(columns);
        Ok(values)
    }

    fn sorted(&self, call: &Call, grid: Grid, first: Pick) -> Result<Vec<Column>, EvalError> {
        let mut columns = self.vector(arg(call, 0)?, grid)?;
        if grid.count > 1 {
            self.context.warn(
                "sort is ineffective for range queries since results are always ordered by labels",
                call.span,
            );
            return Ok(columns);
        }
        let value = |column: &Column| column.values.first().copied().unwrap_or(f64::NAN);
        columns.sort_by(|a, b| first.order(value(a), value(b)));
        Ok(columns)
    }

    /// Moments of the samples of a selector, or of the steps.
    fn moments(&self, of: &Expr, grid: Grid) -> Result<Vec<Column>, EvalError> {
        let Expr::Vector(selector) = of else {
            return self.mapped(of, grid, |step, _| seconds(grid.at(step)));
        };
        let mut selector = selector.clone();
        if selector.at.is_some() {
            // Prometheus forgets the offset in this case.
            selector.offset = Duration::ZERO;
        }
        let mut columns = instants(self.context, &selector, grid, Shown::Moment)?;
        for column in &mut columns {
            column.labels = column.labels.without_metric();
        }
        merged(&self.context.meter, columns)
    }

    fn label_replace(&self, call: &Call, grid: Grid) -> Result<Vec<Column>, EvalError> {
        let replacement = Replacement {
            label: text(call, 1)?,
            value: text(call, 2)?,
            source: text(call, 3)?,
            expression: text(call, 4)?,
        };
        let columns = self.vector(arg(call, 0)?, grid)?;
        replacement.replace(&self.context.meter, columns)
    }

    fn label_join(&self, call: &Call, grid: Grid) -> Result<Vec<Column>, EvalError> {
        let (label, separator) = (text(call, 1)?, text(call, 2)?);
        let sources: Result<Vec<&str>, EvalError> =
            (3..call.args.len()).map(|at| text(call, at)).collect();
        let columns = self.vector(arg(call, 0)?, grid)?;
        joined(&self.context.meter, columns, label, separator, &sources?)
    }

    fn clamp(&self, call: &Call, grid: Grid) -> Result<Vec<Column>, EvalError> {
        let (min, max) = match call.function.id {
            FunctionId::ClampMin => (Some(1), None),
            FunctionId::ClampMax => (None, Some(1)),
            _ => (Some(1), Some(2)),
        };
        let bound = |at: Option<usize>, none: f64| match at {
            Some(at) => self.scalar(arg(call, at)?, grid),
            None => self.context.meter.filled(grid, none),
        };
        let (min, max) = (bound(min, f64::NEG_INFINITY)?, bound(max, f64::INFINITY)?);
        let of = |values: &[f64], step: usize| values.get(step).copied().unwrap_or(f64::NAN);
        let columns = self.mapped(arg(call, 0)?, grid, |step, value| {
            let (min, max) = (of(&min, step), of(&max, step));
            match max < min {
                true => missing(),
                false => clamped(value, min, max),
            }
        })?;
        self.context.meter.release(min.len() + max.len());
        Ok(without_void(&self.context.meter, columns))
    }

    fn round(&self, call: &Call, grid: Grid) -> Result<Vec<Column>, EvalError> {
        let to = match call.args.get(1) {
            Some(to) => self.scalar(to, grid)?,
            None => self.context.meter.filled(grid, 1.0)?,
        };
        let columns = self.mapped(arg(call, 0)?, grid, |step, value| {
            rounded(value, to.get(step).copied().unwrap_or(f64::NAN))
        })?;
        self.context.meter.release(to.len());
        Ok(columns)
    }

    fn histogram_quantile(&self, call: &Call, grid: Grid) -> Result<Vec<Column>, EvalError> {
        let shares = self.scalar(arg(call, 0)?, grid)?;
        let place = span(call, 0);
        check_shares(self.context, &shares, place);
        let columns = self.vector(arg(call, 1)?, grid)?;
        let place = span(call, 1);
        let query = HistogramQuery::Quantile(&shares);
        let results = of_histograms(self.context, grid, columns, query, place)?;
        self.context.meter.release(shares.len());
        Ok(results)
    }

    fn histogram_fraction(&self, call: &Call, grid: Grid) -> Result<Vec<Column>, EvalError> {
        let lower = self.scalar(arg(call, 0)?, grid)?;
        let upper = self.scalar(arg(call, 1)?, grid)?;
        let columns = self.vector(arg(call, 2)?, grid)?;
        let place = span(call, 2);
        let query = HistogramQuery::Fraction(&lower, &upper);
        let results = of_histograms(self.context, grid, columns, query, place)?;
        self.context.meter.release(lower.len() + upper.len());
        Ok(results)
    }
}

fn put_moments(values: &mut [f64], grid: Grid) {
    for (step, value) in values.iter_mut().enumerate() {
        *value = seconds(grid.at(step));
    }
}

/// An argument, without parentheses around it.
fn arg(call: &Call, at: usize) -> Result<&Expr, EvalError> {
    call.args.get(at).map(Expr::unwrapped).ok_or_else(untyped)
}

/// Where an argument stands.
fn span(call: &Call, at: usize) -> Span {
    call.args
        .get(at)
        .map_or(call.span, |arg| arg.unwrapped().span())
}

/// An argument that is a text.
fn text(call: &Call, at: usize) -> Result<&str, EvalError> {
    match arg(call, at)? {
        Expr::String(string) => Ok(&string.value),
        _ => Err(untyped()),
    }
}
