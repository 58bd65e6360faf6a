//! The drum: chunks of groups are saved one at a time, as blocks that are appended to segments, and nothing is ever
//! written in place. A chunk's blocks, oldest first, are all there is to know of its groups up to a position of the journal.
//!
//! Layout: docs/formats/store.md.

mod ages;
pub(crate) mod apply;
pub(crate) mod block;
#[cfg(test)]
mod bound;
#[cfg(test)]
mod by_hand;
mod cap;
pub(crate) mod captured;
pub(crate) mod column;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod faults;
pub(crate) mod fuzz;
pub(crate) mod merge;
mod near;
pub(crate) mod points;
pub(crate) mod reach;
mod recover;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod segment;
pub(crate) mod sent;
pub(crate) mod shape;
#[cfg(test)]
mod sizes;
mod strip;
#[cfg(test)]
mod tests;
pub(crate) mod view;
mod writer;

use ages::Ages;
use block::{AGELESS, CHUNK, SIXTEEN};
use kymo_sys::disk::Disk;
use segment::Segment;
use shape::Shape;
use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use writer::Writer;

/// A segment that is longer is followed by another.
const SEGMENT_BYTES: u64 = 64 << 20;

/// A block of a chunk.
#[derive(Clone)]
pub(crate) struct Placed {
    segment: Arc<Segment>,
    offset: u64,
    pub(crate) len: u32,
    /// Records of the journal before it are saved.
    pub(crate) position: u64,
    /// Which sixteens have something in it, and which a state.
    sixteens: u16,
    states: u16,
    /// As in the block's head.
    newest: Arc<[u64]>,
    /// Bytes of rows, archive by archive, and those of other frames.
    row_bytes: Arc<[u32]>,
    point_bytes: u32,
    state_bytes: u32,
    name_bytes: u32,
    /// As in the block's head.
    stamp: u64,
    /// Over its frames.
    crc: u32,
    /// The block, if its segment failed before it was on the disk.
    memory: Option<Arc<[u8]>>,
    /// Whose rows it has, where its head does not tell when they are dead; read when that is asked.
    ages: Option<Arc<OnceLock<Ages>>>,
}

/// All blocks of all chunks, in segments.
pub(crate) struct Drum {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// A segment that is longer is followed by another.
    pub(crate) segment_bytes: u64,
    index: Mutex<Index>,
    writer: Mutex<Writer>,
}

#[derive(Clone, Default)]
struct Index {
    /// Points before this stamp are dead: there is no room for them.
    points_from: u64,
    /// There are more bytes than there may be.
    is_full: bool,
    segments: Vec<Arc<Segment>>,
    chunks: BTreeMap<u32, Arc<Vec<Placed>>>,
}

/// The number of a segment, and an offset in it.
type Place = (u64, u64);

/// A place where a block was, and nobody knows which.
pub(crate) struct Gap {
    place: Place,
    /// It was of one of these chunks.
    chunks: RangeInclusive<u32>,
}

/// What was found when the drum was opened.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) notices: Vec<String>,
    pub(crate) gaps: Vec<Gap>,
}

/// What a chunk may lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lacks {
    /// Blocks behind its newest.
    pub(crate) newer: bool,
    /// Of these sixteens a state that is newer than the newest there is.
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

impl Drum {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The blocks of a chunk, oldest first.
    pub(crate) fn blocks(&self, chunk: u32) -> Arc<Vec<Placed>> {
        self.index().chunks.get(&chunk).cloned().unwrap_or_default()
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
            for sixteen in 0..(CHUNK / SIXTEEN) as u8 {
                let mut newest = blocks.iter().rev();
                let newest = newest.find(|placed| placed.has_state(sixteen));
                lacks.states |= u16::from(newest.is_some_and(is_before)) << sixteen;
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
    fn put(&mut self, placed: Placed, chunk: u32) {
        let blocks = self.chunks.entry(chunk).or_default();
        Arc::make_mut(blocks).push(placed);
    }

    /// Puts blocks in the order of their positions: what was written once more lies behind newer ones. Of copies the last
    /// stays.
    fn sort(&mut self) {
        for blocks in self.chunks.values_mut() {
            let blocks = Arc::make_mut(blocks);
            blocks.reverse();
            blocks.sort_by_key(|placed| std::cmp::Reverse(placed.position));
            blocks.dedup_by(|older, newer| older.is_copy_of(newer));
            blocks.reverse();
        }
    }
}

impl Placed {
    fn of(segment: &Arc<Segment>, offset: u64, head: &block::Head) -> Placed {
        let states = head.parts.iter().filter(|(_, part)| part.state.is_some());
        let sixteens = head.parts.iter();
        let row_bytes: Vec<u32> = head.row_bytes().iter().map(|&bytes| bytes as u32).collect();
        let points = head.parts.iter().filter_map(|(_, part)| part.points);
        Placed {
            segment: segment.clone(),
            offset,
            len: head.len,
            position: head.position,
            sixteens: sixteens.fold(0, |all, (sixteen, _)| all | 1 << sixteen),
            states: states.fold(0, |all, (sixteen, _)| all | 1 << sixteen),
            newest: head.newest.clone().into(),
            row_bytes: row_bytes.into(),
            point_bytes: points.map(|frame| frame.len).sum(),
            state_bytes: head.state_bytes() as u32,
            name_bytes: head.names.map_or(0, |frame| frame.len),
            stamp: head.stamp,
            crc: head.frames_crc(),
            memory: None,
            ages: head.newest.contains(&AGELESS).then(Arc::default),
        }
    }

    pub(crate) fn head(&self) -> io::Result<Option<Arc<block::Head>>> {
        match &self.memory {
            Some(bytes) => Ok(block::Head::parse(bytes).map(Arc::new)),
            None => near::head(self.at(), || self.segment.head(self.offset)),
        }
    }

    fn at(&self) -> near::At {
        (self.segment.opened, self.offset)
    }

    /// A frame of at most [`block::FRAME_MAX`] bytes; `None`: it is damaged.
    pub(crate) fn frame(&self, frame: &block::Frame) -> io::Result<Option<Vec<u8>>> {
        self.frame_of(frame, block::FRAME_MAX)
    }

    fn frame_of(&self, frame: &block::Frame, max: usize) -> io::Result<Option<Vec<u8>>> {
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

    pub(crate) fn has_state(&self, sixteen: u8) -> bool {
        self.states & 1 << sixteen != 0
    }

    /// Its states of a sixteen; `None`: they cannot be read.
    fn states(&self, shape: &Shape, sixteen: u8) -> io::Result<Option<block::States>> {
        let head = self.head()?;
        let part = head.as_ref().and_then(|head| head.part(sixteen));
        let Some(frame) = part.and_then(|part| part.state) else {
            return Ok(None);
        };
        // Compressed zeros are not to take more memory than states would.
        let raw = self.frame_of(&frame, shape.state_bytes_max())?;
        Ok(raw.and_then(|raw| block::take_state(&raw, shape.words)))
    }

    /// Where it lies: blocks that were appended later lie behind it.
    fn place(&self) -> Place {
        (self.segment.numbers.first, self.offset)
    }

    /// Bytes that are neither rows nor points.
    fn other_bytes(&self) -> u32 {
        let rows: u32 = self.row_bytes.iter().sum();
        self.len.saturating_sub(rows + self.point_bytes)
    }

    /// Whether it says the same, wherever it lies.
    fn is_copy_of(&self, other: &Placed) -> bool {
        let same = |placed: &Placed| (placed.position, placed.len, placed.crc, placed.stamp);
        // Groups with the same rows have the same frames.
        let same_groups = (self.sixteens, self.states) == (other.sixteens, other.states);
        same(self) == same(other) && same_groups && self.newest == other.newest
    }
}

/// [`states`] for who reads one group after the other.
pub(crate) fn states_again(
    blocks: &[Placed],
    shape: &Shape,
    sixteen: u8,
) -> io::Result<Arc<block::States>> {
    let mut newest = blocks.iter().rev();
    match newest.find(|placed| placed.has_state(sixteen)) {
        Some(newest) => near::states(newest.at(), sixteen, || states(blocks, shape, sixteen)),
        None => Ok(Arc::default()),
    }
}

/// States of sixteen groups as the newest block that can be read has them.
pub(crate) fn states(blocks: &[Placed], shape: &Shape, sixteen: u8) -> io::Result<block::States> {
    states_and_damage(blocks, shape, sixteen).map(|(states, _)| states)
}

/// The same, and whether a newer block has states that cannot be read. What came since is lost then: they begin a hole.
pub(crate) fn states_and_damage(
    blocks: &[Placed],
    shape: &Shape,
    sixteen: u8,
) -> io::Result<(block::States, bool)> {
    let mut damaged = false;
    for placed in blocks
        .iter()
        .rev()
        .filter(|placed| placed.has_state(sixteen))
    {
        if let Some(mut states) = placed.states(shape, sixteen)? {
            let words = states.iter_mut().map(|(_, words)| words);
            words
                .filter(|_| damaged)
                .for_each(|words| shape.begin_hole(words));
            return Ok((states, damaged));
        }
        damaged = true;
    }
    Ok((Vec::new(), damaged))
}

/// Puts what blocks have of the rows `from..` of a group's archive into `out`; how many frames could not be read.
pub(crate) fn fill(
    blocks: &[Placed],
    shape: &Shape,
    (slot, archive): (u8, usize),
    from: u64,
    out: &mut [f64],
) -> io::Result<u64> {
    let (sixteen, member) = (slot / SIXTEEN as u8, slot % SIXTEEN as u8);
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
            .part(sixteen)
            .and_then(|part| part.rows.get(archive).copied().flatten());
        let Some(frame) = frame else { continue };
        let raw = placed.frame(&frame)?;
        let column = raw
            .as_deref()
            .and_then(|raw| column::Read::parse(raw, shape.width));
        match column {
            Some(column) => column.fill(member, from, out),
            None => damaged += 1,
        }
    }
    Ok(damaged)
}

const _: () = assert!(CHUNK / SIXTEEN <= 16, "a mask of sixteens has sixteen bits");
