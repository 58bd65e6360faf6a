//! Merging: a run of neighbouring segments of which half is dead, or too many of them, become one. Rows are dead when
//! their group has gone once around the archive since; states when two newer ones are there.

use super::block::{AGELESS, Builder, SIXTEEN};
use super::captured::Part;
use super::column::{Column, Read};
use super::segment::{BLOCKS_OFFSET, Segment, UNFINISHED, path_of};
use super::shape::Shape;
use super::{Drum, Index, Placed, block, states};
use kymo_base::varint::{put, put_bytes, take, take_bytes};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// More segments than this are merged whatever is dead in them.
const SEGMENTS_MAX: usize = 64;
/// Points are kept so long.
pub(crate) const POINTS_KEPT_S: u64 = 48 * 3600;

/// What a merge must be told about groups.
pub(crate) trait Groups {
    /// The shape of a chunk; `None`: all its groups are gone.
    fn shape(&self, chunk: u32) -> Option<Arc<Shape>>;
    /// Whether a group is still there.
    fn is_alive(&self, chunk: u32, slot: u8) -> bool;
}

/// What a segment holds and how much of it is dead.
#[derive(Clone, Copy, Default)]
struct Weight {
    bytes: u64,
    dead: u64,
}

/// What a merge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) segments: u64,
    pub(crate) bytes_before: u64,
    pub(crate) bytes_after: u64,
}

impl Drum {
    /// Merges one run of segments if there is one that is worth it.
    pub(crate) fn merge(&self, groups: &dyn Groups) -> io::Result<Option<Merged>> {
        // What is newer makes nothing dead before it is on the disk.
        let (open, index) = {
            let mut writer = self.writer();
            self.sync_with(&mut writer)?;
            let open = writer.open.as_ref().map(|open| open.segment.numbers);
            (open, self.index().clone())
        };
        let Some(run) = self.choose(groups, open, &index) else {
            return Ok(None);
        };
        let path = self.folder.join(UNFINISHED);
        let merged = self.merge_run(&run, groups, &index);
        if merged.is_err() {
            let _nothing_there = self.disk.unlink(&path);
        }
        merged.map(Some)
    }

    fn choose(
        &self,
        groups: &dyn Groups,
        open: Option<(u64, u64)>,
        index: &Index,
    ) -> Option<Vec<Arc<Segment>>> {
        let weights = weigh(index, groups);
        let total: u64 = weights.values().map(|weight| weight.bytes).sum();
        let most = self.segment_bytes.max(total / (SEGMENTS_MAX as u64 / 2));
        let segments = &index.segments;
        let weight = |segment: &Segment| weights.get(&segment.numbers).copied().unwrap_or_default();
        let closed = |segment: &Segment| Some(segment.numbers) != open;
        let mut best: Vec<Arc<Segment>> = Vec::new();
        let mut run: Vec<Arc<Segment>> = Vec::new();
        let mut live = 0;
        for segment in segments {
            let it = weight(segment);
            let worth = closed(segment) && 2 * it.dead >= it.bytes;
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

    fn merge_run(
        &self,
        run: &[Arc<Segment>],
        groups: &dyn Groups,
        index: &Index,
    ) -> io::Result<Merged> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(Merged::default());
        };
        let numbers = (first.numbers.0, last.numbers.1);
        let in_run = |placed: &Placed| {
            run.iter()
                .any(|segment| Arc::ptr_eq(segment, &placed.segment))
        };
        let generation = {
            let mut writer = self.writer();
            kymo_sys::sim_disk::next_random(&mut writer.random)
        };
        let path = self.folder.join(UNFINISHED);
        let segment = Arc::new(Segment::begin(&*self.disk, &path, numbers, generation)?);
        let (mut offset, mut bytes) = (BLOCKS_OFFSET, Vec::new());
        let mut builder = Builder::new(0)?;
        let mut placed: BTreeMap<u32, Vec<Placed>> = BTreeMap::new();
        let mut merged = Merged {
            segments: run.len() as u64,
            ..Merged::default()
        };
        for (&chunk, blocks) in &index.chunks {
            let mine: Vec<Placed> = blocks
                .iter()
                .filter(|block| in_run(block))
                .cloned()
                .collect();
            if mine.is_empty() {
                continue;
            }
            merged.bytes_before += mine.iter().map(|block| u64::from(block.len)).sum::<u64>();
            let new = placed.entry(chunk).or_default();
            let Some(shape) = groups.shape(chunk) else {
                continue;
            };
            let work = Work {
                blocks,
                mine: &mine,
                shape: &shape,
                chunk,
                groups,
            };
            for older in [true, false] {
                if !work.build(&mut builder, older)? {
                    continue;
                }
                let head = builder.finish(generation, &mut bytes);
                segment.file.write_at(&bytes, offset)?;
                new.push(Placed::of(&segment, offset, &head));
                offset += bytes.len() as u64;
            }
        }
        merged.bytes_after = offset - BLOCKS_OFFSET;
        let target = path_of(&self.folder, numbers);
        let kept = (offset > BLOCKS_OFFSET).then_some(segment);
        match &kept {
            Some(segment) => {
                segment.file.sync_data()?;
                self.disk.rename(&path, &target)?;
                self.disk.sync_dir(&self.folder)?;
            }
            None => self.disk.unlink(&path)?,
        }
        let mut writer = self.writer();
        writer.bytes_written += merged.bytes_after;
        drop(writer);
        self.index().swap(run, kept.clone(), placed);
        for old in run {
            let path = path_of(&self.folder, old.numbers);
            if kept.is_none() || path != target {
                // What is left is removed by the next start: its numbers are in the new one.
                let _later = self.disk.unlink(&path);
            }
        }
        Ok(merged)
    }
}

impl Index {
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
    }
}

/// Bytes of segments, and how many of them are dead as far as age tells.
fn weigh(index: &Index, groups: &dyn Groups) -> BTreeMap<(u64, u64), Weight> {
    let mut weights: BTreeMap<(u64, u64), Weight> = BTreeMap::new();
    for segment in &index.segments {
        weights.insert(segment.numbers, Weight::default());
    }
    for (&chunk, blocks) in &index.chunks {
        let shape = groups.shape(chunk);
        let mut newest = Vec::new();
        for placed in blocks.iter() {
            newest.resize(placed.newest.len().max(newest.len()), 0);
            for (newest, &row) in newest.iter_mut().zip(&*placed.newest) {
                *newest = (*newest).max(if row == AGELESS { 0 } else { row });
            }
        }
        let stamp = blocks.iter().map(|placed| placed.stamp).max().unwrap_or(0);
        let mut newer = [0u8; SIXTEEN];
        for placed in blocks.iter().rev() {
            let weight = weights.entry(placed.segment.numbers).or_default();
            weight.bytes += u64::from(placed.len);
            let Some(shape) = &shape else {
                weight.dead += u64::from(placed.len);
                continue;
            };
            let archives = placed.newest.iter().zip(&*placed.row_bytes).zip(&newest);
            for (((&row, &bytes), &newest), archive) in archives.zip(&shape.archives) {
                let dead = row != AGELESS && row.saturating_add(archive.row_cnt) <= newest;
                weight.dead += u64::from(if dead { bytes } else { 0 });
            }
            if placed.stamp.saturating_add(POINTS_KEPT_S) < stamp {
                weight.dead += u64::from(placed.point_bytes);
            }
            let states = (0..SIXTEEN).filter(|&at| placed.has_state(at as u8));
            let needed = states.clone().any(|at| newer[at] < 2);
            states.for_each(|at| newer[at] = newer[at].saturating_add(1));
            weight.dead += u64::from(if needed { 0 } else { placed.other_bytes });
        }
    }
    weights
}

/// The blocks of one chunk in a run.
struct Work<'a> {
    /// All blocks of the chunk, and those of the run.
    blocks: &'a [Placed],
    mine: &'a [Placed],
    shape: &'a Shape,
    chunk: u32,
    groups: &'a dyn Groups,
}

impl Work<'_> {
    /// Makes a block of them. `older`: only the states that are the newest but one, so that the newest may be damaged.
    fn build(&self, builder: &mut Builder, older: bool) -> io::Result<bool> {
        builder.begin(self.chunk, 0, self.shape.archives.len());
        let mut position = 0;
        for sixteen in 0..SIXTEEN as u8 {
            builder.part(sixteen);
            let state = self.state(sixteen, older)?;
            if let Some((at, states)) = state {
                position = position.max(at);
                builder.state(&states)?;
            }
            if !older {
                self.points(builder, sixteen)?;
                self.rows(builder, sixteen)?;
            }
            builder.drop_empty_part();
        }
        if builder.is_empty() {
            return Ok(false);
        }
        if !older {
            position = self
                .mine
                .iter()
                .map(|placed| placed.position)
                .max()
                .unwrap_or(0);
        }
        builder.stamp = self
            .mine
            .iter()
            .map(|placed| placed.stamp)
            .max()
            .unwrap_or(0);
        builder.set_position(position);
        for placed in self.mine.iter().rev() {
            let Some(head) = placed.head()? else { continue };
            let Some(frame) = head.names else { continue };
            if let Some(names) = placed.frame(&frame)? {
                builder.names(&names)?;
                break;
            }
        }
        Ok(true)
    }

    /// The state of sixteen groups that is to be kept from the run, and its block's position.
    fn state(&self, sixteen: u8, older: bool) -> io::Result<Option<(u64, block::States)>> {
        let with = self
            .blocks
            .iter()
            .rev()
            .filter(|placed| placed.has_state(sixteen));
        let in_run = |placed: &&Placed| self.mine.iter().any(|mine| mine.is(placed));
        let mut kept: Vec<&Placed> = with.take(2).filter(in_run).collect();
        if older && kept.len() < 2 {
            return Ok(None);
        }
        let wanted = match older {
            true => kept.pop(),
            false => kept.into_iter().next(),
        };
        let Some(placed) = wanted else {
            return Ok(None);
        };
        let mut found = states(std::slice::from_ref(placed), self.shape, sixteen)?;
        found.retain(|(member, _)| self.is_alive(sixteen, *member));
        Ok((!found.is_empty()).then_some((placed.position, found)))
    }

    fn is_alive(&self, sixteen: u8, member: u8) -> bool {
        self.groups
            .is_alive(self.chunk, sixteen * SIXTEEN as u8 + member)
    }

    fn rows(&self, builder: &mut Builder, sixteen: u8) -> io::Result<()> {
        let states = states(self.blocks, self.shape, sixteen)?;
        let mut frames: Vec<(usize, Vec<u8>)> = Vec::new();
        for (archive, about) in self.shape.archives.iter().enumerate() {
            frames.clear();
            for placed in self.mine {
                let Some(head) = placed.head()? else { continue };
                let part = head.part(sixteen);
                let frame = part.and_then(|part| part.rows.get(archive).copied().flatten());
                let Some(frame) = frame else { continue };
                frames.extend(placed.frame(&frame)?.map(|raw| (archive, raw)));
            }
            let columns: Vec<Read<'_>> = frames
                .iter()
                .filter_map(|(_, raw)| Read::parse(raw, self.shape.width))
                .collect();
            let (mut column, mut behind) = (Column::default(), false);
            let mut newest = 0;
            for (_, words) in &states {
                newest = newest.max(self.shape.newest(archive, self.shape.stamp(words)));
            }
            for (member, words) in &states {
                if !self.is_alive(sixteen, *member) {
                    continue;
                }
                let own = self.shape.newest(archive, self.shape.stamp(words));
                let from = (own + 1).saturating_sub(about.row_cnt);
                let strip = Strip::of(&columns, *member, from, self.shape.width);
                behind |= !strip.rows.is_empty() && own + 1 < newest;
                strip.put(*member, &mut column);
            }
            let age = if behind { AGELESS } else { column.newest };
            builder.rows(archive, &column, age)?;
        }
        Ok(())
    }

    fn points(&self, builder: &mut Builder, sixteen: u8) -> io::Result<()> {
        let newest = self
            .blocks
            .iter()
            .map(|placed| placed.stamp)
            .max()
            .unwrap_or(0);
        let mut out = Vec::new();
        for placed in self.mine {
            if placed.point_bytes == 0 || placed.stamp.saturating_add(POINTS_KEPT_S) < newest {
                continue;
            }
            let Some(head) = placed.head()? else { continue };
            let frame = head.part(sixteen).and_then(|part| part.points);
            let Some(frame) = frame else { continue };
            let Some(raw) = placed.frame(&frame)? else {
                continue;
            };
            for point in each_points(&raw) {
                if self.is_alive(sixteen, point.0) {
                    put_points(&mut out, point.0, point.1, point.2);
                }
            }
        }
        match out.is_empty() {
            true => Ok(()),
            false => builder.points(&out),
        }
    }
}

/// Appends points of a group, as its pending values are kept: how many, and their bytes.
pub(crate) fn put_points(out: &mut Vec<u8>, member: u8, count: u64, bytes: &[u8]) {
    out.push(member);
    put(out, count);
    put_bytes(out, bytes);
}

/// What [`put_points`] was given, one after the other.
pub(crate) fn each_points(mut raw: &[u8]) -> impl Iterator<Item = (u8, u64, &[u8])> {
    std::iter::from_fn(move || {
        let (&member, rest) = raw.split_first()?;
        raw = rest;
        let count = take(&mut raw)?;
        Some((member, count, take_bytes(&mut raw, usize::MAX)?))
    })
}

/// The rows of one group in several columns, put together.
struct Strip {
    width: usize,
    rows: Vec<(u64, Part, Vec<u8>)>,
}

impl Strip {
    fn of(columns: &[Read<'_>], member: u8, from: u64, width: usize) -> Strip {
        let mut strip = Strip {
            width,
            rows: Vec::new(),
        };
        for column in columns {
            column.parts(member, &mut |first, part, bytes| {
                strip.push(first, part, bytes, from)
            });
        }
        strip
    }

    /// Later parts take the place of earlier ones; rows before `from` are dead.
    fn push(&mut self, mut first: u64, mut part: Part, mut bytes: &[u8], from: u64) {
        let row_bytes = 8 * self.width;
        while let Some((before, last, bytes)) = self.rows.last_mut() {
            if *before + last.rows() <= first {
                break;
            }
            if *before >= first {
                self.rows.pop();
                continue;
            }
            let left = first - *before;
            match last {
                Part::Rows(count) => {
                    *count = left;
                    bytes.truncate(left as usize * row_bytes);
                }
                Part::Run(count) => *count = left,
            }
        }
        if first + part.rows() <= from {
            return;
        }
        let dead = from.saturating_sub(first);
        first += dead;
        match &mut part {
            Part::Rows(count) => {
                *count -= dead;
                bytes = &bytes[dead as usize * row_bytes..];
            }
            Part::Run(count) => *count -= dead,
        }
        self.rows.push((first, part, bytes.to_vec()));
    }

    fn put(&self, member: u8, column: &mut Column) {
        let mut at = 0;
        while at < self.rows.len() {
            let first = self.rows[at].0;
            let (mut parts, mut end, mut cells) = (Vec::<Part>::new(), first, Vec::new());
            while at < self.rows.len() && self.rows[at].0 == end {
                let (_, part, bytes) = &self.rows[at];
                match (parts.last_mut(), part) {
                    (Some(Part::Rows(before)), Part::Rows(count)) => *before += count,
                    _ => parts.push(*part),
                }
                cells.extend_from_slice(bytes);
                end += part.rows();
                at += 1;
            }
            column.push_raw(member, first, &parts, &cells);
        }
    }
}

impl Placed {
    fn is(&self, other: &Placed) -> bool {
        Arc::ptr_eq(&self.segment, &other.segment) && self.offset == other.offset
    }
}

const _: () = assert!(block::CHUNK == SIXTEEN * SIXTEEN, "sixteen sixteens");
