//! Sizes of the parts of blocks, and the time range of their data.

use crate::consolidation::rows::ReadRows;
use crate::consolidation::schema::Schema;
use crate::segment::placed::Placed;
use crate::segment::point_column::PointDecoder;
use crate::segment::points::{each_entry, texts};
use crate::segment::samples;
use crate::segment::set::SegmentSet;
use crate::wal::value::stamp_of;
use std::io;
use std::ops::Range;

/// Bytes of all valid blocks, by purpose.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub(crate) segments: u64,
    pub(crate) chunks: u64,
    pub(crate) blocks: u64,
    pub(crate) row_bytes: u64,
    pub(crate) state_bytes: u64,
    pub(crate) point_bytes: u64,
    pub(crate) name_bytes: u64,
    /// Heads of blocks, and padding.
    pub(crate) head_bytes: u64,
}

/// The oldest and the newest stamp.
pub(crate) type Reach = Option<(f64, f64)>;

/// The union of two ranges.
pub(crate) fn both(one: Reach, other: Reach) -> Reach {
    match (one, other) {
        (Some((from, to)), Some((first, last))) => Some((from.min(first), to.max(last))),
        (one, other) => one.or(other),
    }
}

impl SegmentSet {
    /// Sizes for users.
    pub(crate) fn sizes(&self) -> Sizes {
        let index = self.index();
        let mut sizes = Sizes {
            segments: index.segments.len() as u64,
            chunks: index.chunks.len() as u64,
            ..Sizes::default()
        };
        for placed in index.chunks.values().flat_map(|blocks| blocks.iter()) {
            let rows = placed.row_bytes.iter().map(|&bytes| u64::from(bytes));
            let rows = rows.sum::<u64>();
            sizes.blocks += 1;
            sizes.row_bytes += rows;
            sizes.state_bytes += u64::from(placed.state_bytes);
            sizes.point_bytes += u64::from(placed.point_bytes);
            sizes.name_bytes += u64::from(placed.name_bytes);
            let frames = rows + u64::from(placed.state_bytes + placed.point_bytes);
            let frames = frames + u64::from(placed.name_bytes);
            sizes.head_bytes += u64::from(placed.len).saturating_sub(frames);
        }
        sizes
    }
}

/// Ends of the oldest and the newest live row of some archives of a chunk, as stamps. The oldest is searched only in the chunk's
/// oldest block with rows.
pub(crate) fn rows(
    blocks: &[Placed],
    schema: &Schema,
    archives: Range<usize>,
) -> io::Result<Reach> {
    let is_wanted = |(at, row): (usize, &u64)| archives.contains(&at) && *row > 0;
    let has_rows = |placed: &&Placed| placed.newest.iter().enumerate().any(is_wanted);
    let stamp = blocks.iter().map(|placed| placed.stamp).max().unwrap_or(0);
    let newest = |archive: usize| stamp / schema.archives[archive].step;
    let ends = blocks.iter().flat_map(|placed| {
        let archives = placed.newest.iter().zip(&schema.archives).enumerate();
        let archives = archives.filter(|(at, (row, _))| is_wanted((*at, row)));
        archives.map(|(at, (&row, archive))| row.min(newest(at)) * archive.step)
    });
    let Some(last) = ends.max() else {
        return Ok(None);
    };
    let mut reach = Some((last as f64, last as f64));
    let Some(oldest) = blocks.iter().find(has_rows) else {
        return Ok(reach);
    };
    let Some(head) = oldest.head()? else {
        return Ok(reach);
    };
    for part in head.parts.iter().map(|(_, part)| part) {
        for (at, frame) in part.rows.iter().enumerate() {
            if !archives.contains(&at) {
                continue;
            }
            let Some(raw) = frame
                .map(|frame| oldest.frame(&frame))
                .transpose()?
                .flatten()
            else {
                continue;
            };
            let archive = schema.archives[at];
            let alive = (newest(at) + 1).saturating_sub(archive.row_cnt);
            let column = ReadRows::parse(&raw, schema.width);
            let entries = column.iter().flat_map(|column| &column.entries);
            let firsts = entries.map(|entry| entry.first.max(alive) * archive.step);
            if let Some(first) = firsts.min() {
                reach = both(reach, Some((first as f64, first as f64)));
            }
        }
    }
    Ok(reach)
}

/// Stamps of the oldest and the newest sample of a frame.
fn samples_reach(raw: &[u8]) -> Reach {
    let (mut decoder, mut points) = (PointDecoder::default(), Vec::new());
    for entry in samples::each_entry(raw) {
        let first = points.len();
        entry.read(&mut decoder, &mut points)?;
        if entry.has_before {
            points.remove(first);
        }
    }
    let stamps = points.iter().map(|point| point.seconds());
    stamps.fold(None, |reach, stamp| both(reach, Some((stamp, stamp))))
}

/// Stamps of the oldest and the newest point of a chunk.
pub(crate) fn points(blocks: &[Placed]) -> io::Result<Reach> {
    let has_points = |placed: &&Placed| placed.point_bytes > 0;
    let mut reach = None;
    let oldest = blocks.iter().find(has_points);
    let newest = blocks.iter().rev().find(has_points);
    for placed in oldest.into_iter().chain(newest) {
        let Some(head) = placed.head()? else { continue };
        for frame in head.parts.iter().filter_map(|(_, part)| part.points) {
            let raw = placed.frame(&frame)?.unwrap_or_default();
            reach = both(reach, samples_reach(&raw));
            for (_, count, entry) in each_entry(&raw) {
                let texts = texts(count, entry);
                let stamps = texts
                    .iter()
                    .flat_map(|texts| texts.iter().filter_map(stamp_of));
                reach = stamps.fold(reach, |reach, stamp| both(reach, Some((stamp, stamp))));
            }
        }
    }
    Ok(reach)
}
