//! Merging: a run of neighbouring segments of which half is dead, or too many of them, become one. Rows are dead when
//! their series has gone once around the archive since; states when two newer ones are there.

use crate::compaction::row_runs::Strip;
use crate::consolidation::schema::Schema;
use crate::layout::POINTS_KEPT_S;
use crate::layout::STRIPE;
use crate::segment::ages::Budget;
use crate::segment::block::{AGELESS, Builder, Head};
use crate::segment::file::{BLOCKS_OFFSET, Numbers, Segment, UNFINISHED, path_of};
use crate::segment::placed::Placed;
use crate::segment::rows::{Column, ReadRows};
use crate::segment::set::{Index, SegmentSet, states};
use crate::segment::writer::{SegmentWriter, Unsynced};
use crate::segment::{block, points};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// More segments than this are merged whatever is dead in them.
const SEGMENTS_MAX: usize = 64;
/// A block of which a frame is longer when it is unpacked, or all frames together as they are, is followed by another.
const COLUMN_BYTES: u64 = if cfg!(test) { 1500 } else { 8 << 20 };
const BLOCK_BYTES: u64 = 256 << 20;
/// Where room is short a segment is merged when one of so many of its bytes is dead.
const TIMES_FULL: u64 = 8;

/// What a merge has to know of series: which of them are alive, and up to where.
pub(crate) trait Liveness {
    /// The schema of a chunk; `None`: all its series are gone.
    fn schema(&self, chunk: u32) -> Option<Arc<Schema>>;
    /// Whether a series is still there.
    fn is_alive(&self, chunk: u32, slot: u8) -> bool;
    /// When this returns the disk knows of those that are gone, and that these chunks have no blocks any more.
    fn settle(&self, emptied: &[u32]) -> io::Result<()>;
    /// Up to which second the series of each slot is saved at least; `None`: it is gone.
    fn stamps(&self, chunk: u32) -> Vec<Option<i64>>;
}

/// Bytes of blocks, and how many of them are dead.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockWeight {
    pub(crate) bytes: u64,
    pub(crate) dead: u64,
}

/// What a merge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) segments: u64,
    pub(crate) bytes_before: u64,
    pub(crate) bytes_after: u64,
}

/// What is on the disk, and segments in which something is not, or that are written.
struct Settled {
    index: Index,
    busy: Vec<u64>,
}

impl SegmentSet {
    /// Merges one run of segments if there is one that is worth it.
    pub(crate) fn merge(&self, liveness: &dyn Liveness) -> io::Result<Option<Merged>> {
        if choose(&self.settled(), self.segment_bytes, liveness).is_none() {
            return Ok(None);
        }
        // A block that was found and is not on the disk for certain may lie in several segments, some of which seem to be
        // of no use: before any goes, all is on the disk.
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

    /// Bytes of all blocks, and how many of them are dead.
    pub(crate) fn weight(&self, liveness: &dyn Liveness) -> BlockWeight {
        let index = self.index().clone();
        let weights = weigh(&index, liveness);
        let sum = |sum: BlockWeight, one: &BlockWeight| BlockWeight {
            bytes: sum.bytes + one.bytes,
            dead: sum.dead + one.dead,
        };
        weights.values().fold(BlockWeight::default(), sum)
    }

    /// Merges all segments up to the first that is busy, whether that is worth it or not.
    pub(crate) fn merge_all(&self, liveness: &dyn Liveness) -> io::Result<Merged> {
        self.sync()?;
        let Settled { index, busy } = self.settled();
        let all = index.segments.iter();
        let run = all.take_while(|segment| !busy.contains(&segment.numbers.first));
        let run: Vec<Arc<Segment>> = run.cloned().collect();
        self.merge_run(&run, &index, liveness)
    }

    /// Up to which position the blocks of each chunk are on the disk.
    pub(crate) fn saved(&self) -> Vec<(u32, u64)> {
        let chunks = self.settled().index.chunks;
        let positions = chunks.iter().map(|(&chunk, blocks)| {
            let positions = blocks.iter().map(|placed| placed.position);
            (chunk, positions.max().unwrap_or(0))
        });
        positions.filter(|&(_, position)| position > 0).collect()
    }

    /// What a newer block supersedes may go only when the newer one is on the disk: others do not count here.
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

    /// Makes one of a run: neighbours without a gap, for the new name stands for all between the first and the last.
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
        let mut new = New {
            segment: Arc::new(segment),
            offset: BLOCKS_OFFSET,
            bytes: Vec::new(),
            builder: Builder::new(0)?,
            placed: BTreeMap::new(),
        };
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
            // What was written again may lie behind newer blocks: those of other segments that are newer than some
            // of the run and older than others stay between them.
            for neighbours in blocks.chunk_by(|one, next| is_in(run, one) == is_in(run, next)) {
                if neighbours.first().is_some_and(|placed| is_in(run, placed)) {
                    let mut work = Work::new(neighbours, blocks, &schema, chunk, liveness)?;
                    work.points_from = index.points_from;
                    work.write(&mut new)?;
                }
            }
        }
        merged.bytes_after = new.offset - BLOCKS_OFFSET;
        liveness.settle(&emptied)?;
        self.replace(run, new)?;
        Ok(merged)
    }

    /// The new segment takes the place of a run, on the disk and in memory.
    fn replace(&self, run: &[Arc<Segment>], new: New) -> io::Result<()> {
        let path = self.folder.join(UNFINISHED);
        let target = path_of(&self.folder, new.segment.numbers);
        let segment = (new.offset > BLOCKS_OFFSET).then_some(new.segment);
        if let Some(segment) = &segment {
            segment.file.sync_data()?;
        }
        // Nobody else syncs names meanwhile: who does may lose those of others.
        let mut writer = self.writer();
        match &segment {
            Some(_) => self.publish(&mut writer, &path, &target)?,
            None => self.disk.unlink(&path)?,
        }
        self.index().swap(run, segment, new.placed);
        writer.bytes_written += new.offset - BLOCKS_OFFSET;
        drop(writer);
        for old in run {
            // What is left is removed by the next start: its numbers are in the new one.
            let _later = self.disk.unlink(&path_of(&self.folder, old.numbers));
        }
        Ok(())
    }

    /// Gives the new segment its name. If that may not be on the disk it is none.
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

/// A segment that is made.
struct New {
    segment: Arc<Segment>,
    offset: u64,
    bytes: Vec<u8>,
    builder: Builder,
    placed: BTreeMap<u32, Vec<Placed>>,
}

impl New {
    /// Appends what is in the builder.
    fn append(&mut self) -> io::Result<()> {
        let generation = self.segment.generation;
        let head = self
            .builder
            .finish(generation, self.offset, &mut self.bytes);
        self.segment.file.write_at(&self.bytes, self.offset)?;
        let placed = Placed::of(&self.segment, self.offset, &head);
        self.placed.entry(head.chunk).or_default().push(placed);
        self.offset += self.bytes.len() as u64;
        Ok(())
    }
}

fn is_in(run: &[Arc<Segment>], placed: &Placed) -> bool {
    let mut run = run.iter();
    run.any(|segment| Arc::ptr_eq(segment, &placed.segment))
}

/// The run that is worth most, if there is one.
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
    // The neighbours that are cheapest to merge, a few at once.
    let few = segments
        .windows(8)
        .filter(|few| few.iter().all(|segment| closed(segment)));
    let cheapest =
        few.min_by_key(|few| few.iter().map(|segment| weight(segment).bytes).sum::<u64>());
    cheapest.map(<[_]>::to_vec)
}

impl Index {
    /// Whether the points of a block of a chunk with this newest stamp are dead.
    pub(crate) fn has_old_points(&self, placed: &Placed, stamp: u64) -> bool {
        placed.stamp.saturating_add(POINTS_KEPT_S) < stamp || placed.stamp < self.points_from
    }

    /// A run of segments has been replaced, and so have its blocks.
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

/// Bytes of segments, and how many of them are dead as far as age tells.
fn weigh(index: &Index, liveness: &dyn Liveness) -> BTreeMap<Numbers, BlockWeight> {
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
            for (((&row, &bytes), &newest), archive) in archives.zip(&schema.archives) {
                let dead = row != AGELESS && row.saturating_add(archive.row_cnt) <= newest;
                live -= u64::from(if dead { bytes } else { 0 });
            }
            live -= placed.dead_by_series(schema, position, &budget, || liveness.stamps(chunk));
            if index.has_old_points(placed, stamp) {
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
            // A head is dead when nothing needs it.
            let head = placed.other_bytes() - placed.state_bytes - placed.name_bytes;
            live += u64::from(if live > 0 { head } else { 0 });
            weight.dead += u64::from(placed.len).saturating_sub(live);
        }
    }
    weights
}

/// The newest row of each archive, as far as blocks tell.
fn newest_rows(blocks: &[Placed]) -> Vec<u64> {
    let mut newest = Vec::new();
    for placed in blocks {
        newest.resize(placed.newest.len().max(newest.len()), 0);
        for (newest, &row) in newest.iter_mut().zip(&*placed.newest) {
            *newest = (*newest).max(if row == AGELESS { 0 } else { row });
        }
    }
    newest
}

/// Blocks of one chunk in a run, without others between them.
struct Work<'a> {
    /// All blocks of the chunk, and these with their heads.
    blocks: &'a [Placed],
    mine: Vec<(&'a Placed, Arc<Head>)>,
    /// The newest row of each archive.
    newest: Vec<u64>,
    /// Older points are dead.
    points_from: u64,
    schema: &'a Schema,
    chunk: u32,
    liveness: &'a dyn Liveness,
}

/// What blocks would be if they were one.
#[derive(Default)]
struct Size {
    bytes: u64,
    /// Points and rows of each stripe, unpacked.
    columns: BTreeMap<(u8, usize), u64>,
    most: u64,
}

impl Size {
    fn add(&mut self, placed: &Placed, head: &Head) {
        self.bytes += u64::from(placed.len);
        for (stripe, part) in &head.parts {
            let frames = std::iter::once(&part.points).chain(&part.rows);
            for (column, frame) in frames.enumerate() {
                let Some(frame) = frame else { continue };
                let bytes = self.columns.entry((*stripe, column)).or_default();
                *bytes += u64::from(frame.raw);
                self.most = self.most.max(*bytes);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.most > COLUMN_BYTES || self.bytes > BLOCK_BYTES
    }
}

/// Which of two states, or names, are wanted: the newest, or that before it, so that the newest may be damaged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    Newest,
    Before,
}

impl<'a> Work<'a> {
    fn new(
        neighbours: &'a [Placed],
        blocks: &'a [Placed],
        schema: &'a Schema,
        chunk: u32,
        liveness: &'a dyn Liveness,
    ) -> io::Result<Work<'a>> {
        let mut mine = Vec::new();
        for placed in neighbours {
            mine.extend(placed.head()?.map(|head| (placed, head)));
        }
        let mut newest = newest_rows(blocks);
        newest.resize(schema.archives.len(), 0);
        Ok(Work {
            blocks,
            mine,
            newest,
            points_from: 0,
            schema,
            chunk,
            liveness,
        })
    }

    /// Writes the blocks that take the place of those in the run: states that are the newest but one, then rows and
    /// points in as many blocks as they need, with the newest states in the last.
    fn write(&self, new: &mut New) -> io::Result<()> {
        if self.before(&mut new.builder)? {
            new.append()?;
        }
        for few in self.few() {
            let is_last = few.end == self.mine.len();
            if self.rest(&mut new.builder, few, is_last)? {
                new.append()?;
            }
        }
        Ok(())
    }

    /// Blocks whose rows and points fit into one.
    fn few(&self) -> Vec<Range<usize>> {
        let (mut all, mut start, mut size) = (Vec::new(), 0, Size::default());
        for (at, (placed, head)) in self.mine.iter().enumerate() {
            size.add(placed, head);
            if at > start && size.is_over() {
                all.push(start..at);
                (start, size) = (at, Size::default());
                size.add(placed, head);
            }
        }
        all.push(start..self.mine.len());
        all
    }

    fn before(&self, builder: &mut Builder) -> io::Result<bool> {
        builder.begin(self.chunk, 0, self.schema.archives.len());
        let (mut position, mut stamp) = (0, 0);
        if let Some((placed, names)) = self.names(Age::Before)? {
            (position, stamp) = (placed.position, placed.stamp);
            builder.names(&names)?;
        }
        for stripe in 0..STRIPE as u8 {
            if let Some((placed, states)) = self.state(stripe, Age::Before)? {
                position = position.max(placed.position);
                stamp = stamp.max(placed.stamp);
                builder.part(stripe);
                builder.state(&states)?;
            }
        }
        builder.set_position(position);
        builder.stamp = stamp;
        Ok(!builder.is_empty())
    }

    fn rest(&self, builder: &mut Builder, few: Range<usize>, is_last: bool) -> io::Result<bool> {
        let few = &self.mine[few];
        let position = few.iter().map(|(placed, _)| placed.position).max();
        builder.begin(
            self.chunk,
            position.unwrap_or(0),
            self.schema.archives.len(),
        );
        if is_last && let Some((_, names)) = self.names(Age::Newest)? {
            builder.names(&names)?;
        }
        for stripe in 0..STRIPE as u8 {
            builder.part(stripe);
            if is_last && let Some((_, states)) = self.state(stripe, Age::Newest)? {
                builder.state(&states)?;
            }
            self.points(few, builder, stripe)?;
            self.rows(few, builder, stripe)?;
            builder.drop_empty_part();
        }
        let stamp = few.iter().map(|(placed, _)| placed.stamp).max();
        builder.stamp = stamp.unwrap_or(0);
        Ok(!builder.is_empty())
    }

    /// Which of these blocks has what is to be kept. The newest two of all the chunk's blocks that have it are needed.
    fn wanted(&self, age: Age, has: impl Fn(&Placed) -> bool) -> Option<&(&'a Placed, Arc<Head>)> {
        let with = self.blocks.iter().rev().filter(|placed| has(placed));
        let mine = |placed| self.mine.iter().find(|(mine, _)| mine.is(placed));
        let mut kept = with.take(2).filter_map(mine);
        match age {
            Age::Newest => kept.next(),
            Age::Before => kept.nth(1),
        }
    }

    fn names(&self, age: Age) -> io::Result<Option<(&'a Placed, Vec<u8>)>> {
        let Some((placed, head)) = self.wanted(age, |placed| placed.name_bytes > 0) else {
            return Ok(None);
        };
        let Some(frame) = head.names else {
            return Ok(None);
        };
        Ok(placed.frame(&frame)?.map(|names| (*placed, names)))
    }

    fn state(&self, stripe: u8, age: Age) -> io::Result<Option<(&'a Placed, block::States)>> {
        let Some((placed, _)) = self.wanted(age, |placed| placed.has_state(stripe)) else {
            return Ok(None);
        };
        let mut found = match age {
            // If it is damaged, the one before with a hole: nothing will tell of that any more.
            Age::Newest => states(self.blocks, self.schema, stripe)?,
            Age::Before => states(std::slice::from_ref(*placed), self.schema, stripe)?,
        };
        found.retain(|(member, _)| self.is_alive(stripe, *member));
        Ok((!found.is_empty()).then_some((*placed, found)))
    }

    fn is_alive(&self, stripe: u8, member: u8) -> bool {
        self.liveness
            .is_alive(self.chunk, stripe * STRIPE as u8 + member)
    }

    fn rows(
        &self,
        few: &[(&Placed, Arc<Head>)],
        builder: &mut Builder,
        stripe: u8,
    ) -> io::Result<()> {
        let members = self.members(stripe)?;
        for archive in 0..self.schema.archives.len() {
            let mut frames = Vec::new();
            for (placed, head) in few {
                let part = head.part(stripe);
                let frame = part.and_then(|part| part.rows.get(archive).copied().flatten());
                let Some(frame) = frame else { continue };
                frames.extend(placed.frame(&frame)?);
            }
            let columns = frames.iter();
            let columns = columns.filter_map(|raw| ReadRows::parse(raw, self.schema.width));
            let (column, age) = self.column(archive, &columns.collect::<Vec<_>>(), &members);
            builder.rows(archive, &column, age)?;
        }
        Ok(())
    }

    /// Who of a stripe is there, and up to where blocks have them; `None`: their rows were imported, and no block has
    /// their state yet.
    fn members(&self, stripe: u8) -> io::Result<Vec<(u8, Option<i64>)>> {
        let states = states(self.blocks, self.schema, stripe)?;
        let alive = (0..STRIPE as u8).filter(|&member| self.is_alive(stripe, member));
        let members = alive.map(|member| {
            let state = states.iter().find(|(at, _)| *at == member);
            (member, state.map(|(_, words)| self.schema.stamp(words)))
        });
        Ok(members.collect())
    }

    /// What lives of some columns, and its age: the newest row whose death means that all are dead.
    fn column(
        &self,
        archive: usize,
        columns: &[ReadRows<'_>],
        members: &[(u8, Option<i64>)],
    ) -> (Column, u64) {
        let (mut column, mut age) = (Column::default(), 0);
        let row_cnt = self.schema.archives[archive].row_cnt;
        for &(member, stamp) in members {
            let own = stamp.map(|stamp| self.schema.newest(archive, stamp));
            let from = own.map_or(0, |own| (own + 1).saturating_sub(row_cnt));
            let strip = Strip::of(columns, member, from, self.schema.width);
            let Some(last) = strip.last() else { continue };
            let lag = own.map(|own| self.newest[archive].saturating_sub(own));
            // A series may be a row behind the others, as long as it follows them.
            age = age.max(match lag {
                Some(lag @ 0..=1) => last.saturating_add(lag),
                _ => AGELESS,
            });
            strip.put(member, &mut column);
        }
        (column, age)
    }

    fn points(
        &self,
        few: &[(&Placed, Arc<Head>)],
        builder: &mut Builder,
        stripe: u8,
    ) -> io::Result<()> {
        let stamps = self.blocks.iter().map(|placed| placed.stamp);
        let newest = stamps.max().unwrap_or(0);
        let mut out = Vec::new();
        for (placed, head) in few {
            let dead = placed.stamp.saturating_add(POINTS_KEPT_S) < newest;
            if placed.point_bytes == 0 || dead || placed.stamp < self.points_from {
                continue;
            }
            let frame = head.part(stripe).and_then(|part| part.points);
            let Some(frame) = frame else { continue };
            let Some(raw) = placed.frame(&frame)? else {
                continue;
            };
            for (member, count, entry) in points::each_entry(&raw) {
                if self.is_alive(stripe, member) {
                    points::put_entry(&mut out, member, count, entry);
                }
            }
        }
        match out.is_empty() {
            true => Ok(()),
            false => builder.points(&out),
        }
    }
}

impl Placed {
    fn is(&self, other: &Placed) -> bool {
        Arc::ptr_eq(&self.segment, &other.segment) && self.offset == other.offset
    }
}

const _: () = assert!(crate::layout::CHUNK == STRIPE * STRIPE, "stripe stripes");
