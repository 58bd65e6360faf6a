//! A block in a segment: the part of its head that is kept in memory, and its frames, which are read at need.

use crate::consolidation::schema::Schema;
use crate::layout::CHUNK;
use crate::segment::block::AGELESS;
use crate::segment::file::Segment;
use crate::segment::{block, block_cache};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock};

/// Number of a segment, and an offset in it.
pub(crate) type SegmentPosition = (u64, u64);

/// A block of a chunk.
#[derive(Clone)]
pub(crate) struct Placed {
    pub(crate) segment: Arc<Segment>,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// The journal's records before this position are saved.
    pub(crate) position: u64,
    /// Bit masks of the stripes with any content and of those with a state.
    pub(crate) stripes: u16,
    pub(crate) states: u16,
    /// Newest row of each archive, as in the block's head.
    pub(crate) newest: Arc<[u64]>,
    /// Bytes of rows for each archive, then bytes of the other frames.
    pub(crate) row_bytes: Arc<[u32]>,
    pub(crate) point_bytes: u32,
    pub(crate) state_bytes: u32,
    pub(crate) name_bytes: u32,
    /// Newest stamp, as in the block's head.
    pub(crate) stamp: u64,
    /// Second of the oldest sample, as in the block's head.
    pub(crate) oldest: Option<u64>,
    /// Checksum of its frames.
    pub(crate) crc: u32,
    /// The block's bytes, if its segment failed before they were synced.
    pub(crate) memory: Option<Arc<[u8]>>,
    /// The series of the block, if its head does not show when their rows are dead; read at first need.
    pub(crate) ages: Option<Arc<OnceLock<Ages>>>,
}

/// The series of a block and the stamps of their rows.
#[derive(Debug)]
pub(crate) struct Ages {
    /// Slots, with a stamp after which none of their rows is.
    pub(crate) upto: Vec<(u8, u64)>,
    /// For each archive, the slots that have rows, one bit each.
    pub(crate) slots: Vec<[u64; CHUNK / 64]>,
    /// Result of the last computation.
    pub(crate) found: Mutex<DeadRows>,
}

/// Dead bytes of a block at the last check.
#[derive(Debug)]
pub(crate) struct DeadRows {
    /// The newest position of the chunk at that check, and the
    /// first row of the first archive for which there was space.
    pub(crate) position: u64,
    pub(crate) first_row: u64,
    pub(crate) bytes: u64,
}

impl Default for DeadRows {
    fn default() -> DeadRows {
        DeadRows {
            position: u64::MAX,
            first_row: 0,
            bytes: 0,
        }
    }
}

impl Placed {
    /// Returns true if both are the same block.
    pub(crate) fn is(&self, other: &Placed) -> bool {
        Arc::ptr_eq(&self.segment, &other.segment) && self.offset == other.offset
    }

    pub(crate) fn of(segment: &Arc<Segment>, offset: u64, head: &block::Head) -> Placed {
        let states = head.parts.iter().filter(|(_, part)| part.state.is_some());
        let stripes = head.parts.iter();
        let row_bytes: Vec<u32> = head.row_bytes().iter().map(|&bytes| bytes as u32).collect();
        let points = head.parts.iter().filter_map(|(_, part)| part.points);
        Placed {
            segment: segment.clone(),
            offset,
            len: head.len,
            position: head.position,
            stripes: stripes.fold(0, |all, (stripe, _)| all | 1 << stripe),
            states: states.fold(0, |all, (stripe, _)| all | 1 << stripe),
            newest: head.newest.clone().into(),
            row_bytes: row_bytes.into(),
            point_bytes: points.map(|frame| frame.len).sum(),
            state_bytes: head.state_bytes() as u32,
            name_bytes: head.names.map_or(0, |frame| frame.len),
            stamp: head.stamp,
            oldest: head.oldest,
            crc: head.frames_crc(),
            memory: None,
            ages: head.newest.contains(&AGELESS).then(Arc::default),
        }
    }

    pub(crate) fn head(&self) -> io::Result<Option<Arc<block::Head>>> {
        match &self.memory {
            Some(bytes) => Ok(block::Head::parse(bytes).map(Arc::new)),
            None => block_cache::head(self.at(), || self.segment.head(self.offset)),
        }
    }

    pub(crate) fn at(&self) -> block_cache::At {
        (self.segment.opened, self.offset)
    }

    /// Reads a frame of at most [`block::FRAME_MAX`] bytes; `None` if it is damaged.
    pub(crate) fn frame(&self, frame: &block::FramePlace) -> io::Result<Option<Vec<u8>>> {
        self.frame_of(frame, block::FRAME_MAX)
    }

    /// Reads a frame of rows or samples through the cache, for callers that read one series after the other.
    pub(crate) fn shared_frame(&self, frame: &block::FramePlace) -> io::Result<Option<Rc<[u8]>>> {
        match &self.memory {
            Some(_) => Ok(self.frame(frame)?.map(Rc::from)),
            None => block_cache::frame(self.at(), frame.offset, || self.frame(frame)),
        }
    }

    pub(crate) fn frame_of(
        &self,
        frame: &block::FramePlace,
        max: usize,
    ) -> io::Result<Option<Vec<u8>>> {
        if frame.offset + u64::from(frame.len) > u64::from(self.len) {
            return Ok(None);
        }
        let Some(bytes) = &self.memory else {
            return self.segment.frame(self.offset, frame, max);
        };
        let bytes = bytes.get(frame.offset as usize..);
        let bytes = bytes.and_then(|bytes| bytes.get(..frame.len as usize));
        Ok(bytes.and_then(|bytes| block::unpack(frame, bytes, max)))
    }

    /// Returns true if the block may have samples between two times, in milliseconds since 1970.
    pub(crate) fn may_have_samples(&self, (from_ms, thru_ms): (i64, i64)) -> bool {
        let ms = |second: u64| i64::try_from(second.saturating_mul(1000)).unwrap_or(i64::MAX);
        let is_before = ms(self.stamp.saturating_add(1)) <= from_ms;
        let is_behind = self.oldest.is_some_and(|oldest| ms(oldest) > thru_ms);
        self.point_bytes > 0 && !is_before && !is_behind
    }

    pub(crate) fn has_state(&self, stripe: u8) -> bool {
        self.states & 1 << stripe != 0
    }

    /// The states of a stripe; `None` if they are unreadable.
    pub(crate) fn states(&self, schema: &Schema, stripe: u8) -> io::Result<Option<block::States>> {
        let head = self.head()?;
        let part = head.as_ref().and_then(|head| head.part(stripe));
        let Some(frame) = part.and_then(|part| part.state) else {
            return Ok(None);
        };
        // Limits the length, since few compressed zeros could otherwise need more memory than any states.
        let raw = self.frame_of(&frame, schema.state_bytes_max())?;
        Ok(raw.and_then(|raw| block::take_state(&raw, schema.words)))
    }

    /// Position of the block; blocks that were appended later have a higher one.
    pub(crate) fn place(&self) -> SegmentPosition {
        (self.segment.numbers.first, self.offset)
    }

    /// Bytes that are neither rows nor points.
    pub(crate) fn other_bytes(&self) -> u32 {
        let rows: u32 = self.row_bytes.iter().sum();
        self.len.saturating_sub(rows + self.point_bytes)
    }

    /// Returns true if both have the same content, at whatever position.
    pub(crate) fn is_copy_of(&self, other: &Placed) -> bool {
        let same = |placed: &Placed| (placed.position, placed.len, placed.crc, placed.stamp);
        // Different series can have the same rows, so the frames alone do not distinguish them.
        let same_series = (self.stripes, self.states) == (other.stripes, other.states);
        same(self) == same(other) && same_series && self.newest == other.newest
    }
}
