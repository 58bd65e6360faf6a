//! Errors of the disk: whole records are dropped and counted, a file that failed is given up, the
//! next attempt waits, and users get a message, also as an event in the recording.

use super::slot::SlotState;
use super::{Appended, Writer, nanoseconds};
use crate::error::Error;
use crate::record;
use kymo_sys::clock::Stamp;
use kymo_sys::disk::is_full;
use std::io;

/// Limit of the pause, in multiples of `retry_after`; repeated failures make it longer.
const RETRY_FACTOR_MAX: u64 = 16;
const NOTICES_MAX: usize = 64;

impl Writer {
    pub(super) fn drop_records(&mut self, count: u32, appended: &mut Appended) {
        appended.dropped += count;
        self.counters.dropped_records += u64::from(count);
        self.need_key = true;
    }

    pub(super) fn give_up_run(
        &mut self,
        index: usize,
        run: &mut [u8],
        cause: io::Error,
        sum: &mut Appended,
    ) {
        let count = forget_seqs(run);
        sum.recorded -= count;
        self.drop_records(count, sum);
        self.counters.write_errors += 1;
        let full = is_full(&cause);
        self.notice(&Error::io("write", &self.slots[index].path, cause));
        if !full {
            self.distrust(index);
        }
    }

    /// After a failed write or sync the content of the disk is unknown: the readable records are
    /// sealed into a block, and the file is created again before its next use.
    pub(super) fn distrust(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.distrusted = true;
        slot.unsynced_since_ns = None;
        if slot.state == SlotState::Active {
            slot.state = SlotState::Unsealed;
        }
        if self.current == Some(index) {
            self.current = None;
            self.need_key = true;
        }
        self.counters.tail_renewals += 1;
    }

    /// Records the errors as events.
    pub(super) fn append_events(&mut self, now: Stamp) {
        // While a key is missing the disk may still be full, and the event would be dropped too.
        if self.events.is_empty() || self.current.is_none() || self.need_key {
            return;
        }
        let mut batch = Vec::new();
        for line in std::mem::take(&mut self.events) {
            record::push_event(&mut batch, now, &line);
        }
        self.append_records(&mut batch, now);
    }

    pub(super) fn notice(&mut self, error: &Error) {
        let line = error.to_string();
        if self.notices.len() < NOTICES_MAX && self.notices.last() != Some(&line) {
            self.notices.push(line.clone());
        }
        if self.events.len() < NOTICES_MAX && !self.events.contains(&line) {
            self.events.push(line);
        }
    }

    pub(super) fn failed(&mut self, error: &Error, now: Stamp) {
        self.counters.write_errors += 1;
        let least_ns = nanoseconds(self.options.retry_after);
        self.retry_ns = (2 * self.retry_ns).clamp(least_ns, RETRY_FACTOR_MAX * least_ns);
        self.retry_at_ns = now.mono_ns + self.retry_ns;
        self.notice(error);
    }
}

/// Clears the sequence numbers of the records of a run; returns the number of records.
fn forget_seqs(run: &mut [u8]) -> u32 {
    let (mut count, mut at) = (0, 0);
    while let Some(raw) = record::peek(&run[at..]) {
        run[at + 8..at + 16].fill(0);
        count += 1;
        at += raw.length;
    }
    count
}
