//! Accepted signed messages of an engine. A message is refused when it comes again, and when it is older than the remembered
//! ones.

use std::collections::{HashSet, VecDeque};

/// A moment of an engine: boots and time.
pub(super) type EngineMoment = (u32, u32);

/// Messages of an engine that were taken.
#[derive(Debug, Default)]
pub(super) struct Replays {
    /// Messages up to this moment are refused.
    floor: Option<EngineMoment>,
    seen: HashSet<u64>,
    order: VecDeque<(EngineMoment, u64)>,
}

impl Replays {
    /// Refuses all messages up to this moment.
    pub(super) fn up_to(floor: EngineMoment) -> Replays {
        Replays {
            floor: Some(floor),
            ..Replays::default()
        }
    }

    /// True if a message with this hash is new; it is no more after that. At most `most` are remembered one by one.
    pub(super) fn is_new(&mut self, moment: EngineMoment, hash: u64, most: usize) -> bool {
        if self.floor.is_some_and(|floor| moment <= floor) || !self.seen.insert(hash) {
            return false;
        }
        self.order.push_back((moment, hash));
        while self.order.len() > most {
            if let Some((moment, hash)) = self.order.pop_front() {
                self.seen.remove(&hash);
                self.floor = self.floor.max(Some(moment));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_new_once() {
        let mut replays = Replays::default();
        for (moment, hash, is_new) in [
            ((1, 5), 1, true),
            ((1, 5), 1, false),
            ((1, 5), 2, true),
            ((1, 4), 3, true),
            ((1, 6), 4, true),
            // The first one is forgotten, and with it its moment.
            ((1, 5), 1, false),
            ((1, 5), 5, false),
            ((1, 6), 6, true),
            ((2, 0), 7, true),
        ] {
            assert_eq!(replays.is_new(moment, hash, 3), is_new, "{moment:?} {hash}");
        }
        let mut replays = Replays::up_to((3, 10));
        assert!(!replays.is_new((3, 10), 1, 3) && !replays.is_new((2, 99), 2, 3));
        assert!(replays.is_new((3, 11), 1, 3));
    }
}
