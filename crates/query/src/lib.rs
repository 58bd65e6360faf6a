//! Recorded and live samples as rates: the one trait that gives all samples,
//! and the one place where two readings are subtracted.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod activity;
pub mod archive;
pub mod collectl;
pub mod delta;
pub mod downsample;
pub mod feed;
#[cfg(feature = "store")]
pub mod fields;
#[cfg(feature = "store")]
pub mod history;
pub mod live;
pub mod marks;
pub mod merged;
#[cfg(feature = "store")]
mod metric_labels;
pub mod movers;
pub mod open;
#[cfg(feature = "store")]
pub mod readers;
pub mod recent;
pub mod recorded;
pub mod rollup;
pub mod series;
pub mod sheet;
pub mod source;
pub mod stored;
pub mod table;
pub mod targets;
pub mod why;
