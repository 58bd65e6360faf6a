//! Replies that are not sent at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

/// A reply, from where and to whom.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Letter {
    pub(crate) from: Ipv4Addr,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

/// Those that wait, by their moments.
#[derive(Default)]
pub(crate) struct Delayed {
    waiting: BinaryHeap<Reverse<(Instant, u64, Letter)>>,
    /// Those of one moment go in the order in which they came.
    came: u64,
}

impl Delayed {
    pub(crate) fn add(&mut self, due: Instant, letter: Letter) {
        self.came += 1;
        self.waiting.push(Reverse((due, self.came, letter)));
    }

    /// The first that is due.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Letter> {
        let Reverse((due, ..)) = self.waiting.peek()?;
        if *due > now {
            return None;
        }
        self.waiting.pop().map(|Reverse((_, _, letter))| letter)
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse((due, ..))| *due)
    }
}
