//! What is alive in blocks of a chunk, written again as few blocks.

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

/// A block of which a frame is longer when it is unpacked, or all frames together as they are, is followed by another.
const COLUMN_BYTES: u64 = if cfg!(test) { 1500 } else { 8 << 20 };
const BLOCK_BYTES: u64 = 256 << 20;

/// A segment that is made.
pub(super) struct NewSegment {
    pub(super) segment: Arc<Segment>,
    pub(super) offset: u64,
    bytes: Vec<u8>,
    builder: Builder,
    pub(super) placed: BTreeMap<u32, Vec<Placed>>,
}

/// Blocks of one chunk in a run, without others between them.
pub(super) struct Rewrite<'a> {
    /// All blocks of the chunk, and these with their heads.
    pub(super) blocks: &'a [Placed],
    pub(super) mine: Vec<(&'a Placed, Arc<Head>)>,
    /// The newest row of each archive.
    pub(super) newest: Vec<u64>,
    /// Older points are dead, and older rows of the first archive.
    points_from: u64,
    pub(super) first_row: u64,
    pub(super) schema: &'a Schema,
    chunk: u32,
    liveness: &'a dyn Liveness,
}

/// Which of two states, or names, are wanted: the newest, or that before it, so that the newest may be damaged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    Newest,
    Before,
}

/// What blocks would be if they were one.
#[derive(Default)]
struct Size {
    bytes: u64,
    /// Points and rows of each stripe, unpacked.
    columns: BTreeMap<(u8, usize), u64>,
    most: u64,
}

impl NewSegment {
    /// One with no blocks.
    pub(super) fn begin(segment: Segment) -> io::Result<NewSegment> {
        Ok(NewSegment {
            segment: Arc::new(segment),
            offset: BLOCKS_OFFSET,
            bytes: Vec::new(),
            builder: Builder::new(0)?,
            placed: BTreeMap::new(),
        })
    }

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

impl<'a> Rewrite<'a> {
    /// `neighbours`: what of a chunk's blocks is written again.
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

    /// Writes the blocks that take the place of those in the run: states that are the newest but one, then rows and
    /// points in as many blocks as they need, with the newest states in the last.
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

    fn state(&self, stripe: u8, age: Age) -> io::Result<Option<(&'a Placed, States)>> {
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

    /// True if the points of a block are dead.
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

    /// Who of a stripe is there, and up to where blocks have them; `None`: their rows were imported, and no block has
    /// their state yet.
    pub(super) fn members(&self, stripe: u8) -> io::Result<Vec<(u8, Option<i64>)>> {
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
