//! The most bytes that blocks may take. Points go first, the oldest before others; archives are never dropped.

use crate::compaction::dead::Liveness;
use crate::segment::set::SegmentSet;

/// One of so many bytes is free when some had to go, so that not every value costs a merge.
const FREE: u64 = 8;

impl SegmentSet {
    /// Says what merges may drop so that blocks take at most `most` bytes; how many they take without any points, if that
    /// is more.
    pub(crate) fn keep_below(&self, most: u64, liveness: &dyn Liveness) -> Option<u64> {
        let weight = self.weight(liveness);
        self.index().is_full = weight.bytes > most;
        let live = weight.bytes - weight.dead;
        if live <= most {
            return None;
        }
        let excess = live - (most - most / FREE);
        let mut points = self.live_points(liveness);
        points.sort_unstable();
        let (mut sum, mut from) = (0, 0);
        for (stamp, bytes) in points {
            if sum >= excess {
                break;
            }
            sum += bytes;
            from = stamp + 1;
        }
        let mut index = self.index();
        index.points_from = index.points_from.max(from);
        // Where archives alone are too many, merging early would free nothing.
        index.is_full &= live - sum <= most;
        (live - sum > most).then_some(live - sum)
    }

    /// Points of blocks before this stamp may have been dropped.
    pub(crate) fn points_from(&self) -> u64 {
        self.index().points_from
    }

    /// Stamps of blocks with points that are alive, and their bytes.
    fn live_points(&self, liveness: &dyn Liveness) -> Vec<(u64, u64)> {
        let index = self.index().clone();
        let mut points = Vec::new();
        for (&chunk, blocks) in &index.chunks {
            let Some(schema) = liveness.schema(chunk) else {
                continue;
            };
            let stamp = blocks.iter().map(|placed| placed.stamp).max().unwrap_or(0);
            let live = blocks.iter().filter(|placed| placed.point_bytes > 0);
            let live = live.filter(|placed| !index.has_old_points(placed, stamp, &schema));
            points.extend(live.map(|placed| (placed.stamp, u64::from(placed.point_bytes))));
        }
        points
    }
}
