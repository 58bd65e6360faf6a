//! The drum: chunks of groups are saved one at a time, as blocks that are appended to segments, and nothing is ever
//! written in place. A chunk's blocks, oldest first, are all there is to know of its groups up to a position of the journal.
//!
//! Layout: docs/formats/store.md.

pub(crate) mod apply;
pub(crate) mod block;
pub(crate) mod captured;
pub(crate) mod column;
pub(crate) mod merge;
#[cfg(test)]
pub(crate) mod samples;
mod segment;
pub(crate) mod shape;
#[cfg(test)]
mod tests;
pub(crate) mod view;

use block::{Builder, CHUNK, SIXTEEN};
use kymo_sys::clock::Clock;
use kymo_sys::disk::{Disk, is_full};
use segment::Segment;
use shape::Shape;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A segment that is longer is followed by another.
const SEGMENT_BYTES: u64 = 64 << 20;
/// So many bytes of blocks wait for a sync in memory.
const UNSYNCED_MAX: usize = 32 << 20;

/// A block of a chunk.
#[derive(Clone)]
pub(crate) struct Placed {
    segment: Arc<Segment>,
    offset: u64,
    /// Its bytes, as long as they may not be on the disk: then the file is not asked.
    kept: Weak<Vec<u8>>,
    pub(crate) len: u32,
    /// Records of the journal before it are saved.
    pub(crate) position: u64,
    /// Which sixteens have a state in it.
    states: u16,
    /// As in the block's head.
    newest: Arc<[u64]>,
    /// Bytes of rows, archive by archive, and those of anything else.
    row_bytes: Arc<[u32]>,
    point_bytes: u32,
    other_bytes: u32,
    /// As in the block's head.
    stamp: u64,
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
    segments: Vec<Arc<Segment>>,
    chunks: BTreeMap<u32, Arc<Vec<Placed>>>,
}

/// What appends.
struct Writer {
    open: Option<Open>,
    next_number: u64,
    random: u64,
    bytes: Vec<u8>,
    /// Blocks that may not be on the disk, and which chunk's.
    kept: Vec<Kept>,
    kept_bytes: usize,
    pub(crate) bytes_written: u64,
}

struct Open {
    segment: Arc<Segment>,
    offset: u64,
    /// Blocks before it are on the disk.
    synced: u64,
    /// Its name is on the disk.
    named: bool,
}

struct Kept {
    segment: u64,
    offset: u64,
    chunk: u32,
    bytes: Arc<Vec<u8>>,
}

/// What was found when the drum was opened.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) notices: Vec<String>,
}

/// Numbers for people.
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
    /// Opens all segments of a folder.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
        clock: &dyn Clock,
    ) -> io::Result<Result<(Drum, Found), (PathBuf, u32)>> {
        let mut found = Found::default();
        let mut index = Index::default();
        let names = segment::list(&*disk, folder)?;
        let last = names.last().copied();
        for numbers in names {
            let path = segment::path_of(folder, numbers);
            let opened = match Segment::open(&*disk, &path, numbers) {
                Ok(Ok(segment)) => segment,
                Ok(Err(version)) => return Ok(Err((path, version))),
                Err(error) => {
                    let aside = format!("{}.bad", path.display());
                    let empty = disk
                        .metadata(&path)
                        .is_ok_and(|stat| stat.size_bytes <= segment::BLOCKS_OFFSET);
                    match Some(numbers) == last && empty {
                        true => disk.unlink(&path)?,
                        false => {
                            found.notices.push(format!(
                                "{} has no head (the power failed when it was begun?): {error}; it is kept as {aside}",
                                path.display()
                            ));
                            disk.rename(&path, Path::new(&aside))?;
                        }
                    }
                    continue;
                }
            };
            let segment = Arc::new(opened);
            let blocks = match Some(numbers) == last {
                true => finish_last(&segment)?,
                false => {
                    let (blocks, damaged) = segment.blocks()?;
                    if damaged > 0 {
                        found.notices.push(format!(
                            "{} is damaged in {damaged} places: some rows are unknown",
                            path.display()
                        ));
                    }
                    blocks
                }
            };
            for (offset, head) in blocks {
                index.put(Placed::of(&segment, offset, &head), head.chunk);
            }
            index.segments.push(segment);
        }
        let real_ns = clock.now().real_ns as u64;
        let writer = Writer {
            open: None,
            next_number: last.map_or(1, |(_, last)| last + 1),
            random: real_ns,
            bytes: Vec::new(),
            kept: Vec::new(),
            kept_bytes: 0,
            bytes_written: 0,
        };
        let drum = Drum {
            disk,
            folder: folder.into(),
            segment_bytes: SEGMENT_BYTES,
            index: Mutex::new(index),
            writer: Mutex::new(writer),
        };
        Ok(Ok((drum, found)))
    }

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
        blocks
            .iter()
            .map(|placed| placed.position)
            .max()
            .unwrap_or(0)
    }

    /// Chunks that have blocks.
    pub(crate) fn chunks(&self) -> Vec<u32> {
        self.index().chunks.keys().copied().collect()
    }

    /// Appends a block. It counts from now on; it is on the disk after [`Drum::sync`].
    pub(crate) fn append(&self, builder: &mut Builder) -> io::Result<()> {
        let mut writer = self.writer();
        let writer = &mut *writer;
        if writer
            .open
            .as_ref()
            .is_some_and(|open| open.offset >= self.segment_bytes)
            || writer.kept_bytes > UNSYNCED_MAX
        {
            self.sync_with(writer)?;
        }
        if writer
            .open
            .as_ref()
            .is_some_and(|open| open.offset >= self.segment_bytes)
        {
            writer.open = None;
        }
        self.begin(writer)?;
        let Some(open) = &writer.open else {
            return Err(io::Error::other("there is no segment"));
        };
        let mut bytes = std::mem::take(&mut writer.bytes);
        let head = builder.finish(open.segment.generation, &mut bytes);
        let placed = self.place(writer, &bytes, &head);
        writer.bytes = bytes;
        let placed = placed?;
        self.index().put(placed, head.chunk);
        Ok(())
    }

    /// Writes a block's bytes into the open segment and keeps them until they are synced.
    fn place(&self, writer: &mut Writer, bytes: &[u8], head: &block::Head) -> io::Result<Placed> {
        let open = writer.open.as_mut();
        let open = open.ok_or_else(|| io::Error::other("there is no segment"))?;
        if let Err(error) = open.segment.file.write_at(bytes, open.offset) {
            if !is_full(&error) {
                give_up(&mut writer.open);
            }
            return Err(error);
        }
        let kept = Arc::new(bytes.to_vec());
        let mut placed = Placed::of(&open.segment, open.offset, head);
        placed.kept = Arc::downgrade(&kept);
        writer.kept.push(Kept {
            segment: open.segment.numbers.0,
            offset: open.offset,
            chunk: head.chunk,
            bytes: kept,
        });
        writer.kept_bytes += bytes.len();
        writer.bytes_written += bytes.len() as u64;
        open.offset += bytes.len() as u64;
        Ok(placed)
    }

    /// Makes sure that there is a segment to append to.
    fn begin(&self, writer: &mut Writer) -> io::Result<()> {
        if writer.open.is_some() {
            return Ok(());
        }
        let number = writer.next_number;
        let generation = kymo_sys::sim_disk::next_random(&mut writer.random);
        let path = segment::path_of(&self.folder, (number, number));
        let segment = Segment::begin(&*self.disk, &path, (number, number), generation)?;
        let segment = Arc::new(segment);
        writer.next_number += 1;
        writer.open = Some(Open {
            segment: segment.clone(),
            offset: segment::BLOCKS_OFFSET,
            synced: segment::BLOCKS_OFFSET,
            named: false,
        });
        self.index().segments.push(segment);
        Ok(())
    }

    /// When this returns all blocks are on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.sync_with(&mut self.writer())
    }

    fn sync_with(&self, writer: &mut Writer) -> io::Result<()> {
        if writer.kept.is_empty() {
            return Ok(());
        }
        let current = writer.open.as_ref().map(|open| open.segment.numbers.0);
        // Those of a segment that failed are written once more.
        let lost: Vec<Kept> = writer
            .kept
            .extract_if(.., |kept| Some(kept.segment) != current)
            .collect();
        self.again(writer, lost)?;
        let Some(open) = &mut writer.open else {
            return Ok(());
        };
        let synced = open
            .segment
            .file
            .sync_data()
            .and_then(|()| match open.named {
                true => Ok(()),
                false => self.disk.sync_dir(&self.folder),
            });
        match synced {
            Ok(()) => {
                open.named = true;
                open.synced = open.offset;
                writer.kept.clear();
                writer.kept_bytes = 0;
                Ok(())
            }
            Err(error) => {
                give_up(&mut writer.open);
                Err(error)
            }
        }
    }

    /// Blocks of a segment that could not be written or synced go to another one.
    fn again(&self, writer: &mut Writer, lost: Vec<Kept>) -> io::Result<()> {
        let mut lost = lost.into_iter();
        while let Some(kept) = lost.next() {
            let done = self.begin(writer).and_then(|()| {
                let generation = writer
                    .open
                    .as_ref()
                    .map_or(0, |open| open.segment.generation);
                let bytes = block::renewed(&kept.bytes, generation);
                let head = block::Head::parse(&bytes)
                    .ok_or_else(|| io::Error::other("a block is damaged in memory"))?;
                self.place(writer, &bytes, &head)
            });
            match done {
                Ok(placed) => self.index().moved(&kept, placed),
                Err(error) => {
                    writer.kept.push(kept);
                    writer.kept.extend(lost);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Numbers for people.
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
            totals.other_bytes += u64::from(placed.other_bytes);
        }
        totals
    }
}

impl Index {
    fn put(&mut self, placed: Placed, chunk: u32) {
        let blocks = self.chunks.entry(chunk).or_default();
        Arc::make_mut(blocks).push(placed);
    }

    /// A block is somewhere else now.
    fn moved(&mut self, kept: &Kept, placed: Placed) {
        let Some(blocks) = self.chunks.get_mut(&kept.chunk) else {
            return;
        };
        let is_it = |block: &&mut Placed| {
            (block.segment.numbers.0, block.offset) == (kept.segment, kept.offset)
        };
        if let Some(block) = Arc::make_mut(blocks).iter_mut().find(is_it) {
            *block = placed;
        }
    }
}

/// A segment is never written again, and what it has that is not on the disk must not count: that is in memory until
/// another one has it.
fn give_up(open: &mut Option<Open>) {
    if let Some(open) = open.take() {
        let _broken = open.segment.file.set_len(open.synced);
    }
}

/// The segment that was open when it all stopped: what is not whole in it is cut off, for the journal has it.
fn finish_last(segment: &Segment) -> io::Result<Vec<segment::Found>> {
    let (blocks, end) = segment.whole_blocks()?;
    if segment.file.metadata()?.size_bytes > end {
        segment.file.set_len(end)?;
    }
    segment.file.sync_data()?;
    Ok(blocks)
}

impl Placed {
    fn of(segment: &Arc<Segment>, offset: u64, head: &block::Head) -> Placed {
        let states = head.parts.iter().filter(|(_, part)| part.state.is_some());
        let row_bytes: Vec<u32> = head.row_bytes().iter().map(|&bytes| bytes as u32).collect();
        let rows: u32 = row_bytes.iter().sum();
        let points = head.parts.iter().filter_map(|(_, part)| part.points);
        let point_bytes = points.map(|frame| frame.len).sum();
        Placed {
            segment: segment.clone(),
            offset,
            kept: Weak::new(),
            len: head.len,
            position: head.position,
            states: states.fold(0, |all, (sixteen, _)| all | 1 << sixteen),
            newest: head.newest.clone().into(),
            row_bytes: row_bytes.into(),
            point_bytes,
            other_bytes: head.len.saturating_sub(rows + point_bytes),
            stamp: head.stamp,
        }
    }

    pub(crate) fn head(&self) -> io::Result<Option<block::Head>> {
        match self.kept.upgrade() {
            Some(bytes) => Ok(block::Head::parse(&bytes)),
            None => self.segment.head(self.offset),
        }
    }

    /// A frame, unpacked; `None`: it is damaged.
    pub(crate) fn frame(&self, frame: &block::Frame) -> io::Result<Option<Vec<u8>>> {
        match self.kept.upgrade() {
            Some(bytes) => {
                let from = frame.offset as usize;
                let bytes = bytes.get(from..from + frame.len as usize);
                Ok(bytes.and_then(|bytes| block::unpack(frame, bytes)))
            }
            None => self.segment.frame(self.offset, frame),
        }
    }

    pub(crate) fn has_state(&self, sixteen: u8) -> bool {
        self.states & 1 << sixteen != 0
    }
}

/// States of sixteen groups as the newest block that can be read has them.
pub(crate) fn states(blocks: &[Placed], shape: &Shape, sixteen: u8) -> io::Result<block::States> {
    for placed in blocks
        .iter()
        .rev()
        .filter(|placed| placed.has_state(sixteen))
    {
        let Some(head) = placed.head()? else { continue };
        let frame = head.part(sixteen).and_then(|part| part.state);
        let Some(frame) = frame else { continue };
        let raw = placed.frame(&frame)?;
        if let Some(states) = raw.and_then(|raw| block::take_state(&raw, shape.words)) {
            return Ok(states);
        }
    }
    Ok(Vec::new())
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
