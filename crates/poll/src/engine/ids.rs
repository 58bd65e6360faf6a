//! Request ids: each attempt has a random one, so that an attacker without sight of the packets cannot forge an
//! answer.

use std::collections::HashMap;

use kymo_wire::snmp::IdWidth;

/// Fills a buffer with random bytes.
pub type Random = fn(&mut [u8]);

/// Random bytes that are read at a time, enough for 256 ids.
const POOL_BYTES: usize = 1024;

/// Ids of pending attempts.
pub(crate) struct Ids {
    out: HashMap<i32, Attempt>,
    random: Random,
    pool: [u8; POOL_BYTES],
    used: usize,
}

/// One sending of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Number of the exchange.
    pub exchange: usize,
    /// Number of the attempt, from 0.
    pub number: u8,
}

impl Ids {
    /// No pending ids.
    pub(crate) fn new(random: Random) -> Ids {
        Ids {
            out: HashMap::new(),
            random,
            pool: [0; POOL_BYTES],
            used: POOL_BYTES,
        }
    }

    /// A number that makes an unused id; `None`: hardly any id is free.
    pub(crate) fn give(&mut self, width: IdWidth, attempt: Attempt) -> Option<u32> {
        for _ in 0..64 {
            let number = self.number();
            if let std::collections::hash_map::Entry::Vacant(place) =
                self.out.entry(width.id(number))
            {
                place.insert(attempt);
                return Some(number);
            }
        }
        None
    }

    /// The pending attempt with this id.
    pub(crate) fn find(&self, id: i32) -> Option<Attempt> {
        self.out.get(&id).copied()
    }

    /// Frees an id.
    pub(crate) fn take_back(&mut self, id: i32) {
        self.out.remove(&id);
    }

    /// A random number.
    pub(crate) fn number(&mut self) -> u32 {
        if self.used + 4 > POOL_BYTES {
            (self.random)(&mut self.pool);
            self.used = 0;
        }
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.pool[self.used..self.used + 4]);
        self.used += 4;
        u32::from_ne_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(bytes: &mut [u8]) {
        for (n, chunk) in bytes.chunks_exact_mut(4).enumerate() {
            chunk.copy_from_slice(&(n as u32 / 2).to_ne_bytes());
        }
    }

    #[test]
    fn no_id_is_given_twice_while_it_is_out() {
        let mut ids = Ids::new(counting);
        let attempt = |exchange| Attempt {
            exchange,
            number: 0,
        };
        let width = IdWidth::Bits31;
        let first = ids.give(width, attempt(1)).unwrap();
        let second = ids.give(width, attempt(2)).unwrap();
        assert_ne!(width.id(first), width.id(second));
        assert_eq!(ids.find(width.id(first)), Some(attempt(1)));
        assert_eq!(ids.find(width.id(second)), Some(attempt(2)));
        ids.take_back(width.id(first));
        assert_eq!(ids.find(width.id(first)), None);
    }

    #[test]
    fn ids_of_16_bits_run_out() {
        let mut ids = Ids::new(|bytes| bytes.fill(0));
        let attempt = Attempt {
            exchange: 0,
            number: 0,
        };
        assert!(ids.give(IdWidth::Bits15, attempt).is_some());
        assert_eq!(ids.give(IdWidth::Bits15, attempt), None);
    }
}
