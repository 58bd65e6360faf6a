//! Series of a selector, read once for all steps.

use kymo_series::{Labels, RowValue, RowsAs, Sample, SampleSink, SeriesId, TimeRange, is_stale};

use crate::ast::{Edges, VectorSelector};
use crate::eval::column::{Column, is_there};
use crate::eval::context::Context;
use crate::eval::edges::smoothed_at;
use crate::eval::error::EvalError;
use crate::eval::grid::{Ends, Grid};
use crate::eval::label_set::LabelSet;
use crate::eval::number::seconds;
use crate::eval::rows::{RowSpans, Stored, length_text};
use crate::eval::window::{Reach, slide};

/// Series whose samples are in memory at one time.
const BATCH: usize = 24;

/// Reads the samples of the series that a selector picks, and shows them series by series.
pub(crate) fn each_series(
    context: &Context,
    selector: &VectorSelector,
    range: TimeRange,
    rows: RowsAs,
    mut each: impl FnMut(Source) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    let Some(matchers) = selector.kept_matchers() else {
        return Ok(());
    };
    let ids = context.read(|reader, budget| reader.select(&matchers, range, budget))?;
    let ids = ids.unwrap_or_default();
    let mut batch = Batch::default();
    let mut batches = ids.chunks(BATCH).peekable();
    while let Some(ids) = batches.next() {
        context.meter.check()?;
        batch.begin(ids);
        context.read_samples(ids, range, rows, &mut batch)?;
        if let Some(next) = batches.peek() {
            context.read_soon(next, range, rows);
        }
        let held = batch
            .kept
            .iter()
            .map(|kept| kept.samples.len())
            .sum::<usize>();
        context.meter.hold(held.saturating_mul(2))?;
        let labels: Vec<Option<Labels>> = ids.iter().map(|&id| context.labels(id)).collect();
        for (labels, kept) in labels.iter().zip(&mut batch.kept) {
            let Some(labels) = labels.as_ref().filter(|_| !kept.samples.is_empty()) else {
                continue;
            };
            let row_ms = kept.rows.longest_ms();
            if row_ms >= context.limits.lookback_ms {
                let row = length_text(row_ms);
                let message = format!("rows of {row} stand for samples that are gone");
                context.warn(&message, selector.span);
            }
            each(Source {
                labels: LabelSet::of(labels),
                samples: &mut kept.samples,
                rows: &kept.rows,
            })?;
        }
        context.meter.release(held.saturating_mul(2));
        context.meter.worked(held)?;
    }
    Ok(())
}

/// A series as it was read.
pub(crate) struct Source<'a> {
    pub(crate) labels: LabelSet,
    /// They may be changed.
    pub(crate) samples: &'a mut Vec<Sample>,
    /// Where they are rows.
    pub(crate) rows: &'a RowSpans,
}

/// Samples of some series, each in room that is used again.
#[derive(Default)]
struct Batch {
    ids: Vec<SeriesId>,
    kept: Vec<Kept>,
    /// The series that came last.
    at: usize,
}

#[derive(Default)]
struct Kept {
    samples: Vec<Sample>,
    rows: RowSpans,
}

impl Batch {
    fn begin(&mut self, ids: &[SeriesId]) {
        self.ids.clear();
        self.ids.extend_from_slice(ids);
        let room = ids.len().max(self.kept.len());
        self.kept.resize_with(room, Kept::default);
        for kept in &mut self.kept {
            kept.samples.clear();
            kept.rows.clear();
        }
        self.at = 0;
    }

    /// Readers answer series by series, so that the place is most often the last one or the next.
    fn place(&mut self, id: SeriesId) -> Option<usize> {
        let is_at = |place: usize| self.ids.get(place) == Some(&id);
        let found = [self.at, self.at + 1]
            .into_iter()
            .find(|&place| is_at(place));
        let place = found.or_else(|| self.ids.iter().position(|&known| known == id))?;
        self.at = place;
        Some(place)
    }
}

impl SampleSink for Batch {
    fn samples(&mut self, id: SeriesId, samples: &[Sample], resolution_s: u32) {
        let place = self.place(id);
        if let Some(kept) = place.and_then(|place| self.kept.get_mut(place)) {
            kept.samples.extend_from_slice(samples);
            kept.rows.add(samples, resolution_s);
        }
    }
}

/// The part of a sample that a selector gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The value.
    Value,
    /// The moment, in seconds.
    Moment,
}

/// The series of a selector, at each step the last sample that stands then.
pub(crate) fn instants(
    context: &Context,
    selector: &VectorSelector,
    grid: Grid,
    shown: Shown,
) -> Result<Vec<Column>, EvalError> {
    let ends = ends(context, selector, grid)?;
    let lookback_ms = context.limits.lookback_ms;
    let ahead_ms = match selector.edges {
        Edges::Plain | Edges::Anchored => 0,
        Edges::Smoothed => lookback_ms,
    };
    let range = reaching(ends, lookback_ms, ahead_ms);
    let mut columns = Vec::new();
    let rows = RowsAs {
        value: RowValue::Last,
        before: 1,
    };
    each_series(context, selector, range, rows, |source| {
        let (labels, samples) = (source.labels, source.samples);
        let mut values = context.meter.values(grid)?;
        match (selector.edges, shown) {
            (Edges::Plain | Edges::Anchored, _) | (Edges::Smoothed, Shown::Moment) => {
                let stored = Stored {
                    samples,
                    rows: source.rows,
                };
                fill_last(stored, ends, lookback_ms, shown, &mut values);
            }
            (Edges::Smoothed, Shown::Value) => {
                samples.retain(|sample| !is_stale(sample.v));
                let reach = Reach {
                    length_ms: 0,
                    least_rows: 0,
                    before_ms: lookback_ms,
                    behind_ms: lookback_ms,
                };
                let meter = &context.meter;
                let stored = Stored::points(samples);
                slide(meter, stored, grid, ends, reach, &mut values, smoothed_at)?;
            }
        }
        keep(context, &mut columns, labels, values);
        Ok(())
    })?;
    Ok(columns)
}

/// Keeps a column that has a value.
pub(crate) fn keep(
    context: &Context,
    columns: &mut Vec<Column>,
    labels: LabelSet,
    values: Vec<f64>,
) {
    match values.iter().copied().any(is_there) {
        true => columns.push(Column { labels, values }),
        false => context.meter.release(values.len()),
    }
}

fn fill_last(stored: Stored, ends: Ends, lookback_ms: i64, shown: Shown, values: &mut [f64]) {
    let Stored { samples, rows } = stored;
    let mut behind = 0;
    for (step, value) in values.iter_mut().enumerate() {
        let end_ms = ends.at(step);
        while samples
            .get(behind)
            .is_some_and(|sample| sample.t_ms <= end_ms)
        {
            behind += 1;
        }
        let last = behind.checked_sub(1).and_then(|at| samples.get(at));
        let Some(last) = last.filter(|last| !is_stale(last.v)) else {
            continue;
        };
        // A row stands for the time up to the next one.
        let stands_ms = lookback_ms.max(rows.at(last.t_ms));
        if last.t_ms > end_ms.saturating_sub(stands_ms) {
            *value = match shown {
                Shown::Value => last.v,
                Shown::Moment => seconds(last.t_ms),
            };
        }
    }
}

/// When the windows of a selector end.
pub(crate) fn ends(
    context: &Context,
    selector: &VectorSelector,
    grid: Grid,
) -> Result<Ends, EvalError> {
    let offset_ms = selector.offset.offset_ms(context.query.times);
    let offset_ms = offset_ms.map_err(|error| EvalError::Execution(error.to_string()))?;
    let fixed_ms = selector.at.map(|at| context.query.moment(at));
    Ok(Ends::new(grid, fixed_ms, offset_ms))
}

/// All times that windows need, which do not have the moment at which they begin.
pub(crate) fn reaching(ends: Ends, length_ms: i64, ahead_ms: i64) -> TimeRange {
    let first_ms = ends.at(0).saturating_sub(length_ms).saturating_add(1);
    TimeRange {
        from_ms: first_ms,
        thru_ms: ends.grid.thru_ms().saturating_add(ahead_ms),
    }
}
