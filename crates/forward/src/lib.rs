//! Carries values on to receivers of Prometheus' remote write, to collectds and to rrdcacheds. Each receiver has a thread and a registered tail of
//! the keeper's journal, so that a slow one delays no other, and a place in the journal that outlives every process.
//!
//! `order` has the configuration, `forwarder` reads the tail for one receiver, `ledger` counts and says what became of the values,
//! `delay` has pauses, `picker` selects series, and `report` writes the counts as series. What a protocol needs is behind
//! `receiver`: `remote_write` (series that go out: `catalog`, their labels: `texts`, groups of samples: `batch`, requests:
//! `message`, HTTP: `sender`, answers: `answer`), `collectd` and `rrdcached` (both have values of whole series: `file_values`).

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
mod answer;
mod batch;
mod catalog;
mod collectd;
mod counts;
mod delay;
mod file_values;
mod forwarder;
#[cfg(feature = "testing")]
pub mod fuzz;
mod ledger;
mod message;
mod order;
mod picker;
mod receiver;
mod remote_write;
mod report;
mod rrdcached;
mod sender;
mod texts;

pub use address::{HostPort, RrdcachedAddress};
pub use forwarder::forward;
pub use order::{
    CollectdWay, ForwardOrder, ForwardTarget, ForwardWay, PacketProtection, RemoteWriteWay,
    RrdcachedWay, TARGETS_MAX, is_tail_name, memory_bytes, tail_name,
};
pub use picker::Picker;
