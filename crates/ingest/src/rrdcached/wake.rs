//! How other threads get the event loop's attention, and what they bring.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kymo_store::Position;
use rustix::event::{EventfdFlags, eventfd};

use super::connection::Connection;
use super::quick::Stop;

/// A connection that comes back, and how far its lines were served.
pub(super) type Returned = (Box<Connection>, Stop);

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Synced {
    /// What lies before is on the disk.
    To(Position),
    /// Nobody knows whether it is; whoever waits for it must not be told that it is.
    Failed(Position),
}

/// How other threads get the loop's attention.
pub(super) struct Wake {
    /// Readable when there is news.
    pub file: OwnedFd,
    news: Mutex<News>,
}

/// What other threads have brought.
#[derive(Default)]
pub(super) struct News {
    /// Connections that workers are done with.
    pub returned: Vec<Returned>,
    /// How far the disk has come.
    pub synced: Vec<Synced>,
}

impl Wake {
    /// Nothing has come yet.
    pub(super) fn new() -> io::Result<Wake> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Wake {
            file: eventfd(0, flags)?,
            news: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        // Full means that it rings already.
        let _ = rustix::io::write(&self.file, &1u64.to_ne_bytes());
    }

    /// A worker brings a connection back.
    pub(super) fn bring(&self, returned: Returned) {
        self.lock().returned.push(returned);
        self.ring();
    }

    /// The disk has come so far.
    pub(super) fn synced(&self, synced: Synced) {
        self.lock().synced.push(synced);
        self.ring();
    }

    /// All that came since the last call.
    pub(super) fn take(&self) -> News {
        // Whatever the count is, all news are taken.
        let _ = rustix::io::read(&self.file, &mut [0; 8]);
        mem::take(&mut *self.lock())
    }
}
