//! `kymo hub`: the part of `kymo serve` that talks to the network. The guardian starts it, not a
//! person. It reads its order on stdin (a token has no place in arguments or the environment), gives
//! up rights that it does not need, and answers on the guardian's socket.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use kymo_serve::{RecordingSource, Settings, Tls, UpstreamPlace};
use kymo_sys::machine;
use kymo_sys::privilege::{self, State};
use kymo_sys::talk;
use kymo_sys::tcp_owner::TcpOwners;
use serde::{Deserialize, Serialize};

use crate::process::{order, sandbox};

/// The guardian's order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// File descriptor of the listening socket.
    pub listener: i32,
    /// File descriptor of a pipe. The hub writes a line to it when requests are answered.
    pub ready: i32,
    /// The folder of the recording; `None`: `files` are shown.
    pub ring: Option<PathBuf>,
    /// The opened recordings.
    pub files: Vec<PathBuf>,
    /// See [`Settings`].
    pub prefix: String,
    /// See [`Settings`].
    pub hosts: Vec<String>,
    /// See [`Settings`].
    pub loopback: bool,
    /// See [`Settings`].
    pub trust_proxy: bool,
    /// See [`Settings`].
    pub token: String,
    /// See [`Settings`].
    pub write_token: String,
    /// Certificate chain and key, PEM; `None`: requests are not encrypted.
    pub tls: Option<(String, String)>,
    /// See [`Settings`].
    pub code: Option<String>,
    /// See [`Settings`].
    pub rollups: Option<PathBuf>,
    /// See [`Settings`].
    pub boards: Option<PathBuf>,
    /// See [`Settings`].
    pub keeper: Option<PathBuf>,
    /// See [`Settings`].
    pub keeper_writes: Option<PathBuf>,
    /// See [`Settings`].
    pub upstream: Option<UpstreamPlace>,
    /// See [`Settings`].
    pub external_labels: BTreeMap<String, String>,
    /// See [`Settings`].
    pub assets: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run() -> Result<ExitCode> {
    talk::never_wait();
    // A flush signal to all of kymo is meant for the recorder.
    machine::ignore_flush();
    let order: Order = order::read("the hub")?;
    let handed = |fd| privilege::inherited(fd).context("cannot take over a file of kymo serve");
    let listener = TcpListener::from(handed(order.listener)?);
    let mut ready = File::from(handed(order.ready)?);
    // Opened now, because `shut_in` forbids new sockets.
    let owners = TcpOwners::open().ok().map(Arc::new);
    let address = machine::address();
    let state = shut_in(&order)?;
    kymo_serve::run(listener, settings(order, owners, address), move || {
        // The write fails if the guardian is gone.
        let _ = ready.write_all(format!("{state}\n").as_bytes());
    })
    .map_err(anyhow::Error::msg)?;
    Ok(ExitCode::SUCCESS)
}

/// Gives up rights, while there is one thread. Returns the state in words.
fn shut_in(order: &Order) -> Result<String> {
    let own = State::of(std::process::id()).context("cannot read /proc/self/status")?;
    // Read now: names of users come from files that are out of reach afterwards.
    let words = own.words();
    let write = [&order.rollups, &order.boards];
    let write: Vec<_> = write.into_iter().flatten().cloned().collect();
    for folder in &write {
        if let Err(error) = std::fs::create_dir_all(folder) {
            talk::say(format_args!(
                "kymo: cannot make {}: {error}",
                folder.display()
            ));
        }
    }
    let read: Vec<_> = [&order.ring, &order.assets]
        .into_iter()
        .flatten()
        .chain(&order.files)
        .cloned()
        .collect();
    let files = sandbox::enter(&read, &write);
    let calls = sandbox::Process::Hub.confine();
    Ok(format!("{words}, {files}, {calls}"))
}

fn settings(order: Order, owners: Option<Arc<TcpOwners>>, address: Option<IpAddr>) -> Settings {
    Settings {
        what: match order.ring {
            Some(dir) => RecordingSource::Ring(dir),
            None => RecordingSource::Files(order.files),
        },
        prefix: order.prefix,
        hosts: order.hosts,
        loopback: order.loopback,
        trust_proxy: order.trust_proxy,
        token: order.token,
        write_token: order.write_token,
        tls: order.tls.map(|(cert, key)| Tls { cert, key }),
        code: order.code,
        rollups: order.rollups.filter(|folder| folder.is_dir()),
        boards: order.boards.filter(|folder| folder.is_dir()),
        keeper: order.keeper,
        keeper_writes: order.keeper_writes,
        upstream: order.upstream,
        external_labels: order.external_labels,
        owners,
        address,
        assets: order.assets,
    }
}
