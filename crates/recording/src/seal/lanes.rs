//! Converts the records of a tail to the streams of a block. One pass over the tail fills as
//! many streams side by side as fit into the scratch buffer; a stream longer than the buffer
//! gets a pass of its own and is given in pieces.

use super::Tail;
use super::scan::{HeadsPass, Planned, each_section};
use crate::block::HEADS;
use crate::error::{Error, Result};
use crate::record::RawHead;
use crate::tail::{Step, Walk, Window};
use kymo_base::varint;
use std::path::Path;

/// Size of the scratch buffer, which holds all
/// streams of an ordinary tail of ten-second samples.
const SCRATCH_LEN: usize = 128 << 10;
const NONE: u16 = u16::MAX;

/// A piece of one stream.
pub(super) struct Piece<'a> {
    /// Number of the stream in the block.
    pub(super) number: usize,
    pub(super) stream: Planned,
    pub(super) bytes: &'a [u8],
    pub(super) first: bool,
    pub(super) last: bool,
}

pub(super) type EachPiece<'a> = dyn FnMut(&Piece<'_>) -> Result<()> + 'a;

/// The scratch buffer and its division into lanes, one for each stream of a pass.
#[derive(Default)]
pub(super) struct Lanes {
    scratch: Vec<u8>,
    lanes: Vec<Lane>,
    /// By stream id: index of its lane.
    of: Vec<u16>,
}

struct Lane {
    number: usize,
    stream: Planned,
    start: usize,
    at: usize,
    end: usize,
    /// Bytes that the scan counted and the pass has not read yet.
    missing: u64,
    begun: bool,
}

/// Calls `each` with the bytes of all streams, in order; `path` is for errors.
pub(super) fn each_piece(
    tail: &Tail<'_>,
    path: &Path,
    lanes: &mut Lanes,
    each: &mut EachPiece<'_>,
) -> Result<()> {
    let changed = |()| Error::damaged(path, "its tail changed while it was sealed");
    let mut next = 0;
    while next < tail.scan.streams.len() {
        lanes.arrange(&tail.scan.streams, next);
        lanes.pass(tail, each)?.map_err(changed)?;
        next += lanes.lanes.len();
    }
    Ok(())
}

/// Does the same as [`each_piece`] a second time. If one pass holds all streams, their bytes
/// are still in the scratch buffer: the checksums of the records matched when they were read.
pub(super) fn each_piece_again(
    tail: &Tail<'_>,
    path: &Path,
    lanes: &mut Lanes,
    each: &mut EachPiece<'_>,
) -> Result<()> {
    match lanes.hold_all(tail) {
        true => lanes.finish(each).map(|_| ()),
        false => each_piece(tail, path, lanes, each),
    }
}

/// An error if the tail no longer has the bytes that the scan counted.
type Unchanged = Result<(), ()>;

impl Lanes {
    /// Assigns lanes to the streams from `first` on, as many as fit.
    fn arrange(&mut self, streams: &[Planned], first: usize) {
        self.lanes.clear();
        self.of.clear();
        self.of.resize(usize::from(HEADS) + 1, NONE);
        let mut start = 0;
        for (number, stream) in streams.iter().enumerate().skip(first) {
            let room = SCRATCH_LEN - start;
            let length = room.min(usize::try_from(stream.raw_len).unwrap_or(room));
            if (length as u64) < stream.raw_len && number > first {
                break;
            }
            self.of[usize::from(stream.id)] = self.lanes.len() as u16;
            self.lanes.push(Lane {
                number,
                stream: *stream,
                start,
                at: start,
                end: start + length,
                missing: stream.raw_len,
                begun: false,
            });
            start += length;
        }
        if self.scratch.len() < start {
            self.scratch.resize(start, 0);
        }
    }

    fn hold_all(&self, tail: &Tail<'_>) -> bool {
        let whole = self.lanes.iter().all(|lane| !lane.begun);
        whole && self.lanes.len() == tail.scan.streams.len()
    }

    fn pass(&mut self, tail: &Tail<'_>, each: &mut EachPiece<'_>) -> Result<Unchanged> {
        let mut window = Window::new(tail.file, tail.scan.end);
        let (mut walk, mut heads) = (Walk::new(tail.header), HeadsPass::default());
        let mut answer = Ok(Ok(()));
        loop {
            match walk.step(&mut window) {
                Step::Record(offset, raw) => {
                    let mut push = |id: u16, bytes: &[u8]| {
                        if let Ok(Ok(())) = answer {
                            answer = self.push(id, bytes, each);
                        }
                    };
                    heads_of(&mut heads, &mut window, offset, &raw, &mut push);
                    sections_of(&mut window, offset, &raw, &mut push);
                }
                Step::Damage { .. } => {}
                Step::End => break,
            }
        }
        match answer {
            Ok(Ok(())) => self.finish(each),
            failed => failed,
        }
    }

    fn push(&mut self, id: u16, mut bytes: &[u8], each: &mut EachPiece<'_>) -> Result<Unchanged> {
        let Some(lane) = self.lanes.get_mut(usize::from(self.of[usize::from(id)])) else {
            return Ok(Ok(()));
        };
        let Some(missing) = lane.missing.checked_sub(bytes.len() as u64) else {
            return Ok(Err(()));
        };
        lane.missing = missing;
        while !bytes.is_empty() {
            if lane.at == lane.end {
                each(&lane.piece(&self.scratch, false))?;
                lane.begun = true;
                lane.at = lane.start;
            }
            let (now, later) = bytes.split_at(bytes.len().min(lane.end - lane.at));
            self.scratch[lane.at..lane.at + now.len()].copy_from_slice(now);
            lane.at += now.len();
            bytes = later;
        }
        Ok(Ok(()))
    }

    fn finish(&mut self, each: &mut EachPiece<'_>) -> Result<Unchanged> {
        for lane in &self.lanes {
            if lane.missing > 0 {
                return Ok(Err(()));
            }
            each(&lane.piece(&self.scratch, true))?;
        }
        Ok(Ok(()))
    }
}

impl Lane {
    fn piece<'a>(&self, scratch: &'a [u8], last: bool) -> Piece<'a> {
        Piece {
            number: self.number,
            stream: self.stream,
            bytes: &scratch[self.start..self.at],
            first: !self.begun,
            last,
        }
    }
}

type Push<'a> = dyn FnMut(u16, &[u8]) + 'a;

fn heads_of(
    heads: &mut HeadsPass,
    window: &mut Window<'_>,
    offset: u64,
    raw: &RawHead,
    push: &mut Push<'_>,
) {
    let (head, text) = heads.encode(window, offset, raw);
    push(HEADS, head);
    window.pieces(text.0, text.1, &mut |piece| push(HEADS, piece));
}

fn sections_of(window: &mut Window<'_>, offset: u64, raw: &RawHead, push: &mut Push<'_>) {
    let mut prefix = Vec::with_capacity(10);
    each_section(window, offset, raw, &mut |window, kind, _, at, length| {
        prefix.clear();
        varint::put(&mut prefix, length as u64);
        push(u16::from(kind), &prefix);
        window.pieces(at, length, &mut |piece| push(u16::from(kind), piece));
    });
}
