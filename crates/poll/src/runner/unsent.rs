//! Packets on their way to the other side, in their order: what the socket has no room for waits here.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

/// Those that are not sent yet.
#[derive(Debug, Default)]
pub(super) struct Unsent(VecDeque<Vec<u8>>);

impl Unsent {
    /// Whether something waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends a packet behind those that wait.
    pub(super) fn push(&mut self, packet: Vec<u8>, socket: impl AsFd) {
        self.0.push_back(packet);
        self.send_waiting(socket);
    }

    /// Sends what there is room for. Whoever waits for the other side comes back for the rest.
    pub(super) fn send_waiting(&mut self, socket: impl AsFd) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        while let Some(packet) = self.0.front() {
            match send(&socket, packet, flags) {
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                // To one that has gone: that is seen by who listens.
                Ok(_) | Err(_) => self.0.pop_front(),
            };
        }
    }
}
