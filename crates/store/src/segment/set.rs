//! The segments: chunks of series are saved one at a time, as blocks that are appended to segments, and nothing is ever
//! written in place. A chunk's blocks, oldest first, are all there is to know of its series up to a position of the journal.
//!
//! Layout: docs/formats/store.md.

use crate::consolidation::rows;
use crate::consolidation::schema::Schema;
use crate::layout::{CHUNK, STRIPE};
use crate::segment::file::Segment;
use crate::segment::placed::{Place, Placed};
use crate::segment::writer::SegmentWriter;
use crate::segment::{block, block_cache};
use kymo_sys::disk::Disk;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A segment that is longer is followed by another.
pub(crate) const SEGMENT_BYTES: u64 = 64 << 20;

/// All blocks of all chunks, in segments.
pub(crate) struct SegmentSet {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) folder: PathBuf,
    /// A segment that is longer is followed by another.
    pub(crate) segment_bytes: u64,
    pub(crate) index: Mutex<Index>,
    pub(crate) writer: Mutex<SegmentWriter>,
    /// Blocks of chunks that are being flushed, as they were before.
    pub(crate) pinned: Mutex<HashMap<u32, Arc<Vec<Placed>>>>,
}

#[derive(Clone, Default)]
pub(crate) struct Index {
    /// Points before this stamp are dead: there is no room for them.
    pub(crate) points_from: u64,
    /// Rows of the finest tier of series of points that end before this second are dead: there is no room for them.
    pub(crate) fine_from: u64,
    /// There are more bytes than there may be.
    pub(crate) is_full: bool,
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) chunks: BTreeMap<u32, Arc<Vec<Placed>>>,
}

/// A place where a block was; which one is not known.
pub(crate) struct Gap {
    pub(crate) place: Place,
    /// It was of one of these chunks.
    pub(crate) chunks: RangeInclusive<u32>,
}

/// What was found when the segments were opened.
#[derive(Default)]
pub(crate) struct OpenFindings {
    pub(crate) notices: Vec<String>,
    pub(crate) gaps: Vec<Gap>,
}

/// What a chunk may lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lacks {
    /// Blocks behind its newest.
    pub(crate) newer: bool,
    /// Of these stripes a state that is newer than the newest there is.
    pub(crate) states: u16,
}

/// Numbers that tests ask for.
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

    /// The same for readers: a block counts when its flush has ended. As [`SegmentSet::pin`], under the store's lock.
    pub(crate) fn visible_blocks(&self, chunk: u32) -> Arc<Vec<Placed>> {
        let pinned = self.pinned().get(&chunk).cloned();
        pinned.unwrap_or_else(|| self.blocks(chunk))
    }

    /// A flush of a chunk begins: readers see the blocks that it has now, until [`SegmentSet::unpin`].
    pub(crate) fn pin(&self, chunk: u32) -> Arc<Vec<Placed>> {
        let blocks = self.blocks(chunk);
        self.pinned().insert(chunk, blocks.clone());
        blocks
    }

    /// The flush has ended.
    pub(crate) fn unpin(&self, chunk: u32) {
        self.pinned().remove(&chunk);
    }

    fn pinned(&self) -> MutexGuard<'_, HashMap<u32, Arc<Vec<Placed>>>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Up to which position of the journal a chunk's records are saved.
    pub(crate) fn position(&self, chunk: u32) -> u64 {
        let blocks = self.blocks(chunk);
        let positions = blocks.iter().map(|placed| placed.position);
        positions.max().unwrap_or(0)
    }

    /// What gaps may have had of a chunk.
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

    /// Chunks that have blocks.
    pub(crate) fn chunks(&self) -> Vec<u32> {
        self.index().chunks.keys().copied().collect()
    }

    /// Numbers that tests ask for.
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
    /// The newest position of a chunk.
    pub(crate) fn position(blocks: &[Placed]) -> u64 {
        let positions = blocks.iter().map(|placed| placed.position);
        positions.max().unwrap_or(0)
    }

    pub(crate) fn put(&mut self, placed: Placed, chunk: u32) {
        let blocks = self.chunks.entry(chunk).or_default();
        Arc::make_mut(blocks).push(placed);
    }

    /// Puts blocks in the order of their positions: what was written again lies behind newer ones. Of copies the last
    /// stays.
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

/// [`states`] for who reads one series after the other.
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

/// States of a stripe as the newest block that can be read has them.
pub(crate) fn states(blocks: &[Placed], schema: &Schema, stripe: u8) -> io::Result<block::States> {
    states_and_damage(blocks, schema, stripe).map(|(states, _)| states)
}

/// The same, and whether a newer block has states that cannot be read. What came since is lost then: they begin a hole.
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

/// Puts what blocks have of the rows `from..` of a series' archive into `out`; how many frames could not be read.
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
        let raw = placed.rows(&frame)?;
        let filled = raw.and_then(|raw| rows::fill_member(&raw, schema.width, member, from, out));
        damaged += u64::from(filled.is_none());
    }
    Ok(damaged)
}

const _: () = assert!(CHUNK / STRIPE <= 16, "a mask of stripes has sixteen bits");
