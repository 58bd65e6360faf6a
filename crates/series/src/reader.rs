//! The interface for reading stored series, whatever stores them.

use std::fmt;

use crate::{Kind, Labels, Matcher, Sample};

/// A range of time, including both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Start, milliseconds since 1970.
    pub from_ms: i64,
    /// End, milliseconds since 1970.
    pub thru_ms: i64,
}

impl TimeRange {
    /// All times.
    pub const ALL: TimeRange = TimeRange {
        from_ms: i64::MIN,
        thru_ms: i64::MAX,
    };

    /// True if a time is in the range.
    pub fn has(self, t_ms: i64) -> bool {
        (self.from_ms..=self.thru_ms).contains(&t_ms)
    }
}

/// A series of one reader; valid as long as the reader exists.
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

/// A row: the samples of an interval, summarised. NaN: unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// End of the interval, milliseconds since 1970.
    pub t_ms: i64,
    /// Mean of the samples.
    pub mean: f64,
    /// Least sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
    /// Last sample.
    pub last: f64,
    /// Part of the interval with samples, 0 to 1.
    pub covered: f64,
}

/// Description of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Name of the metric.
    pub metric: String,
    /// Kind of the metric.
    pub kind: Kind,
    /// Type in OpenMetrics' words, as the source says it; empty: as the kind says.
    pub openmetrics_type: String,
    /// Unit, as the source says it; empty: unknown.
    pub unit: String,
    /// Meaning of the metric in words; empty: unknown.
    pub help: String,
}

impl Metadata {
    /// A metric of which only the kind is known.
    pub fn of_kind(metric: String, kind: Kind) -> Metadata {
        Metadata {
            metric,
            kind,
            openmetrics_type: String::new(),
            unit: String::new(),
            help: String::new(),
        }
    }
}

/// Limits on the cost of one request. Each read reduces them.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Number of series that may still be selected.
    pub series: u64,
    /// Number of samples or rows that may still be read.
    pub samples: u64,
}

impl Budget {
    /// A budget without limits.
    pub const UNLIMITED: Budget = Budget {
        series: u64::MAX,
        samples: u64::MAX,
    };

    /// Takes series off the budget; an error if it is exhausted.
    pub fn take_series(&mut self, count: usize) -> Result<(), ReadError> {
        take(&mut self.series, count, "series")
    }

    /// Takes samples off the budget; an error if it is exhausted.
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

/// Reasons why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The answer exceeds the budget.
    TooMuch {
        /// `series` or `samples`.
        things: &'static str,
    },
    /// A source does not answer; other sources may have answered.
    Silent {
        /// The source and the start of its silence, in words.
        source: String,
    },
    /// Stored data cannot be read, for this reason.
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

/// The value of a row that stands for samples which are no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowValue {
    /// Mean of the samples.
    Mean,
    /// Least sample.
    Min,
    /// Largest sample.
    Max,
    /// Last sample; where a row does not have it, the mean.
    Last,
    /// A counter that grows as the samples did, without resets. Its last value is that of the samples if that is known.
    Growth,
}

impl RowValue {
    /// All, in the order of their codes.
    pub const ALL: [RowValue; 5] = [
        RowValue::Mean,
        RowValue::Min,
        RowValue::Max,
        RowValue::Last,
        RowValue::Growth,
    ];
}

/// Treatment of rows that stand for samples which are no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsAs {
    /// The value of a row.
    pub value: RowValue,
    /// Number of rows before the range that are read, too.
    pub before: u8,
}

impl RowsAs {
    /// The rows of the range alone.
    pub const fn values(value: RowValue) -> RowsAs {
        RowsAs { value, before: 0 }
    }
}

/// Receives samples, those of each series in the order of their times.
pub trait SampleSink {
    /// Receives samples of a series. `resolution_s` is the interval in seconds if they are rows; 0: single samples. Several
    /// calls for one series may have different resolutions; later samples have finer ones.
    fn samples(&mut self, id: SeriesId, samples: &[Sample], resolution_s: u32);
}

/// Receives rows, those of each series in the order of their times.
pub trait RowSink {
    /// Receives rows of a series, and their length in seconds.
    fn rows(&mut self, id: SeriesId, rows: &[Row], step_s: u32);
}

/// A source of series: a recording, the store of a keeper, the folder of a store, or several of these.
pub trait Reader {
    /// The series that match all matchers and may have samples in the range.
    fn select(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        budget: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError>;

    /// The labels of a series; `None`: the id is unknown.
    fn labels(&self, id: SeriesId) -> Option<Labels>;

    /// Reads samples of series in the finest resolution that is still kept, series by series. A row is a sample at its
    /// end.
    fn samples(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        rows: RowsAs,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError>;

    /// Says that [`Reader::samples`] comes next with these arguments, so that a reader behind a connection can ask while the
    /// caller works on other samples.
    fn samples_soon(&self, _ids: &[SeriesId], _range: TimeRange, _rows: RowsAs, _budget: &Budget) {}

    /// Reads rows of about `step_s` seconds, series by series.
    fn rows(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        step_s: u32,
        budget: &mut Budget,
        sink: &mut dyn RowSink,
    ) -> Result<(), ReadError>;

    /// Names of labels of the matching series, sorted.
    fn label_names(&self, matchers: &[Matcher], range: TimeRange)
    -> Result<Vec<String>, ReadError>;

    /// Values of a label of the matching series, sorted.
    fn label_values(
        &self,
        label: &str,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<Vec<String>, ReadError>;

    /// Descriptions of one metric or of all.
    fn metadata(&self, metric: Option<&str>) -> Result<Vec<Metadata>, ReadError>;

    /// Why parts of the answers so far are missing, for people.
    fn missing(&self) -> Vec<String> {
        Vec::new()
    }
}
