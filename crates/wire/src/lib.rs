//! What others say: bytes to values and back, one file a protocol. No sockets and no clock, so that the
//! function that serves is the function that is fuzzed.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod activity;
pub mod collectd;
#[cfg(feature = "testing")]
pub mod fuzz;
pub mod keeper;
pub mod mrtg_cfg;
pub mod rrdcached;
pub mod snmp;
pub mod targets;
