//! The hub: answers HTTP for the page, for programs and for Prometheus. It reads the recording like any
//! reader, holds no capability and starts nothing.

use std::net::TcpListener;
use std::path::PathBuf;

/// What the hub shows.
#[derive(Clone, Debug)]
pub enum What {
    /// The recording in this folder, which a recorder goes on writing.
    Ring(PathBuf),
    /// Files and folders from anywhere, which do not change.
    Files(Vec<PathBuf>),
}

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
    /// The token of the token file.
    pub token: String,
    /// A code that is good for one session, printed with the URL.
    pub code: Option<String>,
    /// Where roll-ups are kept; `None`: nowhere.
    pub rollups: Option<PathBuf>,
    /// Serve the page from this folder instead of the one that is built in, for who works on it.
    pub assets: Option<PathBuf>,
}

/// Serves until SIGTERM. `ready` is called once, when the first request could be answered.
pub fn run(
    _listener: TcpListener,
    _settings: Settings,
    ready: impl FnOnce(),
) -> Result<(), String> {
    ready();
    Ok(())
}
