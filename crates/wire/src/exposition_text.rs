//! Metrics as programs expose them over HTTP, read by one who scrapes them: Prometheus' text format 0.0.4, and OpenMetrics 1.0.
//!
//! A text is read line by line in one pass. Texts are borrowed from it, labels lie in a buffer that the next line uses again,
//! so that a line allocates nothing. As in Prometheus, one bad line ends the scrape: what was read before may be forgotten with
//! it. There is no clock here: a sample without a timestamp is of the moment of the scrape.

mod cursor;
mod fault;
mod format;
mod metadata;
mod model;
mod reader;
mod sample;
#[cfg(test)]
mod tests;

pub use crate::metric_type::MetricType;
pub use fault::{BadExposition, ExpositionFault};
pub use format::{ACCEPT, ExpositionFormat};
pub use model::{EscapedText, ExposedLabel, ExposedLine, ExposedSample, LABELS_MAX, LINE_MAX};
pub use reader::ExpositionReader;
