//! The most bytes that blocks may take. Points and samples go first, the oldest before others; then the finest rows of series of
//! points, which have coarser ones. Archives are never dropped.

use crate::compaction::dead::Liveness;
use crate::segment::block::AGELESS;
use crate::segment::set::{Index, SegmentSet};

/// One of so many bytes is free when some had to go, so that not every value costs a merge.
const FREE: u64 = 8;

/// What has to go for want of room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shortage {
    /// Samples of series of points before this second; 0: none.
    pub(crate) samples_from: u64,
    /// Their finest rows before this second; 0: none.
    pub(crate) fine_from: u64,
    /// Bytes that blocks take without all that, where these are too many.
    pub(crate) left: Option<u64>,
}

/// What a block has that may go.
struct Goer {
    /// Nothing of it is newer, in seconds.
    stamp: u64,
    bytes: u64,
    of_points: bool,
}

impl SegmentSet {
    /// Says what merges may drop so that blocks take at most `most` bytes.
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
        // Where archives alone are too many, merging early would free nothing.
        index.is_full &= live - freed <= most;
        shortage.left = Some(live - freed).filter(|left| *left > most);
        shortage
    }

    /// Points of blocks before this stamp may have been dropped.
    pub(crate) fn points_from(&self) -> u64 {
        self.index().points_from
    }
}

/// The oldest go, until the excess is free: how many bytes are, and the second before which all goes.
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
    /// Points and samples that are alive.
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

    /// Rows of the finest tiers that are alive.
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
