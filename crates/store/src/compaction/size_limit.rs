//! The size limit of all blocks. Points and samples are dropped first, the oldest ones before others; then the finest rows of
//! series of points, which also have coarser ones. Archives are never dropped.

use crate::compaction::dead::Liveness;
use crate::segment::block::AGELESS;
use crate::segment::set::{Index, SegmentSet};

/// When data is dropped, one in this many bytes is freed, so that not every new value causes a merge.
const FREE: u64 = 8;

/// Data to drop for lack of space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shortage {
    /// Samples of series of points before this second are dropped; 0 for none.
    pub(crate) samples_from: u64,
    /// Finest rows of series of points before this second are dropped; 0 for none.
    pub(crate) fine_from: u64,
    /// Remaining bytes, if they still exceed the limit.
    pub(crate) left: Option<u64>,
}

/// Data of a block that may be dropped.
struct Goer {
    /// Second of its newest value.
    stamp: u64,
    bytes: u64,
    of_points: bool,
}

impl SegmentSet {
    /// Decides which data merges drop, so that blocks need at most `most` bytes.
    pub(crate) fn keep_below(&self, most: u64, liveness: &dyn Liveness) -> Shortage {
        let weight = self.weight(liveness);
        self.index().is_full = weight.bytes > most;
        let live = weight.bytes - weight.dead;
        let mut shortage = Shortage::default();
        if live <= most {
            return shortage;
        }
        let room = most - most / FREE;
        let index = self.index().clone();
        let mut goers = index.live_points(liveness);
        let (mut freed, points_from) = cut(&mut goers, live - room);
        if goers
            .iter()
            .any(|it| it.of_points && it.stamp < points_from)
        {
            shortage.samples_from = points_from;
        }
        if live - freed > most {
            let (bytes, from) = cut(&mut index.live_fine_rows(liveness), live - freed - room);
            freed += bytes;
            shortage.fine_from = from;
        }
        let mut index = self.index();
        index.points_from = index.points_from.max(points_from);
        index.fine_from = index.fine_from.max(shortage.fine_from);
        // If archives alone exceed the limit, early merges would free nothing.
        index.is_full &= live - freed <= most;
        shortage.left = Some(live - freed).filter(|left| *left > most);
        shortage
    }

    /// Stamp before which points of blocks may have been dropped.
    pub(crate) fn points_from(&self) -> u64 {
        self.index().points_from
    }
}

/// Drops the oldest data until `excess` bytes are freed; returns the freed bytes, and the second before which all is dropped.
fn cut(goers: &mut [Goer], excess: u64) -> (u64, u64) {
    goers.sort_unstable_by_key(|it| it.stamp);
    let (mut freed, mut from) = (0, 0);
    for it in goers.iter() {
        if freed >= excess && it.stamp >= from {
            break;
        }
        freed += it.bytes;
        from = it.stamp + 1;
    }
    (freed, from)
}

impl Index {
    /// Live points and samples, block by block.
    fn live_points(&self, liveness: &dyn Liveness) -> Vec<Goer> {
        let mut points = Vec::new();
        for (&chunk, blocks) in &self.chunks {
            let Some(schema) = liveness.schema(chunk) else {
                continue;
            };
            let stamp = blocks.iter().map(|placed| placed.stamp).max().unwrap_or(0);
            let live = blocks.iter().filter(|placed| placed.point_bytes > 0);
            let live = live.filter(|placed| !self.has_old_points(placed, stamp, &schema));
            points.extend(live.map(|placed| Goer {
                stamp: placed.stamp,
                bytes: u64::from(placed.point_bytes),
                of_points: schema.points.is_some(),
            }));
        }
        points
    }

    /// Live rows of the finest tiers, block by block.
    fn live_fine_rows(&self, liveness: &dyn Liveness) -> Vec<Goer> {
        let mut rows = Vec::new();
        for (&chunk, blocks) in &self.chunks {
            let Some(schema) = liveness.schema(chunk).filter(|schema| schema.has_tiers()) else {
                continue;
            };
            for placed in blocks.iter() {
                let newest = placed.newest.first().copied().unwrap_or(0);
                let bytes = placed.row_bytes.first().copied().unwrap_or(0);
                let stamp = match newest {
                    AGELESS => placed.stamp,
                    newest => newest.saturating_mul(schema.archives[0].step),
                };
                if bytes > 0 && stamp >= self.fine_from {
                    rows.push(Goer {
                        stamp,
                        bytes: u64::from(bytes),
                        of_points: true,
                    });
                }
            }
        }
        rows
    }
}
