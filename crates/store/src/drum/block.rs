//! A block: one saving of a chunk. A head that says where everything is, then frames, each compressed and checked alone.
//! Layout: docs/formats/store.md, "Blocks".

use kymo_base::varint::{put, take};

/// What a block begins with.
pub(crate) const MAGIC: &[u8; 8] = b"KYMOBLCK";
/// Bytes of a head before its directory.
pub(crate) const HEAD_LEN: usize = 56;
/// Groups of a chunk, and those whose frames are one.
pub(crate) const CHUNK: usize = 256;
pub(crate) const SIXTEEN: usize = 16;
/// Blocks begin at multiples of this.
pub(crate) const ALIGN: usize = 8;
/// Longest head that is believed.
pub(crate) const DIRECTORY_MAX: usize = 64 << 20;
/// Longest frame of states, unpacked.
pub(crate) const STATE_MAX: usize = 256 << 20;
/// Longest frame of anything else, unpacked.
pub(crate) const FRAME_MAX: usize = 32 << 20;
/// Longest block.
const BLOCK_MAX: usize = 1 << 30;
const LEVEL: i32 = 3;
/// Points have little left that repeats.
const POINTS_LEVEL: i32 = -1;
/// Most archives that are believed.
const ARCHIVES_MAX: u64 = kymo_rrd::header::COUNT_MAX;

/// Where a frame is in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// Bytes when it is unpacked.
    pub(crate) raw: u32,
    pub(crate) crc: u32,
}

/// The frames of sixteen groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) state: Option<Frame>,
    pub(crate) points: Option<Frame>,
    /// One for each archive; archives with the same rows have the same frame.
    pub(crate) rows: Vec<Option<Frame>>,
}

/// What a block's head says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) chunk: u32,
    /// Which use of the segment file it belongs to.
    pub(crate) generation: u64,
    /// Records of the journal before this position are in it, or in an earlier block.
    pub(crate) position: u64,
    pub(crate) len: u32,
    /// Up to where the segment was known to be on the disk when the block was written.
    pub(crate) synced: u64,
    /// Of all frames: where they are, and their checksum.
    frames: (u64, u32, u32),
    pub(crate) names: Option<Frame>,
    /// The newest stamp of its groups, seconds since 1970.
    pub(crate) stamp: u64,
    /// For each archive, the number of the newest row; 0: none; [`AGELESS`]: age does not tell when they are of no use.
    pub(crate) newest: Vec<u64>,
    pub(crate) parts: Vec<(u8, Part)>,
}

/// Rows that are kept though most of their age are dead: their group is behind the others.
pub(crate) const AGELESS: u64 = u64::MAX;

/// States of some of sixteen groups: which of them, and their words.
pub(crate) type States = Vec<(u8, Vec<u64>)>;

/// What is on its way into a block: its names, and sixteen after sixteen its states, points and rows.
pub(crate) struct Builder {
    chunk: u32,
    position: u64,
    packer: Packer,
    points_packer: Packer,
    frames: Vec<u8>,
    names: Option<Frame>,
    pub(crate) stamp: u64,
    newest: Vec<u64>,
    parts: Vec<(u8, Part)>,
    raw: Vec<u8>,
    /// The raw bytes of the columns of the last part, to find those that are the same: checksum, frame, bytes.
    columns: Vec<(u32, Frame, Vec<u8>)>,
}

type Packer = zstd::bulk::Compressor<'static>;

impl Builder {
    pub(crate) fn new(archives: usize) -> std::io::Result<Builder> {
        Ok(Builder {
            chunk: 0,
            position: 0,
            packer: Packer::new(LEVEL)?,
            points_packer: Packer::new(POINTS_LEVEL)?,
            frames: Vec::new(),
            names: None,
            stamp: 0,
            newest: vec![0; archives],
            parts: Vec::new(),
            raw: Vec::new(),
            columns: Vec::new(),
        })
    }

    /// Another block; memory is kept.
    pub(crate) fn begin(&mut self, chunk: u32, position: u64, archives: usize) {
        self.chunk = chunk;
        self.position = position;
        self.frames.clear();
        self.names = None;
        self.stamp = 0;
        self.newest.clear();
        self.newest.resize(archives, 0);
        self.parts.clear();
    }

    /// Begins the frames of sixteen groups; they come in order.
    pub(crate) fn part(&mut self, sixteen: u8) {
        let part = Part {
            rows: vec![None; self.newest.len()],
            ..Part::default()
        };
        self.parts.push((sixteen, part));
        self.columns.clear();
    }

    /// The names of a chunk's groups: they lie before all else, whenever they come.
    pub(crate) fn names(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let frame = pack(&mut self.packer, &mut self.frames, bytes, FRAME_MAX)?;
        self.frames.rotate_right(frame.len as usize);
        self.shift(u64::from(frame.len));
        self.names = Some(Frame { offset: 0, ..frame });
        Ok(())
    }

    fn shift(&mut self, by: u64) {
        for (_, part) in &mut self.parts {
            let frames = part.state.iter_mut().chain(&mut part.points);
            let frames = frames.chain(part.rows.iter_mut().flatten());
            frames.for_each(|frame| frame.offset += by);
        }
    }

    /// States of the sixteen: for each member that has one its words.
    pub(crate) fn state(&mut self, states: &[(u8, Vec<u64>)]) -> std::io::Result<()> {
        let mut raw = std::mem::take(&mut self.raw);
        raw.clear();
        put_state(&mut raw, states);
        let done = self.frame(0, &raw);
        self.raw = raw;
        done
    }

    /// Points of the sixteen.
    pub(crate) fn points(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.frame(1, bytes)
    }

    /// A frame of the sixteen: 0: its states, 1: its points, 2 and more: rows of its archives.
    pub(super) fn frame(&mut self, place: usize, raw: &[u8]) -> std::io::Result<()> {
        assert!(self.is_before(place), "BUG: frames come in order");
        let (packer, max) = match place {
            0 => (&mut self.packer, STATE_MAX),
            1 => (&mut self.points_packer, FRAME_MAX),
            _ => (&mut self.packer, FRAME_MAX),
        };
        let frame = pack(packer, &mut self.frames, raw, max)?;
        self.put_frame(place, frame);
        Ok(())
    }

    fn put_frame(&mut self, place: usize, frame: Frame) {
        let Some((_, part)) = self.parts.last_mut() else {
            return;
        };
        match place {
            0 => part.state = Some(frame),
            1 => part.points = Some(frame),
            _ => part.rows[place - 2] = Some(frame),
        }
    }

    /// The newest row of an archive is at least this one.
    pub(super) fn set_newest(&mut self, archive: usize, newest: u64) {
        self.newest[archive] = self.newest[archive].max(newest);
    }

    /// Ends a part that may have got nothing.
    pub(crate) fn drop_empty_part(&mut self) {
        let empty = |(_, part): &(u8, Part)| {
            part.state.is_none() && part.points.is_none() && part.rows.iter().all(Option::is_none)
        };
        self.parts.pop_if(|part| empty(part));
    }

    pub(crate) fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Nothing is in it: no part, and no names.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.names.is_none()
    }

    /// Rows of an archive of the sixteen. `newest`: as in [`Head::newest`].
    pub(crate) fn rows(
        &mut self,
        archive: usize,
        column: &super::column::Column,
        newest: u64,
    ) -> std::io::Result<()> {
        if column.is_empty() {
            return Ok(());
        }
        assert!(self.is_before(2 + archive), "BUG: archives come in order");
        let mut raw = Vec::new();
        column.encode(&mut raw);
        let crc = crc32c::crc32c(&raw);
        let same = self.columns.iter();
        let mut same = same.filter(|(other, _, bytes)| *other == crc && *bytes == raw);
        let known = same.next().map(|(_, frame, _)| *frame);
        let frame = match known {
            Some(frame) => frame,
            None => pack(&mut self.packer, &mut self.frames, &raw, FRAME_MAX)?,
        };
        if known.is_none() {
            self.columns.push((crc, frame, raw));
        }
        self.set_newest(archive, newest);
        self.put_frame(2 + archive, frame);
        Ok(())
    }

    /// Whether the last part has no frame from `place` on: its state, its points, its archives. A directory has no
    /// offsets, so that frames must lie in its order.
    fn is_before(&self, place: usize) -> bool {
        let Some((_, part)) = self.parts.last() else {
            return false;
        };
        let frames = [&part.state, &part.points].into_iter().chain(&part.rows);
        frames.skip(place).all(Option::is_none)
    }

    /// The block's bytes and head, for a segment that is on the disk up to `synced`. All stays as it is, so that the same
    /// block can be made for another segment.
    pub(super) fn finish(&self, generation: u64, synced: u64, out: &mut Vec<u8>) -> Head {
        let mut directory = Vec::new();
        put(&mut directory, self.stamp);
        put_directory(
            &mut directory,
            self.names.as_ref(),
            &self.newest,
            &self.parts,
        );
        let about = About {
            chunk: self.chunk,
            position: self.position,
            generation,
            synced,
        };
        let (head_len, crc) = put_head(out, &about, &directory, &self.frames);
        let shift = |frame: &mut Frame| frame.offset += head_len as u64;
        let (mut names, mut parts) = (self.names, self.parts.clone());
        names.iter_mut().for_each(shift);
        for (_, part) in &mut parts {
            let frames = part.state.iter_mut().chain(&mut part.points);
            frames.chain(part.rows.iter_mut().flatten()).for_each(shift);
        }
        Head {
            chunk: self.chunk,
            generation,
            position: self.position,
            len: out.len() as u32,
            synced,
            frames: (head_len as u64, self.frames.len() as u32, crc),
            names,
            stamp: self.stamp,
            newest: self.newest.clone(),
            parts,
        }
    }
}

/// Appends a frame.
fn pack(
    packer: &mut Packer,
    frames: &mut Vec<u8>,
    raw: &[u8],
    max: usize,
) -> std::io::Result<Frame> {
    let offset = frames.len();
    if raw.len() > max || offset > BLOCK_MAX {
        let text = format!("cannot save {} bytes in one frame", raw.len());
        return Err(std::io::Error::other(text));
    }
    let bound = zstd::zstd_safe::compress_bound(raw.len());
    frames.resize(offset + bound, 0);
    let len = packer.compress_to_buffer(raw, &mut frames[offset..])?;
    frames.truncate(offset + len);
    Ok(Frame {
        offset: offset as u64,
        len: len as u32,
        raw: raw.len() as u32,
        crc: crc32c::crc32c(&frames[offset..]),
    })
}

/// What a head begins with.
struct About {
    chunk: u32,
    position: u64,
    generation: u64,
    synced: u64,
}

/// Makes a block; the length of its head, and its frames' checksum.
fn put_head(out: &mut Vec<u8>, about: &About, directory: &[u8], frames: &[u8]) -> (usize, u32) {
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

/// Puts the checksum into a head.
fn seal(block: &mut [u8], head_len: usize) {
    let crc = crc32c::crc32c(&block[12..head_len]);
    block[8..12].copy_from_slice(&crc.to_le_bytes());
}

/// Frames lie in the order in which the directory names them, so that it needs no offsets; those of archives that share
/// one name the archive that has it.
fn put_directory(out: &mut Vec<u8>, names: Option<&Frame>, newest: &[u64], parts: &[(u8, Part)]) {
    put(out, newest.len() as u64);
    newest.iter().for_each(|&row| put(out, row));
    put_frame(out, names);
    put(out, parts.len() as u64);
    for (sixteen, part) in parts {
        out.push(*sixteen);
        put_frame(out, part.state.as_ref());
        put_frame(out, part.points.as_ref());
        // Frames of their own: their offsets, which rise, and their archives.
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

/// A length, twice; 0: there is none.
fn put_frame(out: &mut Vec<u8>, frame: Option<&Frame>) {
    let Some(frame) = frame else {
        return put(out, 0);
    };
    put(out, u64::from(frame.len) << 1);
    put(out, u64::from(frame.raw));
    out.extend_from_slice(&frame.crc.to_le_bytes());
}

/// Bytes of a head, if this is the beginning of one.
pub(crate) fn head_len(bytes: &[u8]) -> Option<usize> {
    if bytes.get(..8)? != MAGIC {
        return None;
    }
    let len = u32_at(bytes, 12)? as usize;
    (HEAD_LEN..=DIRECTORY_MAX).contains(&len).then_some(len)
}

impl Head {
    /// A block with nothing in it, for a segment that is on the disk up to `synced`.
    pub(crate) fn mark(generation: u64, synced: u64, out: &mut Vec<u8>) {
        let mut directory = Vec::new();
        put(&mut directory, 0);
        put_directory(&mut directory, None, &[], &[]);
        let about = About {
            chunk: 0,
            position: 0,
            generation,
            synced,
        };
        put_head(out, &about, &directory, &[]);
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_mark(&self) -> bool {
        self.parts.is_empty() && self.names.is_none()
    }

    /// Reads a head; `bytes` has all of it. `None`: damaged, or none.
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
        let mut parts: Vec<(u8, Part)> = Vec::new();
        for _ in 0..take(&mut input)?.min(SIXTEEN as u64) {
            let (&sixteen, rest) = input.split_first()?;
            input = rest;
            let order = parts.last().is_none_or(|(before, _)| *before < sixteen);
            if !order || usize::from(sixteen) >= CHUNK / SIXTEEN {
                return None;
            }
            let mut part = Part {
                state: take_frame(&mut input, &mut offset)?,
                points: take_frame(&mut input, &mut offset)?,
                rows: Vec::new(),
            };
            for _ in 0..archives {
                let frame = take_column(&mut input, &mut offset, &part.rows)?;
                part.rows.push(frame);
            }
            parts.push((sixteen, part));
        }
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
        })
    }

    /// Whether all of the block is there.
    pub(crate) fn is_whole(&self, block: &[u8]) -> bool {
        let (offset, len, crc) = self.frames;
        let frames = block
            .get(offset as usize..)
            .and_then(|frames| frames.get(..len as usize));
        frames.is_some_and(|frames| crc32c::crc32c(frames) == crc)
    }

    /// Bytes of frames of rows, archive by archive; those that share one count it once.
    pub(crate) fn row_bytes(&self) -> Vec<u64> {
        let mut bytes = vec![0; self.newest.len()];
        for (_, part) in &self.parts {
            let mut last = 0;
            for (bytes, frame) in bytes.iter_mut().zip(part.rows.iter()) {
                // Frames of their own lie behind each other.
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

    pub(crate) fn part(&self, sixteen: u8) -> Option<&Part> {
        let at = self
            .parts
            .binary_search_by_key(&sixteen, |(at, _)| *at)
            .ok()?;
        self.parts.get(at).map(|(_, part)| part)
    }
}

fn take_frame(input: &mut &[u8], offset: &mut u64) -> Option<Option<Frame>> {
    match take(input)? {
        0 => Some(None),
        len if len & 1 == 0 => take_rest(input, offset, len >> 1).map(Some),
        _ => None,
    }
}

fn take_column(
    input: &mut &[u8],
    offset: &mut u64,
    before: &[Option<Frame>],
) -> Option<Option<Frame>> {
    match take(input)? {
        0 => Some(None),
        len if len & 1 == 0 => take_rest(input, offset, len >> 1).map(Some),
        same => {
            let frame = before.get(usize::try_from(same >> 1).ok()?)?;
            frame.map(Some)
        }
    }
}

fn take_rest(input: &mut &[u8], offset: &mut u64, len: u64) -> Option<Frame> {
    let raw = u32::try_from(take(input)?).ok()?;
    let (crc, rest) = input.split_first_chunk()?;
    *input = rest;
    let frame = Frame {
        offset: *offset,
        len: u32::try_from(len).ok()?,
        raw,
        crc: u32::from_le_bytes(*crc),
    };
    *offset = offset.checked_add(len)?;
    Some(frame)
}

/// A frame's bytes, unpacked; `None`: they are damaged, or more than `max`.
pub(crate) fn unpack(frame: &Frame, bytes: &[u8], max: usize) -> Option<Vec<u8>> {
    if bytes.len() != frame.len as usize || crc32c::crc32c(bytes) != frame.crc {
        return None;
    }
    let content = zstd::zstd_safe::get_frame_content_size(bytes).ok()??;
    if frame.raw as usize > max || content != u64::from(frame.raw) {
        return None;
    }
    let raw = super::near::unpack(bytes, frame.raw as usize)?;
    (raw.len() == frame.raw as usize).then_some(raw)
}

/// States, word after word: a word's values in all groups lie together, and where all are zero there are none.
fn put_state(out: &mut Vec<u8>, states: &[(u8, Vec<u64>)]) {
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

/// What [`Builder::state`] was given.
pub(crate) fn take_state(mut input: &[u8], words: usize) -> Option<States> {
    let count = usize::try_from(take(&mut input)?)
        .ok()
        .filter(|&count| count <= SIXTEEN)?;
    let (members, rest) = input.split_at_checked(count)?;
    input = rest;
    if members.iter().any(|&member| usize::from(member) >= SIXTEEN) {
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

/// A block for another segment: all that changes is the generation, and up to where the segment is on the disk.
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
