//! Packets that wait because the socket has no room for them, in their order.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

/// Packets that are not sent yet.
#[derive(Debug, Default)]
pub(super) struct Unsent(VecDeque<Vec<u8>>);

impl Unsent {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a packet to the queue, and sends as much of the queue as the socket takes.
    pub(super) fn push(&mut self, packet: Vec<u8>, socket: impl AsFd) {
        self.0.push_back(packet);
        self.send_waiting(socket);
    }

    /// Sends as many packets as the socket takes. The caller calls it again when the socket is
    /// writable.
    pub(super) fn send_waiting(&mut self, socket: impl AsFd) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        while let Some(packet) = self.0.front() {
            match send(&socket, packet, flags) {
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                // If the other side has gone, the receiving code finds out.
                Ok(_) | Err(_) => self.0.pop_front(),
            };
        }
    }
}
