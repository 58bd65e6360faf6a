//! Samples that points become, counts, and limits.

use super::labels::OtlpLabels;
use super::refusal::BadDataPoint;
use crate::metric_type::MetricType;

/// A value at a moment, of a series with Prometheus' names.
#[derive(Clone, Copy, Debug)]
pub struct OtlpSample<'r> {
    /// Sorted by names, with `__name__`.
    pub labels: OtlpLabels<'r>,
    /// The metric's name without `_bucket`, `_sum` and `_count`.
    pub family: &'r str,
    /// The family's type. Sums that are not monotonic are gauges.
    pub metric_type: MetricType,
    /// A sentence; may be empty.
    pub help: &'r str,
    /// The unit in Prometheus' words; may be empty.
    pub unit: &'r str,
    /// Milliseconds since 1970.
    pub t_ms: i64,
    /// When counting began, in milliseconds since 1970.
    pub created_ms: Option<i64>,
    /// NaN with the bits 0x7ff0000000000002 says that there is no value now.
    pub value: f64,
}

/// Counts of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtlpCounts {
    /// Points that were taken.
    pub points: u64,
    /// Samples that they became, `target_info` among them.
    pub samples: u64,
    /// Exemplars, which are passed over.
    pub exemplars: u64,
    /// Points that were not taken, by [`BadDataPoint::ALL`].
    pub refused: [u64; BadDataPoint::ALL.len()],
}

impl OtlpCounts {
    /// Points that were not taken, for whatever reason.
    pub fn refused_points(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Reasons and how many points each concerns, without those that concern none.
    pub fn reasons(&self) -> impl Iterator<Item = (BadDataPoint, u64)> {
        let all = BadDataPoint::ALL.into_iter().zip(self.refused);
        all.filter(|&(_, count)| count > 0)
    }

    pub(super) fn refuse(&mut self, why: BadDataPoint, points: u64) {
        let all = BadDataPoint::ALL.iter().zip(&mut self.refused);
        for (_, count) in all.filter(|(known, _)| **known == why) {
            *count += points;
        }
    }
}
