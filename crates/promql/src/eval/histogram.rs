//! Classic histograms: series that differ only in `le` are the buckets of one.

use std::collections::HashMap;

use crate::ast::Span;
use crate::eval::column::{Column, is_there};
use crate::eval::context::Context;
use crate::eval::error::EvalError;
use crate::eval::grid::Grid;
use crate::eval::label_set::LabelSet;
use crate::eval::merge::merged;
use crate::eval::number::message_text;
use crate::eval::quantile::{Bucket, fraction, of_buckets};

/// The label that says the upper bound of a bucket.
const BOUND: &str = "le";

/// A question to each histogram.
#[derive(Clone, Copy)]
pub(crate) enum HistogramQuery<'a> {
    /// A quantile, at each step of its own share.
    Quantile(&'a [f64]),
    /// The share of observations between two values.
    Fraction(&'a [f64], &'a [f64]),
}

/// A histogram: bounds and columns of its buckets, sorted by bounds.
struct Histogram {
    labels: LabelSet,
    buckets: Vec<(f64, Column)>,
}

/// A value of each histogram. `span` is where their series stand in the expression.
pub(crate) fn of_histograms(
    context: &Context,
    grid: Grid,
    columns: Vec<Column>,
    query: HistogramQuery,
    span: Span,
) -> Result<Vec<Column>, EvalError> {
    let mut results = Vec::new();
    let mut buckets = Vec::new();
    for histogram in histograms(context, columns, span) {
        let mut values = context.meter.values(grid)?;
        for (step, value) in values.iter_mut().enumerate() {
            context.meter.worked(histogram.buckets.len())?;
            buckets.clear();
            let counts = histogram.buckets.iter().filter_map(|(bound, column)| {
                let count = column.values.get(step).copied();
                Some((*bound, count.filter(|&count| is_there(count))?))
            });
            buckets.extend(counts.map(|(bound, count)| Bucket { bound, count }));
            if !buckets.is_empty() {
                let at = |values: &[f64]| values.get(step).copied().unwrap_or(f64::NAN);
                *value = match query {
                    HistogramQuery::Quantile(shares) => {
                        let (found, repair) = of_buckets(at(shares), &mut buckets);
                        if let Some(repair) = repair {
                            context.note(|notes| notes.repaired(repair, grid.at(step), span));
                        }
                        found
                    }
                    HistogramQuery::Fraction(lower, upper) => {
                        fraction(at(lower), at(upper), &mut buckets)
                    }
                };
            }
        }
        let held = histogram.buckets.len().saturating_mul(grid.count);
        context.meter.release(held);
        results.push(Column {
            labels: histogram.labels.without_metric(),
            values,
        });
    }
    merged(&context.meter, results)
}

fn histograms(context: &Context, columns: Vec<Column>, span: Span) -> Vec<Histogram> {
    let mut places: HashMap<LabelSet, usize> = HashMap::new();
    let mut histograms: Vec<Histogram> = Vec::new();
    for column in columns {
        let text = column.labels.get(BOUND);
        let Some(bound) = bound(text) else {
            context.warn(
                &format!("bucket label {BOUND:?} is missing or has a malformed value of {text:?}"),
                span,
            );
            context.meter.release(column.values.len());
            continue;
        };
        let labels = column.labels.filtered(|name| name != BOUND);
        let place = *places.entry(labels.clone()).or_insert(histograms.len());
        if place == histograms.len() {
            histograms.push(Histogram {
                labels,
                buckets: Vec::new(),
            });
        }
        if let Some(histogram) = histograms.get_mut(place) {
            histogram.buckets.push((bound, column));
        }
    }
    for histogram in &mut histograms {
        histogram.buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    histograms
}

/// A bound as Go reads it; `None`: it is no number.
fn bound(text: &str) -> Option<f64> {
    let bound: f64 = text.parse().ok()?;
    (!bound.is_nan()).then_some(bound)
}

/// A warning about a share that is not between 0 and 1.
pub(crate) fn check_shares(context: &Context, shares: &[f64], span: Span) {
    let wrong = shares.iter().find(|share| !(0.0..=1.0).contains(*share));
    if let Some(&share) = wrong {
        let share = message_text(share);
        context.warn(
            &format!("quantile value should be between 0 and 1, got {share}"),
            span,
        );
    }
}
