//! Formats and protocols of other programs: bytes to values and back, one module per protocol. The
//! crate has no sockets and no clock, so that fuzzing runs the same functions as the server.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod activity;
pub mod backup_state;
pub mod collectd;
pub mod exposition_text;
pub mod feed;
#[cfg(feature = "testing")]
pub mod fuzz;
pub mod graphite;
pub mod keeper;
pub mod line_stream;
mod metric_type;
pub mod mrtg_cfg;
mod number;
pub mod otlp;
pub mod promtool_dump;
mod protobuf;
pub mod remote_read;
pub mod remote_write;
pub mod rrdcached;
pub mod snmp;
pub mod statsd;
mod tags;
pub mod targets;
pub mod trap_access;
