//! Metrics as programs expose them over HTTP, read by one who scrapes them: Prometheus' text format 0.0.4, and
//! OpenMetrics 1.0.
//!
//! A text is read line by line in one pass. Texts are borrowed from it, labels lie in a buffer that the next line uses
//! again, so that a line allocates nothing. As in Prometheus, one bad line ends the scrape: samples before it may be
//! forgotten with it. There is no clock here: a sample without a timestamp is of the moment of the scrape.
//!
//! Lines were compared with Prometheus 3.7's parser, by 60,000 texts with faults in them. It also takes labels without
//! a comma between them and a new line within quotes, which the formats do not have, and a blank in front of a line for
//! a part of the name. It refuses timestamps below 0 and exemplars with faults, which are taken or passed over here.

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
