//! The open segment, and the blocks that are not synced yet.

use crate::segment::file::Segment;
use crate::segment::placed::Placed;
use std::sync::Arc;

/// State of appending.
pub(crate) struct SegmentWriter {
    pub(crate) open: Option<OpenSegment>,
    pub(crate) next_number: u64,
    pub(crate) random: u64,
    /// Blocks that may not be on the disk.
    pub(crate) kept: Vec<Unsynced>,
    pub(crate) bytes_written: u64,
}

/// The segment that is being written.
pub(crate) struct OpenSegment {
    pub(crate) segment: Arc<Segment>,
    pub(crate) offset: u64,
    /// Offset up to which the segment is on the disk.
    pub(crate) synced: u64,
    /// The segment's name is on the disk.
    pub(crate) named: bool,
    /// Offset of the end of the last synced mark.
    pub(crate) marked: u64,
}

/// A block that may not be on the disk.
pub(crate) struct Unsynced {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) chunk: u32,
    pub(crate) bytes: Arc<[u8]>,
}

impl SegmentWriter {
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept.iter().map(|kept| kept.bytes.len()).sum()
    }

    pub(crate) fn is_long(&self, segment_bytes: u64) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.offset >= segment_bytes)
    }

    pub(crate) fn number(&self) -> Option<u64> {
        self.open.as_ref().map(|open| open.segment.numbers.first)
    }
}

impl Unsynced {
    /// Returns true if it is this block.
    pub(crate) fn is(&self, placed: &Placed) -> bool {
        (placed.segment.numbers.first, placed.offset) == (self.segment, self.offset)
    }
}
