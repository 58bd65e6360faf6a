//! Scrapes targets that expose metrics over HTTP, as Prometheus does, and devices that speak SNMP. Each target has a task of its own on one thread,
//! so that a target without an answer delays no other. Samples go to the keeper, which answers when they are in its
//! journal.
//!
//! `job` has the configuration, `url` the address of a target, `fetch` asks it, `relabel` changes labels, `series` and
//! `intake` make samples of a text, `device` gets that of a device, `message` packs them, `outbox` hands them to the keeper, `target` puts these
//! together and `scraper` runs all targets.
//!
//! `kymo-forward` uses `url`, `connection`, `tls` and the credentials of `job`, too.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod beat;
mod connection;
mod device;
mod fetch;
#[cfg(feature = "testing")]
pub mod fuzz;
mod intake;
mod job;
mod message;
mod outbox;
mod relabel;
mod scraper;
mod secret;
mod series;
mod target;
mod tls;
mod unpack;
mod url;

pub use connection::{Connection, Shared, TlsClient, words};
pub use device::{
    DeviceAsked, DeviceClient, DeviceCredentials, DeviceJob, SNMP_PORT, UserPassword, ask_devices,
    device_address,
};
pub use job::{Credentials, SAMPLES_MAX, ScrapeJob, TlsTexts};
pub use relabel::{RelabelAction, RelabelRule, Relabeling};
pub use scraper::{ScrapeOrder, memory_bytes, scrape};
pub use secret::Secret;
pub use tls::{check as check_tls, client_config};
pub use url::{Scheme, ScrapeUrl};
