//! Values that wait for somebody who is away, in the order in which they came.

use super::{Series, index};
use crate::batch::{Batch, Update};
use std::collections::{HashMap, VecDeque};

/// Bytes of values that wait at most: of 3,000 targets those of half a day.
const BYTES_MAX: usize = 32 << 20;
/// What a value takes beside its text.
const OVERHEAD: usize = 32;

/// Values, oldest first.
#[derive(Default)]
pub(super) struct Backlog {
    values: VecDeque<(u32, Box<[u8]>)>,
    bytes: usize,
}

impl Backlog {
    /// How many.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Adds one; how many older ones had to go for it.
    pub(super) fn push(&mut self, target: u32, argument: &[u8]) -> u64 {
        self.bytes += argument.len() + OVERHEAD;
        self.values.push_back((target, argument.into()));
        let mut dropped = 0;
        while self.bytes > BYTES_MAX && self.pop().is_some() {
            dropped += 1;
        }
        dropped
    }

    /// The oldest ones.
    pub(super) fn iter(&self) -> impl Iterator<Item = Update<'_>> {
        self.values.iter().map(|(target, argument)| Update {
            target: *target,
            argument,
        })
    }

    /// The first so many are done with.
    pub(super) fn drop_first(&mut self, count: usize) {
        for _ in 0..count {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<(u32, Box<[u8]>)> {
        let (target, argument) = self.values.pop_front()?;
        self.bytes -= argument.len() + OVERHEAD;
        Some((target, argument))
    }

    /// Targets have other numbers; values of those that are no more are forgotten.
    pub(super) fn follow(&mut self, before: &[Series], now: &[Series]) {
        if self.values.is_empty() {
            return;
        }
        let places: HashMap<&[u8], u32> =
            now.iter().map(|series| &series.name[..]).zip(0..).collect();
        for (target, argument) in std::mem::take(self).values {
            let name = before.get(index(target)).map(|series| &series.name[..]);
            if let Some(&target) = name.and_then(|name| places.get(name)) {
                self.push(target, &argument);
            }
        }
    }
}

/// All that is to be sent: what waited, then what is new.
pub(super) fn all<'a>(backlog: &'a Backlog, batch: &'a Batch) -> impl Iterator<Item = Update<'a>> {
    backlog.iter().chain(batch.iter())
}
