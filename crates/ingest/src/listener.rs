//! What a listener is: sockets in, write batches out, until all listeners are asked to stop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use kymo_store::Store;
use rustix::event::{EventfdFlags, eventfd};

/// One protocol with its sockets.
pub trait Listener: Send {
    /// The protocol's name.
    fn name(&self) -> &'static str;

    /// Serves clients until `stop`, answers what has come by then, and returns.
    fn run(self: Box<Self>, store: &Store, stop: &StopSignal) -> io::Result<()>;
}

/// Tells all listeners to stop: a file that can be read from then on.
pub struct StopSignal(OwnedFd);

impl StopSignal {
    /// Not asked yet.
    pub fn new() -> io::Result<StopSignal> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(StopSignal(eventfd(0, flags)?))
    }

    /// Tells it; twice is once.
    pub fn tell(&self) {
        // Refused only when the count is full, and then it can be read already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for StopSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
