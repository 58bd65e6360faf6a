//! Functions of range vectors: of a window of samples at each step.

use kymo_series::{RowValue, RowsAs, Sample, is_stale};

use crate::ast::{Call, Edges, Expr, Span, ValueType};
use crate::duration::DurationError;
use crate::eval::column::{Column, is_there, missing};
use crate::eval::edges::{self, Extension};
use crate::eval::error::EvalError;
use crate::eval::grid::{Ends, Grid};
use crate::eval::histogram::check_shares;
use crate::eval::label_set::LabelSet;
use crate::eval::merge::merged;
use crate::eval::number::{count, seconds};
use crate::eval::over_time;
use crate::eval::rate::{self, Growth, Resets};
use crate::eval::relabel::absent_labels;
use crate::eval::rows::{self, RowSpans, Stored, length_text};
use crate::eval::run::{Evaluator, put_samples, untyped};
use crate::eval::select::{each_series, ends, keep, reaching};
use crate::eval::window::{Reach, Window, slide};
use crate::functions::FunctionId;

/// Is shown the samples of a series.
type EachSource<'a> = dyn FnMut(LabelSet, Stored) -> Result<(), EvalError> + 'a;

/// The windows of a range vector.
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    ends: Ends,
    reach: Reach,
    extension: Option<Extension>,
}

/// A function, its parameters and room for its work.
struct OfWindow {
    id: FunctionId,
    windows: Windows,
    /// The scalar argument, a value a step.
    parameters: Vec<f64>,
    resets: Resets,
    rows: RowSpans,
    /// Values to be sorted.
    room: Vec<f64>,
}

impl Evaluator<'_> {
    /// The value of a function of a range vector.
    pub(crate) fn range_call(&self, call: &Call, grid: Grid) -> Result<Vec<Column>, EvalError> {
        let is_range = |arg: &&Expr| arg.value_type() == ValueType::Matrix;
        let range = call.args.iter().find(is_range).ok_or_else(untyped)?;
        let range = range.unwrapped();
        let mut windows = self.windows(range, grid)?;
        check_extension(call, windows.extension)?;
        if windows.extension.is_none() {
            windows.reach.least_rows = rows::wanted(call.function.id).before;
        }
        let scalar = call
            .args
            .iter()
            .find(|arg| arg.value_type() == ValueType::Scalar);
        let mut function = OfWindow {
            id: call.function.id,
            windows,
            parameters: match scalar {
                Some(scalar) => self.scalar(scalar, grid)?,
                None => Vec::new(),
            },
            resets: Resets::default(),
            rows: RowSpans::default(),
            room: Vec::new(),
        };
        let mut columns = Vec::new();
        let meter = &self.context.meter;
        let rows = rows::wanted(call.function.id);
        self.each_source(range, windows, rows, &mut |labels, stored| {
            let mut values = meter.values(grid)?;
            function.begin(stored);
            slide(
                meter,
                stored,
                grid,
                windows.ends,
                windows.reach,
                &mut values,
                |window| function.value(window),
            )?;
            keep(self.context, &mut columns, labels, values);
            Ok(())
        })?;
        self.note_about(call, &function, &columns);
        meter.release(function.parameters.len());
        match call.function.id {
            FunctionId::AbsentOverTime => self.absent(columns, grid, range),
            FunctionId::LastOverTime | FunctionId::FirstOverTime => merged(meter, columns),
            _ => {
                for column in &mut columns {
                    column.labels = column.labels.without_metric();
                }
                merged(meter, columns)
            }
        }
    }

    fn note_about(&self, call: &Call, function: &OfWindow, columns: &[Column]) {
        let first = call.args.first();
        let span = first.map_or(call.span, |arg| arg.unwrapped().span());
        match function.id {
            FunctionId::QuantileOverTime if !columns.is_empty() => {
                check_shares(self.context, &function.parameters, span);
            }
            FunctionId::Rate | FunctionId::Increase => {
                let metrics = columns.iter().map(|column| column.labels.metric());
                self.note_no_counters(metrics, span);
            }
            _ => {}
        }
    }

    fn note_no_counters<'c>(&self, metrics: impl Iterator<Item = &'c str>, span: Span) {
        const COUNTERS: [&str; 4] = ["_total", "_sum", "_count", "_bucket"];
        let mut last = "";
        for metric in metrics {
            // Most series are of the metric of the one before.
            let is_known = metric == last || metric.is_empty();
            last = metric;
            if !is_known && !COUNTERS.iter().any(|end| metric.ends_with(end)) {
                let message = format!(
                    "metric might not be a counter, name does not end in _total/_sum/_count/_bucket: {metric:?}"
                );
                self.context.inform(&message, span);
            }
        }
    }

    /// The windows of a range vector at each step.
    pub(crate) fn windows(&self, range: &Expr, grid: Grid) -> Result<Windows, EvalError> {
        let times = self.context.query.times;
        let wrong = |error: DurationError| EvalError::Execution(error.to_string());
        let lookback_ms = self.context.limits.lookback_ms;
        match range {
            Expr::Matrix(matrix) => {
                let length_ms = matrix.range.length_ms(times).map_err(wrong)?;
                let (extension, before_ms, behind_ms) = match matrix.selector.edges {
                    Edges::Plain => (None, 0, 0),
                    Edges::Anchored => (Some(Extension::Anchored), lookback_ms, 0),
                    Edges::Smoothed => (Some(Extension::Smoothed), lookback_ms, lookback_ms),
                };
                Ok(Windows {
                    ends: ends(self.context, &matrix.selector, grid)?,
                    reach: Reach {
                        length_ms,
                        least_rows: 0,
                        before_ms,
                        behind_ms,
                    },
                    extension,
                })
            }
            Expr::Subquery(subquery) => {
                let offset_ms = subquery.offset.offset_ms(times).map_err(wrong)?;
                let fixed_ms = subquery.at.map(|at| self.context.query.moment(at));
                Ok(Windows {
                    ends: Ends::new(grid, fixed_ms, offset_ms),
                    reach: Reach::plain(subquery.range.length_ms(times).map_err(wrong)?),
                    extension: None,
                })
            }
            _ => Err(untyped()),
        }
    }

    /// Shows the samples of the series of a range vector, series by series.
    pub(crate) fn each_source(
        &self,
        range: &Expr,
        windows: Windows,
        rows: RowsAs,
        each: &mut EachSource,
    ) -> Result<(), EvalError> {
        let reach = windows.reach;
        match range {
            Expr::Matrix(matrix) => {
                let length_ms = reach.length_ms.saturating_add(reach.before_ms);
                let range = reaching(windows.ends, length_ms, reach.behind_ms);
                each_series(self.context, &matrix.selector, range, rows, |source| {
                    source.samples.retain(|sample| !is_stale(sample.v));
                    self.warn_of_widening(reach, source.rows, matrix.selector.span);
                    let stored = Stored {
                        samples: source.samples,
                        rows: source.rows,
                    };
                    each(source.labels, stored)
                })
            }
            Expr::Subquery(subquery) => {
                let step = subquery.step.as_ref();
                let step_ms = step.map(|step| step.length_ms(self.context.query.times));
                let step_ms = step_ms.transpose();
                let step_ms = step_ms.map_err(|error| EvalError::Execution(error.to_string()))?;
                let step_ms = step_ms.unwrap_or(self.context.limits.subquery_step_ms);
                let inner = windows.ends.grid.of_subquery(reach.length_ms, step_ms);
                let Some(inner) = inner else {
                    return Ok(());
                };
                let mut samples = Vec::new();
                for column in self.vector(&subquery.expr, inner)? {
                    put_samples(&column.values, inner, &mut samples);
                    self.context.meter.release(column.values.len());
                    self.context.meter.hold(samples.len().saturating_mul(2))?;
                    each(column.labels, Stored::points(&samples))?;
                    self.context.meter.release(samples.len().saturating_mul(2));
                }
                Ok(())
            }
            _ => Err(untyped()),
        }
    }

    /// Warns that windows are longer than the range, because rows are.
    fn warn_of_widening(&self, reach: Reach, rows: &RowSpans, span: Span) {
        let row_ms = rows.longest_ms();
        let least_ms = row_ms.saturating_mul(reach.least_rows.into());
        if least_ms > reach.length_ms {
            let message = format!(
                "a range of {} is widened to {} where rows of {} stand for samples",
                length_text(reach.length_ms),
                length_text(least_ms),
                length_text(row_ms)
            );
            self.context.warn(&message, span);
        }
    }

    /// 1 where no series has a value.
    pub(crate) fn absent(
        &self,
        columns: Vec<Column>,
        grid: Grid,
        of: &Expr,
    ) -> Result<Vec<Column>, EvalError> {
        let meter = &self.context.meter;
        let mut values = meter.filled(grid, 1.0)?;
        for column in &columns {
            for (value, &there) in values.iter_mut().zip(&column.values) {
                if is_there(there) {
                    *value = missing();
                }
            }
        }
        meter.drop_all(columns);
        let labels = match of {
            Expr::Vector(selector) => absent_labels(&selector.matchers)?,
            Expr::Matrix(matrix) => absent_labels(&matrix.selector.matchers)?,
            _ => LabelSet::empty(),
        };
        let mut absent = Vec::new();
        keep(self.context, &mut absent, labels, values);
        Ok(absent)
    }

    /// A range vector at one moment, with its samples.
    pub(crate) fn ranges(
        &self,
        range: &Expr,
        grid: Grid,
    ) -> Result<Vec<(LabelSet, Vec<Sample>)>, EvalError> {
        let windows = self.windows(range, grid)?;
        let meter = &self.context.meter;
        let mut ranges = Vec::new();
        let rows = RowsAs::values(RowValue::Last);
        self.each_source(range, windows, rows, &mut |labels, stored| {
            let mut found = Vec::new();
            let mut unused = [0.0];
            slide(
                meter,
                stored,
                grid.first(),
                windows.ends,
                windows.reach,
                &mut unused,
                |window| {
                    found = match windows.extension {
                        Some(extension) => edges::with_ends(window, extension),
                        None => window.samples().to_vec(),
                    };
                    None
                },
            )?;
            // A sample takes the memory of two values.
            meter.hold(found.len().saturating_mul(2))?;
            if !found.is_empty() {
                ranges.push((labels, found));
            }
            Ok(())
        })?;
        Ok(ranges)
    }
}

/// Few functions know what to do with samples beyond their window.
fn check_extension(call: &Call, extension: Option<Extension>) -> Result<(), EvalError> {
    let (word, known) = match extension {
        None => return Ok(()),
        Some(Extension::Anchored) => ("anchored", "changes, delta, increase, rate, resets"),
        Some(Extension::Smoothed) => ("smoothed", "delta, increase, rate"),
    };
    let name = call.function.name;
    match known.split(", ").any(|known| known == name) {
        true => Ok(()),
        false => Err(EvalError::Execution(format!(
            "{word} modifier can only be used with: {known} - not with {name}"
        ))),
    }
}

impl OfWindow {
    /// Begins with another series.
    fn begin(&mut self, stored: Stored) {
        if matches!(self.id, FunctionId::Rate | FunctionId::Increase) {
            self.resets.find(stored.samples);
        }
        self.rows.clone_from(stored.rows);
    }

    #[inline]
    fn value(&mut self, window: &Window) -> Option<f64> {
        let samples = window.samples();
        match self.id {
            FunctionId::Rate => self.growth(window, Growth::Rate),
            FunctionId::Increase => self.growth(window, Growth::Increase),
            FunctionId::Delta => self.growth(window, Growth::Delta),
            // The last two samples are gone.
            FunctionId::Irate | FunctionId::Idelta if self.ends_in_rows(samples) => None,
            FunctionId::Irate => rate::irate(window),
            FunctionId::Idelta => rate::idelta(window),
            FunctionId::Resets => self.counted(window).map(rate::resets),
            FunctionId::Changes => self.counted(window).map(rate::changes),
            FunctionId::SumOverTime => Some(over_time::sum(samples)),
            FunctionId::AvgOverTime => over_time::mean(samples),
            FunctionId::MinOverTime => over_time::min(samples),
            FunctionId::MaxOverTime => over_time::max(samples),
            FunctionId::StdvarOverTime => Some(over_time::variance(samples)),
            FunctionId::StddevOverTime => Some(over_time::variance(samples).sqrt()),
            FunctionId::CountOverTime => Some(count(samples.len())),
            FunctionId::PresentOverTime | FunctionId::AbsentOverTime => Some(1.0),
            FunctionId::FirstOverTime => samples.first().map(|sample| sample.v),
            FunctionId::LastOverTime => samples.last().map(|sample| sample.v),
            FunctionId::QuantileOverTime => {
                let share = self.parameter(window)?;
                Some(over_time::quantile_of(share, samples, &mut self.room))
            }
            FunctionId::Deriv => {
                let line = over_time::line(samples, samples.first()?.t_ms);
                line.map(|line| line.slope)
            }
            FunctionId::PredictLinear => {
                let ahead_s = self.parameter(window)?;
                let line = over_time::line(samples, window.t_ms)?;
                Some(line.slope * ahead_s + line.value)
            }
            _ => None,
        }
    }

    fn ends_in_rows(&self, samples: &[Sample]) -> bool {
        let last = samples.last();
        last.is_some_and(|last| self.rows.at(last.t_ms) > 0)
    }

    fn parameter(&self, window: &Window) -> Option<f64> {
        self.parameters.get(window.step).copied()
    }

    #[inline]
    fn growth(&mut self, window: &Window, growth: Growth) -> Option<f64> {
        let length_ms = self.windows.reach.length_ms;
        match self.windows.extension {
            Some(extension) => edges::growth(window, extension, growth, seconds(length_ms)),
            None => rate::extrapolated(window, growth, length_ms, &mut self.resets, &self.rows),
        }
    }

    fn counted<'s>(&self, window: &Window<'s>) -> Option<&'s [Sample]> {
        match self.windows.extension {
            Some(_) => edges::anchored(window),
            None => Some(window.samples()),
        }
    }
}
