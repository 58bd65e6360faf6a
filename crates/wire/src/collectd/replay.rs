//! Repeated packets. A signature proves who wrote a packet, but not that the packet is sent for the first time.

use std::collections::hash_map::RandomState;
use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

/// Outcome of the search for a packet in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The window has no such packet.
    Fresh,
    /// The window has this packet already.
    Replayed,
}

/// The signatures and initialisation vectors of packets within a window of time. Each takes at most 34 bytes, and less than
/// twice that while the tables grow: 36 MB for [`ReplayWindow::COUNT_MAX`]. Above this count the oldest ones are forgotten;
/// then only the old times of their packets lead to a refusal.
#[derive(Debug)]
pub struct ReplayWindow {
    window_ms: u64,
    count_max: usize,
    /// The latest time that a caller has passed.
    now_ms: u64,
    /// A fingerprint of 8 bytes per packet. Two of a million fingerprints are equal once in 10^7 windows.
    seen: HashSet<u64, BuildHasherDefault<Itself>>,
    /// Arrival times and fingerprints, oldest first.
    order: VecDeque<(u64, u64)>,
    hasher: RandomState,
    forgotten: u64,
}

/// Hashes a fingerprint to itself: the fingerprint was made with a random key, which senders do not know.
#[derive(Clone, Copy, Debug, Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("BUG: fingerprints are numbers")
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

impl ReplayWindow {
    /// Length of the window, in milliseconds.
    pub const WINDOW_MS: u64 = 300_000;
    /// Most packets in the window.
    pub const COUNT_MAX: usize = 1_000_000;

    /// An empty window. `count_max` is at least 1.
    pub fn new(window_ms: u64, count_max: usize) -> ReplayWindow {
        ReplayWindow {
            window_ms,
            count_max: count_max.max(1),
            now_ms: 0,
            seen: HashSet::default(),
            order: VecDeque::new(),
            hasher: RandomState::new(),
            forgotten: 0,
        }
    }

    /// Looks up a packet whose proof was verified, and remembers it. `now_ms` may come from any clock; a time before the
    /// latest one counts as the latest.
    pub fn admit(&mut self, user: &[u8], unique: &[u8], now_ms: u64) -> Admission {
        self.now_ms = self.now_ms.max(now_ms);
        self.expire();
        let fingerprint = self.hasher.hash_one((user, unique));
        if !self.seen.insert(fingerprint) {
            return Admission::Replayed;
        }
        if self.order.len() >= self.count_max {
            self.forget_oldest();
            self.forgotten += 1;
        }
        self.order.push_back((self.now_ms, fingerprint));
        Admission::Fresh
    }

    /// Number of remembered packets.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// True if no packet is remembered.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Packets that were forgotten early, for lack of room.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn expire(&mut self) {
        while let Some(&(came_ms, _)) = self.order.front() {
            if self.now_ms - came_ms < self.window_ms {
                break;
            }
            self.forget_oldest();
        }
        // Frees memory after a peak. The tables keep twice the room that they need, so that they seldom shrink.
        let count = self.order.len();
        if self.order.capacity() > 1024 && count < self.order.capacity() / 8 {
            self.order.shrink_to(2 * count);
            self.seen.shrink_to(2 * count);
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, fingerprint)) = self.order.pop_front() {
            self.seen.remove(&fingerprint);
        }
    }
}

impl Default for ReplayWindow {
    fn default() -> ReplayWindow {
        ReplayWindow::new(ReplayWindow::WINDOW_MS, ReplayWindow::COUNT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::Admission::*;
    use super::*;

    #[test]
    fn a_packet_is_taken_once_in_the_window() {
        let mut window = ReplayWindow::default();
        for (now_ms, user, unique, expected) in [
            (1_000, "a", "1", Fresh),
            (1_000, "a", "1", Replayed),
            (1_001, "b", "1", Fresh),
            (1_001, "a", "2", Fresh),
            (2_000, "a1", "", Fresh),
            (300_999, "a", "1", Replayed),
            (301_000, "a", "1", Fresh),
            (301_000, "a", "1", Replayed),
            // A clock that goes back counts as standing still.
            (5, "a", "3", Fresh),
            (600_999, "a", "3", Replayed),
            (601_000, "a", "3", Fresh),
        ] {
            assert_eq!(
                window.admit(user.as_bytes(), unique.as_bytes(), now_ms),
                expected,
                "{now_ms} {user} {unique}"
            );
        }
        assert_eq!((window.len(), window.forgotten()), (1, 0));
    }

    #[test]
    fn the_oldest_are_forgotten_when_there_are_too_many() {
        let mut window = ReplayWindow::new(1_000, 3);
        for number in 0..5u8 {
            assert_eq!(window.admit(b"u", &[number], 0), Fresh);
        }
        assert_eq!((window.len(), window.forgotten()), (3, 2));
        assert_eq!(window.admit(b"u", &[4], 0), Replayed);
        assert_eq!(window.admit(b"u", &[0], 0), Fresh);
        assert_eq!(window.seen.len(), 3);
    }

    #[test]
    fn memory_is_bounded_and_given_back() {
        let mut window = ReplayWindow::new(10, 10_000);
        for number in 0..100_000u32 {
            assert_eq!(
                window.admit(b"u", &number.to_le_bytes(), u64::from(number / 20_000)),
                Fresh
            );
        }
        assert_eq!((window.len(), window.seen.len()), (10_000, 10_000));
        assert!(window.order.capacity() <= 16_384 && window.seen.capacity() <= 32_768);
        assert_eq!(window.admit(b"u", b"x", 1_000), Fresh);
        assert_eq!(window.len(), 1);
        assert!(window.order.capacity() < 1024 && window.seen.capacity() < 1024);
    }
}
