//! Which number a text has, without a copy of the text.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Numbers by text. The texts are kept elsewhere: whoever asks can compare.
#[derive(Default)]
pub(super) struct Numbered {
    slots: HashMap<u64, u32>,
    hasher: RandomState,
}

/// Where a text that was not found belongs.
pub(super) struct Slot(u64);

impl Numbered {
    /// The number of the text for which `is_it` says so.
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

    /// Of the text that was looked for.
    pub(super) fn insert(&mut self, slot: Slot, number: u32) {
        self.slots.insert(slot.0, number);
    }

    /// Forgets the numbers from this one on.
    pub(super) fn truncate(&mut self, from: u32) {
        self.slots.retain(|_, number| *number < from);
    }
}
