//! Metrics of OpenTelemetry as they are pushed over HTTP: `ExportMetricsServiceRequest` in protobuf, read as Prometheus
//! reads it with its defaults, so that a program that pushes to both has the same series in both.
//!
//! Gauges and sums are series of their own; a histogram with explicit bounds becomes `_bucket`, `_sum` and `_count`, a
//! summary becomes quantiles, `_sum` and `_count`. `job` and `instance` come from the resource, whose other attributes
//! are labels of `target_info`. Not taken, but counted and said in the answer: exponential histograms, and sums and
//! histograms of delta temporality, which would have to be added up first.
//!
//! The samples of 12,000 messages put together at random were those of Prometheus' converter, but for three things. One
//! bad point is refused alone; Prometheus drops the rest of its metric. `target_info` has one sample, at the latest point;
//! Prometheus writes one every 150 s from the earliest point on, as many as a sender likes. Histograms whose bounds do not
//! rise or do not fit the buckets are refused; Prometheus takes them.

mod attribute;
mod labels;
mod limits;
mod model;
pub mod names;
mod point;
mod reader;
mod refusal;
mod resource;
pub mod response;
#[cfg(test)]
mod tests;

pub use crate::metric_type::MetricType;
pub use labels::OtlpLabels;
pub use limits::OtlpLimits;
pub use model::{OtlpCounts, OtlpSample};
pub use reader::read_metrics;
pub use refusal::{BadDataPoint, BadOtlp};
