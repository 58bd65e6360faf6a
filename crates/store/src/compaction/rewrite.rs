//! Writes the live content of a chunk's blocks into a few new blocks.

use crate::compaction::dead::{Liveness, newest_rows};
use crate::compaction::row_runs::Strip;
use crate::consolidation::rows::{Column, ReadRows};
use crate::consolidation::schema::Schema;
use crate::layout::STRIPE;
use crate::segment::block::{AGELESS, Head, States};
use crate::segment::builder::Builder;
use crate::segment::file::{BLOCKS_OFFSET, Segment};
use crate::segment::placed::Placed;
use crate::segment::points;
use crate::segment::set::{Index, states};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Limits of a new block: uncompressed bytes of a frame, and bytes
/// of the merged blocks together. Beyond them, another block begins.
const COLUMN_BYTES: u64 = if cfg!(test) { 1500 } else { 8 << 20 };
const BLOCK_BYTES: u64 = 256 << 20;

/// The segment that a merge writes.
pub(super) struct NewSegment {
    pub(super) segment: Arc<Segment>,
    pub(super) offset: u64,
    bytes: Vec<u8>,
    builder: Builder,
    pub(super) placed: BTreeMap<u32, Vec<Placed>>,
}

/// Adjacent blocks of one chunk in a run.
pub(super) struct Rewrite<'a> {
    /// All blocks of the chunk, and the ones to rewrite with their heads.
    pub(super) blocks: &'a [Placed],
    pub(super) mine: Vec<(&'a Placed, Arc<Head>)>,
    /// Number of the newest row of each archive.
    pub(super) newest: Vec<u64>,
    /// Stamp before which points are dead, and the first live row of the first archive.
    points_from: u64,
    pub(super) first_row: u64,
    pub(super) schema: &'a Schema,
    chunk: u32,
    liveness: &'a dyn Liveness,
}

/// Which of the two kept states, or names: the newest, or the one before, which is needed if the newest is damaged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    Newest,
    Before,
}

/// Size of several blocks as one.
#[derive(Default)]
struct Size {
    bytes: u64,
    /// Uncompressed bytes of points and rows, by stripe and column.
    columns: BTreeMap<(u8, usize), u64>,
    most: u64,
}

impl NewSegment {
    /// Begins without blocks.
    pub(super) fn begin(segment: Segment) -> io::Result<NewSegment> {
        Ok(NewSegment {
            segment: Arc::new(segment),
            offset: BLOCKS_OFFSET,
            bytes: Vec::new(),
            builder: Builder::new(0)?,
            placed: BTreeMap::new(),
        })
    }

    /// Appends the block in the builder.
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

impl<'a> Rewrite<'a> {
    /// Prepares to rewrite `neighbours`, which are some of a chunk's `blocks`.
    pub(super) fn of(
        neighbours: &'a [Placed],
        blocks: &'a [Placed],
        schema: &'a Schema,
        (chunk, index): (u32, &Index),
        liveness: &'a dyn Liveness,
    ) -> io::Result<Rewrite<'a>> {
        let mut mine = Vec::new();
        for placed in neighbours {
            mine.extend(placed.head()?.map(|head| (placed, head)));
        }
        let mut newest = newest_rows(blocks);
        newest.resize(schema.archives.len(), 0);
        Ok(Rewrite {
            blocks,
            mine,
            newest,
            points_from: index.points_from,
            first_row: index.first_row(schema, 0),
            schema,
            chunk,
            liveness,
        })
    }

    /// Writes the new blocks: first the states before the newest ones, then rows and points in as many blocks as
    /// needed, with the newest states in the last.
    pub(super) fn write(&self, new: &mut NewSegment) -> io::Result<()> {
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

    /// Groups of blocks whose rows and points fit into one.
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
        let range = few.clone();
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
            match self.schema.points {
                Some(_) => self.points_and_tiers(&range, builder, stripe)?,
                None => {
                    self.points(few, builder, stripe)?;
                    self.rows(few, builder, stripe)?;
                }
            }
            builder.drop_empty_part();
        }
        let stamp = few.iter().map(|(placed, _)| placed.stamp).max();
        builder.stamp = stamp.unwrap_or(0);
        Ok(!builder.is_empty())
    }

    /// The block whose states or names of this age are to be kept. Only
    /// the newest two of all the chunk's blocks that have them are needed.
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

    fn state(&self, stripe: u8, age: Age) -> io::Result<Option<(&'a Placed, States)>> {
        let Some((placed, _)) = self.wanted(age, |placed| placed.has_state(stripe)) else {
            return Ok(None);
        };
        let mut found = match age {
            // If this state is damaged, takes an older one with a hole, since the damage will not be visible any more.
            Age::Newest => states(self.blocks, self.schema, stripe)?,
            Age::Before => states(std::slice::from_ref(*placed), self.schema, stripe)?,
        };
        found.retain(|(member, _)| self.is_alive(stripe, *member));
        Ok((!found.is_empty()).then_some((*placed, found)))
    }

    /// Returns true if the points of a block are dead.
    pub(super) fn has_old_points(&self, placed: &Placed) -> bool {
        let stamps = self.blocks.iter().map(|placed| placed.stamp);
        let newest = stamps.max().unwrap_or(0);
        let kept_s = self.schema.points_kept_s;
        placed.stamp.saturating_add(kept_s) < newest || placed.stamp < self.points_from
    }

    pub(super) fn is_alive(&self, stripe: u8, member: u8) -> bool {
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

    /// The live members of a stripe, with the stamp up to which blocks have them; `None` for imported rows whose
    /// series has no state in any block yet.
    pub(super) fn members(&self, stripe: u8) -> io::Result<Vec<(u8, Option<i64>)>> {
        let states = states(self.blocks, self.schema, stripe)?;
        let alive = (0..STRIPE as u8).filter(|&member| self.is_alive(stripe, member));
        let members = alive.map(|member| {
            let state = states.iter().find(|(at, _)| *at == member);
            (member, state.map(|(_, words)| self.schema.stamp(words)))
        });
        Ok(members.collect())
    }

    /// The live rows of some columns, and their age: the number of the row after whose death all of them are dead.
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
            // A series may lag one row behind the others, if it keeps up with them.
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
        let mut out = Vec::new();
        for (placed, head) in few {
            if placed.point_bytes == 0 || self.has_old_points(placed) {
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

const _: () = assert!(crate::layout::CHUNK == STRIPE * STRIPE, "stripe stripes");
