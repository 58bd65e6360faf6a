//! Segments: files of blocks. A segment's name says which of the segments that were begun are in it: `segment-7-7`, and
//! `segment-3-9` when seven of them were merged, so that names in a folder are all there is to know of the order, and of
//! what a merge has made superfluous. Layout: docs/formats/store.md, "Segments".

use super::block::{self, ALIGN, Head, MAGIC};
use kymo_sys::disk::{Disk, DiskFile, NameKind, OpenMode};
use std::io;
use std::path::{Path, PathBuf};

/// What a segment begins with.
const SEGMENT_MAGIC: &[u8; 8] = b"KYMOSEGM";
const VERSION: u32 = 1;
/// Where blocks begin.
pub(crate) const BLOCKS_OFFSET: u64 = 64;
const PREFIX: &str = "segment-";
/// What is not finished.
pub(crate) const UNFINISHED: &str = "merging";
/// Heads are mostly shorter.
const HEAD_GUESS: usize = 4096;
const PIECE: usize = 1 << 20;

/// A segment that can be read.
pub(crate) struct Segment {
    /// The segments that were begun and are in this one.
    pub(crate) numbers: (u64, u64),
    pub(crate) generation: u64,
    pub(crate) file: Box<dyn DiskFile>,
}

/// A block and where it is.
pub(crate) type Found = (u64, Head);

impl Segment {
    /// Begins one. Its name is not on the disk before the folder is synced.
    pub(crate) fn begin(
        disk: &dyn Disk,
        path: &Path,
        numbers: (u64, u64),
        generation: u64,
    ) -> io::Result<Segment> {
        let _none_from_before = disk.unlink(path);
        let file = disk.open(path, OpenMode::CreateNew)?;
        let mut head = Vec::with_capacity(BLOCKS_OFFSET as usize);
        head.extend_from_slice(SEGMENT_MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&[0; 4]);
        head.extend_from_slice(&generation.to_le_bytes());
        head.resize(BLOCKS_OFFSET as usize, 0);
        let crc = crc32c::crc32c(&head[16..]);
        head[12..16].copy_from_slice(&crc.to_le_bytes());
        file.write_at(&head, 0)?;
        Ok(Segment {
            numbers,
            generation,
            file,
        })
    }

    /// Opens one; `Ok(None)`: it has no head that is believed.
    pub(crate) fn open(
        disk: &dyn Disk,
        path: &Path,
        numbers: (u64, u64),
    ) -> io::Result<Result<Segment, u32>> {
        let file = disk.open(path, OpenMode::Write)?;
        let mut head = [0; BLOCKS_OFFSET as usize];
        let count = file.read_at(&mut head, 0)?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let ours = count == head.len() && &head[..8] == SEGMENT_MAGIC;
        if ours && word(8) != VERSION {
            return Ok(Err(word(8)));
        }
        if !ours || crc32c::crc32c(&head[16..]) != word(12) {
            return Err(io::Error::other("it has no head"));
        }
        let generation = u64::from(word(16)) | u64::from(word(20)) << 32;
        Ok(Ok(Segment {
            numbers,
            generation,
            file,
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
            if count < HEAD_GUESS {
                return Ok(None);
            }
            bytes.resize(len, 0);
            let count = self.file.read_at(&mut bytes, offset)?;
            bytes.truncate(count);
        }
        Ok(Head::parse(&bytes).filter(|head| head.generation == self.generation))
    }

    /// A frame of the block at `offset`, unpacked; `None`: it is damaged.
    pub(crate) fn frame(&self, offset: u64, frame: &block::Frame) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; frame.len as usize];
        let count = self.file.read_at(&mut bytes, offset + frame.offset)?;
        Ok(block::unpack(frame, &bytes[..count]))
    }

    /// All blocks of a segment that was finished. Where one is damaged the next is looked for; how often that was.
    pub(crate) fn blocks(&self) -> io::Result<(Vec<Found>, u64)> {
        let size_bytes = self.file.metadata()?.size_bytes;
        let (mut found, mut damaged, mut at) = (Vec::new(), 0, BLOCKS_OFFSET);
        while at < size_bytes {
            match self.head(at)? {
                Some(head) if at + u64::from(head.len) <= size_bytes => {
                    let len = u64::from(head.len);
                    found.push((at, head));
                    at += len;
                }
                _ => {
                    damaged += 1;
                    match self.search(at + ALIGN as u64, size_bytes)? {
                        Some(next) => at = next,
                        None => break,
                    }
                }
            }
        }
        Ok((found, damaged))
    }

    /// All blocks of a segment that was written when the process or the machine stopped: up to the first that is not
    /// whole. Where they end.
    pub(crate) fn whole_blocks(&self) -> io::Result<(Vec<Found>, u64)> {
        let size_bytes = self.file.metadata()?.size_bytes;
        let (mut found, mut at, mut bytes) = (Vec::new(), BLOCKS_OFFSET, Vec::new());
        while at < size_bytes {
            let Some(head) = self.head(at)? else { break };
            if at + u64::from(head.len) > size_bytes {
                break;
            }
            bytes.resize(head.len as usize, 0);
            let count = self.file.read_at(&mut bytes, at)?;
            if !head.is_whole(&bytes[..count]) {
                break;
            }
            let len = u64::from(head.len);
            found.push((at, head));
            at += len;
        }
        Ok((found, at))
    }

    /// The next place from `from` on where a block may begin.
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
                if word == MAGIC && self.head(offset)?.is_some() {
                    return Ok(Some(offset));
                }
            }
            at += (len * ALIGN) as u64;
        }
        Ok(None)
    }
}

/// A segment's name.
pub(crate) fn path_of(folder: &Path, (first, last): (u64, u64)) -> PathBuf {
    folder.join(format!("{PREFIX}{first:09}-{last:09}"))
}

/// The segments in a folder, in order; those that are in another one, and what was not finished, are removed.
pub(crate) fn list(disk: &dyn Disk, folder: &Path) -> io::Result<Vec<(u64, u64)>> {
    let (mut all, mut unfinished) = (Vec::new(), false);
    disk.list(folder, &mut |name, kind| {
        unfinished |= name == UNFINISHED;
        let numbers = name.strip_prefix(PREFIX).and_then(|numbers| {
            let (first, last) = numbers.split_once('-')?;
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last && last < 1 << 62).then_some((first, last))
        });
        if kind == NameKind::File {
            all.extend(numbers);
        }
    })?;
    // The longer ones first where two begin alike.
    all.sort_unstable_by_key(|&(first, last)| (first, u64::MAX - last));
    let mut kept: Vec<(u64, u64)> = Vec::new();
    for numbers in all {
        match kept.last() {
            Some(before) if numbers.0 <= before.1 => disk.unlink(&path_of(folder, numbers))?,
            _ => kept.push(numbers),
        }
    }
    if unfinished {
        disk.unlink(&folder.join(UNFINISHED))?;
    }
    Ok(kept)
}
