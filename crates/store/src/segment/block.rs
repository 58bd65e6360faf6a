//! A block, which is one saved part of a chunk: a head with the positions of all parts, then frames, each compressed and
//! checked on its own. Layout: docs/formats/store.md, "Blocks".

use crate::layout::{CHUNK, STATE_MAX, STRIPE};
use crate::segment::codec;
use kymo_base::varint::{put, take};

/// The first bytes of a block.
pub(crate) const MAGIC: &[u8; 8] = b"KYMOBLCK";
/// Length of a head before its directory.
pub(crate) const HEAD_LEN: usize = 56;
/// Alignment of blocks.
pub(crate) const ALIGN: usize = 8;
/// The longest head that is accepted.
pub(crate) const DIRECTORY_MAX: usize = 64 << 20;
/// The longest frame after decompression, except frames of states.
pub(crate) const FRAME_MAX: usize = 32 << 20;
/// Position of the codec in a directory, above the bits of the frame's uncompressed length.
const CODEC_SHIFT: u32 = 29;
const _: () = assert!(FRAME_MAX < 1 << CODEC_SHIFT && STATE_MAX < 1 << CODEC_SHIFT);
/// The largest number of archives that is accepted.
const ARCHIVES_MAX: u64 = kymo_rrd::header::COUNT_MAX;

/// Position of a frame in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FramePlace {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// Length after decompression.
    pub(crate) raw: u32,
    /// Compression, see [`codec`].
    pub(crate) codec: u8,
    pub(crate) crc: u32,
}

/// The frames of a stripe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StripePart {
    pub(crate) state: Option<FramePlace>,
    pub(crate) points: Option<FramePlace>,
    /// Frame of each archive; archives with the same rows share a frame.
    pub(crate) rows: Vec<Option<FramePlace>>,
}

/// The decoded head of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) chunk: u32,
    /// Generation of the segment that the block belongs to.
    pub(crate) generation: u64,
    /// The journal's records before this position are in this block or an earlier one.
    pub(crate) position: u64,
    pub(crate) len: u32,
    /// Offset up to which the segment was known to be on the disk when the block was written.
    pub(crate) synced: u64,
    /// Offset, length and checksum of all frames together.
    pub(super) frames: (u64, u32, u32),
    pub(crate) names: Option<FramePlace>,
    /// The newest stamp of its series, in seconds since 1970.
    pub(crate) stamp: u64,
    /// For each archive, the number of its newest row, 0 if there is none, or [`AGELESS`] if the number does not show
    /// when its rows are dead.
    pub(crate) newest: Vec<u64>,
    pub(crate) parts: Vec<(u8, StripePart)>,
    /// For series of points, a second from which all samples are; `None` if unknown.
    pub(crate) oldest: Option<u64>,
}

/// Marks an archive of a block whose rows cannot be judged by age, because a series lags behind the others.
pub(crate) const AGELESS: u64 = u64::MAX;

/// States of series of a stripe, by member, in words.
pub(crate) type States = Vec<(u8, Vec<u64>)>;

/// Fields of a head.
pub(super) struct HeadFields {
    pub(super) chunk: u32,
    pub(super) position: u64,
    pub(super) generation: u64,
    pub(super) synced: u64,
}

/// Builds a block; returns the length of its head and the checksum of its frames.
pub(super) fn put_head(
    out: &mut Vec<u8>,
    about: &HeadFields,
    directory: &[u8],
    frames: &[u8],
) -> (usize, u32) {
    let head_len = (HEAD_LEN + directory.len()).next_multiple_of(ALIGN);
    let len = (head_len + frames.len()).next_multiple_of(ALIGN);
    let crc = crc32c::crc32c(frames);
    out.clear();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(head_len as u32).to_le_bytes());
    out.extend_from_slice(&(len as u32).to_le_bytes());
    out.extend_from_slice(&about.chunk.to_le_bytes());
    out.extend_from_slice(&about.generation.to_le_bytes());
    out.extend_from_slice(&about.position.to_le_bytes());
    out.extend_from_slice(&about.synced.to_le_bytes());
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&(frames.len() as u32).to_le_bytes());
    out.extend_from_slice(directory);
    out.resize(head_len, 0);
    seal(out, head_len);
    out.extend_from_slice(frames);
    out.resize(len, 0);
    (head_len, crc)
}

/// Writes the checksum into a head.
fn seal(block: &mut [u8], head_len: usize) {
    let crc = crc32c::crc32c(&block[12..head_len]);
    block[8..12].copy_from_slice(&crc.to_le_bytes());
}

/// Appends a directory. Frames lie in the order of the directory, so it needs no offsets; archives that share a frame
/// refer to the archive that owns it.
pub(super) fn put_directory(
    out: &mut Vec<u8>,
    names: Option<&FramePlace>,
    newest: &[u64],
    parts: &[(u8, StripePart)],
) {
    put(out, newest.len() as u64);
    newest.iter().for_each(|&row| put(out, row));
    put_frame(out, names);
    put(out, parts.len() as u64);
    for (stripe, part) in parts {
        out.push(*stripe);
        put_frame(out, part.state.as_ref());
        put_frame(out, part.points.as_ref());
        // Offset and archive of each owned frame, in ascending order.
        let mut own: Vec<(u64, u64)> = Vec::new();
        for (archive, frame) in (0..).zip(&part.rows) {
            let same = frame.and_then(|frame| {
                let at = own.binary_search_by_key(&frame.offset, |(offset, _)| *offset);
                at.ok().map(|at| own[at].1)
            });
            match same {
                Some(other) => put(out, other << 1 | 1),
                None => {
                    own.extend(frame.map(|frame| (frame.offset, archive)));
                    put_frame(out, frame.as_ref());
                }
            }
        }
    }
}

/// Appends the lengths of a frame; 0 for none.
fn put_frame(out: &mut Vec<u8>, frame: Option<&FramePlace>) {
    let Some(frame) = frame else {
        return put(out, 0);
    };
    put(out, u64::from(frame.len) << 1);
    put(
        out,
        u64::from(frame.raw) | u64::from(frame.codec) << CODEC_SHIFT,
    );
    out.extend_from_slice(&frame.crc.to_le_bytes());
}

/// Length of the head at the start of `bytes`, if they begin with one.
pub(crate) fn head_len(bytes: &[u8]) -> Option<usize> {
    if bytes.get(..8)? != MAGIC {
        return None;
    }
    let len = u32_at(bytes, 12)? as usize;
    (HEAD_LEN..=DIRECTORY_MAX).contains(&len).then_some(len)
}

impl Head {
    /// Builds a mark: a block without content, for a segment that is on the disk up to `synced`.
    pub(crate) fn mark(generation: u64, synced: u64, out: &mut Vec<u8>) {
        let mut directory = Vec::new();
        put(&mut directory, 0);
        put_directory(&mut directory, None, &[], &[]);
        let about = HeadFields {
            chunk: 0,
            position: 0,
            generation,
            synced,
        };
        put_head(out, &about, &directory, &[]);
    }

    /// Returns true if the block is a mark.
    pub(crate) fn is_mark(&self) -> bool {
        self.parts.is_empty() && self.names.is_none()
    }

    /// Parses a head, all of which is in `bytes`; `None` if it is damaged or no head.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Head> {
        let head_len = head_len(bytes)?;
        let bytes = bytes.get(..head_len)?;
        if crc32c::crc32c(&bytes[12..]) != u32_at(bytes, 8)? {
            return None;
        }
        let len = u32_at(bytes, 16)?;
        let mut input = &bytes[HEAD_LEN..];
        let stamp = take(&mut input)?;
        let archives = take(&mut input)?;
        if archives > ARCHIVES_MAX || archives > input.len() as u64 {
            return None;
        }
        let newest: Option<Vec<u64>> = (0..archives).map(|_| take(&mut input)).collect();
        let newest = newest?;
        let mut offset = head_len as u64;
        let names = take_frame(&mut input, &mut offset)?;
        let mut parts: Vec<(u8, StripePart)> = Vec::new();
        for _ in 0..take(&mut input)?.min(STRIPE as u64) {
            let (&stripe, rest) = input.split_first()?;
            input = rest;
            let order = parts.last().is_none_or(|(before, _)| *before < stripe);
            if !order || usize::from(stripe) >= CHUNK / STRIPE {
                return None;
            }
            let mut part = StripePart {
                state: take_frame(&mut input, &mut offset)?,
                points: take_frame(&mut input, &mut offset)?,
                rows: Vec::new(),
            };
            for _ in 0..archives {
                let frame = take_column(&mut input, &mut offset, &part.rows)?;
                part.rows.push(frame);
            }
            parts.push((stripe, part));
        }
        let oldest = take(&mut input).and_then(|age| age.checked_sub(1));
        let oldest = oldest.and_then(|age| stamp.checked_sub(age));
        let whole = offset <= u64::from(len) && (len as usize).is_multiple_of(ALIGN);
        whole.then_some(Head {
            chunk: u32_at(bytes, 20)?,
            generation: u64_at(bytes, 24)?,
            position: u64_at(bytes, 32)?,
            len,
            synced: u64_at(bytes, 40)?,
            frames: (head_len as u64, u32_at(bytes, 52)?, u32_at(bytes, 48)?),
            names,
            stamp,
            newest,
            parts,
            oldest,
        })
    }

    /// Returns true if all frames of the block are there and undamaged.
    pub(crate) fn is_whole(&self, block: &[u8]) -> bool {
        let (offset, len, crc) = self.frames;
        let frames = block
            .get(offset as usize..)
            .and_then(|frames| frames.get(..len as usize));
        frames.is_some_and(|frames| crc32c::crc32c(frames) == crc)
    }

    /// Bytes of the frames of rows, for each archive; a shared frame counts once.
    pub(crate) fn row_bytes(&self) -> Vec<u64> {
        let mut bytes = vec![0; self.newest.len()];
        for (_, part) in &self.parts {
            let mut last = 0;
            for (bytes, frame) in bytes.iter_mut().zip(part.rows.iter()) {
                // An owned frame follows the previous owned one.
                if let Some(frame) = frame.filter(|frame| frame.offset > last) {
                    *bytes += u64::from(frame.len);
                    last = frame.offset;
                }
            }
        }
        bytes
    }

    /// The checksum over all frames.
    pub(crate) fn frames_crc(&self) -> u32 {
        self.frames.2
    }

    /// Bytes of frames of states.
    pub(crate) fn state_bytes(&self) -> u64 {
        let states = self.parts.iter().filter_map(|(_, part)| part.state);
        states.map(|frame| u64::from(frame.len)).sum()
    }

    pub(crate) fn part(&self, stripe: u8) -> Option<&StripePart> {
        let at = self
            .parts
            .binary_search_by_key(&stripe, |(at, _)| *at)
            .ok()?;
        self.parts.get(at).map(|(_, part)| part)
    }
}

fn take_frame(input: &mut &[u8], offset: &mut u64) -> Option<Option<FramePlace>> {
    match take(input)? {
        0 => Some(None),
        len if len & 1 == 0 => take_rest(input, offset, len >> 1).map(Some),
        _ => None,
    }
}

fn take_column(
    input: &mut &[u8],
    offset: &mut u64,
    before: &[Option<FramePlace>],
) -> Option<Option<FramePlace>> {
    match take(input)? {
        0 => Some(None),
        len if len & 1 == 0 => take_rest(input, offset, len >> 1).map(Some),
        same => {
            let frame = before.get(usize::try_from(same >> 1).ok()?)?;
            frame.map(Some)
        }
    }
}

fn take_rest(input: &mut &[u8], offset: &mut u64, len: u64) -> Option<FramePlace> {
    let raw = take(input)?;
    let (crc, rest) = input.split_first_chunk()?;
    *input = rest;
    let frame = FramePlace {
        offset: *offset,
        len: u32::try_from(len).ok()?,
        raw: (raw & ((1 << CODEC_SHIFT) - 1)) as u32,
        codec: u8::try_from(raw >> CODEC_SHIFT).ok()?,
        crc: u32::from_le_bytes(*crc),
    };
    *offset = offset.checked_add(len)?;
    Some(frame)
}

/// Decompresses a frame; `None` if it is damaged or longer than `max`.
pub(crate) fn unpack(frame: &FramePlace, bytes: &[u8], max: usize) -> Option<Vec<u8>> {
    if bytes.len() != frame.len as usize || crc32c::crc32c(bytes) != frame.crc {
        return None;
    }
    if frame.raw as usize > max {
        return None;
    }
    codec::unpack(frame.codec, bytes, frame.raw as usize)
}

/// Encodes states word by word: the values of a word in all series
/// are together, and words that are zero in all series are left out.
pub(super) fn put_state(out: &mut Vec<u8>, states: &[(u8, Vec<u64>)]) {
    put(out, states.len() as u64);
    out.extend(states.iter().map(|(member, _)| member));
    let words = states.first().map_or(0, |(_, words)| words.len());
    put(out, words as u64);
    let mask = out.len();
    out.resize(mask + words.div_ceil(8), 0);
    for word in 0..words {
        if states.iter().all(|(_, words)| words[word] == 0) {
            continue;
        }
        out[mask + word / 8] |= 1 << (word % 8);
        let column = states
            .iter()
            .flat_map(|(_, words)| words[word].to_le_bytes());
        out.extend(column);
    }
}

/// Decodes states encoded by [`put_state`].
pub(crate) fn take_state(mut input: &[u8], words: usize) -> Option<States> {
    let count = usize::try_from(take(&mut input)?)
        .ok()
        .filter(|&count| count <= STRIPE)?;
    let (members, rest) = input.split_at_checked(count)?;
    input = rest;
    if members.iter().any(|&member| usize::from(member) >= STRIPE) {
        return None;
    }
    if take(&mut input)? != words as u64 && count > 0 {
        return None;
    }
    let words = if count > 0 { words } else { 0 };
    let (mask, rest) = input.split_at_checked(words.div_ceil(8))?;
    input = rest;
    let mut states: Vec<(u8, Vec<u64>)> = members
        .iter()
        .map(|&member| (member, vec![0; words]))
        .collect();
    for word in 0..words {
        if mask[word / 8] & 1 << (word % 8) == 0 {
            continue;
        }
        for (_, words) in &mut states {
            let (bytes, rest) = input.split_first_chunk()?;
            words[word] = u64::from_le_bytes(*bytes);
            input = rest;
        }
    }
    input.is_empty().then_some(states)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(std::array::from_fn(|i| bytes[i])))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(std::array::from_fn(|i| bytes[i])))
}

/// Copies a block for another segment: only the generation and the synced offset change.
pub(crate) fn renewed(block: &[u8], generation: u64, synced: u64) -> Vec<u8> {
    let mut bytes = block.to_vec();
    let Some(len) = head_len(&bytes).filter(|&len| len <= bytes.len()) else {
        return bytes;
    };
    bytes[24..32].copy_from_slice(&generation.to_le_bytes());
    bytes[40..48].copy_from_slice(&synced.to_le_bytes());
    seal(&mut bytes, len);
    bytes
}
