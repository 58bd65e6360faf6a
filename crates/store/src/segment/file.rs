//! Segments: files of blocks. A segment's name has the numbers of the first and the last original segment in it, and the
//! number of merges: `segment-7-7-0`, and `segment-3-9-1` after seven of them were merged. So the names in a folder define
//! the order, and the segments that a merge has made superfluous. Layout: docs/formats/store.md, "Segments".

use crate::segment::block;
use crate::segment::block::{ALIGN, Head, MAGIC};
use kymo_sys::disk::{Disk, DiskFile, NameKind, OpenMode};
use std::cmp::Reverse;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The first bytes of a segment.
const SEGMENT_MAGIC: &[u8; 8] = b"KYMOSEGM";
/// Version of the format, and the oldest readable one: version 2 has absolute names, version 3 has no samples.
pub(crate) const VERSION: u32 = 4;
const OLDEST: u32 = 2;
const HEAD_LEN: usize = 64;
/// Offsets of the two copies of the head, each in its own sector.
const HEADS: [usize; 2] = [0, 2048];
/// Offset of the first block.
pub(crate) const BLOCKS_OFFSET: u64 = 4096;
const PREFIX: &str = "segment-";
/// Name of an unfinished segment.
pub(crate) const UNFINISHED: &str = "merging";
/// Length of the first read of a block's head, which most heads fit in.
const HEAD_GUESS: usize = 4096;
const PIECE: usize = 64 << 10;
/// Number of bytes before the blocks.
const HEADS_LEN: usize = BLOCKS_OFFSET as usize;

/// First and last original segment in this one, and the number of merges. The order is that of their blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Numbers {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) merges: u64,
}

/// An open segment.
pub(crate) struct Segment {
    pub(crate) numbers: Numbers,
    pub(crate) generation: u64,
    pub(crate) file: Box<dyn DiskFile>,
    /// Unique number of this opening.
    pub(crate) opened: u64,
}

fn next_opened() -> u64 {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    OPENED.fetch_add(1, Ordering::Relaxed)
}

/// Result of opening a segment.
pub(crate) enum OpenedSegment {
    Segment(Segment),
    /// The segment has another version of the format.
    Version(u32),
    /// The segment has no valid head, or is unreadable, for this reason.
    Headless(String),
}

/// Offset and head of a block.
pub(crate) type FoundBlock = (u64, Head);

impl Segment {
    /// Creates a segment. Its name is on the disk only after a sync of the folder.
    pub(crate) fn begin(
        disk: &dyn Disk,
        path: &Path,
        numbers: Numbers,
        generation: u64,
    ) -> io::Result<Segment> {
        let _none_from_before = disk.unlink(path);
        let file = disk.open(path, OpenMode::CreateNew)?;
        let mut head = [0; HEAD_LEN];
        head[..8].copy_from_slice(SEGMENT_MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[16..24].copy_from_slice(&generation.to_le_bytes());
        let crc = head_crc(&head);
        head[12..16].copy_from_slice(&crc.to_le_bytes());
        let mut page = vec![0; HEADS_LEN];
        for at in HEADS {
            page[at..at + HEAD_LEN].copy_from_slice(&head);
        }
        file.write_at(&page, 0)?;
        Ok(Segment {
            numbers,
            generation,
            file,
            opened: next_opened(),
        })
    }

    /// Opens a segment. An error is one of the file system and does not mean that the segment is damaged.
    pub(crate) fn open(
        disk: &dyn Disk,
        path: &Path,
        numbers: Numbers,
    ) -> io::Result<OpenedSegment> {
        let file = disk.open(path, OpenMode::Write)?;
        let mut page = vec![0; HEADS_LEN];
        let count = match file.read_at(&mut page, 0) {
            Ok(count) => count,
            Err(error) => return Ok(OpenedSegment::Headless(error.to_string())),
        };
        page.truncate(count);
        let heads = HEADS.iter().filter_map(|&at| page.get(at..)?.first_chunk());
        let Some(head) = heads.into_iter().find(|head| is_head(head)) else {
            return Ok(OpenedSegment::Headless("it has no head".to_string()));
        };
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let version = word(8) as u32;
        if !(OLDEST..=VERSION).contains(&version) {
            return Ok(OpenedSegment::Version(version));
        }
        Ok(OpenedSegment::Segment(Segment {
            numbers,
            generation: word(16),
            file,
            opened: next_opened(),
        }))
    }

    /// Reads the head of the block at `offset`.
    pub(crate) fn head(&self, offset: u64) -> io::Result<Option<Head>> {
        let mut bytes = vec![0; HEAD_GUESS];
        let count = self.file.read_at(&mut bytes, offset)?;
        bytes.truncate(count);
        let Some(len) = block::head_len(&bytes) else {
            return Ok(None);
        };
        if len > bytes.len() {
            let size_bytes = self.file.metadata()?.size_bytes;
            if size_bytes.saturating_sub(offset) < len as u64 {
                return Ok(None);
            }
            bytes.resize(len, 0);
            let count = self.file.read_at(&mut bytes, offset)?;
            bytes.truncate(count);
        }
        Ok(Head::parse(&bytes).filter(|head| head.generation == self.generation))
    }

    /// Reads and decompresses a frame of the block at `offset`; `None` if it is damaged or longer than `max`.
    pub(crate) fn frame(
        &self,
        offset: u64,
        frame: &block::FramePlace,
        max: usize,
    ) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; frame.len as usize];
        let count = self.file.read_at(&mut bytes, offset + frame.offset)?;
        Ok(block::unpack(frame, &bytes[..count], max))
    }

    /// Reads the block at `offset`, or as much of it as exists.
    pub(crate) fn block(&self, offset: u64, head: &Head) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; head.len as usize];
        let count = self.file.read_at(&mut bytes, offset)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// All blocks, and the offsets at which other bytes lie between them; the search then finds the next block.
    pub(crate) fn blocks(&self) -> io::Result<(Vec<FoundBlock>, Vec<u64>)> {
        let size_bytes = self.file.metadata()?.size_bytes;
        let (mut found, mut damaged, mut at) = (Vec::new(), Vec::new(), BLOCKS_OFFSET);
        while at < size_bytes {
            match self.head(at)? {
                Some(head) if u64::from(head.len) <= size_bytes - at => {
                    let len = u64::from(head.len);
                    found.push((at, head));
                    at += len;
                }
                _ => {
                    damaged.push(at);
                    match self.search(at + ALIGN as u64, size_bytes)? {
                        Some(next) => at = next,
                        None => break,
                    }
                }
            }
        }
        Ok((found, damaged))
    }

    /// The next offset from `from` on at which a block may begin.
    fn search(&self, from: u64, size_bytes: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        let mut piece = vec![0; PIECE];
        while at + MAGIC.len() as u64 <= size_bytes {
            let count = self.file.read_at(&mut piece, at)?;
            let words = piece[..count].chunks_exact(ALIGN);
            let len = words.len();
            if len == 0 {
                break;
            }
            for (i, word) in words.enumerate() {
                let offset = at + (i * ALIGN) as u64;
                if word != MAGIC {
                    continue;
                }
                let head = self.head(offset)?;
                if head.is_some_and(|head| u64::from(head.len) <= size_bytes - offset) {
                    return Ok(Some(offset));
                }
            }
            at += (len * ALIGN) as u64;
        }
        Ok(None)
    }
}

/// Returns true if a power cut left only zeros instead of a head, and no block says that the segment was synced. The journal
/// still has the content of such a segment.
pub(crate) fn is_blank(disk: &dyn Disk, path: &Path) -> io::Result<bool> {
    let file = disk.open(path, OpenMode::Read)?;
    let mut page = vec![0; HEADS_LEN];
    let count = file.read_at(&mut page, 0)?;
    if page[..count].iter().any(|&byte| byte != 0) {
        return Ok(false);
    }
    let size_bytes = file.metadata()?.size_bytes;
    let (mut bytes, mut at) = (vec![0; PIECE + HEAD_GUESS], BLOCKS_OFFSET);
    while at < size_bytes {
        let count = file.read_at(&mut bytes, at)?;
        for offset in (0..PIECE.min(count)).step_by(ALIGN) {
            let head = Head::parse(&bytes[offset..count]);
            if head.is_some_and(|head| head.synced > BLOCKS_OFFSET) {
                return Ok(false);
            }
        }
        at += PIECE as u64;
    }
    Ok(true)
}

/// Checksum of all other bytes of the head. Later versions must keep
/// it, so that a damaged head does not pass for a later version.
fn head_crc(head: &[u8; HEAD_LEN]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&head[..12]), &head[16..])
}

fn is_head(head: &[u8; HEAD_LEN]) -> bool {
    head[..8] == *SEGMENT_MAGIC && head_crc(head).to_le_bytes() == head[12..16]
}

impl Numbers {
    /// Numbers of a new segment.
    pub(crate) fn of(number: u64) -> Numbers {
        Numbers {
            first: number,
            last: number,
            merges: 0,
        }
    }

    /// Returns true for a merged segment, all of which was on the disk before it got its name.
    pub(crate) fn is_merged(self) -> bool {
        self.merges > 0
    }

    /// Parses a name exactly as [`path_of`] formats it.
    fn parse(name: &str) -> Option<Numbers> {
        let mut numbers = name.strip_prefix(PREFIX)?.split('-');
        let mut next = || numbers.next()?.parse().ok();
        let numbers = Numbers {
            first: next()?,
            last: next()?,
            merges: next()?,
        };
        let fits = numbers.first <= numbers.last && numbers.last < 1 << 62;
        (fits && path_of(Path::new(""), numbers) == Path::new(name)).then_some(numbers)
    }
}

/// Path of a segment.
pub(crate) fn path_of(folder: &Path, numbers: Numbers) -> PathBuf {
    let Numbers {
        first,
        last,
        merges,
    } = numbers;
    folder.join(format!("{PREFIX}{first:09}-{last:09}-{merges}"))
}

/// The segments in a folder, in order. Removes the segments that are contained in others, and an unfinished one.
pub(crate) fn list(disk: &dyn Disk, folder: &Path) -> io::Result<Vec<Numbers>> {
    let (mut all, mut unfinished) = (Vec::new(), false);
    disk.list(folder, &mut |name, kind| {
        unfinished |= name == UNFINISHED;
        if kind == NameKind::File {
            all.extend(Numbers::parse(name));
        }
    })?;
    // Among segments with the same first number, the longest comes first, then the most often merged.
    all.sort_unstable_by_key(|numbers| (numbers.first, Reverse((numbers.last, numbers.merges))));
    let (mut kept, mut superfluous) = (Vec::<Numbers>::new(), Vec::new());
    for numbers in all {
        match kept.iter().any(|before| numbers.last <= before.last) {
            true => superfluous.push(numbers),
            false => kept.push(numbers),
        }
    }
    if !superfluous.is_empty() {
        // The name of the segment that contains them may not be on the disk yet.
        disk.sync_dir(folder)?;
    }
    for numbers in superfluous {
        disk.unlink(&path_of(folder, numbers))?;
    }
    if unfinished {
        disk.unlink(&folder.join(UNFINISHED))?;
    }
    Ok(kept)
}
