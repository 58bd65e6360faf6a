//! Maps texts to numbers without copying the texts.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Numbers by the hash of their text. The caller keeps and compares texts.
#[derive(Default)]
pub(super) struct Numbered {
    slots: HashMap<u64, u32>,
    hasher: RandomState,
}

/// Place for a text that [`Numbered::find`] did not find.
pub(super) struct Slot(u64);

impl Numbered {
    /// The number of a text, or a place to insert it. `is_it` compares the
    /// text with the one of a number.
    pub(super) fn find(&self, text: &[u8], is_it: impl Fn(u32) -> bool) -> Result<u32, Slot> {
        let mut slot = self.hasher.hash_one(text);
        while let Some(number) = self.slots.get(&slot) {
            if is_it(*number) {
                return Ok(*number);
            }
            slot = slot.wrapping_add(1);
        }
        Err(Slot(slot))
    }

    /// Inserts the number of a text that was not found.
    pub(super) fn insert(&mut self, slot: Slot, number: u32) {
        self.slots.insert(slot.0, number);
    }

    /// Removes the numbers from `from` on.
    pub(super) fn truncate(&mut self, from: u32) {
        self.slots.retain(|_, number| *number < from);
    }
}
