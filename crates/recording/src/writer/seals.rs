//! Makes tails durable: syncs them when due, seals full ones into blocks, and keeps the blocks
//! within the size limit and the retention time.

use super::slot::SlotState;
use super::{PAGE, Writer, nanoseconds};
use crate::error::{Error, Result};
use crate::ring::Placed;
use crate::seal::{self, Sealer};
use crate::tail::TailHeader;
use kymo_sys::clock::Stamp;
use kymo_sys::disk::DiskFile;
use std::path::Path;

/// Blocks that `keep` may remove after each seal: a clock that jumped must not empty the ring.
const KEEP_REMOVALS_MAX: usize = 4;

impl Writer {
    pub(super) fn sync_deadline(&self) -> Option<u64> {
        let first = self.slots.iter().filter_map(|slot| slot.unsynced_since_ns);
        Some(first.min()? + nanoseconds(self.options.sync_interval))
    }

    /// Syncs each tail with a record that has waited for at least `waited_ns`.
    pub(super) fn sync(&mut self, now: Stamp, waited_ns: u64) {
        for index in 0..self.slots.len() {
            let since_ns = self.slots[index].unsynced_since_ns;
            if since_ns.is_none_or(|since_ns| since_ns + waited_ns > now.mono_ns) {
                continue;
            }
            self.counters.syncs += 1;
            if let Err(error) = self.slots[index].sync() {
                self.failed(&error, now);
                self.distrust(index);
                // Another file may work at once, so do not wait before the next attempt.
                self.retry_at_ns = now.mono_ns;
            }
        }
    }

    pub(super) fn has_waiting(&self) -> bool {
        self.has_unsealed() || !self.leftovers.is_empty() || self.current.is_none()
    }

    /// Seals every full tail, and the tails of earlier boots.
    pub(super) fn seal_waiting(&mut self, now: Stamp) {
        if now.mono_ns < self.retry_at_ns {
            return;
        }
        if let Err(error) = self.seal_leftovers() {
            return self.failed(&error, now);
        }
        for index in self.by_age() {
            if self.slots[index].state == SlotState::Unsealed && !self.try_seal(index, now) {
                return;
            }
        }
    }

    /// The slots, the one with the older records first. Blocks are
    /// made in the order of sequence numbers, because readers compare
    /// a tail's number with the newest block's to see if it is sealed.
    pub(super) fn by_age(&self) -> [usize; 2] {
        let first = |index: usize| self.slots[index].first_seq();
        if first(1) < first(0) { [1, 0] } else { [0, 1] }
    }

    pub(super) fn seal_leftovers(&mut self) -> Result<()> {
        while let Some(path) = self.leftovers.first().cloned() {
            self.seal_leftover(&path)?;
            self.leftovers.remove(0);
        }
        Ok(())
    }

    pub(super) fn try_seal(&mut self, index: usize, now: Stamp) -> bool {
        let sealed = self.seal_leftovers();
        match sealed.and_then(|()| self.seal_slot(index, now)) {
            Ok(()) => true,
            Err(error) => {
                self.failed(&error, now);
                false
            }
        }
    }

    pub(super) fn seal_slot(&mut self, index: usize, now: Stamp) -> Result<()> {
        let slot = &mut self.slots[index];
        if slot.state != SlotState::Unsealed {
            return Ok(());
        }
        if let (Some(file), Some(header)) = (slot.file.take(), slot.header.take()) {
            let used = slot.used;
            let folder = self.folder.clone();
            let sealed = self.seal_file(&*file, &header, used, &folder);
            let slot = &mut self.slots[index];
            slot.file = Some(file);
            slot.header = Some(header);
            sealed?;
        }
        self.slots[index].free(&*self.disk, self.options.tail_bytes);
        self.retry_ns = 0;
        self.apply_keep(now);
        Ok(())
    }

    pub(super) fn seal_file(
        &mut self,
        file: &dyn DiskFile,
        header: &TailHeader,
        end: u64,
        folder: &Path,
    ) -> Result<()> {
        let scan = seal::scan(file, header, end);
        self.counters.damages += scan.damages;
        if scan.records == 0 {
            return Ok(());
        }
        self.hold_cap(scan.block_bytes_max().next_multiple_of(PAGE))?;
        let sealer = match &mut self.sealer {
            Some(sealer) => sealer,
            none => {
                let made = Sealer::new(self.options.level);
                none.insert(made.map_err(|cause| Error::damaged(folder, cause))?)
            }
        };
        let sealed = sealer.seal(
            &*self.disk,
            folder,
            &seal::Tail {
                file,
                header,
                scan: &scan,
            },
        )?;
        self.counters.seals += 1;
        self.counters.bytes_written += sealed.bytes;
        let placed = Placed {
            folder: folder.into(),
            name: sealed.name,
        };
        self.ring.add(placed, sealed.allocated_bytes);
        Ok(())
    }

    /// Removes the oldest blocks until `more` bytes fit within the size limit.
    pub(super) fn hold_cap(&mut self, more: u64) -> Result<()> {
        while self.allocated_bytes() + more > self.options.cap_bytes {
            if !self.ring.remove_oldest(&*self.disk, &self.folder)? {
                return Err(Error::CapUsedUp {
                    bytes: more,
                    cap_bytes: self.options.cap_bytes,
                });
            }
            self.counters.unlinks += 1;
        }
        Ok(())
    }

    /// Removes blocks older than `keep`. The current time is the wall time at `open` plus the
    /// time passed since, so that a step of the clock removes no blocks.
    fn apply_keep(&mut self, now: Stamp) {
        let Some(keep) = self.options.keep else {
            return;
        };
        let passed_ns = now.boot_ns.saturating_sub(self.opened.boot_ns);
        let now_s = self.opened.real_ns.saturating_add_unsigned(passed_ns) / 1_000_000_000;
        let limit_s = (now_s.max(0) as u64).saturating_sub(keep.as_secs());
        for _ in 0..KEEP_REMOVALS_MAX {
            match self.ring.oldest(&*self.disk) {
                Ok(Some(oldest)) if oldest.name.wall_max_s < limit_s => {}
                _ => return,
            }
            match self.ring.remove_oldest(&*self.disk, &self.folder) {
                Ok(_) => self.counters.unlinks += 1,
                Err(error) => return self.notice(&error),
            }
        }
    }
}
