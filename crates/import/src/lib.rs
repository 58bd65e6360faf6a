//! Reads the samples of another server by Prometheus' remote read, chunk after chunk: neither side has more than a frame of an
//! answer in memory.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod remote;

pub use remote::{RemoteReader, RemoteServer, Sink};
