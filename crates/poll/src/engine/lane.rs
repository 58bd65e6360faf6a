//! How many requests may be out at once so that the answers, should they come together, fit into the socket's queue.

use std::collections::VecDeque;

/// An answer that has not come by then comes alone, and what has come is taken by then.
const FRESH_NS: u64 = 20_000_000;
/// Bytes that the kernel counts for an answer of one packet.
const ANSWER_BYTES: usize = 2560;
/// At least these, however short the queue is.
const LEAST: usize = 16;

/// What is out.
pub(crate) struct Lane {
    room: usize,
    fresh: usize,
    /// When each was sent, its exchange and the serial of that.
    sent: VecDeque<(u64, usize, u32)>,
    /// Devices that wait for room.
    pub waiting: VecDeque<usize>,
}

impl Lane {
    /// For queues of that size.
    pub(crate) fn new(queue_bytes: usize) -> Lane {
        Lane {
            room: (queue_bytes / ANSWER_BYTES).max(LEAST),
            fresh: 0,
            sent: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Whether another one may be sent.
    pub(crate) fn has_room(&self) -> bool {
        self.fresh < self.room
    }

    /// One was sent.
    pub(crate) fn enter(&mut self, now_ns: u64, exchange: usize, serial: u32) {
        self.fresh += 1;
        self.sent.push_back((now_ns, exchange, serial));
    }

    /// One was answered, or is not waited for any more.
    pub(crate) fn leave(&mut self) {
        self.fresh = self.fresh.saturating_sub(1);
    }

    /// The next one that is no longer fresh, whether or not it is still out.
    pub(crate) fn take_stale(&mut self, now_ns: u64) -> Option<(usize, u32)> {
        let &(sent_ns, exchange, serial) = self.sent.front()?;
        if now_ns < sent_ns + FRESH_NS {
            return None;
        }
        self.sent.pop_front();
        Some((exchange, serial))
    }

    /// When somebody who waits may go on, if nothing comes before.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let &(sent_ns, _, _) = self.sent.front()?;
        (!self.waiting.is_empty()).then_some(sent_ns + FRESH_NS)
    }
}
