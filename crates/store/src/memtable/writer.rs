//! The writer of a series: one at a time, until it falls silent or a writer of a higher rank sends values.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

/// A writer of values. Two writers may be confused by chance, one pair in a thousand million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writer(u32);

/// Position of the writer's rank in the upper two bits; a higher rank is better authenticated.
const RANK_SHIFT: u32 = 30;
const ADDRESS: u32 = 1;
const UID: u32 = 2;
const SIGNED: u32 = 3;

impl Writer {
    /// Any writer; it may always write.
    pub const ANYBODY: Writer = Writer(0);

    /// The writer at an address, as far as addresses can be trusted.
    pub fn address(address: IpAddr) -> Writer {
        Writer::of(ADDRESS, address)
    }

    /// All clients of a protocol on unix sockets, as one writer.
    pub fn local_clients(protocol: &str) -> Writer {
        Writer::of(UID, protocol)
    }

    /// All clients of a protocol on the network, as one writer.
    pub fn remote_clients(protocol: &str) -> Writer {
        Writer::of(ADDRESS, protocol)
    }

    /// A process of a user, as reported by the kernel.
    pub fn uid(uid: u32) -> Writer {
        Writer::of(UID, uid)
    }

    /// A client with the password of this user.
    pub fn signed(user: &[u8]) -> Writer {
        Writer::of(SIGNED, user)
    }

    fn of(rank: u32, who: impl Hash) -> Writer {
        let mut hasher = DefaultHasher::new();
        who.hash(&mut hasher);
        let [a, b, c, d, ..] = hasher.finish().to_le_bytes();
        let hash = u32::from_le_bytes([a, b, c, d]) >> (u32::BITS - RANK_SHIFT);
        Writer(rank << RANK_SHIFT | hash)
    }

    /// Returns true for the same name, even if the ranks differ.
    fn is_same(self, other: Writer) -> bool {
        const WHO: u32 = (1 << RANK_SHIFT) - 1;
        self.0 & WHO == other.0 & WHO
    }

    fn rank(self) -> u32 {
        self.0 >> RANK_SHIFT
    }
}

const SECOND_NS: u64 = 1_000_000_000;

/// The writer that holds a series.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hold {
    writer: Writer,
    /// Time of its last value (monotonic).
    heard_ns: u64,
}

impl Hold {
    /// Returns true if a writer may change the series now.
    pub(crate) fn allows(&self, writer: Writer, now_ns: u64, interval_s: u64) -> bool {
        let silent_s = now_ns.saturating_sub(self.heard_ns) / SECOND_NS;
        writer == Writer::ANYBODY
            || self.writer.is_same(writer)
            || self.writer.rank() < writer.rank()
            || silent_s >= interval_s.saturating_mul(2)
    }

    /// Returns true if a writer may write, and then makes it the holder of the series.
    pub(crate) fn admits(&mut self, writer: Writer, now_ns: u64, interval_s: u64) -> bool {
        let may = self.allows(writer, now_ns, interval_s);
        if may && writer != Writer::ANYBODY {
            *self = Hold {
                writer,
                heard_ns: now_ns,
            };
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writes_until_it_is_silent_or_another_is_better_known() {
        let [a, b] = [1, 2].map(|last| Writer::address(IpAddr::from([10, 0, 0, last])));
        let (user, signed) = (Writer::uid(0), Writer::signed(b"web"));
        let mut hold = Hold::default();
        let mut at = |writer, second: u64| hold.admits(writer, second * 1_000_000_000, 10);
        assert!(at(a, 1000) && at(a, 1010));
        assert!(!at(b, 1011));
        assert!(!at(b, 1029) && at(b, 1031));
        assert!(!at(a, 1032));
        assert!(at(user, 1033) && !at(b, 1034));
        assert!(at(signed, 1035) && !at(user, 1036) && !at(a, 1054));
        assert!(at(a, 1056));
        let allows = |writer| hold.allows(writer, 1_057_000_000_000, 10);
        assert!(allows(a) && !allows(b) && allows(Writer::ANYBODY));
        assert!(allows(Writer::local_clients("x")) && !allows(Writer::remote_clients("x")));
    }
}
