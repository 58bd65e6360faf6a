//! `kymo hub`: the part of `kymo serve` that talks to the network, started by its guardian and not by
//! people. It is told what to do on stdin (a token has no place in arguments or the environment),
//! gives up what it does not need, and answers on a socket it was handed.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use kymo_serve::{Settings, Tls, What};
use kymo_sys::machine;
use kymo_sys::privilege::{self, State};
use kymo_sys::talk;
use kymo_sys::tcp_owner::TcpOwners;
use serde::{Deserialize, Serialize};

use crate::process::sandbox;

/// What the guardian says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Number of the file that is the listening socket.
    pub listener: i32,
    /// Number of the pipe on which to say, in a line, that requests are answered.
    pub ready: i32,
    /// The folder that is recorded to; `None`: `files`.
    pub ring: Option<PathBuf>,
    /// What was opened.
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
    /// Certificate chain and key, PEM; in the clear without them.
    pub tls: Option<(String, String)>,
    /// See [`Settings`].
    pub code: Option<String>,
    /// See [`Settings`].
    pub rollups: Option<PathBuf>,
    /// See [`Settings`].
    pub keeper: Option<PathBuf>,
    /// See [`Settings`].
    pub keeper_writes: Option<PathBuf>,
    /// See [`Settings`].
    pub assets: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run() -> Result<ExitCode> {
    talk::never_wait();
    // Who tells all of kymo to flush means the recorder.
    machine::ignore_flush();
    let mut text = Vec::new();
    std::io::stdin()
        .read_to_end(&mut text)
        .context("cannot read what to serve")?;
    let order: Order =
        serde_json::from_slice(&text).context("cannot run the hub: it is started by kymo serve")?;
    let handed = |fd| privilege::inherited(fd).context("cannot take over a file of kymo serve");
    let listener = TcpListener::from(handed(order.listener)?);
    let mut ready = File::from(handed(order.ready)?);
    // `shut_in` refuses new sockets.
    let owners = TcpOwners::open().ok().map(Arc::new);
    let state = shut_in(&order)?;
    kymo_serve::run(listener, settings(order, owners), move || {
        // Without a guardian there is nobody to tell.
        let _ = ready.write_all(format!("{state}\n").as_bytes());
    })
    .map_err(anyhow::Error::msg)?;
    Ok(ExitCode::SUCCESS)
}

/// Gives up what is not needed, while there is one thread. The state in words.
fn shut_in(order: &Order) -> Result<String> {
    let own = State::of(std::process::id()).context("cannot read /proc/self/status")?;
    // Names of users are read from files that are out of reach in a moment.
    let words = own.words();
    if let Some(rollups) = &order.rollups
        && let Err(error) = std::fs::create_dir_all(rollups)
    {
        talk::say(format_args!(
            "kymo: cannot make {}: {error}",
            rollups.display()
        ));
    }
    let read: Vec<_> = [&order.ring, &order.assets]
        .into_iter()
        .flatten()
        .chain(&order.files)
        .cloned()
        .collect();
    let write: Vec<_> = order.rollups.iter().cloned().collect();
    let files = sandbox::enter(&read, &write);
    let calls = sandbox::Process::Hub.confine();
    Ok(format!("{words}, {files}, {calls}"))
}

fn settings(order: Order, owners: Option<Arc<TcpOwners>>) -> Settings {
    Settings {
        what: match order.ring {
            Some(dir) => What::Ring(dir),
            None => What::Files(order.files),
        },
        prefix: order.prefix,
        hosts: order.hosts,
        loopback: order.loopback,
        trust_proxy: order.trust_proxy,
        token: order.token,
        tls: order.tls.map(|(cert, key)| Tls { cert, key }),
        code: order.code,
        rollups: order.rollups.filter(|folder| folder.is_dir()),
        keeper: order.keeper,
        keeper_writes: order.keeper_writes,
        owners,
        assets: order.assets,
    }
}
