//! The intake of values: the keeper, which owns the store, its threads and its end, and the listeners, each of which
//! turns one protocol's messages into write batches.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod collectd;
pub mod common;
#[cfg(feature = "testing")]
pub mod fuzz;
mod graphite;
pub mod keeper;
pub mod kept;
mod labelled_series;
pub mod line_listeners;
pub mod listener;
pub mod log;
pub mod name_space;
pub mod prefix;
pub mod programs;
pub mod pushed;
pub mod reader;
pub mod requests;
pub mod rrdcached;
pub mod sender_group;
mod shares;
mod statsd;
pub mod traps;
