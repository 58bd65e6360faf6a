//! What a start does not find though it was on the disk: blocks that the journal tells of, and those whose place is
//! damaged. The journal that had their values is gone, so that these are lost: all that is known is who may miss some.

use crate::layout::STRIPE;
use crate::memtable::chunks::Chunks;
use crate::memtable::state::State;
use crate::recovery::replay::JournalSource;
use crate::segment::set::{Gap, SegmentSet};
use crate::wal::frame::Frame;
use crate::wal::record::{Record, SAVED};
use std::collections::BTreeMap;

/// Up to which position the blocks of chunks were on the disk.
pub(crate) type Said = BTreeMap<u32, u64>;

/// What the journal's newest words on each chunk are.
pub(crate) fn said(sources: &[JournalSource], walked: &[Vec<Frame>]) -> Said {
    let mut said = Said::new();
    for (source, frames) in sources.iter().zip(walked) {
        for frame in frames {
            take_said(&source.bytes[frame.entries.clone()], frame, &mut said);
        }
    }
    said.retain(|_, position| *position > 0);
    said
}

/// What one frame says: it says that before all else.
pub(crate) fn take_said(mut entries: &[u8], frame: &Frame, said: &mut Said) {
    while !frame.short
        && entries.first() == Some(&SAVED)
        && let Some(Record::Saved { chunk, position }) = Record::take(&mut entries)
    {
        said.insert(chunk, position);
    }
}

/// What a start has found so far.
pub(crate) struct Start<'a> {
    pub(crate) segments: &'a SegmentSet,
    pub(crate) gaps: &'a [Gap],
    pub(crate) said: Said,
    /// The lowest position of the journal.
    pub(crate) base: u64,
}

impl Start<'_> {
    /// Begins holes in the series that may miss values, before the journal's are applied.
    pub(crate) fn lose(&self, state: &mut State, saved: &[u64], notices: &mut Vec<String>) {
        let mut missing = Vec::new();
        let last = saved.len() as u32;
        let all = (0..last).chain(self.said.keys().copied().filter(|&chunk| chunk >= last));
        for chunk in all {
            let position = saved.get(chunk as usize).copied().unwrap_or(0);
            let lacks = self.segments.lacks(chunk, self.gaps);
            let is_missing = match self.said.get(&chunk) {
                Some(&said) => position < said,
                // Nobody told this store's earlier builds to say it.
                None => self.said.is_empty() && lacks.newer && position > 0,
            };
            if is_missing {
                missing.push(chunk);
                state.has_lost = true;
                state.chunks.close(chunk);
            }
            // What came since may all be in the journal.
            let states = match is_missing && position < self.base {
                true => u16::MAX,
                false => lacks.states,
            };
            for id in members(&state.chunks, chunk, states) {
                state.lose(id);
            }
        }
        if let Some(first) = missing.first() {
            notices.push(format!(
                "blocks of {} chunks are missing (chunk {first} is one), though they were on the disk: values of their series are lost",
                missing.len()
            ));
        }
    }
}

/// The series of some stripes of a chunk.
fn members(chunks: &Chunks, chunk: u32, stripes: u16) -> Vec<u32> {
    let Some(chunk) = chunks.get(chunk).filter(|_| stripes > 0) else {
        return Vec::new();
    };
    let members = chunk.members.iter().enumerate();
    let members = members.filter(|(slot, _)| stripes & 1 << (slot / STRIPE) != 0);
    members.filter_map(|(_, id)| *id).collect()
}
