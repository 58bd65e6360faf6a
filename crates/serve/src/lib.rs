//! The hub: answers HTTP for the page, for programs and for Prometheus. It reads the recording like any reader, holds
//! no capability and starts nothing.
//!
//! `server` accepts connections, and `connections` chooses the one to close when there are too many; `asker` identifies askers,
//! and `turns` and `room` share out threads and memory between them; `access` checks requests, `guarded` hides names of people,
//! `api` has the answers, one file each; `now` has the newest sample. All other questions to the recording and to the store are
//! in `kymo_query`.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access;
mod answer;
mod api;
mod asker;
mod assets;
mod boards;
mod connections;
mod cost;
mod guarded;
mod guesses;
mod now;
mod number;
mod refusal;
mod room;
mod server;
mod stored;
mod tally;
mod targets;
mod tls;
mod turns;
mod visible;
mod visitor;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

pub use kymo_query::archive::RecordingSource;
use kymo_sys::tcp_owner::TcpOwners;
use serde::{Deserialize, Serialize};

#[cfg(feature = "testing")]
pub use api::fuzz::fuzz_parameters;
pub use api::programs::{body as programs_json, recorded_body as recorded_programs_json};
pub use api::prometheus::{json_of_answer as prometheus_json, step_ms as prometheus_step_ms};
pub use server::run;
pub use tls::Tls;

/// Name of the engine in messages.
pub const UPSTREAM: &str = "the upstream";

/// The process that asks another engine for series.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpstreamPlace {
    /// Socket on which it is asked.
    pub socket: PathBuf,
    /// Milliseconds in which it answers.
    pub answer_ms: u64,
}

/// Settings of the hub.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Recording to show.
    pub what: RecordingSource,
    /// Path under which a reverse proxy serves the hub, without a slash at the end; empty: none.
    pub prefix: String,
    /// Host names that requests may use, in addition to names of loopback.
    pub hosts: Vec<String>,
    /// True if only this machine can reach the hub: then numbers need no token.
    pub loopback: bool,
    /// True if an asker behind a proxy counts as one on this machine.
    pub trust_proxy: bool,
    /// The token of the token file.
    pub token: String,
    /// The token of senders, which may write and not read; empty: there is none.
    pub write_token: String,
    /// Certificate and key; `None`: requests are not encrypted.
    pub tls: Option<Tls>,
    /// A code for one session, printed with the URL.
    pub code: Option<String>,
    /// Folder for roll-ups; `None`: they are not kept.
    pub rollups: Option<PathBuf>,
    /// Folder in which boards are kept; `None`: there are none.
    pub boards: Option<PathBuf>,
    /// Socket at which the keeper answers questions; `None`: there is no store.
    pub keeper: Option<PathBuf>,
    /// Socket at which the keeper accepts this machine's history; `None`: the store gets none.
    pub keeper_writes: Option<PathBuf>,
    /// The process that asks another engine; `None`: there is none.
    pub upstream: Option<UpstreamPlace>,
    /// Labels by which engines tell this kymo from others.
    pub external_labels: BTreeMap<String, String>,
    /// Finds the user behind a connection of this machine; `None`: all users of this machine are one asker.
    pub owners: Option<Arc<TcpOwners>>,
    /// This machine's address on the network, for configurations of senders.
    pub address: Option<IpAddr>,
    /// Folder from which the page is served instead of the built-in one, for work on the page.
    pub assets: Option<PathBuf>,
}
