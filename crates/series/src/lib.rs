//! One model of all data that kymo stores: a series has labels, a kind, a unit and samples.
//!
//! [`names`] maps each source to labels. [`Matcher`]s select series. A [`Reader`] reads their samples from any
//! storage. The crate does no I/O and uses no clock.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(feature = "testing")]
pub mod fuzz;
mod matcher;
pub mod names;
mod re2;
mod reader;
mod runs;
mod sample;
mod selector;

pub use kymo_base::label_set::{LabelError, Labels};
pub use matcher::{Matcher, MatcherError, Op, anchored_regex};
pub use reader::{
    Budget, Metadata, ReadError, Reader, Row, RowSink, RowValue, RowsAs, SampleSink, SeriesId,
    TimeRange,
};
pub use runs::SampleRuns;
pub use sample::{Kind, STALE_BITS, Sample, Unit, is_stale, stale};
pub use selector::Selector;
