//! Appends blocks. Blocks stay in memory until they are synced: those of a failed segment are read from memory, and written
//! to the next segment before any other block.

use crate::segment::block::Head;
use crate::segment::builder::Builder;
use crate::segment::file::{Numbers, Segment};
use crate::segment::placed::Placed;
use crate::segment::set::{Index, SegmentSet};
use crate::segment::writer::{OpenSegment, SegmentWriter, Unsynced};
use crate::segment::{block, file};
use kymo_sys::disk::is_full;
use std::io;
use std::sync::Arc;

/// Largest number of unsynced bytes in memory.
const UNSYNCED_MAX: usize = 8 << 20;

impl SegmentSet {
    /// Appends a block. It counts from now on, and is on the disk after [`SegmentSet::sync`]. After an error no part of it
    /// is there, and it may be appended again.
    pub(crate) fn append(&self, builder: &mut Builder) -> io::Result<()> {
        let mut writer = self.writer();
        let writer = &mut *writer;
        let is_long = writer.is_long(self.segment_bytes);
        if is_long || writer.kept_bytes() > UNSYNCED_MAX {
            self.sync_with(writer)?;
        }
        if is_long {
            self.finish(writer);
        }
        self.again(writer)?;
        self.begin(writer)?;
        let mut bytes = Vec::new();
        let (placed, head) = self.place(writer, |generation, synced| {
            let head = builder.finish(generation, synced, &mut bytes);
            Ok((head, std::mem::take(&mut bytes)))
        })?;
        self.index().put(placed, head.chunk);
        Ok(())
    }

    /// Ends a synced segment with a mark.
    fn finish(&self, writer: &mut SegmentWriter) {
        let Some(open) = writer.open.take() else {
            return;
        };
        let mut bytes = Vec::new();
        Head::mark(open.segment.generation, open.offset, &mut bytes);
        // The mark is useful but not needed.
        let _what_it_says_is_known = open.segment.file.write_at(&bytes, open.offset);
    }

    /// Appends a mark and syncs it. Damage before a mark is then known to be no write cut short by a crash.
    fn mark(&self, writer: &mut SegmentWriter) -> io::Result<()> {
        let Some(open) = &mut writer.open else {
            return Ok(());
        };
        if open.offset == open.marked.max(file::BLOCKS_OFFSET) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        Head::mark(open.segment.generation, open.offset, &mut bytes);
        let file = &open.segment.file;
        if let Err(error) = file.write_at(&bytes, open.offset) {
            let is_cut = is_full(&error) && file.set_len(open.offset).is_ok();
            if is_cut {
                return Ok(());
            }
            self.give_up(writer);
            return Err(error);
        }
        open.offset += bytes.len() as u64;
        let synced = file.sync_data();
        match synced {
            Ok(()) => (open.synced, open.marked) = (open.offset, open.offset),
            Err(_) => self.give_up(writer),
        }
        synced
    }

    /// Writes a block to the open segment and keeps its bytes until they are synced.
    fn place(
        &self,
        writer: &mut SegmentWriter,
        make: impl FnOnce(u64, u64) -> io::Result<(Head, Vec<u8>)>,
    ) -> io::Result<(Placed, Head)> {
        let open = writer.open.as_mut();
        let open = open.ok_or_else(|| io::Error::other("there is no segment"))?;
        let (head, bytes) = make(open.segment.generation, open.synced)?;
        if let Err(error) = open.segment.file.write_at(&bytes, open.offset) {
            // On a full disk the partial block is cut off; after any other error the segment is given up.
            if !is_full(&error) || open.segment.file.set_len(open.offset).is_err() {
                self.give_up(writer);
            }
            return Err(error);
        }
        let placed = Placed::of(&open.segment, open.offset, &head);
        writer.bytes_written += bytes.len() as u64;
        let offset = open.offset;
        open.offset += bytes.len() as u64;
        writer.kept.push(Unsynced {
            segment: open.segment.numbers.first,
            offset,
            chunk: head.chunk,
            bytes: bytes.into(),
        });
        Ok((placed, head))
    }

    /// Begins a segment if none is open.
    fn begin(&self, writer: &mut SegmentWriter) -> io::Result<()> {
        if writer.open.is_some() {
            return Ok(());
        }
        let number = writer.next_number;
        let generation = kymo_base::random::next_random(&mut writer.random);
        let numbers = Numbers::of(number);
        let path = file::path_of(&self.folder, numbers);
        let segment = Arc::new(Segment::begin(&*self.disk, &path, numbers, generation)?);
        writer.next_number += 1;
        writer.open = Some(OpenSegment {
            segment: segment.clone(),
            offset: file::BLOCKS_OFFSET,
            synced: file::BLOCKS_OFFSET,
            named: false,
            marked: 0,
        });
        self.index().segments.push(segment);
        Ok(())
    }

    /// Syncs all blocks and a mark, so that the files that they replace may be removed.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let mut writer = self.writer();
        self.sync_with(&mut writer)?;
        self.mark(&mut writer)
    }

    fn sync_with(&self, writer: &mut SegmentWriter) -> io::Result<()> {
        if writer.kept.is_empty() {
            return Ok(());
        }
        self.again(writer)?;
        let Some(open) = &mut writer.open else {
            return Ok(());
        };
        let file = &open.segment.file;
        let synced = file.sync_data().and_then(|()| match open.named {
            true => Ok(()),
            false => self.disk.sync_dir(&self.folder),
        });
        match synced {
            Ok(()) => {
                open.named = true;
                open.synced = open.offset;
                writer.kept.clear();
            }
            Err(_) => self.give_up(writer),
        }
        synced
    }

    /// Writes the blocks of failed segments to the open one, in order and before any other block. After a crash the blocks
    /// of an unfinished segment count up to some offset, so none may precede a block that it builds on.
    fn again(&self, writer: &mut SegmentWriter) -> io::Result<()> {
        let current = writer.number();
        if writer.kept.iter().all(|kept| Some(kept.segment) == current) {
            return Ok(());
        }
        self.begin(writer)?;
        let current = writer.number();
        let lost = |kept: &mut Unsynced| Some(kept.segment) != current;
        let lost: Vec<Unsynced> = writer.kept.extract_if(.., lost).collect();
        let mut lost = lost.into_iter();
        while let Some(kept) = lost.next() {
            let done = self.place(writer, |generation, synced| {
                let bytes = block::renewed(&kept.bytes, generation, synced);
                let head = Head::parse(&bytes);
                let head = head.ok_or_else(|| io::Error::other("a block is damaged in memory"))?;
                Ok((head, bytes))
            });
            match done {
                Ok((placed, _)) => self.index().moved(&kept, placed),
                Err(error) => {
                    writer.kept.push(kept);
                    writer.kept.extend(lost);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Gives up a segment: it is never written again, and its unsynced blocks are read from memory, since the kernel may
    /// lose its copy of them at any time.
    fn give_up(&self, writer: &mut SegmentWriter) {
        let Some(open) = writer.open.take() else {
            return;
        };
        let number = open.segment.numbers.first;
        let mut index = self.index();
        for kept in writer.kept.iter().filter(|kept| kept.segment == number) {
            index.hold(kept);
        }
    }

    /// Gives up the open segment if its name may be lost: names given since the last sync of the folder may be.
    pub(crate) fn names_lost(&self, writer: &mut SegmentWriter) {
        if writer.open.as_ref().is_some_and(|open| !open.named) {
            self.give_up(writer);
        }
    }
}

impl Index {
    /// Changes the place of a block.
    fn moved(&mut self, kept: &Unsynced, placed: Placed) {
        if let Some(block) = self.find(kept) {
            *block = placed;
        }
    }

    /// Makes readers read a block from memory from now on.
    pub(crate) fn hold(&mut self, kept: &Unsynced) {
        if let Some(block) = self.find(kept) {
            block.memory = Some(kept.bytes.clone());
        }
    }

    pub(crate) fn has(&mut self, kept: &Unsynced) -> bool {
        self.find(kept).is_some()
    }

    fn find(&mut self, kept: &Unsynced) -> Option<&mut Placed> {
        let blocks = self.chunks.get_mut(&kept.chunk)?;
        let mut blocks = Arc::make_mut(blocks).iter_mut();
        blocks.find(|placed| kept.is(placed))
    }
}
