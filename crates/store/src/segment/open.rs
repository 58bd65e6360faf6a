//! Opens the segments and decides which blocks count: all blocks of a merged segment; in another segment the blocks that
//! later ones report as synced, and after them all intact blocks up to the first damaged one.

use crate::segment::file;
use crate::segment::file::{BLOCKS_OFFSET, Numbers, OpenedSegment, Segment};
use crate::segment::placed::Placed;
use crate::segment::set::{Gap, Index, OpenFindings, SEGMENT_BYTES, SegmentSet};
use crate::segment::writer::{SegmentWriter, Unsynced};
use kymo_sys::clock::Clock;
use kymo_sys::disk::Disk;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The blocks recovered from a folder.
#[derive(Default)]
struct Recovered {
    index: Index,
    /// Blocks that may not be on the disk and are written again.
    kept: Vec<Unsynced>,
    found: OpenFindings,
}

impl SegmentSet {
    /// Opens all segments of a folder. The blocks may not be on the disk before [`SegmentSet::sync`].
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
        clock: &dyn Clock,
    ) -> io::Result<Result<(SegmentSet, OpenFindings), (PathBuf, u32)>> {
        let names = file::list(&*disk, folder)?;
        let mut segments = Vec::new();
        let mut recovered = Recovered::default();
        for &numbers in &names {
            let path = file::path_of(folder, numbers);
            match open_begun(&*disk, &path, numbers)? {
                OpenedSegment::Version(version) => return Ok(Err((path, version))),
                OpenedSegment::Headless(why) => segments.push((path, Err(why))),
                OpenedSegment::Segment(segment) => segments.push((path, Ok(Arc::new(segment)))),
            }
        }
        for (path, segment) in segments {
            match segment {
                Err(why) => set_aside(&*disk, &path, &why, &mut recovered.found)?,
                Ok(segment) => recovered.take(segment, &path)?,
            }
        }
        let index = &mut recovered.index;
        index.sort();
        // Blocks that a later segment has too are not needed.
        recovered.kept.retain(|kept| index.has(kept));
        let last = names.iter().map(|numbers| numbers.last).max().unwrap_or(0);
        let writer = SegmentWriter {
            open: None,
            next_number: last + 1,
            random: (clock.now().real_ns as u64) ^ last << 48,
            kept: recovered.kept,
            bytes_written: 0,
        };
        let segments = SegmentSet {
            disk,
            folder: folder.into(),
            segment_bytes: SEGMENT_BYTES,
            index: Mutex::new(recovered.index),
            pinned: Mutex::default(),
            writer: Mutex::new(writer),
        };
        Ok(Ok((segments, recovered.found)))
    }
}

/// Opens a segment, with a second attempt: another running store may
/// write the head, and then blocks, between the reads of the first one.
fn open_begun(disk: &dyn Disk, path: &Path, numbers: Numbers) -> io::Result<OpenedSegment> {
    let opened = Segment::open(disk, path, numbers)?;
    let is_headless = matches!(opened, OpenedSegment::Headless(_));
    match is_headless && disk.metadata(path)?.size_bytes > BLOCKS_OFFSET {
        true => Segment::open(disk, path, numbers),
        false => Ok(opened),
    }
}

/// The range of chunks that a block at `offset` may have had: a merge writes blocks in the order of the chunks.
fn chunks_at(segment: &Segment, blocks: &[file::FoundBlock], offset: u64) -> RangeInclusive<u32> {
    if !segment.numbers.is_merged() {
        return 0..=u32::MAX;
    }
    let at = blocks.partition_point(|&(place, _)| place < offset);
    let (before, behind) = blocks.split_at(at);
    let from = before.last().map_or(0, |(_, head)| head.chunk);
    let to = behind.first().map_or(u32::MAX, |(_, head)| head.chunk);
    from..=to
}

/// Removes or renames a segment without a head; it has no data that is not elsewhere.
fn set_aside(disk: &dyn Disk, path: &Path, why: &str, found: &mut OpenFindings) -> io::Result<()> {
    if disk.metadata(path)?.size_bytes <= BLOCKS_OFFSET {
        return disk.unlink(path);
    }
    let (text, aside) = (path.display(), format!("{}.bad", path.display()));
    found.notices.push(format!(
        "cannot read {text}: {why} (the power failed when it was begun?); it is kept as {aside}"
    ));
    disk.rename(path, Path::new(&aside))
}

impl Recovered {
    fn take(&mut self, segment: Arc<Segment>, path: &Path) -> io::Result<()> {
        let (mut blocks, mut damaged) = segment.blocks()?;
        let number = segment.numbers.first;
        if !segment.numbers.is_merged() {
            let synced = blocks.iter().map(|(_, head)| head.synced).max();
            let synced = synced.unwrap_or(0).max(BLOCKS_OFFSET);
            damaged.retain(|&offset| offset < synced);
            let known = blocks.partition_point(|&(offset, _)| offset < synced);
            let rest = blocks.split_off(known);
            blocks.extend(self.whole(&segment, synced, rest)?);
        }
        if !damaged.is_empty() {
            let (path, places) = (path.display(), damaged.len());
            self.found.notices.push(format!(
                "{path} is damaged in {places} places: some rows are unknown"
            ));
        }
        let gaps = damaged.iter().map(|&offset| Gap {
            place: (number, offset),
            chunks: chunks_at(&segment, &blocks, offset),
        });
        self.found.gaps.extend(gaps);
        for (offset, head) in blocks.iter().filter(|(_, head)| !head.is_mark()) {
            let placed = Placed::of(&segment, *offset, head);
            self.index.put(placed, head.chunk);
        }
        for kept in self.kept.iter().filter(|kept| kept.segment == number) {
            self.index.hold(kept);
        }
        self.index.segments.push(segment);
        Ok(())
    }

    /// The intact blocks up to the first damaged one. The rest is in the journal or in a later segment.
    fn whole(
        &mut self,
        segment: &Segment,
        from: u64,
        blocks: Vec<file::FoundBlock>,
    ) -> io::Result<Vec<file::FoundBlock>> {
        let (mut whole, mut end) = (Vec::new(), from);
        for (offset, head) in blocks {
            let bytes = segment.block(offset, &head)?;
            if offset != end || !head.is_whole(&bytes) {
                break;
            }
            end += u64::from(head.len);
            if !head.is_mark() {
                self.kept.push(Unsynced {
                    segment: segment.numbers.first,
                    offset,
                    chunk: head.chunk,
                    bytes: bytes.into(),
                });
            }
            whole.push((offset, head));
        }
        Ok(whole)
    }
}
