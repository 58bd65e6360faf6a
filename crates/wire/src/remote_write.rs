//! Prometheus' remote write as a receiver and as a sender: the messages of 1.0 (`prometheus.WriteRequest`) and of 2.0
//! (`io.prometheus.write.v2.Request`), Snappy's blocks around them, and which headers and statuses an answer has.
//!
//! A message is read series by series. Texts are borrowed from it; labels and samples of one series lie in buffers that
//! the next one uses again. A series that breaks a rule is refused alone, and the samples that are lost so are counted.
//! Float samples alone are taken; native histograms are counted as not taken, exemplars as passed over.

mod decoded;
mod encode;
pub mod http;
mod model;
mod reader;
mod refusal;
mod series;
mod snappy;
#[cfg(test)]
mod tests;

pub use crate::metric_type::MetricType;
pub use encode::WriteEncoder;
pub use model::{
    FamilyMetadata, SeriesMetadata, WriteCounts, WriteItem, WriteLabel, WriteLimits, WriteSample,
    WriteSeries, WriteVersion,
};
pub use reader::WriteReader;
pub use refusal::{BadSeries, BadWrite};
pub use snappy::{BadSnappy, compress, decompress};
