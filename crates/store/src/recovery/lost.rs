//! Synced data that a start does not find: blocks that the journal mentions, and blocks in damaged places. The journal
//! with their values is gone, so only the series that may lack values are known.

use crate::layout::STRIPE;
use crate::memtable::chunks::Chunks;
use crate::memtable::state::State;
use crate::recovery::replay::JournalSource;
use crate::segment::set::{Gap, SegmentSet};
use crate::wal::frame::Frame;
use crate::wal::record::{Record, SAVED};
use std::collections::BTreeMap;

/// By chunk, the position up to which its blocks were on the disk.
pub(crate) type SyncedPositions = BTreeMap<u32, u64>;

/// The positions of SAVED entries, the newest for each chunk.
pub(crate) fn synced_positions(
    sources: &[JournalSource],
    walked: &[Vec<Frame>],
) -> SyncedPositions {
    let mut synced_positions = SyncedPositions::new();
    for (source, frames) in sources.iter().zip(walked) {
        for frame in frames {
            take_synced(
                &source.bytes[frame.entries.clone()],
                frame,
                &mut synced_positions,
            );
        }
    }
    synced_positions.retain(|_, position| *position > 0);
    synced_positions
}

/// Adds the SAVED entries of a frame, which are its first ones.
pub(crate) fn take_synced(
    mut entries: &[u8],
    frame: &Frame,
    synced_positions: &mut SyncedPositions,
) {
    while !frame.short
        && entries.first() == Some(&SAVED)
        && let Some(Record::Saved { chunk, position }) = Record::take(&mut entries)
    {
        synced_positions.insert(chunk, position);
    }
}

/// Input of the search for lost data.
pub(crate) struct Start<'a> {
    pub(crate) segments: &'a SegmentSet,
    pub(crate) gaps: &'a [Gap],
    pub(crate) synced_positions: SyncedPositions,
    /// The lowest position of the journal.
    pub(crate) base: u64,
}

impl Start<'_> {
    /// Begins holes in the series that may lack values, before the journal's values are applied.
    pub(crate) fn lose(&self, state: &mut State, saved: &[u64], notices: &mut Vec<String>) {
        let mut missing = Vec::new();
        let last = saved.len() as u32;
        let all = (0..last).chain(
            self.synced_positions
                .keys()
                .copied()
                .filter(|&chunk| chunk >= last),
        );
        for chunk in all {
            let position = saved.get(chunk as usize).copied().unwrap_or(0);
            let lacks = self.segments.lacks(chunk, self.gaps);
            let is_missing = match self.synced_positions.get(&chunk) {
                Some(&synced_positions) => position < synced_positions,
                // Earlier builds did not write SAVED.
                None => self.synced_positions.is_empty() && lacks.newer && position > 0,
            };
            if is_missing {
                missing.push(chunk);
                state.has_lost = true;
                state.chunks.close(chunk);
            }
            // A journal that begins before the position may have all values since then.
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
