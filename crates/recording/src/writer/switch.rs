//! Switches between the two tails: when the current tail is full or old, the writer requests a
//! key, and that key begins the other tail.

use super::slot::{Slot, SlotState};
use super::{BLOCKS_MIN, PAGE, Writer, nanoseconds};
use crate::block;
use crate::error::Result;
use crate::tail::{self, TailHeader};
use kymo_sys::clock::Stamp;
use std::sync::atomic::Ordering;

/// Limit of a tail's size, so that a reader can decode its block as a whole.
const TAIL_BYTES_MAX: u64 = block::DECODED_MAX - (8 << 20);
const SEAL_BYTES_MAX: u64 = 32 << 20;

impl Writer {
    fn seal_threshold(&self) -> u64 {
        let wanted = self.options.seal_bytes.max(4 * self.last_key_bytes);
        let wanted = wanted.min(SEAL_BYTES_MAX);
        wanted.min(self.options.cap_bytes / BLOCKS_MIN)
    }

    /// Limit of a tail's size, so that two tails and the block of one fit within the size limit.
    pub(super) fn tail_bytes_max(&self) -> u64 {
        (self.options.cap_bytes / 4).min(TAIL_BYTES_MAX)
    }

    pub(super) fn seal_due(&self, run_bytes: u64, now_mono_ns: u64) -> bool {
        let Some(slot) = self.current.map(|index| &self.slots[index]) else {
            return false;
        };
        let aged = slot.first_mono_ns.is_some_and(|first| {
            now_mono_ns.saturating_sub(first) >= nanoseconds(self.options.seal_after)
        });
        aged || slot.held_bytes() + run_bytes > self.seal_threshold()
    }

    pub(super) fn want_key(&mut self, now: Stamp) {
        if self.need_key || self.seal_due(0, now.mono_ns) && self.can_switch(now) {
            self.key_wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Returns true if a switch is possible. Keys are large, so none is requested otherwise.
    fn can_switch(&self, now: Stamp) -> bool {
        now.mono_ns >= self.retry_at_ns && !self.has_unsealed()
    }

    pub(super) fn has_unsealed(&self) -> bool {
        let unsealed = |slot: &Slot| slot.state == SlotState::Unsealed;
        self.slots.iter().any(unsealed)
    }

    pub(super) fn age_deadline(&self) -> Option<u64> {
        let slot = &self.slots[self.current?];
        Some(slot.first_mono_ns? + nanoseconds(self.options.seal_after))
    }

    /// Switches to the other tail if possible; otherwise the current one grows. The old tail is
    /// sealed at once, or synced when due: a block makes the sync of its tail unnecessary.
    pub(super) fn switch(&mut self, now: Stamp, first_seq: u64) {
        let Some(old) = self.current else {
            return;
        };
        let other = 1 - old;
        if self.slots[other].state == SlotState::Unsealed && !self.try_seal(other, now) {
            return;
        }
        if now.mono_ns >= self.retry_at_ns && self.try_begin(other, now, first_seq) {
            self.slots[old].state = SlotState::Unsealed;
            self.counters.switches += 1;
        }
    }

    /// Begins a tail when none is current.
    pub(super) fn begin_tail(&mut self, now: Stamp, first_seq: u64) {
        for index in 0..self.slots.len() {
            let free = self.slots[index].state == SlotState::Free;
            if free && self.try_begin(index, now, first_seq) {
                return;
            }
        }
        for index in self.by_age() {
            let sealed =
                self.slots[index].state == SlotState::Unsealed && self.try_seal(index, now);
            if sealed && self.try_begin(index, now, first_seq) {
                return;
            }
        }
    }

    fn try_begin(&mut self, index: usize, now: Stamp, first_seq: u64) -> bool {
        let Err(error) = self.begin(index, now, first_seq) else {
            return true;
        };
        if !error.is_full() {
            self.slots[index].distrusted = true;
            let _tried_again_at_next_use = self.slots[index].remove(&*self.disk);
        }
        self.failed(&error, now);
        false
    }

    fn begin(&mut self, index: usize, now: Stamp, first_seq: u64) -> Result<()> {
        let start = tail::records_offset(self.context.len());
        self.provide_file(index, self.options.tail_bytes.max(start + PAGE))?;
        let later = self.last_epoch.saturating_add(1);
        self.last_epoch = later.max(now.real_ns.max(0) as u64);
        let header = TailHeader::new(self.last_epoch, first_seq, now, &self.context);
        self.counters.bytes_written += self.slots[index].begin(header)?;
        self.retry_ns = 0;
        self.current = Some(index);
        Ok(())
    }

    fn provide_file(&mut self, index: usize, size: u64) -> Result<()> {
        if self.slots[index].distrusted {
            self.slots[index].remove(&*self.disk)?;
        }
        let missing = self.slots[index].missing_bytes(size);
        if missing > 0 {
            self.hold_cap(missing)?;
        }
        let filled = self.slots[index].provide(&*self.disk, &self.folder, size);
        self.counters.bytes_written += filled?;
        Ok(())
    }

    /// Reserves space within the size limit for a tail that outgrows its file; the disk space is
    /// allocated by the write.
    pub(super) fn grow(&mut self, index: usize, end: u64) -> bool {
        let more = self.slots[index].missing_bytes(end);
        match self.hold_cap(more) {
            Ok(()) => {
                let slot = &mut self.slots[index];
                slot.size += more;
                slot.allocated_bytes += more;
                self.counters.tail_growths += 1;
                true
            }
            Err(error) => {
                self.notice(&error);
                false
            }
        }
    }
}
