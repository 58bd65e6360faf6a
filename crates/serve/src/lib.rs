//! The hub: answers HTTP for the page, for programs and for Prometheus. It reads the recording like any reader, holds
//! no capability and starts nothing.
//!
//! `server` has the connections, and `places` chooses the connection to close when there are too many; `asker`
//! identifies askers, and `turns` and `room` share out threads and memory between them; `access` checks requests,
//! `guarded` hides names of people, `api` has the answers, one file each; `now` has the newest sample. All else that is asked of the
//! recording and of the store is in `kymo_query`.

#![forbid(unsafe_code)]

mod access;
mod answer;
mod api;
mod asker;
mod assets;
mod cost;
mod guarded;
mod guesses;
mod now;
mod number;
mod places;
mod refusal;
mod room;
mod server;
mod stored;
mod tally;
mod targets;
mod tls;
mod turns;
mod visitor;

use std::path::PathBuf;
use std::sync::Arc;

pub use kymo_query::archive::What;
use kymo_sys::tcp_owner::TcpOwners;

#[cfg(feature = "testing")]
pub use api::fuzz::fuzz_parameters;
pub use api::programs::{
    body as programs_json, recorded_body as recorded_programs_json, state_words as program_state,
};
pub use server::run;
pub use tls::Tls;

/// All that the hub is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What it shows.
    pub what: What,
    /// Path under which a reverse proxy has it, without a slash at the end; empty: none.
    pub prefix: String,
    /// Hosts besides loopback names that a request may be for.
    pub hosts: Vec<String>,
    /// Whether only this machine can reach it: then numbers need no token.
    pub loopback: bool,
    /// Whether who asks through a proxy is taken for who is on this machine.
    pub trust_proxy: bool,
    /// The token of the token file.
    pub token: String,
    /// Certificate and key; `None`: requests come in the clear.
    pub tls: Option<Tls>,
    /// A code that is good for one session, printed with the URL.
    pub code: Option<String>,
    /// Where roll-ups are kept; `None`: nowhere.
    pub rollups: Option<PathBuf>,
    /// Where the keeper answers what is stored; `None`: nothing is.
    pub keeper: Option<PathBuf>,
    /// Where the keeper takes this machine's history; `None`: none is kept.
    pub keeper_writes: Option<PathBuf>,
    /// Finds the user behind a connection of this machine; `None`: all users of this machine are one asker.
    pub owners: Option<Arc<TcpOwners>>,
    /// Serve the page from this folder instead of the one that is built in, for who works on it.
    pub assets: Option<PathBuf>,
}
