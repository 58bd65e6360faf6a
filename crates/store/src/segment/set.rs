//! The segments of a store. Chunks of series are saved one at a time, as blocks that are appended to segments; no block is
//! changed in place. The blocks of a chunk, oldest first, are the state of its series up to a position of the journal.
//!
//! Layout: docs/formats/store.md.

use crate::consolidation::rows;
use crate::consolidation::schema::Schema;
use crate::layout::{CHUNK, STRIPE};
use crate::segment::file::Segment;
use crate::segment::placed::{Placed, SegmentPosition};
use crate::segment::writer::SegmentWriter;
use crate::segment::{block, block_cache};
use kymo_sys::disk::Disk;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Length from which on a segment is followed by another.
pub(crate) const SEGMENT_BYTES: u64 = 64 << 20;

/// All blocks of all chunks, in segments.
pub(crate) struct SegmentSet {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) folder: PathBuf,
    /// Length from which on a segment is followed by another.
    pub(crate) segment_bytes: u64,
    pub(crate) index: Mutex<Index>,
    pub(crate) writer: Mutex<SegmentWriter>,
    /// Blocks of the chunks that are being flushed, as of the start of the flush.
    pub(crate) pinned: Mutex<HashMap<u32, Arc<Vec<Placed>>>>,
}

#[derive(Clone, Default)]
pub(crate) struct Index {
    /// Points before this stamp are dead for lack of space.
    pub(crate) points_from: u64,
    /// Rows of the finest tier of series of points that end before this second are dead for lack of space.
    pub(crate) fine_from: u64,
    /// The store is larger than its limit.
    pub(crate) is_full: bool,
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) chunks: BTreeMap<u32, Arc<Vec<Placed>>>,
}

/// A place with a damaged block, which may be of any of these chunks.
pub(crate) struct Gap {
    pub(crate) place: SegmentPosition,
    /// The chunks that it may belong to.
    pub(crate) chunks: RangeInclusive<u32>,
}

/// Findings of opening the segments.
#[derive(Default)]
pub(crate) struct OpenFindings {
    pub(crate) notices: Vec<String>,
    pub(crate) gaps: Vec<Gap>,
}

/// Data that a chunk may lack after damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lacks {
    /// Blocks after its newest one.
    pub(crate) newer: bool,
    /// Stripes that may lack a state newer than the newest one found.
    pub(crate) states: u16,
}

/// Totals for tests.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) segments: u64,
    pub(crate) blocks: u64,
    pub(crate) row_bytes: u64,
    pub(crate) point_bytes: u64,
    pub(crate) other_bytes: u64,
    pub(crate) bytes_written: u64,
}

impl SegmentSet {
    pub(crate) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, SegmentWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The blocks of a chunk, oldest first.
    pub(crate) fn blocks(&self, chunk: u32) -> Arc<Vec<Placed>> {
        self.index().chunks.get(&chunk).cloned().unwrap_or_default()
    }

    /// The blocks of a chunk for readers: a block is visible after its flush has ended. To be called under the store's lock,
    /// as [`SegmentSet::pin`].
    pub(crate) fn visible_blocks(&self, chunk: u32) -> Arc<Vec<Placed>> {
        let pinned = self.pinned().get(&chunk).cloned();
        pinned.unwrap_or_else(|| self.blocks(chunk))
    }

    /// Begins a flush of a chunk: readers see its present blocks until [`SegmentSet::unpin`].
    pub(crate) fn pin(&self, chunk: u32) -> Arc<Vec<Placed>> {
        let blocks = self.blocks(chunk);
        self.pinned().insert(chunk, blocks.clone());
        blocks
    }

    /// Ends a flush of a chunk.
    pub(crate) fn unpin(&self, chunk: u32) {
        self.pinned().remove(&chunk);
    }

    fn pinned(&self) -> MutexGuard<'_, HashMap<u32, Arc<Vec<Placed>>>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Position of the journal up to which a chunk's records are saved.
    pub(crate) fn position(&self, chunk: u32) -> u64 {
        let blocks = self.blocks(chunk);
        let positions = blocks.iter().map(|placed| placed.position);
        positions.max().unwrap_or(0)
    }

    /// Data of a chunk that the damaged blocks may have had.
    pub(crate) fn lacks(&self, chunk: u32, gaps: &[Gap]) -> Lacks {
        let (blocks, mut lacks) = (self.blocks(chunk), Lacks::default());
        for gap in gaps.iter().filter(|gap| gap.chunks.contains(&chunk)) {
            let is_before = |placed: &Placed| placed.place() < gap.place;
            if blocks.last().is_none_or(is_before) {
                lacks.newer = true;
                continue;
            }
            for stripe in 0..(CHUNK / STRIPE) as u8 {
                let mut newest = blocks.iter().rev();
                let newest = newest.find(|placed| placed.has_state(stripe));
                lacks.states |= u16::from(newest.is_some_and(is_before)) << stripe;
            }
        }
        lacks
    }

    /// Numbers of the chunks that have blocks.
    pub(crate) fn chunks(&self) -> Vec<u32> {
        self.index().chunks.keys().copied().collect()
    }

    /// Totals for tests.
    #[cfg(test)]
    pub(crate) fn totals(&self) -> Totals {
        let bytes_written = self.writer().bytes_written;
        let index = self.index();
        let mut totals = Totals {
            segments: index.segments.len() as u64,
            bytes_written,
            ..Totals::default()
        };
        for placed in index.chunks.values().flat_map(|blocks| blocks.iter()) {
            totals.blocks += 1;
            totals.row_bytes += placed
                .row_bytes
                .iter()
                .map(|&bytes| u64::from(bytes))
                .sum::<u64>();
            totals.point_bytes += u64::from(placed.point_bytes);
            totals.other_bytes += u64::from(placed.other_bytes());
        }
        totals
    }
}

impl Index {
    /// Highest position of the blocks of a chunk.
    pub(crate) fn position(blocks: &[Placed]) -> u64 {
        let positions = blocks.iter().map(|placed| placed.position);
        positions.max().unwrap_or(0)
    }

    pub(crate) fn put(&mut self, placed: Placed, chunk: u32) {
        let blocks = self.chunks.entry(chunk).or_default();
        Arc::make_mut(blocks).push(placed);
    }

    /// Sorts blocks by position, since a block that was written again
    /// lies after newer ones. Of several copies only the last stays.
    pub(crate) fn sort(&mut self) {
        for blocks in self.chunks.values_mut() {
            let blocks = Arc::make_mut(blocks);
            blocks.reverse();
            blocks.sort_by_key(|placed| std::cmp::Reverse(placed.position));
            blocks.dedup_by(|older, newer| older.is_copy_of(newer));
            blocks.reverse();
        }
    }
}

/// [`states`] through the cache, for callers that read one series after the other.
pub(crate) fn states_again(
    blocks: &[Placed],
    schema: &Schema,
    stripe: u8,
) -> io::Result<Arc<block::States>> {
    let mut newest = blocks.iter().rev();
    match newest.find(|placed| placed.has_state(stripe)) {
        Some(newest) => block_cache::states(newest.at(), stripe, || states(blocks, schema, stripe)),
        None => Ok(Arc::default()),
    }
}

/// States of a stripe from the newest readable block.
pub(crate) fn states(blocks: &[Placed], schema: &Schema, stripe: u8) -> io::Result<block::States> {
    states_and_damage(blocks, schema, stripe).map(|(states, _)| states)
}

/// States of a stripe, and true if a newer block has unreadable states. The values since then are lost, and a hole begins.
pub(crate) fn states_and_damage(
    blocks: &[Placed],
    schema: &Schema,
    stripe: u8,
) -> io::Result<(block::States, bool)> {
    let mut damaged = false;
    for placed in blocks
        .iter()
        .rev()
        .filter(|placed| placed.has_state(stripe))
    {
        if let Some(mut states) = placed.states(schema, stripe)? {
            let words = states.iter_mut().map(|(_, words)| words);
            words
                .filter(|_| damaged)
                .for_each(|words| schema.begin_hole(words));
            return Ok((states, damaged));
        }
        damaged = true;
    }
    Ok((Vec::new(), damaged))
}

/// Fills `out` with the rows `from..` of a series' archive; returns the number of unreadable frames.
pub(crate) fn fill(
    blocks: &[Placed],
    schema: &Schema,
    (slot, archive): (u8, usize),
    from: u64,
    out: &mut [f64],
) -> io::Result<u64> {
    let (stripe, member) = (slot / STRIPE as u8, slot % STRIPE as u8);
    let mut damaged = 0;
    for placed in blocks {
        let newest = placed.newest.get(archive).copied().unwrap_or(0);
        if newest < from {
            continue;
        }
        let Some(head) = placed.head()? else {
            damaged += 1;
            continue;
        };
        let frame = head
            .part(stripe)
            .and_then(|part| part.rows.get(archive).copied().flatten());
        let Some(frame) = frame else { continue };
        let raw = placed.shared_frame(&frame)?;
        let filled = raw.and_then(|raw| rows::fill_member(&raw, schema.width, member, from, out));
        damaged += u64::from(filled.is_none());
    }
    Ok(damaged)
}

const _: () = assert!(CHUNK / STRIPE <= 16, "a mask of stripes has sixteen bits");
