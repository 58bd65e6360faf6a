//! A quick hash with a secret, for tables whose keys senders choose. Senders cannot make keys collide on purpose, because they
//! neither know the secret nor see a hash. std's hash is safer and several times slower: it would need most of the time of a
//! statsd sample.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes hashers of one secret.
#[derive(Clone, Debug)]
pub(crate) struct KeyedHash {
    secret: [u64; 2],
}

/// A hash in the making: each word of eight bytes is multiplied into it, as wyhash does.
#[derive(Clone, Debug)]
pub(crate) struct KeyedHasher {
    state: u64,
    secret: u64,
}

impl Default for KeyedHash {
    /// Uses a secret of std's, which the kernel draws.
    fn default() -> KeyedHash {
        let draw = RandomState::new();
        KeyedHash {
            secret: [draw.hash_one(0u8), draw.hash_one(1u8)],
        }
    }
}

impl BuildHasher for KeyedHash {
    type Hasher = KeyedHasher;

    fn build_hasher(&self) -> KeyedHasher {
        let [state, secret] = self.secret;
        KeyedHasher { state, secret }
    }
}

impl KeyedHasher {
    fn mix(&mut self, word: u64) {
        self.state = folded(self.state ^ word, self.secret);
        // A product of 0 would lose the bytes before it.
        self.secret = self.secret.rotate_left(23) ^ 0x9e37_79b9_7f4a_7c15;
    }
}

impl Hasher for KeyedHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words
            .iter()
            .for_each(|word| self.mix(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        if let Some(room) = last.get_mut(..rest.len()) {
            room.copy_from_slice(rest);
        }
        self.mix(u64::from_le_bytes(last));
    }

    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(u64::try_from(number).unwrap_or(u64::MAX));
    }

    fn finish(&self) -> u64 {
        folded(self.state, self.secret)
    }
}

/// XOR of both halves of a product.
fn folded(one: u64, other: u64) -> u64 {
    let (low, high) = one.carrying_mul(other, 0);
    low ^ high
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_that_are_alike_do_not_meet() {
        let keyed = KeyedHash::default();
        let keys = (0..100_000u32).map(|number| format!("app.requests.host{number}|#a:b"));
        let keys = keys.chain((0..64).map(|length| "\0".repeat(length)));
        let keys: Vec<String> = keys.collect();
        let hashes: HashSet<u64> = keys
            .iter()
            .map(|key| keyed.hash_one(key.as_bytes()))
            .collect();
        assert_eq!(hashes.len(), keys.len());
        // Hash tables use the low bits and the high ones.
        for shift in [0, 57] {
            let parts: HashSet<u64> = hashes.iter().map(|hash| hash >> shift & 0x7f).collect();
            assert_eq!(parts.len(), 128);
        }
        let other = KeyedHash::default();
        assert_ne!(keyed.hash_one(b"a"), other.hash_one(b"a"));
    }
}
