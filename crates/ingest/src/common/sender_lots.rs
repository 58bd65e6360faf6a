//! Senders in a fixed number of lots, for limits that each sender has a share of. A secret draws the lot of a sender group, so
//! forged addresses find no particular sender's lot, and the memory of the limits is fixed.

use std::hash::{BuildHasher as _, RandomState};

use crate::sender_group::SenderGroup;

/// Number of lots.
pub(crate) const LOTS: usize = 256;

/// Draws lots. Two of them draw differently.
#[derive(Debug, Default)]
pub(crate) struct SenderLots {
    keys: RandomState,
}

/// Number of a lot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SenderLot(pub(crate) u8);

impl SenderLots {
    /// The lot of a sender group.
    pub(crate) fn of(&self, group: SenderGroup) -> SenderLot {
        let [lot, ..] = self.keys.hash_one(group).to_le_bytes();
        SenderLot(lot)
    }
}

/// A value of each lot.
#[derive(Debug)]
pub(crate) struct ByLot<T>([T; LOTS]);

impl<T: Copy + Default> Default for ByLot<T> {
    fn default() -> Self {
        ByLot([T::default(); LOTS])
    }
}

impl<T> ByLot<T> {
    /// The value of a lot.
    pub(crate) fn of(&mut self, lot: SenderLot) -> Option<&mut T> {
        self.0.get_mut(usize::from(lot.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn each_sender_has_one_lot_and_senders_have_many() {
        let lots = SenderLots::default();
        let group = |n: u32| SenderGroup::of(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + n)));
        let drawn: HashSet<u8> = (0..10_000).map(|n| lots.of(group(n)).0).collect();
        assert_eq!(drawn.len(), LOTS);
        assert_eq!(lots.of(group(7)), lots.of(group(7)));
    }
}
