//! The arithmetic of each kind of metric, and a metric's series.

use std::collections::HashSet;

use kymo_base::label_set::{LabelError, Labels};
use kymo_series::names;
use kymo_store::PointsKind;

use super::histogram::{Bound, Histogram};
use super::part::Part;
use crate::common::keyed_hash::KeyedHash;

/// One of a metric's series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartName {
    /// The running total of a counter.
    Total,
    /// The value of a gauge, or the number of a set's members.
    Value,
    Count,
    Sum,
    Min,
    Max,
    /// Number of values up to this bound.
    Bucket(Bound),
    /// Number of all values, as the last bucket.
    Infinite,
}

/// Kinds with the same arithmetic. Lines of one family and name are of one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Counter,
    Gauge,
    /// Timers, histograms and distributions.
    Histogram,
    Set,
}

impl Family {
    /// Byte of the family in keys.
    pub(super) fn byte(self) -> u8 {
        match self {
            Family::Counter => b'c',
            Family::Gauge => b'g',
            Family::Histogram => b'h',
            Family::Set => b's',
        }
    }

    /// Least number of series of a metric.
    pub(super) fn series(self) -> u32 {
        match self {
            Family::Histogram => 5,
            Family::Counter | Family::Gauge | Family::Set => 1,
        }
    }

    /// The first series of a metric.
    pub(super) fn first(self) -> PartName {
        match self {
            Family::Counter => PartName::Total,
            Family::Gauge | Family::Set => PartName::Value,
            Family::Histogram => PartName::Count,
        }
    }

    pub(super) fn empty(self) -> Aggregate {
        let part = Part::New;
        match self {
            Family::Counter => Aggregate::Counter { total: 0.0, part },
            Family::Gauge => Aggregate::Gauge { value: 0.0, part },
            Family::Histogram => Aggregate::Histogram(Box::default()),
            Family::Set => Aggregate::Set {
                members: HashSet::default(),
                part,
            },
        }
    }
}

/// Values of a metric, added up.
#[derive(Debug)]
pub(super) enum Aggregate {
    Counter {
        total: f64,
        part: Part,
    },
    Gauge {
        value: f64,
        part: Part,
    },
    Histogram(Box<Histogram>),
    Set {
        /// Hashes of the members since the last flush.
        members: HashSet<u64, KeyedHash>,
        part: Part,
    },
}

impl Aggregate {
    /// Calls `show` with each series and its value; `None`: no value in this flush.
    pub(super) fn each_part(&mut self, mut show: impl FnMut(PartName, &mut Part, Option<f64>)) {
        match self {
            Aggregate::Counter { total, part } => show(PartName::Total, part, Some(*total)),
            Aggregate::Gauge { value, part } => show(PartName::Value, part, Some(*value)),
            Aggregate::Set { members, part } => {
                let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
                show(PartName::Value, part, Some(count.into()));
            }
            Aggregate::Histogram(histogram) => each_part_of(histogram, &mut show),
        }
    }

    /// Begins the next interval.
    pub(super) fn begin_flush(&mut self) {
        match self {
            Aggregate::Counter { .. } | Aggregate::Gauge { .. } => {}
            Aggregate::Histogram(histogram) => histogram.begin_flush(),
            Aggregate::Set { members, .. } if members.capacity() > SET_KEPT => {
                *members = HashSet::default();
            }
            Aggregate::Set { members, .. } => members.clear(),
        }
    }
}

/// Largest capacity of a set that is kept for the next interval.
const SET_KEPT: usize = 1024;

fn each_part_of(
    histogram: &mut Histogram,
    show: &mut impl FnMut(PartName, &mut Part, Option<f64>),
) {
    let Histogram {
        count,
        sum,
        min,
        max,
        buckets,
        parts: [count_part, sum_part, infinite, min_part, max_part],
    } = histogram;
    show(PartName::Count, count_part, Some(*count));
    show(PartName::Sum, sum_part, Some(*sum));
    show(PartName::Infinite, infinite, Some(*count));
    let of_flush = |value: f64| value.is_finite().then_some(value);
    show(PartName::Min, min_part, of_flush(*min));
    show(PartName::Max, max_part, of_flush(*max));
    let mut below = 0.0;
    for bucket in buckets {
        below += bucket.count;
        let name = PartName::Bucket(bucket.bound);
        show(name, &mut bucket.part, Some(below));
    }
}

impl PartName {
    /// Kind of the series.
    pub(super) fn kind(self) -> PointsKind {
        match self {
            PartName::Total => PointsKind::Counter,
            PartName::Value | PartName::Min | PartName::Max => PointsKind::Gauge,
            PartName::Count | PartName::Sum | PartName::Bucket(_) | PartName::Infinite => {
                PointsKind::Histogram
            }
        }
    }

    /// Labels of this series for a metric with this name and these tags.
    pub(super) fn labels(self, name: &[u8], tags: &[(&[u8], &[u8])]) -> Result<Labels, LabelError> {
        let bound = match self {
            PartName::Bucket(bound) => Some(bound.value().to_string()),
            PartName::Infinite => Some("+Inf".to_string()),
            _ => None,
        };
        let end = match self {
            PartName::Total => "_total",
            PartName::Value => "",
            PartName::Count => "_count",
            PartName::Sum => "_sum",
            PartName::Min => "_min",
            PartName::Max => "_max",
            PartName::Bucket(_) | PartName::Infinite => "_bucket",
        };
        names::statsd(name, end, bound.as_deref(), tags)
    }
}
