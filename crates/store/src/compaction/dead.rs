//! Finds dead content of blocks. Rows are dead when newer ones of their series fill the archive; states when two newer
//! ones exist; points when they are old; a whole chunk when its series are removed.

use crate::consolidation::schema::Schema;
use crate::layout::STRIPE;
use crate::segment::ages::Budget;
use crate::segment::block::AGELESS;
use crate::segment::file::Numbers;
use crate::segment::placed::Placed;
use crate::segment::set::{Index, SegmentSet};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Information about series that a merge needs.
pub(crate) trait Liveness {
    /// The schema of a chunk; `None` if all its series are removed.
    fn schema(&self, chunk: u32) -> Option<Arc<Schema>>;
    /// Returns true if the series in a slot exists.
    fn is_alive(&self, chunk: u32, slot: u8) -> bool;
    /// Syncs the removal of series and the note that these chunks have no blocks any more.
    fn settle(&self, emptied: &[u32]) -> io::Result<()>;
    /// For each slot, the second up to which its series is saved at least; `None` if it is removed.
    fn stamps(&self, chunk: u32) -> Vec<Option<i64>>;
}

/// Total and dead bytes of blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockWeight {
    pub(crate) bytes: u64,
    pub(crate) dead: u64,
}

impl SegmentSet {
    /// Total and dead bytes of all blocks.
    pub(crate) fn weight(&self, liveness: &dyn Liveness) -> BlockWeight {
        let index = self.index().clone();
        let weights = weigh(&index, liveness);
        let sum = |sum: BlockWeight, one: &BlockWeight| BlockWeight {
            bytes: sum.bytes + one.bytes,
            dead: sum.dead + one.dead,
        };
        weights.values().fold(BlockWeight::default(), sum)
    }
}

impl Index {
    /// The first row of an archive for which there is space.
    pub(crate) fn first_row(&self, schema: &Schema, archive: usize) -> u64 {
        match archive == 0 && schema.has_tiers() {
            true => self.fine_from.div_ceil(schema.archives[0].step),
            false => 0,
        }
    }

    /// Returns true if the points of a block are dead, in a chunk with this newest stamp.
    pub(crate) fn has_old_points(&self, placed: &Placed, stamp: u64, schema: &Schema) -> bool {
        placed.stamp.saturating_add(schema.points_kept_s) < stamp || placed.stamp < self.points_from
    }
}

/// Total and dead bytes of each segment, as far as ages are known.
pub(super) fn weigh(index: &Index, liveness: &dyn Liveness) -> BTreeMap<Numbers, BlockWeight> {
    let mut weights: BTreeMap<Numbers, BlockWeight> = BTreeMap::new();
    let budget = Budget::default();
    for segment in &index.segments {
        weights.insert(segment.numbers, BlockWeight::default());
    }
    for (&chunk, blocks) in &index.chunks {
        let schema = liveness.schema(chunk);
        let newest = newest_rows(blocks);
        let stamp = blocks.iter().map(|placed| placed.stamp).max().unwrap_or(0);
        let position = Index::position(blocks);
        let (mut newer, mut names) = ([0u8; STRIPE], 0u32);
        for placed in blocks.iter().rev() {
            let weight = weights.entry(placed.segment.numbers).or_default();
            weight.bytes += u64::from(placed.len);
            let Some(schema) = &schema else {
                weight.dead += u64::from(placed.len);
                continue;
            };
            let archives = placed.newest.iter().zip(&*placed.row_bytes).zip(&newest);
            let mut live = u64::from(placed.len - placed.other_bytes());
            for (at, (((&row, &bytes), &newest), archive)) in
                archives.zip(&schema.archives).enumerate()
            {
                let is_past = row.saturating_add(archive.row_cnt) <= newest;
                let is_cut = row < index.first_row(schema, at);
                let dead = row != AGELESS && (is_past || is_cut);
                live -= u64::from(if dead { bytes } else { 0 });
            }
            let at = (position, index.first_row(schema, 0));
            live -= placed.dead_by_series(schema, at, &budget, || liveness.stamps(chunk));
            if index.has_old_points(placed, stamp, schema) {
                live -= u64::from(placed.point_bytes);
            }
            let states = (0..STRIPE).filter(|&at| placed.has_state(at as u8));
            let needed = states.clone().any(|at| newer[at] < 2);
            states.for_each(|at| newer[at] = newer[at].saturating_add(1));
            live += u64::from(if needed { placed.state_bytes } else { 0 });
            if placed.name_bytes > 0 {
                live += u64::from(if names < 2 { placed.name_bytes } else { 0 });
                names += 1;
            }
            // A head is dead if the whole block is.
            let head = placed.other_bytes() - placed.state_bytes - placed.name_bytes;
            live += u64::from(if live > 0 { head } else { 0 });
            weight.dead += u64::from(placed.len).saturating_sub(live);
        }
    }
    weights
}

/// The newest row of each archive, as far as the blocks' heads have it.
pub(super) fn newest_rows(blocks: &[Placed]) -> Vec<u64> {
    let mut newest = Vec::new();
    for placed in blocks {
        newest.resize(placed.newest.len().max(newest.len()), 0);
        for (newest, &row) in newest.iter_mut().zip(&*placed.newest) {
            *newest = (*newest).max(if row == AGELESS { 0 } else { row });
        }
    }
    newest
}
