//! A socket that is written to from a worker: what the client does not take at once is waited for, up to a
//! limit.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::SendFlags;

/// A client's socket.
pub struct Stream<'a> {
    socket: &'a OwnedFd,
    patience: Timespec,
}

impl<'a> Stream<'a> {
    /// Waits for the client to take a byte at most `patience` long.
    pub fn new(socket: &'a OwnedFd, patience: Duration) -> Stream<'a> {
        let patience = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: 0,
        };
        Stream { socket, patience }
    }
}

impl Write for Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::net::send(self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let mut polled = [PollFd::new(self.socket, PollFlags::OUT)];
                    match rustix::event::poll(&mut polled, Some(&self.patience)) {
                        Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(errno) => return Err(errno.into()),
                    }
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
