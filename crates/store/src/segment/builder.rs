//! Builds a block: its parts are added in order and compressed at once.

use crate::consolidation::rows::Column;
use crate::layout::STATE_MAX;
use crate::segment::block::{
    FRAME_MAX, FramePlace, Head, HeadFields, StripePart, put_directory, put_head, put_state,
};
use crate::segment::codec;
use crate::segment::codec::Packer;
use kymo_base::varint::put;
use std::io;

/// Largest length of a block.
const BLOCK_MAX: usize = 1 << 30;
const LEVEL: i32 = 3;
/// Compression level of points, which have little repetition left.
const POINTS_LEVEL: i32 = -1;

/// A block being built: its names, and for each stripe its states, points and rows.
pub(crate) struct Builder {
    chunk: u32,
    position: u64,
    packer: Packer,
    points_packer: Packer,
    frames: Vec<u8>,
    names: Option<FramePlace>,
    pub(crate) stamp: u64,
    /// The oldest second of samples; `None` if unknown, [`u64::MAX`] if there are no samples so far.
    oldest: Option<u64>,
    newest: Vec<u64>,
    parts: Vec<(u8, StripePart)>,
    raw: Vec<u8>,
    /// Uncompressed columns of the last part, by which equal ones are found: checksum, frame, bytes.
    columns: Vec<(u32, FramePlace, Vec<u8>)>,
}

impl Builder {
    pub(crate) fn new(archives: usize) -> io::Result<Builder> {
        Ok(Builder {
            chunk: 0,
            position: 0,
            packer: Packer::new(LEVEL)?,
            points_packer: Packer::new(POINTS_LEVEL)?,
            frames: Vec::new(),
            names: None,
            stamp: 0,
            oldest: Some(u64::MAX),
            newest: vec![0; archives],
            parts: Vec::new(),
            raw: Vec::new(),
            columns: Vec::new(),
        })
    }

    /// Begins another block and reuses the memory.
    pub(crate) fn begin(&mut self, chunk: u32, position: u64, archives: usize) {
        self.chunk = chunk;
        self.position = position;
        self.frames.clear();
        self.names = None;
        self.stamp = 0;
        self.oldest = Some(u64::MAX);
        self.newest.clear();
        self.newest.resize(archives, 0);
        self.parts.clear();
    }

    /// Begins the frames of a stripe; stripes must be added in order.
    pub(crate) fn part(&mut self, stripe: u8) {
        let part = StripePart {
            rows: vec![None; self.newest.len()],
            ..StripePart::default()
        };
        self.parts.push((stripe, part));
        self.columns.clear();
    }

    /// Adds the names of a chunk's series, which are the first frame whenever they are added.
    pub(crate) fn names(&mut self, bytes: &[u8]) -> io::Result<()> {
        let frame = pack(&mut self.packer, &mut self.frames, bytes, FRAME_MAX)?;
        self.frames.rotate_right(frame.len as usize);
        self.shift(u64::from(frame.len));
        self.names = Some(FramePlace { offset: 0, ..frame });
        Ok(())
    }

    fn shift(&mut self, by: u64) {
        for (_, part) in &mut self.parts {
            let frames = part.state.iter_mut().chain(&mut part.points);
            let frames = frames.chain(part.rows.iter_mut().flatten());
            frames.for_each(|frame| frame.offset += by);
        }
    }

    /// Notes the second of the oldest sample of a part; `None` if it is unknown.
    pub(crate) fn set_oldest(&mut self, second: Option<u64>) {
        let both = self.oldest.zip(second);
        self.oldest = both.map(|(one, other)| one.min(other));
    }

    /// Adds states of the stripe: the words of each member that has a state.
    pub(crate) fn state(&mut self, states: &[(u8, Vec<u64>)]) -> io::Result<()> {
        let mut raw = std::mem::take(&mut self.raw);
        raw.clear();
        put_state(&mut raw, states);
        let done = self.frame(0, &raw);
        self.raw = raw;
        done
    }

    /// Adds points of the stripe.
    pub(crate) fn points(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.frame(1, bytes)
    }

    /// Adds a frame of the stripe: 0 for its states, 1 for its points, from 2 on for rows of its archives.
    pub(crate) fn frame(&mut self, place: usize, raw: &[u8]) -> io::Result<()> {
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

    fn put_frame(&mut self, place: usize, frame: FramePlace) {
        let Some((_, part)) = self.parts.last_mut() else {
            return;
        };
        match place {
            0 => part.state = Some(frame),
            1 => part.points = Some(frame),
            _ => part.rows[place - 2] = Some(frame),
        }
    }

    /// Raises the number of an archive's newest row to at least `newest`.
    pub(crate) fn set_newest(&mut self, archive: usize, newest: u64) {
        self.newest[archive] = self.newest[archive].max(newest);
    }

    /// Removes the last part if it is empty.
    pub(crate) fn drop_empty_part(&mut self) {
        let empty = |(_, part): &(u8, StripePart)| {
            part.state.is_none() && part.points.is_none() && part.rows.iter().all(Option::is_none)
        };
        self.parts.pop_if(|part| empty(part));
    }

    pub(crate) fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Returns true if there are neither parts nor names.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.names.is_none()
    }

    /// Adds rows of an archive of the stripe. `newest` is as in [`Head::newest`].
    pub(crate) fn rows(&mut self, archive: usize, column: &Column, newest: u64) -> io::Result<()> {
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

    /// Returns true if the last part has no frame from `place` on, in the order state, points, archives. A directory has
    /// no offsets, so frames must be added in its order.
    fn is_before(&self, place: usize) -> bool {
        let Some((_, part)) = self.parts.last() else {
            return false;
        };
        let frames = [&part.state, &part.points].into_iter().chain(&part.rows);
        frames.skip(place).all(Option::is_none)
    }

    /// Builds the block for a segment that is on the disk up to `synced`, and returns its head. The builder stays
    /// unchanged, so that the same block can be built for another segment.
    pub(crate) fn finish(&self, generation: u64, synced: u64, out: &mut Vec<u8>) -> Head {
        let mut directory = Vec::new();
        put(&mut directory, self.stamp);
        put_directory(
            &mut directory,
            self.names.as_ref(),
            &self.newest,
            &self.parts,
        );
        let oldest = self.oldest.filter(|&oldest| oldest <= self.stamp);
        let age = oldest.and_then(|oldest| (self.stamp - oldest).checked_add(1));
        age.into_iter().for_each(|age| put(&mut directory, age));
        let about = HeadFields {
            chunk: self.chunk,
            position: self.position,
            generation,
            synced,
        };
        let (head_len, crc) = put_head(out, &about, &directory, &self.frames);
        let shift = |frame: &mut FramePlace| frame.offset += head_len as u64;
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
            oldest: age.and(oldest),
        }
    }
}

/// Compresses and appends a frame.
fn pack(
    packer: &mut Packer,
    frames: &mut Vec<u8>,
    raw: &[u8],
    max: usize,
) -> io::Result<FramePlace> {
    let offset = frames.len();
    if raw.len() > max || offset > BLOCK_MAX {
        let text = format!("cannot save {} bytes in one frame", raw.len());
        return Err(io::Error::other(text));
    }
    let len = packer.append(raw, frames)?;
    Ok(FramePlace {
        offset: offset as u64,
        len: len as u32,
        raw: raw.len() as u32,
        codec: codec::ZSTD,
        crc: crc32c::crc32c(&frames[offset..]),
    })
}
