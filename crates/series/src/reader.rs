//! The door through which everything that is kept is read.

use std::fmt;

use crate::{Kind, Labels, Matcher, Sample};

/// A range of time, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Milliseconds since 1970.
    pub from_ms: i64,
    /// Milliseconds since 1970.
    pub thru_ms: i64,
}

impl TimeRange {
    /// All times.
    pub const ALL: TimeRange = TimeRange {
        from_ms: i64::MIN,
        thru_ms: i64::MAX,
    };

    /// True if a moment lies in it.
    pub fn has(self, t_ms: i64) -> bool {
        (self.from_ms..=self.thru_ms).contains(&t_ms)
    }
}

/// A series of one reader, as long as that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesId(pub u64);

impl SeriesId {
    /// The id of the series at a place of a list.
    pub fn at(place: usize) -> SeriesId {
        SeriesId(u64::try_from(place).unwrap_or(u64::MAX))
    }

    /// The place in a list.
    pub fn place(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// A row: what the samples of an interval are together. NaN: not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// End of the interval, milliseconds since 1970.
    pub t_ms: i64,
    /// Mean of the samples.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The last.
    pub last: f64,
    /// The part of the interval that samples stand for, 0 to 1.
    pub covered: f64,
}

/// What is known of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Its name.
    pub metric: String,
    /// How it moves.
    pub kind: Kind,
    /// What it means; empty: not known.
    pub help: String,
}

/// How much one question may cost. What is read is taken off.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Series that may still be selected.
    pub series: u64,
    /// Samples, or rows, that may still be read.
    pub samples: u64,
}

impl Budget {
    /// No limit.
    pub const UNLIMITED: Budget = Budget {
        series: u64::MAX,
        samples: u64::MAX,
    };

    /// Takes series off.
    pub fn take_series(&mut self, count: usize) -> Result<(), ReadError> {
        take(&mut self.series, count, "series")
    }

    /// Takes samples off.
    pub fn take_samples(&mut self, count: usize) -> Result<(), ReadError> {
        take(&mut self.samples, count, "samples")
    }
}

fn take(left: &mut u64, count: usize, things: &'static str) -> Result<(), ReadError> {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    *left = left
        .checked_sub(count)
        .ok_or(ReadError::TooMuch { things })?;
    Ok(())
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The answer has more than the budget allows.
    TooMuch {
        /// `series` or `samples`.
        things: &'static str,
    },
    /// A source does not answer. Others may have.
    Silent {
        /// Which one, and since when, for people.
        source: String,
    },
    /// What is kept cannot be read.
    Failed(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::TooMuch { things } => {
                write!(out, "the question selects too many {things}; narrow it")
            }
            ReadError::Silent { source } => write!(out, "{source} does not answer"),
            ReadError::Failed(why) => out.write_str(why),
        }
    }
}

impl std::error::Error for ReadError {}

/// Takes samples: of each series in the order of their times.
pub trait SampleSink {
    /// Some samples of a series, and the seconds between them where they are rows of that length; 0: as they came.
    fn samples(&mut self, id: SeriesId, samples: &[Sample], resolution_s: u32);
}

/// Takes rows, likewise.
pub trait RowSink {
    /// Some rows of a series, and their length.
    fn rows(&mut self, id: SeriesId, rows: &[Row], step_s: u32);
}

/// What can be read: a recording, the store of a keeper, the folder of a store, or several of these.
pub trait Reader {
    /// The series that all matchers pick and that may have samples in a range.
    fn select(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        budget: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError>;

    /// The labels of a series.
    fn labels(&self, id: SeriesId) -> Option<Labels>;

    /// Samples of series, from the finest kind that is still kept, series by series.
    fn samples(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError>;

    /// Rows of series, of about `step_s` seconds, series by series.
    fn rows(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        step_s: u32,
        budget: &mut Budget,
        sink: &mut dyn RowSink,
    ) -> Result<(), ReadError>;

    /// Names of the labels that picked series have, sorted.
    fn label_names(&self, matchers: &[Matcher], range: TimeRange)
    -> Result<Vec<String>, ReadError>;

    /// Values of a label that picked series have, sorted.
    fn label_values(
        &self,
        label: &str,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<Vec<String>, ReadError>;

    /// What is known of metrics; of one, or of all.
    fn metadata(&self, metric: Option<&str>) -> Result<Vec<Metadata>, ReadError>;
}
