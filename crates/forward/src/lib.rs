//! Carries values on to receivers of Prometheus' remote write. Each receiver has a thread and a registered tail of the
//! keeper's journal, so that a slow one delays no other, and a place in the journal that outlives every process.
//!
//! `order` has the configuration, `picker` selects series and changes labels, `catalog` has the series that go out and
//! `texts` their labels, `batch` groups samples by series, `message` encodes them, `answer` judges what a receiver says,
//! `sender` talks HTTP, `delay` has pauses, `forwarder` puts these together for one receiver, and `report` writes what
//! became of the values as series.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod batch;
mod catalog;
mod counts;
mod delay;
mod forwarder;
mod message;
mod order;
mod picker;
mod report;
mod sender;
mod texts;

pub use forwarder::forward;
pub use order::{ForwardOrder, ForwardTarget, TARGETS_MAX, memory_bytes, tail_name};
pub use picker::Picker;
