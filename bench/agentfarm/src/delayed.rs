//! Replies that are not sent at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

/// A reply, its sender and its receiver.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Letter {
    pub(crate) from: Ipv4Addr,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

/// Waiting replies, by their due times.
#[derive(Default)]
pub(crate) struct Delayed {
    waiting: BinaryHeap<Reverse<(Instant, u64, Letter)>>,
    /// Serial number of replies: those due at one moment are
    /// sent in their order.
    came: u64,
}

impl Delayed {
    pub(crate) fn add(&mut self, due: Instant, letter: Letter) {
        self.came += 1;
        self.waiting.push(Reverse((due, self.came, letter)));
    }

    /// The first reply that is due.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Letter> {
        let Reverse((due, ..)) = self.waiting.peek()?;
        if *due > now {
            return None;
        }
        self.waiting.pop().map(|Reverse((_, _, letter))| letter)
    }

    /// Due time of the next reply.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse((due, ..))| *due)
    }
}
