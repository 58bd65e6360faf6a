//! One question: the reader that it is asked of, limits, notes.

use std::cell::RefCell;

use kymo_series::{Budget, Labels, ReadError, Reader, RowsAs, SampleSink, SeriesId, TimeRange};

use crate::ast::Span;
use crate::eval::error::EvalError;
use crate::eval::grid::QuerySpan;
use crate::eval::meter::{Meter, Watch};
use crate::eval::note::{NoteKind, Notes};

/// Limits of each question.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Samples read at most.
    pub samples: u64,
    /// Series that a question selects at most, all selectors together.
    pub series: u64,
    /// Values in memory at most, at one time; 8 bytes each.
    pub values: usize,
    /// How long a sample stands for where no other one follows.
    pub lookback_ms: i64,
    /// Step of a subquery that names none.
    pub subquery_step_ms: i64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            samples: 50_000_000,
            series: 1_000_000,
            values: 50_000_000,
            lookback_ms: 300_000,
            subquery_step_ms: 60_000,
        }
    }
}

/// One question, while it is answered.
pub(crate) struct Context<'a> {
    pub(crate) limits: Limits,
    /// First and last moment of the question.
    pub(crate) query: QuerySpan,
    pub(crate) meter: Meter<'a>,
    reader: &'a dyn Reader,
    budget: RefCell<Budget>,
    notes: RefCell<Notes>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        limits: Limits,
        reader: &'a dyn Reader,
        query: QuerySpan,
        watch: Watch<'a>,
    ) -> Context<'a> {
        Context {
            limits,
            query,
            meter: Meter::new(watch, limits.values),
            reader,
            budget: RefCell::new(Budget {
                series: limits.series,
                samples: limits.samples,
            }),
            notes: RefCell::default(),
        }
    }

    /// Asks the reader. `None`: a source is silent, which is noted.
    pub(crate) fn read<T>(
        &self,
        ask: impl FnOnce(&dyn Reader, &mut Budget) -> Result<T, ReadError>,
    ) -> Result<Option<T>, EvalError> {
        match ask(self.reader, &mut self.budget.borrow_mut()) {
            Ok(answer) => Ok(Some(answer)),
            Err(error @ ReadError::Silent { .. }) => {
                self.note(|notes| notes.miss(error.to_string()));
                Ok(None)
            }
            Err(ReadError::TooMuch { things: "series" }) => Err(EvalError::TooManySeries),
            Err(ReadError::TooMuch { .. }) => Err(EvalError::TooManySamples),
            Err(ReadError::Failed(why)) => Err(EvalError::Unavailable(why)),
        }
    }

    /// The labels of a series.
    pub(crate) fn labels(&self, id: SeriesId) -> Option<Labels> {
        self.reader.labels(id)
    }

    /// Reads samples of series into a sink, as many as fit into memory.
    pub(crate) fn read_samples(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        rows: RowsAs,
        sink: &mut dyn SampleSink,
    ) -> Result<(), EvalError> {
        self.read(|reader, budget| {
            let beyond = budget.samples.saturating_sub(self.room());
            budget.samples -= beyond;
            let read = reader.samples(ids, range, rows, budget, sink);
            budget.samples = budget.samples.saturating_add(beyond);
            read
        })?;
        Ok(())
    }

    /// Says that these samples are read next.
    pub(crate) fn read_soon(&self, ids: &[SeriesId], range: TimeRange, rows: RowsAs) {
        let mut budget = *self.budget.borrow();
        budget.samples = budget.samples.min(self.room());
        self.reader.samples_soon(ids, range, rows, &budget);
    }

    /// Samples for which there is memory; a sample takes the memory of two values.
    fn room(&self) -> u64 {
        u64::try_from(self.meter.left() / 2).unwrap_or(u64::MAX)
    }

    /// Notes a warning about a part of the expression.
    pub(crate) fn warn(&self, message: &str, span: Span) {
        self.note(|notes| notes.add(NoteKind::Warning, message, span));
    }

    /// Notes an observation about a part of the expression.
    pub(crate) fn inform(&self, message: &str, span: Span) {
        self.note(|notes| notes.add(NoteKind::Info, message, span));
    }

    /// Notes something else.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Notes)) {
        note(&mut self.notes.borrow_mut());
    }

    /// The notes so far.
    pub(crate) fn into_notes(self) -> Notes {
        self.notes.into_inner()
    }
}
