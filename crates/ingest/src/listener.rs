//! Interface of a listener: sockets in, write batches out, until all listeners are asked to
//! stop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use kymo_store::Store;
use rustix::event::{EventfdFlags, eventfd};

/// One protocol with its sockets.
pub trait Listener: Send {
    /// The protocol's name.
    fn name(&self) -> &'static str;

    /// Serves clients until `stop`, answers the requests received by then, and returns.
    fn run(self: Box<Self>, store: &Store, stop: &StopSignal) -> io::Result<()>;
}

/// Asks all listeners to stop: a file that is readable from then on.
pub struct StopSignal(OwnedFd);

impl StopSignal {
    /// A signal that does not ask yet.
    pub fn new() -> io::Result<StopSignal> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(StopSignal(eventfd(0, flags)?))
    }

    /// Asks; a second call changes nothing.
    pub fn request(&self) {
        // The write fails only if the counter is full, and then the file is readable
        // already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for StopSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
