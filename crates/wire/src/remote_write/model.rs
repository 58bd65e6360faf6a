//! Labels, samples and metadata as both messages have them, and the limits of a message.

use super::refusal::BadSeries;
use crate::metric_type::MetricType;

/// Which message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteVersion {
    /// `prometheus.WriteRequest`: each series spells its labels.
    V1,
    /// `io.prometheus.write.v2.Request`: labels are numbers of texts in one table.
    V2,
}

/// A label. A reader gives labels with a name and a value, sorted by names, each name once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteLabel<'a> {
    /// Any UTF-8; Prometheus advises letters, digits and `_`.
    pub name: &'a str,
    /// Any UTF-8.
    pub value: &'a str,
}

/// A value at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteSample {
    /// Milliseconds since 1970.
    pub t_ms: i64,
    /// NaN with the bits 0x7ff0000000000002 says that the series has ended.
    pub value: f64,
    /// When counting began, in milliseconds since 1970; 2.0 only.
    pub created_ms: Option<i64>,
}

/// A metric as its sender describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeriesMetadata<'a> {
    /// How its values are made.
    pub metric_type: MetricType,
    /// A sentence; may be empty.
    pub help: &'a str,
    /// The unit; may be empty.
    pub unit: &'a str,
}

/// Metadata of 1.0, which stand beside the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyMetadata<'a> {
    /// The metric's name without the ends of its parts (`_bucket` and the like).
    pub family: &'a str,
    /// The rest.
    pub metadata: SeriesMetadata<'a>,
}

/// A series that keeps the rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteSeries<'r, 'a> {
    /// Sorted, with `__name__`.
    pub labels: &'r [WriteLabel<'a>],
    /// In the sender's order. May be none: of a series with exemplars or native histograms only.
    pub samples: &'r [WriteSample],
    /// 2.0 only; `None`: the sender says nothing.
    pub metadata: Option<SeriesMetadata<'a>>,
}

/// One step of a [`super::WriteReader`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WriteItem<'r, 'a> {
    /// A series.
    Series(WriteSeries<'r, 'a>),
    /// A series is not taken, nor its samples.
    Refused {
        /// The labels that could be read, in the sender's order; for a message.
        labels: &'r [WriteLabel<'a>],
        /// The first rule that it breaks.
        why: BadSeries,
        /// How many samples it had.
        samples: usize,
    },
    /// Metadata; 1.0 only.
    Metadata(FamilyMetadata<'a>),
}

/// Counts of a message so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCounts {
    /// Series that were given to the caller.
    pub series: u64,
    /// Their samples.
    pub samples: u64,
    /// Series that were refused.
    pub refused_series: u64,
    /// Their samples.
    pub refused_samples: u64,
    /// Native histograms, which are not taken.
    pub histograms: u64,
    /// Exemplars, which are passed over.
    pub exemplars: u64,
    /// Series whose labels came in another order than the specification's; the reader sorts them, as Prometheus does.
    pub unsorted: u64,
    /// Metadata of families (1.0) or of series (2.0).
    pub metadata: u64,
}

/// Most that one message may have. Each bounds what a reader holds in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLimits {
    /// Labels of a series.
    pub labels: usize,
    /// Bytes of all names and values of a series.
    pub label_bytes: usize,
    /// Samples of all series, 24 bytes in memory each while their series is read.
    pub samples: usize,
    /// Symbols of a message of 2.0, 16 bytes in memory each.
    pub symbols: usize,
}

impl Default for WriteLimits {
    /// Prometheus sends 2,000 samples at most unless it is configured otherwise.
    fn default() -> WriteLimits {
        WriteLimits {
            labels: 64,
            label_bytes: 16_384,
            samples: 500_000,
            symbols: 500_000,
        }
    }
}
