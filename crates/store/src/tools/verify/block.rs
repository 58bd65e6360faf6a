//! Verifies one block: the checksum and the content of each frame.

use super::{Schemas, Seen, Weight};
use crate::consolidation::rows::ReadRows;
use crate::consolidation::schema::Schema;
use crate::layout::{STATE_MAX, STRIPE};
use crate::segment::block::{FRAME_MAX, FramePlace, Head, StripePart, take_state, unpack};
use crate::segment::catalog::take_catalog;
use crate::segment::points::are_points;
use crate::segment::samples::are_samples;
use std::path::Path;

/// A block being verified.
struct Block<'a> {
    bytes: &'a [u8],
    /// Segment and offset of the block.
    place: (&'a Path, u64),
    seen: &'a mut Seen,
}

/// Verifies a block at `place`.
pub(super) fn check(
    schemas: &Schemas,
    head: &Head,
    bytes: &[u8],
    place: (&Path, u64),
    seen: &mut Seen,
) {
    seen.counts.blocks += 1;
    let damaged_before = seen.counts.damaged;
    let mut block = Block { bytes, place, seen };
    let own = head.names.and_then(|frame| block.names(&frame));
    let schema = own.as_ref().or_else(|| schemas.get(&head.chunk));
    let archives = schema.map_or(head.newest.len(), |schema| schema.archives.len());
    if archives != head.newest.len() && !head.is_mark() {
        let count = head.newest.len();
        block.damaged(0, format!("it has {count} archives, its names {archives}"));
        return;
    }
    for (stripe, part) in &head.parts {
        block.part(*stripe, part, schema);
    }
    if block.seen.counts.damaged == damaged_before && !head.is_whole(bytes) {
        block.damaged(0, "the checksum over its frames is wrong".into());
    }
}

impl Block<'_> {
    fn damaged(&mut self, offset: u64, what: String) {
        let (path, at) = self.place;
        self.seen.find(Weight::Damage, path, at + offset, what);
    }

    /// Decompresses a frame and parses it with `parse`.
    fn frame<T>(
        &mut self,
        frame: &FramePlace,
        max: usize,
        what: &str,
        parse: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Option<T> {
        self.seen.counts.frames += 1;
        let from = usize::try_from(frame.offset).ok();
        let bytes = from.and_then(|from| self.bytes.get(from..)?.get(..frame.len as usize));
        let Some(raw) = bytes.and_then(|bytes| unpack(frame, bytes, max)) else {
            self.damaged(frame.offset, format!("{what}: the frame is damaged"));
            return None;
        };
        let parsed = parse(&raw);
        if parsed.is_none() {
            self.damaged(frame.offset, format!("{what}: not understood"));
        }
        parsed
    }

    fn names(&mut self, frame: &FramePlace) -> Option<Schema> {
        self.frame(frame, FRAME_MAX, "names", |raw| {
            let (about, _) = take_catalog(raw)?;
            Schema::parse(&about.front)
        })
    }

    fn part(&mut self, stripe: u8, part: &StripePart, schema: Option<&Schema>) {
        let first = usize::from(stripe) * STRIPE;
        let slots = format!("of series {first} to {}", first + STRIPE - 1);
        if let Some(frame) = &part.state {
            let max = schema.map_or(STATE_MAX, Schema::state_bytes_max);
            self.frame(frame, max, &format!("states {slots}"), |raw| {
                schema
                    .is_none_or(|schema| are_states(raw, schema))
                    .then_some(())
            });
        }
        if let Some(frame) = &part.points {
            let what = format!("points {slots}");
            let are_right = match schema.is_some_and(|schema| schema.points.is_some()) {
                true => are_samples,
                false => are_points,
            };
            self.frame(frame, FRAME_MAX, &what, |raw| are_right(raw).then_some(()));
        }
        let mut last = 0;
        for (archive, frame) in part.rows.iter().enumerate() {
            // Archives may share a frame; owned frames are in ascending order.
            let Some(frame) = frame.filter(|frame| frame.offset > last) else {
                continue;
            };
            last = frame.offset;
            let what = format!("rows of archive {archive} {slots}");
            self.frame(&frame, FRAME_MAX, &what, |raw| {
                schema
                    .is_none_or(|schema| ReadRows::parse(raw, schema.width).is_some())
                    .then_some(())
            });
        }
    }
}

fn are_states(raw: &[u8], schema: &Schema) -> bool {
    let states = take_state(raw, schema.words);
    states.is_some_and(|states| {
        states
            .iter()
            .all(|(_, words)| schema.unpack(words).is_some())
    })
}
