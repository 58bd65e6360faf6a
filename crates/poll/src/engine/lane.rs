//! Limits the number of pending requests, so that all their answers together fit into the socket's queue.

use std::collections::VecDeque;

/// Time after which an answer does not count any more: earlier ones have been received, and a later one comes alone.
const FRESH_NS: u64 = 20_000_000;
/// Bytes that the kernel counts for an answer of one packet.
const ANSWER_BYTES: usize = 2560;
/// Smallest limit, even for a short queue.
const LEAST: usize = 16;

/// Requests that count against the limit.
pub(crate) struct Lane {
    room: usize,
    fresh: usize,
    /// Sending time, exchange and serial number of each request.
    sent: VecDeque<(u64, usize, u32)>,
    /// Devices that wait for room.
    pub waiting: VecDeque<usize>,
}

impl Lane {
    /// A limit for queues of this size.
    pub(crate) fn new(queue_bytes: usize) -> Lane {
        Lane {
            room: (queue_bytes / ANSWER_BYTES).max(LEAST),
            fresh: 0,
            sent: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    /// True if another request may be sent.
    pub(crate) fn has_room(&self) -> bool {
        self.fresh < self.room
    }

    /// Counts a request that was sent.
    pub(crate) fn enter(&mut self, now_ns: u64, exchange: usize, serial: u32) {
        self.fresh += 1;
        self.sent.push_back((now_ns, exchange, serial));
    }

    /// Stops counting a request that was answered or given up.
    pub(crate) fn leave(&mut self) {
        self.fresh = self.fresh.saturating_sub(1);
    }

    /// The next request that need not count any more, whether or not it is pending.
    pub(crate) fn take_stale(&mut self, now_ns: u64) -> Option<(usize, u32)> {
        let &(sent_ns, exchange, serial) = self.sent.front()?;
        if now_ns < sent_ns + FRESH_NS {
            return None;
        }
        self.sent.pop_front();
        Some((exchange, serial))
    }

    /// Time at which the next waiting device has room, if no answer comes before.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let &(sent_ns, _, _) = self.sent.front()?;
        (!self.waiting.is_empty()).then_some(sent_ns + FRESH_NS)
    }
}
