//! Asks another engine for the series that kymo does not have: anything that answers Prometheus' HTTP API. Its clients ask by
//! the keeper's protocol, so that for the hub the engine is one more source of series.
//!
//! `order` has the configuration, `server` answers clients, `questions` makes requests of HTTP of theirs, `client` sends
//! these, `api` reads the answers, `selector` writes selectors, and `known` has the labels of series that were found.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod api;
mod client;
#[cfg(feature = "testing")]
pub mod fuzz;
mod known;
mod order;
mod questions;
mod selector;
mod server;

pub use order::{MEMORY_BYTES, UpstreamOrder, UpstreamTarget, answer_ms};
pub use server::serve;
