//! The listener for rrdcached's protocol. One thread owns the connections: it reads ready ones, gives their lines to the store in
//! one batch, and answers. A line that has to open files goes to a worker, together with its connection, so that answers stay in
//! order.
//!
//! `event_loop` has the sockets, `connection` one client, `held` the limit on memory for clients, `quick` requests that the store
//! answers from memory, `slow` requests that need a file, `workers` the threads for them; `syncer` waits for the disk where
//! answers have to.

mod connection;
mod event_loop;
mod held;
mod names;
mod quick;
mod refusals;
mod shares;
mod slow;
mod syncer;
mod wake;
mod workers;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use kymo_store::Store;
use kymo_sys::own_name::OwnName;
use kymo_wire::rrdcached::Permissions;

use crate::listener::{Listener, StopSignal};
use crate::log::{Log, Severity};

/// The listener.
pub struct Rrdcached {
    /// Settings.
    pub settings: Settings,
    /// Sockets that clients connect to.
    pub sockets: Vec<ListeningSocket>,
    /// Messages for the administrator.
    pub log: Log,
}

impl Listener for Rrdcached {
    fn name(&self) -> &'static str {
        "rrdcached"
    }

    fn run(self: Box<Self>, store: &Store, stop: &StopSignal) -> io::Result<()> {
        event_loop::run(*self, store, stop)
    }
}

/// A socket that clients connect to.
#[derive(Debug)]
pub struct ListeningSocket {
    /// Listening and nonblocking.
    pub socket: OwnedFd,
    /// Permissions of its clients.
    pub permissions: Permissions,
    /// Name in the file system, removed at the end if it is still this socket's.
    pub name: Option<OwnName>,
}

/// Settings of the listener, in addition to those of the store.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Base folder (`-b`).
    pub base: Option<PathBuf>,
    /// The store's own folder, which LIST does not show.
    pub hidden: Option<PathBuf>,
    /// `-B`: clients reach no file outside of the base.
    pub beneath: bool,
    /// `-R`: CREATE may make folders.
    pub make_folders: bool,
    /// `-O`: CREATE never replaces a file.
    pub no_overwrite: bool,
    /// Clients that may change a series.
    pub writers: Writers,
    /// True if an UPDATE is answered only when it is on the disk.
    pub durable: bool,
}

/// Clients that may change a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writers {
    /// Every client may change every series, as in stock: there is no other input.
    #[default]
    Anybody,
    /// There are other inputs. Their names are closed, and so is a series of a sender with a higher rank. Clients
    /// share all other series.
    Shared,
    /// As `Shared`, and one client alone writes a series until the client is silent for two steps.
    One,
}

/// State that all threads share.
struct Shared {
    settings: Settings,
    names: names::Names,
    store: Store,
    log: Log,
    updates_received: AtomicU64,
    flushes_received: AtomicU64,
    /// Held by a thread that has much of files in memory, or lists all files: one thread at a time.
    heavy: Mutex<()>,
    /// Time of the last log line about a journal that accepts no writes.
    reported: Mutex<Option<Instant>>,
}

/// Shortest time between two log lines about the same trouble.
const SAY_EVERY: Duration = Duration::from_secs(60);

impl Shared {
    fn log(&self, severity: Severity, text: &str) {
        (self.log)(severity, text);
    }
}
