//! Saves series of points: their samples are sorted and stored unchanged.

use crate::consolidation::points_schema::{last, state_of};
use crate::layout::place_of;
use crate::segment::block::States;
use crate::segment::builder::Builder;
use crate::segment::catalog::Line;
use crate::segment::samples::SamplesWriter;
use crate::wal::point::{Point, PointBuffer};
use crate::wal::record::Packed;
use std::io;

/// Memory that is reused from series to series.
#[derive(Default)]
pub(super) struct SamplesJob {
    writer: SamplesWriter,
    points: Vec<Point>,
}

/// A series that is being saved.
pub(super) struct PointsMember<'a> {
    pub(super) slot: u8,
    pub(super) points: &'a PointBuffer,
    /// The state, if no block has it.
    pub(super) state: Option<&'a Packed>,
    pub(super) line: &'a mut Line,
    /// True if the block has the samples.
    pub(super) is_kept: bool,
}

/// Adds the frames of a stripe; `known` are the states in blocks.
pub(super) fn build_part<'a>(
    builder: &mut Builder,
    job: &mut SamplesJob,
    stripe: u8,
    members: impl Iterator<Item = PointsMember<'a>>,
    known: &States,
) -> io::Result<()> {
    let SamplesJob { writer, points } = job;
    let (mut states, mut frame): (States, Vec<u8>) = (Vec::new(), Vec::new());
    writer.begin();
    for member in members {
        let (_, at) = place_of(member.slot);
        let in_block = known.iter().find(|(slot, _)| *slot == at);
        let fresh = member.state.map(Packed::words);
        let words = fresh.as_deref().or(in_block.map(|(_, words)| &words[..]));
        // With a damaged state only the growth of a counter is lost.
        let before = words.and_then(last);
        points.clear();
        points.extend(member.points.iter());
        // The first of several samples with the same time counts.
        points.sort_by_key(|point| point.t_ms);
        points.dedup_by_key(|point| point.t_ms);
        // Late samples lie between those of earlier blocks, the others after the newest of these.
        let is_late = |point: &Point| before.is_some_and(|before| point.t_ms <= before.t_ms);
        let late = points.partition_point(is_late);
        for (before, points) in [(None, &points[..late]), (before, &points[late..])] {
            if !points.is_empty() && member.is_kept {
                writer.put(&mut frame, at, before, points);
            }
        }
        if let Some(oldest) = points.first().filter(|_| member.is_kept) {
            builder.set_oldest(u64::try_from(oldest.t_ms.div_euclid(1000)).ok());
        }
        let newest = before.into_iter().chain(points.last().copied());
        let newest = newest.max_by_key(|point| point.t_ms);
        if let Some(newest) = newest {
            let second = newest.t_ms.div_euclid(1000);
            builder.stamp = builder.stamp.max(u64::try_from(second).unwrap_or(0));
            member.line.applied = newest.seconds();
            member.line.published = newest.seconds();
        }
        states.push((at, state_of(newest)));
    }
    builder.part(stripe);
    builder.state(&states)?;
    if !frame.is_empty() {
        builder.points(&frame)?;
    }
    Ok(())
}
