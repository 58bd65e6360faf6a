//! Frames, the units in which the journal is written, and the walk
//! over the valid frames of a file. This module does not write files.
//!
//! A file is filled with zeros or used before, so its last frame is followed by zeros or by frames of an earlier use; the
//! generation in each checksum tells these apart. Layout: docs/formats/journal.md, "Files" and "Frames".

use crate::wal::crc_ranges::Ranges;
use crate::wal::record::ONE;
use kymo_base::varint;
use std::ops::Range;

/// The first eight bytes of a journal file.
pub(crate) const MAGIC: &[u8; 8] = b"KYMOJRNL";
/// Version of the format, and the oldest readable one: version 3 has absolute names, version 4 has no samples.
pub(crate) const VERSION: u32 = 5;
const OLDEST: u32 = 3;
/// Offset of the first frame.
pub(crate) const FRAMES_OFFSET: u64 = 4096;
/// Length of a file's head.
pub(crate) const HEAD_LEN: usize = 56;
/// Offset of the copy of the head.
const COPY_OFFSET: usize = 2048;
/// Largest length of a frame's head: a length, a checksum, a mark, the distance to the synced position.
pub(crate) const FRAME_HEAD_MAX: usize = 10 + 4 + 1 + 10;
/// Flag in a mark: the frame lacks the synced position, and its first entry is a [`ONE`] without the kind.
const SHORT: u8 = 0x80;
const CARRIES_OVER: u32 = 1;

/// Head of a journal file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHead {
    /// Number of the file in their order, which is also in its name.
    pub(crate) sequence: u64,
    /// Number of this use of the file, which no other use has.
    pub(crate) generation: u64,
    /// Position of the first frame.
    pub(crate) base: u64,
    /// Time at which the file was begun, for users.
    pub(crate) real_ns: i64,
    /// The file begins with all that memory held, so it does not depend on earlier files.
    pub(crate) carries_over: bool,
    /// Base of the first stamp of each frame, in seconds since 1970.
    pub(crate) stamp_s: u32,
}

impl FileHead {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_LEN);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.base.to_le_bytes());
        bytes.extend_from_slice(&self.real_ns.to_le_bytes());
        let flags = if self.carries_over { CARRIES_OVER } else { 0 };
        bytes.extend_from_slice(&flags.to_le_bytes());
        bytes.extend_from_slice(&self.stamp_s.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The first bytes of a file: the head, and its copy in another sector.
    pub(crate) fn page(&self) -> Vec<u8> {
        let mut bytes = self.encode();
        bytes.resize(COPY_OFFSET, 0);
        bytes.extend_from_slice(&self.encode());
        bytes
    }

    /// Reads the head of the file with this sequence; if there is only the head of another use, that one. `Ok(None)` means
    /// that there is none or a torn one, `Err` that it has this unreadable version.
    pub(crate) fn parse(bytes: &[u8], sequence: u64) -> Result<Option<FileHead>, u32> {
        let heads = [0, COPY_OFFSET].map(|at| FileHead::parse_at(bytes, at));
        let is_it = |head: &&Result<Option<FileHead>, u32>| matches!(head, Ok(Some(head)) if head.sequence == sequence);
        let any = |head: &&Result<Option<FileHead>, u32>| matches!(head, Ok(Some(_)));
        let head = heads.iter().find(is_it).or_else(|| heads.iter().find(any));
        *head.unwrap_or(&heads[0])
    }

    fn parse_at(bytes: &[u8], at: usize) -> Result<Option<FileHead>, u32> {
        let Some(bytes) = bytes.get(at..at + HEAD_LEN) else {
            return Ok(None);
        };
        if &bytes[..8] != MAGIC {
            return Ok(None);
        }
        let version = u32_at(bytes, 8);
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(version);
        }
        if crc32c::crc32c(&bytes[16..]) != u32_at(bytes, 12) {
            return Ok(None);
        }
        let head = FileHead {
            sequence: u64_at(bytes, 16),
            generation: u64_at(bytes, 24),
            base: u64_at(bytes, 32),
            real_ns: u64_at(bytes, 40) as i64,
            carries_over: u32_at(bytes, 48) & CARRIES_OVER != 0,
            stamp_s: u32_at(bytes, 52),
        };
        // Adding a length to a position must not overflow.
        let sane = head.base < 1 << 62 && head.sequence < 1 << 62;
        Ok(sane.then_some(head))
    }

    /// The mark of a frame at this position: seven bits that other bytes seldom have by chance, even if they repeat.
    fn mark(&self, position: u64) -> u8 {
        let mixed = self
            .generation
            .wrapping_add(position.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (mixed >> 57) as u8
    }
}

/// Completes a frame, with or without the synced position. `buffer` has [`FRAME_HEAD_MAX`] free bytes, then the entries.
/// Returns the index at which the frame begins.
pub(crate) fn seal(
    buffer: &mut [u8],
    head: &FileHead,
    position: u64,
    synced: Option<u64>,
) -> usize {
    let mut front = Vec::with_capacity(FRAME_HEAD_MAX);
    let mut entries = FRAME_HEAD_MAX;
    if synced.is_none() && buffer.get(entries) == Some(&ONE) {
        front.push(head.mark(position) | SHORT);
        entries += 1;
    } else {
        front.push(head.mark(position));
        varint::put(&mut front, synced.map_or(0, |synced| position - synced + 1));
    }
    let body = entries - front.len();
    buffer[body..entries].copy_from_slice(&front);
    front.clear();
    varint::put(&mut front, (buffer.len() - body) as u64);
    let crc = checksum(head.generation, position, &front, &buffer[body..]);
    front.extend_from_slice(&crc.to_le_bytes());
    let start = body - front.len();
    buffer[start..body].copy_from_slice(&front);
    start
}

fn checksum(generation: u64, position: u64, len: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(checksum_before(generation, position, len), body)
}

fn checksum_before(generation: u64, position: u64, len: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&generation.to_le_bytes());
    let crc = crc32c::crc32c_append(crc, &position.to_le_bytes());
    crc32c::crc32c_append(crc, len)
}

/// A valid frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Position of its first byte, counted over all files.
    pub(crate) position: u64,
    /// Position after its last byte.
    pub(crate) end: u64,
    /// Position up to which the journal was on the disk when the frame was written.
    pub(crate) synced: u64,
    /// Range of its entries in the file.
    pub(crate) entries: Range<usize>,
    /// The first entry is a [`ONE`] without the kind.
    pub(crate) short: bool,
}

/// All valid frames of a file, in order. If two of them are not adjacent, the bytes between are damaged.
pub(crate) fn walk(bytes: &[u8], head: &FileHead) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut at = FRAMES_OFFSET as usize;
    let mut ranges = None;
    while let Some(frame) =
        frame_at(bytes, head, at).or_else(|| search(bytes, head, at, &mut ranges))
    {
        at = frame.entries.end;
        frames.push(frame);
    }
    frames
}

fn frame_at(bytes: &[u8], head: &FileHead, at: usize) -> Option<Frame> {
    let mut frame = frame_of(bytes.get(at..)?, head, position_of(head, at))?;
    frame.entries.start += at;
    frame.entries.end += at;
    Some(frame)
}

fn position_of(head: &FileHead, at: usize) -> u64 {
    head.base + (at as u64 - FRAMES_OFFSET)
}

/// The frame that begins with these bytes, which lie at a position of the file with this head.
pub(crate) fn frame_of(bytes: &[u8], head: &FileHead, position: u64) -> Option<Frame> {
    let parts = parts(bytes, head, position)?;
    let body = &bytes[parts.body.clone()];
    let crc = checksum(head.generation, position, parts.len, body);
    (crc == parts.crc).then(|| parts.frame(0))
}

/// Searches for a frame after `from`, where there is none.
fn search<'a>(
    bytes: &'a [u8],
    head: &FileHead,
    from: usize,
    ranges: &mut Option<Ranges<'a>>,
) -> Option<Frame> {
    let mut at = from + 1;
    loop {
        // Unwritten parts are zeros, which are most of a file, and no frame begins with a zero.
        at += bytes.get(at..)?.iter().position(|&byte| byte != 0)?;
        if let Some(parts) = parts(&bytes[at..], head, position_of(head, at)) {
            // There may be many, and each as long as the file.
            let ranges = ranges.get_or_insert_with(|| Ranges::of(bytes));
            let before = checksum_before(head.generation, parts.position, parts.len);
            let body = at + parts.body.start..at + parts.body.end;
            let end = body.end;
            let is_right = ranges.append(before, body) == parts.crc;
            if is_right && is_followed(bytes, head, end) {
                return Some(parts.frame(at));
            }
        }
        at += 1;
    }
}

/// A candidate for a frame, before its checksum is verified.
struct Parts<'a> {
    position: u64,
    /// The bytes of the length field.
    len: &'a [u8],
    crc: u32,
    /// Range of the bytes after the checksum.
    body: Range<usize>,
    short: bool,
    /// Distance back to the synced position, if the frame has it.
    behind: Option<u64>,
    entries_len: usize,
}

/// Looks at bytes as if a frame began with them; `None`: there is none, whatever the checksum may be.
fn parts<'a>(front: &'a [u8], head: &FileHead, position: u64) -> Option<Parts<'a>> {
    let mut rest = front;
    let body_len = usize::try_from(varint::take(&mut rest)?).ok()?;
    let len = &front[..front.len() - rest.len()];
    let (crc, rest) = rest.split_first_chunk()?;
    let behind_crc = rest.get(..body_len)?;
    let (&mark, mut rest) = behind_crc.split_first()?;
    if mark & !SHORT != head.mark(position) {
        return None;
    }
    let short = mark & SHORT != 0;
    let behind = match short {
        true => None,
        false => varint::take(&mut rest)?.checked_sub(1),
    };
    let body_at = len.len() + 4;
    let may_be = behind.is_none_or(|behind| behind <= position);
    may_be.then_some(Parts {
        position,
        len,
        crc: u32::from_le_bytes(*crc),
        body: body_at..body_at + body_len,
        short,
        behind,
        entries_len: rest.len(),
    })
}

impl Parts<'_> {
    /// If the checksum is right; `at`: where its bytes begin.
    fn frame(&self, at: usize) -> Frame {
        let len = self.len.len() + 4 + self.body.len();
        Frame {
            position: self.position,
            end: self.position + len as u64,
            synced: self.behind.map_or(0, |behind| self.position - behind),
            entries: at + self.body.end - self.entries_len..at + self.body.end,
            short: self.short,
        }
    }
}

/// Returns true if a frame is followed by another one or by unwritten bytes.
/// Among megabytes of an earlier use, one checksum may match by chance.
fn is_followed(bytes: &[u8], head: &FileHead, end: usize) -> bool {
    bytes.get(end).is_none_or(|&byte| byte == 0) || frame_at(bytes, head, end).is_some()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: FileHead = FileHead {
        sequence: 7,
        generation: 1 << 40,
        base: 1000,
        real_ns: -1,
        carries_over: true,
        stamp_s: 5,
    };

    fn example() -> Vec<u8> {
        let mut bytes = HEAD.page();
        bytes.resize(FRAMES_OFFSET as usize, 0);
        for (synced, entries) in [
            (Some(990), &b"one"[..]),
            (None, &[ONE, b't', b'w', b'o']),
            (Some(990), &[0; 300]),
        ] {
            let mut buffer = vec![0; FRAME_HEAD_MAX];
            buffer.extend_from_slice(entries);
            let position = HEAD.base + bytes.len() as u64 - FRAMES_OFFSET;
            let start = seal(&mut buffer, &HEAD, position, synced);
            bytes.extend_from_slice(&buffer[start..]);
        }
        bytes
    }

    #[test]
    fn frames_come_back_and_damage_costs_its_own_frame() {
        let bytes = example();
        assert_eq!(FileHead::parse(&bytes, 7), Ok(Some(HEAD)));
        let frames = walk(&bytes, &HEAD);
        let texts: Vec<&[u8]> = frames.iter().map(|f| &bytes[f.entries.clone()]).collect();
        assert_eq!(texts, [&b"one"[..], b"two", &[0; 300]]);
        assert_eq!((frames[0].position, frames[2].synced), (1000, 990));
        assert_eq!((frames[1].short, frames[2].short), (true, false));
        for at in FRAMES_OFFSET as usize..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            assert_eq!(walk(&flipped, &HEAD).len(), 2, "byte {at}");
        }
        for len in 0..bytes.len() {
            assert!(walk(&bytes[..len], &HEAD).len() < 3, "cut at {len}");
        }
        for at in 0..HEAD_LEN {
            // A bit that turns the version into an unreadable one.
            let bit = 16;
            let mut flipped = bytes.clone();
            flipped[at] ^= bit;
            assert_eq!(FileHead::parse(&flipped, 7), Ok(Some(HEAD)), "byte {at}");
            flipped[COPY_OFFSET + at] ^= bit;
            assert_ne!(FileHead::parse(&flipped, 7), Ok(Some(HEAD)), "byte {at}");
        }
    }

    /// Parts of a long damaged frame must not pass for frames, since the frames after them would be missed.
    #[test]
    fn what_is_behind_a_long_damaged_frame_is_found() {
        for sequence in [1, 7, 0x81, 0x90] {
            let head = FileHead { sequence, ..HEAD };
            let mut bytes = head.page();
            bytes.resize(FRAMES_OFFSET as usize, 0);
            let mut random = sequence;
            let values = |count: usize, random: &mut u64| -> Vec<u8> {
                let each = (0..count).flat_map(|_| {
                    let value = kymo_base::random::next_random(random);
                    [0x81, 0, value as u8 | 0x80, (value >> 8) as u8 & 0x7f]
                });
                each.collect()
            };
            for count in [3, 1 << 18, 3, 1 << 10] {
                let mut buffer = vec![0; FRAME_HEAD_MAX];
                buffer.extend(values(count, &mut random));
                let position = head.base + bytes.len() as u64 - FRAMES_OFFSET;
                let start = seal(&mut buffer, &head, position, Some(position));
                bytes.extend_from_slice(&buffer[start..]);
            }
            bytes[FRAMES_OFFSET as usize + 1000] ^= 4;
            let frames = walk(&bytes, &head);
            let counts = frames.iter().map(|frame| frame.entries.len() / 4);
            assert!(counts.eq([3, 3, 1 << 10]), "sequence {sequence}");
        }
    }

    #[test]
    fn another_use_of_the_file_or_another_place_is_no_frame() {
        let bytes = example();
        let other = FileHead {
            generation: 3,
            ..HEAD
        };
        assert_eq!(walk(&bytes, &other), []);
        let mut moved = bytes.clone();
        moved.insert(FRAMES_OFFSET as usize, 0);
        assert_eq!(walk(&moved, &HEAD), []);
    }
}
