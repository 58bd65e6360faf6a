//! Finds the next file to read: blocks by their names, then tails that are in no block.

use super::{Cursor, OpenFile};
use crate::error::Result;
use crate::reader::{Listed, TimeRange};
use crate::tail::TailHeader;
use kymo_sys::disk::OpenMode;
use std::path::Path;

/// A block in the cursor's queue.
pub(super) struct Queued {
    pub(super) block: Listed,
    /// Set if the previous block of the recording is read too.
    pub(super) follows: bool,
}

impl Cursor {
    // ---- what to read next

    pub(super) fn enter_next(&mut self) -> Result<bool> {
        // The listed tails may be outdated by now; `enter_tail` detects that.
        if self.queue.is_empty() && self.next_tail().is_none() {
            if self.beyond {
                return Ok(false);
            }
            self.look_around()?;
        }
        if self.hole_ahead() {
            // The listing may have missed a block that was renamed meanwhile.
            self.look_around()?;
        }
        if let Some(queued) = self.queue.pop_front() {
            self.entered_block = Some(queued.block.name.first_seq);
            self.enter_block(&queued);
            return Ok(true);
        }
        match self.next_tail() {
            Some(index) => {
                let (path, header) = self.tails.remove(index);
                self.enter_tail(path, header)
            }
            None => Ok(false),
        }
    }

    /// Index of the oldest tail that is in no block and has not been read.
    fn next_tail(&self) -> Option<usize> {
        let (sealed, done) = (self.newest_block, self.newest_tail);
        self.tails.iter().position(|(_, header)| {
            sealed.is_none_or(|sealed| header.first_seq > sealed)
                && done.is_none_or(|done| tail_order(header) > done)
        })
    }

    fn hole_ahead(&self) -> bool {
        let next = match (self.queue.front(), self.next_tail()) {
            (Some(queued), _) => queued.follows.then_some(queued.block.name.first_seq),
            (None, Some(index)) => Some(self.tails[index].1.first_seq),
            (None, None) => None,
        };
        matches!((next, self.chain.expected), (Some(next), Some(expected)) if next > expected)
    }

    /// Lists the tails before the blocks: a tail that the recorder seals in between is then found as a
    /// block rather than missed.
    pub(super) fn look_around(&mut self) -> Result<()> {
        self.look_at_tails()?;
        let blocks = self.recording.blocks(&self.folders)?;
        let floor = self.unread_from();
        let from = blocks.partition_point(|block| block.name.first_seq < floor);
        self.queue.clear();
        self.enqueue(&blocks, from);
        self.newest_block = blocks.last().map(|block| block.name.first_seq);
        Ok(())
    }

    /// Reads the headers of all tails; a few small reads, however long the ring.
    pub(super) fn look_at_tails(&mut self) -> Result<()> {
        self.folders = self.recording.folders()?;
        self.tails.clear();
        for path in self.recording.tails(&self.folders) {
            if let Some(header) = self.tail_header(&path) {
                self.tails.push((path, header));
            }
        }
        self.tails.sort_by_key(|(_, header)| tail_order(header));
        Ok(())
    }

    fn tail_header(&mut self, path: &Path) -> Option<TailHeader> {
        let file = self.recording.disk.open(path, OpenMode::Read).ok()?;
        let header = TailHeader::read(&*file).ok()?.ok()?;
        let context_len = header.context.as_ref().map_or(0, String::len);
        self.bytes_read += (4096 + context_len) as u64;
        Some(header)
    }

    /// Blocks whose first sequence number is lower have been read, as blocks or as tails. A block made
    /// of the tail that is being read has not: the tail may be overwritten before its end is read.
    fn unread_from(&self) -> u64 {
        let block = self
            .entered_block
            .map_or(0, |first_seq| first_seq.saturating_add(1));
        let tail = self
            .newest_tail
            .map_or(0, |(first_seq, _)| first_seq.saturating_add(1));
        let current = match &self.place {
            OpenFile::Tail(tail) => tail.header.first_seq,
            _ => 0,
        };
        block.max(tail).max(current)
    }

    /// Queues the blocks of the range, from index `from` on.
    fn enqueue(&mut self, blocks: &[Listed], from: usize) {
        let range = self.range;
        let started = self.unread_from() > 0;
        let wanted = |block: &Listed| intersects(&range, block);
        let mut first = (from..blocks.len()).find(|index| wanted(&blocks[*index]));
        if !started && self.needs_predecessor(first.map(|index| &blocks[index])) {
            let before = first.unwrap_or(blocks.len()).checked_sub(1);
            first = before.or(first);
        }
        let Some(first) = first else {
            return;
        };
        for index in first..blocks.len() {
            if index == first || wanted(&blocks[index]) {
                let follows = index > first && wanted(&blocks[index - 1]) || index == first + 1;
                let follows = follows || started && index == from;
                self.queue.push_back(Queued {
                    block: blocks[index],
                    follows,
                });
            }
        }
    }

    /// Returns true if the last sample before the range can only be in the block before `first`, the
    /// first block in the range.
    fn needs_predecessor(&self, first: Option<&Listed>) -> bool {
        let start_ns = match first {
            Some(block) => block.name.wall_min_s as i64 * 1_000_000_000,
            None => match self.tails.first() {
                Some((_, header)) => header.stamp.real_ns,
                None => return false,
            },
        };
        self.range.from_ns > 0 && start_ns.saturating_add(999_999_999) >= self.range.from_ns
    }
}

fn intersects(range: &TimeRange, block: &Listed) -> bool {
    let second = |ns: i64| (ns.max(0) / 1_000_000_000) as u64;
    block.name.wall_max_s >= second(range.from_ns) && block.name.wall_min_s <= second(range.thru_ns)
}

/// Sort key of tails, in the order of their use. Two tails may have the same first sequence number, if
/// an error followed the write of the first one's header.
pub(super) fn tail_order(header: &TailHeader) -> (u64, u64) {
    (header.first_seq, header.epoch)
}
