//! Merging: replaces a run of adjacent segments by one, if half of their bytes are dead or there are too many segments.

use crate::compaction::dead::{Liveness, weigh};
use crate::compaction::rewrite::{NewSegment, Rewrite};
use crate::segment::file::{BLOCKS_OFFSET, Numbers, Segment, UNFINISHED, path_of};
use crate::segment::placed::Placed;
use crate::segment::set::{Index, SegmentSet};
use crate::segment::writer::{SegmentWriter, Unsynced};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Number of segments above which some are merged, whatever is dead in them.
const SEGMENTS_MAX: usize = 64;
/// If the store is at its size limit, a segment is merged when one in this many of its bytes is dead.
const TIMES_FULL: u64 = 8;

/// Result of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) segments: u64,
    pub(crate) bytes_before: u64,
    pub(crate) bytes_after: u64,
}

/// The index of synced blocks, and the numbers of the segments that are open or have unsynced blocks.
struct Settled {
    index: Index,
    busy: Vec<u64>,
}

impl SegmentSet {
    /// Merges one run of segments, if a merge is worth its cost.
    pub(crate) fn merge(&self, liveness: &dyn Liveness) -> io::Result<Option<Merged>> {
        if choose(&self.settled(), self.segment_bytes, liveness).is_none() {
            return Ok(None);
        }
        // A recovered block may be unsynced and have copies in several segments, some of which look superfluous. So all
        // blocks are synced before any segment is removed.
        self.sync()?;
        let settled = self.settled();
        let Some(run) = choose(&settled, self.segment_bytes, liveness) else {
            return Ok(None);
        };
        let merged = self.merge_run(&run, &settled.index, liveness);
        if merged.is_err() {
            let _nothing_there = self.disk.unlink(&self.folder.join(UNFINISHED));
        }
        merged.map(Some)
    }

    /// Merges all segments up to the first busy one, at any cost.
    #[cfg(feature = "testing")]
    pub(crate) fn merge_all(&self, liveness: &dyn Liveness) -> io::Result<Merged> {
        self.sync()?;
        let Settled { index, busy } = self.settled();
        let all = index.segments.iter();
        let run = all.take_while(|segment| !busy.contains(&segment.numbers.first));
        let run: Vec<Arc<Segment>> = run.cloned().collect();
        self.merge_run(&run, &index, liveness)
    }

    /// The position up to which the blocks of each chunk are on the disk.
    pub(crate) fn saved(&self) -> Vec<(u32, u64)> {
        let chunks = self.settled().index.chunks;
        let positions = chunks.iter().map(|(&chunk, blocks)| {
            let positions = blocks.iter().map(|placed| placed.position);
            (chunk, positions.max().unwrap_or(0))
        });
        positions.filter(|&(_, position)| position > 0).collect()
    }

    /// The state of the disk: unsynced blocks are left out, since an older
    /// block may only be removed after the newer one is on the disk.
    fn settled(&self) -> Settled {
        let writer = self.writer();
        let mut index = self.index().clone();
        for kept in &writer.kept {
            if let Some(blocks) = index.chunks.get_mut(&kept.chunk) {
                Arc::make_mut(blocks).retain(|placed| !kept.is(placed));
            }
        }
        let kept = writer.kept.iter().map(|kept: &Unsynced| kept.segment);
        let open = writer.open.as_ref().map(|open| open.segment.numbers.first);
        let busy = kept.chain(open).collect();
        Settled { index, busy }
    }

    /// Merges a run of adjacent segments without gaps, since the
    /// new name stands for all numbers from the first to the last.
    fn merge_run(
        &self,
        run: &[Arc<Segment>],
        index: &Index,
        liveness: &dyn Liveness,
    ) -> io::Result<Merged> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(Merged::default());
        };
        let merges = run.iter().map(|segment| segment.numbers.merges).max();
        let numbers = Numbers {
            first: first.numbers.first,
            last: last.numbers.last,
            merges: merges.unwrap_or(0) + 1,
        };
        let generation = kymo_base::random::next_random(&mut self.writer().random);
        let path = self.folder.join(UNFINISHED);
        let segment = Segment::begin(&*self.disk, &path, numbers, generation)?;
        let mut new = NewSegment::begin(segment)?;
        let mut merged = Merged {
            segments: run.len() as u64,
            ..Merged::default()
        };
        let mut emptied = Vec::new();
        for (&chunk, blocks) in &index.chunks {
            let in_run = |placed: &&Placed| is_in(run, placed);
            let mine = blocks.iter().filter(in_run);
            merged.bytes_before += mine.map(|block| u64::from(block.len)).sum::<u64>();
            let Some(schema) = liveness.schema(chunk) else {
                emptied.push(chunk);
                continue;
            };
            // A block that was written again may lie after newer ones. Blocks of other segments that are newer than some
            // blocks of the run and older than others keep their place between them.
            for neighbours in blocks.chunk_by(|one, next| is_in(run, one) == is_in(run, next)) {
                if neighbours.first().is_some_and(|placed| is_in(run, placed)) {
                    let place = (chunk, index);
                    let rewrite = Rewrite::of(neighbours, blocks, &schema, place, liveness)?;
                    rewrite.write(&mut new)?;
                }
            }
        }
        merged.bytes_after = new.offset - BLOCKS_OFFSET;
        liveness.settle(&emptied)?;
        self.replace(run, new)?;
        Ok(merged)
    }

    /// Replaces a run by the new segment, on the disk and in memory.
    fn replace(&self, run: &[Arc<Segment>], new: NewSegment) -> io::Result<()> {
        let path = self.folder.join(UNFINISHED);
        let target = path_of(&self.folder, new.segment.numbers);
        let segment = (new.offset > BLOCKS_OFFSET).then_some(new.segment);
        if let Some(segment) = &segment {
            segment.file.sync_data()?;
        }
        // Holds the writer's lock, since a failed sync of the folder by another thread could lose this name.
        let mut writer = self.writer();
        match &segment {
            Some(_) => self.publish(&mut writer, &path, &target)?,
            None => self.disk.unlink(&path)?,
        }
        self.index().swap(run, segment, new.placed);
        writer.bytes_written += new.offset - BLOCKS_OFFSET;
        drop(writer);
        for old in run {
            // The next start removes segments that remain, as their numbers are contained in the new one.
            let _later = self.disk.unlink(&path_of(&self.folder, old.numbers));
        }
        Ok(())
    }

    /// Renames the new segment to its final name. If the sync of the name fails, the segment is removed.
    fn publish(&self, writer: &mut SegmentWriter, path: &Path, target: &Path) -> io::Result<()> {
        self.disk.rename(path, target)?;
        let synced = self.disk.sync_dir(&self.folder);
        if synced.is_err() {
            let _what_it_took_the_place_of_is_there = self.disk.unlink(target);
            self.names_lost(writer);
        }
        synced
    }
}

fn is_in(run: &[Arc<Segment>], placed: &Placed) -> bool {
    let mut run = run.iter();
    run.any(|segment| Arc::ptr_eq(segment, &placed.segment))
}

/// The longest run of segments worth merging, if there is one.
fn choose(
    settled: &Settled,
    segment_bytes: u64,
    liveness: &dyn Liveness,
) -> Option<Vec<Arc<Segment>>> {
    let index = &settled.index;
    let weights = weigh(index, liveness);
    let total: u64 = weights.values().map(|weight| weight.bytes).sum();
    let most = segment_bytes.max(total / (SEGMENTS_MAX as u64 / 2));
    let segments = &index.segments;
    let weight = |segment: &Segment| weights.get(&segment.numbers).copied().unwrap_or_default();
    let times = if index.is_full { TIMES_FULL } else { 2 };
    let closed = |segment: &Segment| !settled.busy.contains(&segment.numbers.first);
    let mut best: Vec<Arc<Segment>> = Vec::new();
    let mut run: Vec<Arc<Segment>> = Vec::new();
    let mut live = 0;
    for segment in segments {
        let it = weight(segment);
        let worth = closed(segment) && times * it.dead >= it.bytes;
        if !worth || live + (it.bytes - it.dead) > most {
            run.clear();
            live = 0;
        }
        if worth {
            run.push(segment.clone());
            live += it.bytes - it.dead;
        }
        if run.len() > best.len() {
            best.clone_from(&run);
        }
    }
    if !best.is_empty() {
        return Some(best);
    }
    if segments.len() <= SEGMENTS_MAX {
        return None;
    }
    // Too many segments: takes the eight adjacent ones that are cheapest to merge.
    let few = segments
        .windows(8)
        .filter(|few| few.iter().all(|segment| closed(segment)));
    let cheapest =
        few.min_by_key(|few| few.iter().map(|segment| weight(segment).bytes).sum::<u64>());
    cheapest.map(<[_]>::to_vec)
}

impl Index {
    /// Replaces a run of segments and their blocks in the index.
    fn swap(
        &mut self,
        run: &[Arc<Segment>],
        new: Option<Arc<Segment>>,
        mut placed: BTreeMap<u32, Vec<Placed>>,
    ) {
        let of_run = |segment: &Arc<Segment>| run.iter().any(|old| Arc::ptr_eq(old, segment));
        let at = self.segments.iter().position(of_run).unwrap_or(0);
        self.segments.retain(|segment| !of_run(segment));
        if let Some(new) = new {
            self.segments.insert(at, new);
        }
        self.chunks.retain(|chunk, blocks| {
            let mut new = placed.remove(chunk);
            let mut all = Vec::with_capacity(blocks.len());
            for block in blocks.iter() {
                match of_run(&block.segment) {
                    true => all.extend(new.take().into_iter().flatten()),
                    false => all.push(block.clone()),
                }
            }
            *blocks = Arc::new(all);
            !blocks.is_empty()
        });
        self.sort();
    }
}
