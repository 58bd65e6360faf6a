//! Series of points in a merge: old samples become rows of tiers, others are copied.

use crate::compaction::rewrite::Rewrite;
use crate::consolidation::rows::{Column, ReadRows};
use crate::consolidation::tiers::Tiers;
use crate::consolidation::timeline::{BLOCKS_BACK, Fate, Timeline};
use crate::layout::STRIPE;
use crate::segment::block::{AGELESS, FramePlace, StripePart};
use crate::segment::builder::Builder;
use crate::segment::placed::Placed;
use crate::segment::point_column::PointDecoder;
use crate::segment::samples::{SamplesWriter, each_entry, oldest_second};
use crate::wal::point::Point;
use std::io;
use std::ops::Range;

/// The frames of a block for one stripe.
struct BlockFrames {
    samples: Vec<u8>,
    fate: Fate,
    /// Rows of each tier.
    rows: Vec<Option<Vec<u8>>>,
}

impl Rewrite<'_> {
    /// Adds samples and rows of a stripe from some of the blocks.
    pub(super) fn points_and_tiers(
        &self,
        few: &Range<usize>,
        builder: &mut Builder,
        stripe: u8,
    ) -> io::Result<()> {
        let (mut sources, mut samples) = (Vec::new(), Vec::new());
        for (placed, head) in &self.mine[few.clone()] {
            let Some(part) = head.part(stripe) else {
                continue;
            };
            let source = self.source(placed, part)?;
            if source.fate == Fate::Stays && !source.samples.is_empty() {
                builder.set_oldest(placed.oldest.or_else(|| oldest_second(&source.samples)));
                self.keep(&source.samples, stripe, &mut samples);
            }
            sources.push(source);
        }
        let mine = sources.len();
        if sources.iter().any(|source| source.fate == Fate::Leaves) {
            self.add_neighbours(few, stripe, &mut sources)?;
        }
        if !samples.is_empty() {
            builder.points(&samples)?;
        }
        let archives = self.schema.archives.len();
        let mut columns: Vec<(Column, u64)> = Vec::new();
        columns.resize_with(archives, Default::default);
        for (member, stamp) in self.members(stripe)? {
            let timeline = timeline(&sources, member);
            for (archive, (column, age)) in columns.iter_mut().enumerate() {
                let from = self.rows_from(archive, stamp);
                let tiers = self.tiers((&sources, mine), &timeline, (archive, member), from);
                let newest = tiers.put(member, column);
                if newest > 0 {
                    *age = (*age).max(self.age(archive, newest, stamp));
                }
            }
        }
        for (archive, (column, age)) in columns.iter().enumerate() {
            builder.rows(archive, column, *age)?;
        }
        Ok(())
    }

    fn source(&self, placed: &Placed, part: &StripePart) -> io::Result<BlockFrames> {
        let read = |frame: &Option<FramePlace>| match frame {
            Some(frame) => placed.frame(frame),
            None => Ok(None),
        };
        let rows: io::Result<Vec<_>> = part.rows.iter().map(read).collect();
        let fate = match self.has_old_points(placed) {
            true => Fate::Leaves,
            false => Fate::Stays,
        };
        Ok(BlockFrames {
            samples: read(&part.points)?.unwrap_or_default(),
            fate,
            rows: rows?,
        })
    }

    /// Adds the blocks that overlap in time with the leaving samples,
    /// since some samples are late, and the newest earlier samples.
    fn add_neighbours(
        &self,
        few: &Range<usize>,
        stripe: u8,
        sources: &mut Vec<BlockFrames>,
    ) -> io::Result<()> {
        let spans = (0_u8..)
            .take(STRIPE)
            .filter_map(|member| timeline(sources, member).span_ms());
        let all = |(from, thru): (i64, i64), (first, last)| (from.min(first), thru.max(last));
        let Some(span_ms) = spans.reduce(all) else {
            return Ok(());
        };
        let others = self.others(few);
        let overlaps = |placed: &&Placed| placed.may_have_samples(span_ms);
        let ends = self.mine[few.clone()].iter();
        let end = ends.map(|(placed, _)| placed.position).max().unwrap_or(0);
        let behind = others.partition_point(|placed| placed.position <= end);
        let first = others.iter().position(overlaps);
        let first = first.map_or(behind, |first| first.min(behind));
        // The block after the last one begins with the newest sample before it.
        let last = others.iter().rposition(overlaps).map_or(0, |last| last + 2);
        for placed in others.iter().take(last).skip(first) {
            sources.extend(staying(placed, stripe)?);
        }
        for placed in others[..first].iter().rev().take(BLOCKS_BACK) {
            let mut members = (0_u8..).take(STRIPE);
            if members.all(|member| timeline(sources, member).knows_what_stays_before()) {
                break;
            }
            sources.extend(staying(placed, stripe)?);
        }
        Ok(())
    }

    /// Blocks with samples that are not among `few` and whose samples have not become rows before.
    fn others(&self, few: &Range<usize>) -> Vec<&Placed> {
        let others = self.blocks.iter().filter(|placed| {
            let at = self.mine.iter().position(|(mine, _)| mine.is(placed));
            let is_done = |at: usize| at < few.start && self.has_old_points(placed);
            placed.point_bytes > 0 && !at.is_some_and(|at| few.contains(&at) || is_done(at))
        });
        others.collect()
    }

    /// Rows of a member and tier from number `from` on: those in the first sources, `mine`, and those made of leaving samples.
    fn tiers(
        &self,
        (sources, mine): (&[BlockFrames], usize),
        timeline: &Timeline,
        (archive, member): (usize, u8),
        from: u64,
    ) -> Tiers {
        let (mut tiers, mut parts) = (Tiers::default(), vec![Vec::new(); sources.len()]);
        let step_s = self.schema.archives[archive].step;
        timeline.rows(step_s, &mut |source, number, part| {
            if number >= from {
                parts[source].push((number, part));
            }
        });
        for (at, (source, parts)) in sources.iter().zip(parts).enumerate() {
            let rows = source.rows.get(archive).and_then(Option::as_deref);
            let column = rows
                .filter(|_| at < mine)
                .and_then(|raw| ReadRows::parse(raw, self.schema.width));
            if let Some(column) = column {
                tiers.add_rows(&column, member, from);
            }
            parts
                .into_iter()
                .for_each(|(number, part)| tiers.add(number, part));
        }
        tiers
    }

    /// Number of the oldest live row of an archive.
    fn rows_from(&self, archive: usize, stamp: Option<i64>) -> u64 {
        let own = stamp.map(|stamp| self.schema.newest(archive, stamp));
        let row_cnt = self.schema.archives[archive].row_cnt;
        let from = own.map_or(0, |own| (own + 1).saturating_sub(row_cnt));
        match archive {
            0 => from.max(self.first_row),
            _ => from,
        }
    }

    /// Number of the row, in terms of the chunk's newest row, after whose death a series' rows up to `last` are dead.
    fn age(&self, archive: usize, last: u64, stamp: Option<i64>) -> u64 {
        let own = stamp.map(|stamp| self.schema.newest(archive, stamp));
        let lag = own.map(|own| self.newest[archive].saturating_sub(own));
        match lag {
            Some(lag @ 0..=1) => last.saturating_add(lag),
            _ => AGELESS,
        }
    }

    /// Appends the samples of a frame without those of removed series. An entry may depend on the one before.
    fn keep(&self, raw: &[u8], stripe: u8, out: &mut Vec<u8>) {
        if each_entry(raw).all(|entry| self.is_alive(stripe, entry.member)) {
            out.extend_from_slice(raw);
            return;
        }
        let (mut decoder, mut points) = (PointDecoder::default(), Vec::<Point>::new());
        let mut writer = SamplesWriter::default();
        writer.begin();
        for entry in each_entry(raw) {
            points.clear();
            if entry.read(&mut decoder, &mut points).is_none() {
                return;
            }
            if self.is_alive(stripe, entry.member) {
                let before = points.first().copied().filter(|_| entry.has_before);
                let mine = &points[usize::from(before.is_some())..];
                writer.put(out, entry.member, before, mine);
            }
        }
    }
}

/// The samples of a member; empty if none of any source leave.
fn timeline(sources: &[BlockFrames], member: u8) -> Timeline {
    let (mut points, mut timeline) = (Vec::new(), Timeline::default());
    if sources.iter().all(|source| source.fate == Fate::Stays) {
        return timeline;
    }
    for (at, source) in sources.iter().enumerate() {
        let mut decoder = PointDecoder::default();
        for entry in each_entry(&source.samples) {
            if entry.member != member {
                if entry.skip(&mut decoder).is_none() {
                    break;
                }
                continue;
            }
            points.clear();
            if entry.read(&mut decoder, &mut points).is_none() {
                break;
            }
            timeline.add(at, source.fate, &points, entry.has_before);
        }
    }
    timeline.sort();
    timeline
}

/// Samples of a block that is not rewritten now.
fn staying(placed: &Placed, stripe: u8) -> io::Result<Option<BlockFrames>> {
    let head = placed.head()?;
    let part = head.as_ref().and_then(|head| head.part(stripe));
    let Some(frame) = part.and_then(|part| part.points) else {
        return Ok(None);
    };
    Ok(Some(BlockFrames {
        samples: placed.frame(&frame)?.unwrap_or_default(),
        fate: Fate::Stays,
        rows: Vec::new(),
    }))
}
