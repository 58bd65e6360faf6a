//! Hundreds of SNMP agents in one process, each at its own address of the loopback interface. Their counters are a pure
//! function of the clock ([`traffic`]), so that every rate stored by a poller can be checked.
//!
//! They answer GET, GETNEXT and GETBULK of v1, v2c and v3 ([`users`]) for system, ifTable, ifXTable and ipAddrTable, enough for stock
//! cfgmaker; and they can be slow, lossy, dead, renumbered, restarted, and lie ([`Behaviour`]).

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod behaviour;
mod counts;
mod delayed;
mod farm;
mod lie;
mod mib;
mod orders;
pub mod traffic;
pub mod users;
mod view;

pub use behaviour::{Behaviour, Percent};
pub use counts::Counts;
pub use farm::{Farm, Settings};
pub use lie::{Broken, Lie};
pub use orders::{Order, USAGE, When};
