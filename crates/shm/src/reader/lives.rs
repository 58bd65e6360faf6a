//! Which owners of slots live: the kernel is asked for the locks of their processes.

use std::collections::{HashMap, HashSet};

use crate::head::{Head, halves};
use crate::header::Header;
use crate::layout::{LIFE, OWNER};
use crate::life;
use crate::reader::bytes::Bytes;

/// The first minor version whose writers publish the lock that shows that they live.
const MINOR: u16 = 1;
/// The kernel goes through all locks of a file for each question. Questions times locks of a look, at most: about 5 ms
/// (guessed from 5 ns a lock). Of more processes a part is asked for by turns: of 5,000 all in 25 looks.
const STEPS: usize = 1 << 20;
/// Questions of a look, at least.
const LEAST: usize = 64;

/// Ownership of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tenure {
    /// The slot has no owner.
    Free,
    /// The owner lives, as far as can be known.
    Lives,
    /// The owner has ended without giving the slot back.
    Ended,
    /// An owner is taking the slot: the values are those of the owner before.
    Begins,
}

/// Known processes of a publisher.
#[derive(Default)]
pub(crate) struct Lives {
    /// Bytes of processes that have ended: no process locks them again.
    ended: HashSet<u32>,
    /// Bytes of the look before, and of this one, by whether they were asked for in it.
    count: usize,
    seen: HashMap<u32, bool>,
    /// Slots from which on it is asked.
    next: usize,
    left: usize,
}

impl Lives {
    /// Begins to look at all slots.
    pub(crate) fn begin(&mut self) {
        self.ended.retain(|byte| self.seen.contains_key(byte));
        self.count = self.seen.len();
        self.seen.clear();
        self.left = (STEPS / self.count.max(1)).max(LEAST);
    }

    /// Ownership of a slot.
    pub(crate) fn of(&mut self, slot: usize, head: &Head, header: &Header, file: &Bytes) -> Tenure {
        let ([pid, taken], [byte, of]) = (halves(head.0[OWNER]), halves(head.0[LIFE]));
        match () {
            () if pid == 0 => Tenure::Free,
            () if header.minor < MINOR => Tenure::Lives,
            () if taken != of => Tenure::Begins,
            () if byte == 0 => Tenure::Lives,
            () if self.has_ended(slot, byte, file) => Tenure::Ended,
            () => Tenure::Lives,
        }
    }

    fn has_ended(&mut self, slot: usize, byte: u32, file: &Bytes) -> bool {
        let is_asked = self.seen.entry(byte).or_default();
        if !*is_asked && slot >= self.next && self.left > 0 && !self.ended.contains(&byte) {
            *is_asked = true;
            self.left -= 1;
            if life::is_free(file.file(), byte) {
                self.ended.insert(byte);
            }
            if self.left == 0 {
                self.next = slot + 1;
            }
        }
        self.ended.contains(&byte)
    }

    /// Ends the look. Where all have been asked for, the next look begins with the first slot again.
    pub(crate) fn end(&mut self) {
        if self.left > 0 {
            self.next = 0;
        }
    }
}
