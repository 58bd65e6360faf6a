//! The poller asks devices by SNMP for the targets of an mrtg.cfg, many devices at once, and has the values stored.
//!
//! `engine/` asks, `sink/` writes and `runner/` starts the configuration's commands. None of the three knows the others: the
//! command `kymo poll` connects them. `devices/` asks without an mrtg.cfg, for `[[device]]`; of the engine it has the security
//! alone. `asked_agent.rs` asks a device request by request.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod asked_agent;
pub mod batch;
pub mod description;
pub mod devices;
pub mod engine;
pub mod graphite;
pub mod mrtg_log;
pub mod neighbours;
pub mod news;
pub mod pages;
pub mod poller;
pub mod runner;
pub mod sink;
pub mod threshold;
pub mod watch;
