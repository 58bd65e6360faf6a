//! Messages of other threads to the event loop.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kymo_store::Position;
use rustix::event::{EventfdFlags, eventfd};

use super::connection::Connection;
use super::quick::Stop;

/// A connection that a worker returns, and why serving it stopped.
pub(super) type Returned = (Box<Connection>, Stop);

/// Outcome of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Synced {
    /// Everything before this position is on the disk.
    To(Position),
    /// Records before this position may be on the disk or not, so no waiting
    /// client may get a success.
    Failed(Position),
}

/// Wakes the loop for messages of other threads.
pub(super) struct Wake {
    /// Readable when there are messages.
    pub file: OwnedFd,
    news: Mutex<News>,
}

/// Messages of other threads.
#[derive(Default)]
pub(super) struct News {
    /// Connections that workers return.
    pub returned: Vec<Returned>,
    /// Outcomes of syncs.
    pub synced: Vec<Synced>,
}

impl Wake {
    /// No messages yet.
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
        // The write fails if the counter is full, and then the file is readable
        // already.
        let _ = rustix::io::write(&self.file, &1u64.to_ne_bytes());
    }

    /// Returns a connection from a worker.
    pub(super) fn bring(&self, returned: Returned) {
        self.lock().returned.push(returned);
        self.ring();
    }

    /// Reports the outcome of a sync.
    pub(super) fn synced(&self, synced: Synced) {
        self.lock().synced.push(synced);
        self.ring();
    }

    /// All messages since the last call.
    pub(super) fn take(&self) -> News {
        // The count does not matter: all messages are taken.
        let _ = rustix::io::read(&self.file, &mut [0; 8]);
        mem::take(&mut *self.lock())
    }
}
