//! A block on its way to a segment: what it is made of comes in order, and is compressed as it comes.

use crate::consolidation::rows::Column;
use crate::layout::STATE_MAX;
use crate::segment::block::{
    FRAME_MAX, FramePlace, Head, HeadFields, StripePart, put_directory, put_head, put_state,
};
use crate::segment::codec;
use crate::segment::codec::Packer;
use kymo_base::varint::put;
use std::io;

/// Longest block.
const BLOCK_MAX: usize = 1 << 30;
const LEVEL: i32 = 3;
/// Points have little left that repeats.
const POINTS_LEVEL: i32 = -1;

/// What is on its way into a block: its names, and stripe after stripe its states, points and rows.
pub(crate) struct Builder {
    chunk: u32,
    position: u64,
    packer: Packer,
    points_packer: Packer,
    frames: Vec<u8>,
    names: Option<FramePlace>,
    pub(crate) stamp: u64,
    /// The oldest second of samples; `None`: not known. [`u64::MAX`]: there are none so far.
    oldest: Option<u64>,
    newest: Vec<u64>,
    parts: Vec<(u8, StripePart)>,
    raw: Vec<u8>,
    /// The raw bytes of the columns of the last part, to find those that are the same: checksum, frame, bytes.
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

    /// Another block; memory is kept.
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

    /// Begins the frames of a stripe; they come in order.
    pub(crate) fn part(&mut self, stripe: u8) {
        let part = StripePart {
            rows: vec![None; self.newest.len()],
            ..StripePart::default()
        };
        self.parts.push((stripe, part));
        self.columns.clear();
    }

    /// The names of a chunk's series: they lie before all else, whenever they come.
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

    /// There are samples from this second on; `None`: not known from when on.
    pub(crate) fn set_oldest(&mut self, second: Option<u64>) {
        let both = self.oldest.zip(second);
        self.oldest = both.map(|(one, other)| one.min(other));
    }

    /// States of the stripe: for each member that has one its words.
    pub(crate) fn state(&mut self, states: &[(u8, Vec<u64>)]) -> io::Result<()> {
        let mut raw = std::mem::take(&mut self.raw);
        raw.clear();
        put_state(&mut raw, states);
        let done = self.frame(0, &raw);
        self.raw = raw;
        done
    }

    /// Points of the stripe.
    pub(crate) fn points(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.frame(1, bytes)
    }

    /// A frame of the stripe: 0: its states, 1: its points, 2 and more: rows of its archives.
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

    /// The newest row of an archive is at least this one.
    pub(crate) fn set_newest(&mut self, archive: usize, newest: u64) {
        self.newest[archive] = self.newest[archive].max(newest);
    }

    /// Ends a part that may have got nothing.
    pub(crate) fn drop_empty_part(&mut self) {
        let empty = |(_, part): &(u8, StripePart)| {
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

    /// Rows of an archive of the stripe. `newest`: as in [`Head::newest`].
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

/// Appends a frame.
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
