//! Opening: which blocks count. All of a segment's, if what it held was on the disk before the next one was begun; of
//! the others those that are known to have been on the disk, and behind them whole blocks up to the first that is not.

use super::segment::{self, BLOCKS_OFFSET, Opened, Segment};
use super::writer::{Kept, Writer};
use super::{Drum, Found, Index, Placed, SEGMENT_BYTES};
use kymo_sys::clock::Clock;
use kymo_sys::disk::Disk;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A segment's numbers, and itself or why it cannot be read.
type Named = ((u64, u64), Result<Arc<Segment>, String>);

/// What is made of a folder.
#[derive(Default)]
struct Recovered {
    index: Index,
    /// Blocks that are there and may not be on the disk: they are written once more.
    kept: Vec<Kept>,
    failed: Vec<u64>,
    found: Found,
}

impl Drum {
    /// Opens all segments of a folder. What is found may not be on the disk before [`Drum::sync`].
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
        clock: &dyn Clock,
    ) -> io::Result<Result<(Drum, Found), (PathBuf, u32)>> {
        let names = segment::list(&*disk, folder)?;
        let mut segments: Vec<Named> = Vec::new();
        for &numbers in &names {
            let path = segment::path_of(folder, numbers);
            segments.push(match Segment::open(&*disk, &path, numbers)? {
                Opened::Version(version) => return Ok(Err((path, version))),
                Opened::Headless(why) => (numbers, Err(why)),
                Opened::Segment(segment) => (numbers, Ok(Arc::new(segment))),
            });
        }
        let unsure = first_unsure(&segments);
        let mut recovered = Recovered::default();
        for (numbers, segment) in segments {
            let path = segment::path_of(folder, numbers);
            let is_sure = numbers.1 < unsure;
            match segment {
                Err(why) => set_aside(&*disk, &path, is_sure, &why, &mut recovered.found)?,
                Ok(segment) => recovered.take(segment, is_sure, &path)?,
            }
        }
        let index = &mut recovered.index;
        index.sort();
        // Copies of what lies in a later segment are not needed.
        recovered.kept.retain(|kept| index.has(kept));
        let last = names.iter().map(|(_, last)| *last).max().unwrap_or(0);
        let writer = Writer {
            open: None,
            next_number: last + 1,
            random: (clock.now().real_ns as u64) ^ last << 48,
            kept: recovered.kept,
            failed: recovered.failed,
            bytes_written: 0,
        };
        let drum = Drum {
            disk,
            folder: folder.into(),
            segment_bytes: SEGMENT_BYTES,
            index: Mutex::new(recovered.index),
            writer: Mutex::new(writer),
        };
        Ok(Ok((drum, recovered.found)))
    }
}

/// A segment of which not all may have been on the disk when the machine stopped, or the next one was begun: from this
/// number on they are. The newest segment says it; one that has no head was begun when all that is known is that its
/// predecessor was ended.
fn first_unsure(segments: &[Named]) -> u64 {
    let mut first = u64::MAX;
    for (numbers, segment) in segments.iter().rev() {
        match segment {
            Ok(segment) if segment.is_whole => return first.min(segment.unsure),
            Ok(segment) => return first.min(numbers.0).min(segment.unsure),
            Err(_) => first = first.min(numbers.0),
        }
    }
    first
}

/// A segment without a head is out of the way; nothing of it is lost.
fn set_aside(
    disk: &dyn Disk,
    path: &Path,
    is_sure: bool,
    why: &str,
    found: &mut Found,
) -> io::Result<()> {
    if !is_sure && disk.metadata(path)?.size_bytes <= BLOCKS_OFFSET {
        return disk.unlink(path);
    }
    let aside = format!("{}.bad", path.display());
    let perhaps = match is_sure {
        true => "",
        false => " (the power failed when it was begun?)",
    };
    let path_text = path.display();
    found.notices.push(format!(
        "cannot read {path_text}: {why}{perhaps}; it is kept as {aside}"
    ));
    disk.rename(path, Path::new(&aside))
}

impl Recovered {
    fn take(&mut self, segment: Arc<Segment>, is_sure: bool, path: &Path) -> io::Result<()> {
        let (mut blocks, mut damaged) = segment.blocks()?;
        if !is_sure && !segment.is_whole {
            let synced = blocks.iter().map(|(_, head)| head.synced).max();
            let synced = synced.unwrap_or(0).max(BLOCKS_OFFSET);
            damaged.retain(|&offset| offset < synced);
            let known = blocks.partition_point(|&(offset, _)| offset < synced);
            let rest = blocks.split_off(known);
            let mut end = synced;
            for (offset, head) in rest {
                let bytes = segment.block(offset, &head)?;
                if offset != end || !head.is_whole(&bytes) {
                    break;
                }
                end += u64::from(head.len);
                self.kept.push(Kept {
                    segment: segment.numbers.0,
                    offset,
                    chunk: head.chunk,
                    bytes: bytes.into(),
                });
                blocks.push((offset, head));
            }
            self.cut(&segment, end);
        }
        if !damaged.is_empty() {
            let (path, places) = (path.display(), damaged.len());
            self.found.notices.push(format!(
                "{path} is damaged in {places} places: some rows are unknown"
            ));
        }
        for (offset, head) in blocks {
            let placed = Placed::of(&segment, offset, &head);
            self.index.put(placed, head.chunk);
        }
        let number = segment.numbers.0;
        for kept in self.kept.iter().filter(|kept| kept.segment == number) {
            self.index.hold(kept);
        }
        self.index.segments.push(segment);
        Ok(())
    }

    /// What is not whole is in the journal, or in a later segment. Where it cannot be cut off it is looked at again the
    /// next time.
    fn cut(&mut self, segment: &Segment, end: u64) {
        let size_bytes = segment.file.metadata().map(|stat| stat.size_bytes);
        let cut = size_bytes.and_then(|size_bytes| match size_bytes > end {
            true => segment.file.set_len(end),
            false => Ok(()),
        });
        if cut.and_then(|()| segment.file.sync_data()).is_err() {
            self.failed.push(segment.numbers.0);
        }
    }
}
