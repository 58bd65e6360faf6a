//! The poller: what an mrtg.cfg says is asked of devices by SNMP, many at once, and goes where its values are kept.
//!
//! `engine/` asks, `sink/` writes, `runner/` starts the configuration's commands; none of them knows the others: the command
//! `kymo poll` puts them together.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod batch;
pub mod description;
pub mod engine;
pub mod graphite;
pub mod news;
pub mod poller;
pub mod runner;
pub mod sink;
pub mod threshold;
pub mod watch;
