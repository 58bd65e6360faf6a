//! Fuzzing of segments: whatever bytes a segment or the frames of a valid block have, opening, reading and merging
//! them must not panic, hang or need much memory.

use crate::compaction::dead::Liveness;
use crate::consolidation::apply::Applier;
use crate::consolidation::points_schema::{PointsKind, PointsSchema};
use crate::consolidation::row_sink::NewRows;
use crate::consolidation::schema::Schema;
use crate::layout::STRIPE;
use crate::read::view::View;
use crate::segment::builder::Builder;
use crate::segment::file::{BLOCKS_OFFSET, Numbers, Segment, path_of};
use crate::segment::set::{SegmentSet, states};
use crate::tools::space;
use kymo_rrd::Rows;
use kymo_rrd::create::{Create, create};
use kymo_rrd::update::Now;
use kymo_sys::clock::Stamp;
use kymo_sys::disk::{Disk, OpenMode};
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::SimDisk;
use std::io;
use std::path::Path;
use std::sync::Arc;

const FOLDER: &str = "/segments";
const GENERATION: u64 = 7;
/// Separates one frame from the next.
const CUT: &[u8] = b"\xffcut";

struct All(Arc<Schema>);

impl Liveness for All {
    fn schema(&self, chunk: u32) -> Option<Arc<Schema>> {
        (chunk % 5 != 4).then(|| self.0.clone())
    }

    fn settle(&self, _emptied: &[u32]) -> io::Result<()> {
        Ok(())
    }

    fn is_alive(&self, _chunk: u32, slot: u8) -> bool {
        slot % 7 != 6
    }

    fn stamps(&self, _chunk: u32) -> Vec<Option<i64>> {
        Vec::new()
    }
}

/// Opens segments made of `data`, then reads and merges them.
pub(crate) fn fuzz_segment(data: &[u8]) {
    let points = PointsSchema::new(PointsKind::Counter, 10, 60);
    if let Some(points) = Schema::of_points(points).map(Arc::new) {
        let _hostile = made_of(&points, &|file| {
            file.write_at(&block(&points, data)?, BLOCKS_OFFSET)
        });
    }
    let schema = schema();
    let _hostile = made_of(&schema, &|file| file.write_at(data, 0));
    let _hostile = made_of(&schema, &|file| file.write_at(data, BLOCKS_OFFSET));
    let _hostile = made_of(&schema, &|file| {
        file.write_at(&block(&schema, data)?, BLOCKS_OFFSET)
    });
}

fn schema() -> Arc<Schema> {
    let request = Create {
        file_name: b"a.rrd",
        step: 10,
        start: Some(1_000_000_000),
        definitions: &[
            b"DS:x:GAUGE:60:U:U",
            b"DS:y:GAUGE:60:U:U",
            b"RRA:AVERAGE:0.5:1:30",
            b"RRA:MAX:0.5:3:5",
            b"RRA:HWPREDICT:30:0.1:0.0035:6",
        ],
    };
    let made = create(&request, 1_000_000_000, &mut 1, None, &[]);
    let schema = made.ok().and_then(|rrd| Schema::of(&rrd.header));
    Arc::new(schema.unwrap_or_else(|| unreachable!("BUG: a definition that is right")))
}

/// A block whose frames are the parts of `data`, separated at each [`CUT`].
fn block(schema: &Schema, data: &[u8]) -> io::Result<Vec<u8>> {
    let (&first, mut rest) = data.split_first().unwrap_or((&0, &[]));
    let archives = schema.archives.len();
    let mut builder = Builder::new(archives)?;
    builder.begin(u32::from(first >> 6), u64::from(first), archives);
    builder.stamp = 1_000_000_000;
    'block: for stripe in 0..STRIPE as u8 {
        builder.part(stripe);
        for place in 0..2 + archives {
            if rest.is_empty() {
                break 'block;
            }
            let end = rest.windows(CUT.len()).position(|four| four == CUT);
            let (raw, left) = match end {
                Some(end) => (&rest[..end], &rest[end + CUT.len()..]),
                None => (rest, &rest[..0]),
            };
            builder.frame(place, raw)?;
            if place >= 2 {
                builder.set_newest(place - 2, u64::from(first) << 54 | 99_999_999);
            }
            rest = left;
        }
    }
    builder.drop_empty_part();
    let mut bytes = Vec::new();
    builder.finish(GENERATION, BLOCKS_OFFSET, &mut bytes);
    Ok(bytes)
}

type Fill<'a> = &'a dyn Fn(&dyn kymo_sys::disk::DiskFile) -> io::Result<()>;

fn made_of(schema: &Arc<Schema>, fill: Fill<'_>) -> io::Result<()> {
    for merges in 0..2 {
        let disk = SimDisk::new(1);
        disk.create_dir_all(Path::new(FOLDER))?;
        let numbers = Numbers {
            merges,
            ..Numbers::of(1)
        };
        let path = path_of(Path::new(FOLDER), numbers);
        Segment::begin(&disk, &path, numbers, GENERATION)?;
        fill(&*disk.open(&path, OpenMode::Write)?)?;
        let clock = SimClock::new(Stamp::default());
        let Ok((segments, _)) = SegmentSet::open(Arc::new(disk), Path::new(FOLDER), &clock)? else {
            continue;
        };
        read_all(&segments, schema)?;
        segments.sync()?;
        segments.merge_all(&All(schema.clone()))?;
        read_all(&segments, schema)?;
    }
    Ok(())
}

/// Reads points, and as a file every series that has a state.
fn read_all(segments: &SegmentSet, schema: &Arc<Schema>) -> io::Result<()> {
    let mut cells = vec![0.0; 1 << 10];
    for chunk in segments.chunks() {
        let blocks = segments.blocks(chunk);
        space::points(&blocks)?;
        if schema.points.is_some() {
            for slot in [0, 1, 17] {
                crate::points::read_hostile(schema, &blocks, slot)?;
            }
            continue;
        }
        for stripe in 0..STRIPE as u8 {
            for (member, words) in states(&blocks, schema, stripe)? {
                let mut applier = Applier::default();
                let now = Now { sec: 0, usec: 0 };
                if applier.apply(schema, &words, b"", &[], now).is_err() {
                    continue;
                }
                let Some(state) = applier.take_series() else {
                    continue;
                };
                let count = state.header.cell_count() as usize;
                let mut view = View {
                    schema: schema.clone(),
                    state,
                    blocks: blocks.clone(),
                    slot: stripe * STRIPE as u8 + member,
                    fresh: Vec::<NewRows>::new(),
                    base: None,
                    damaged: 0,
                };
                let _hostile = view.read(0, &mut cells[..count]);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_base::random::next_random;

    #[test]
    fn chance_finds_nothing() {
        let mut random = 5;
        for _ in 0..3000 {
            let len = next_random(&mut random) % 90;
            let mut data = Vec::new();
            for _ in 0..len {
                match next_random(&mut random) % 12 {
                    0 => data.extend_from_slice(CUT),
                    1 => data.extend_from_slice(&[0xff; 9]),
                    2 => data.extend_from_slice(b"KYMOBLCK"),
                    3..9 => data.push(next_random(&mut random) as u8 % 20),
                    _ => data.push(next_random(&mut random) as u8),
                }
            }
            fuzz_segment(&data);
        }
    }

    /// A state, rows and points with lengths beyond their data.
    #[test]
    fn numbers_that_lie() {
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        let words = schema().words;
        let mut state = vec![1, 3, words as u8, 0];
        state[2] |= if words > 127 { 0x80 } else { 0 };
        state[3] = (words >> 7) as u8;
        if words <= 127 {
            state.pop();
        }
        state.extend(vec![1; words.div_ceil(8)]);
        for last_up in [i64::MAX, -1, i64::MIN, 0, 1_000_000_000] {
            let mut state = state.clone();
            state.extend(last_up.to_le_bytes());
            state.extend(vec![0; 8 * (words.div_ceil(8) - 1)]);
            for head in [
                vec![1, 3],
                vec![1, 3, 0],
                [&[1, 3][..], &huge].concat(),
                [&[1, 200][..], &huge].concat(),
                huge.to_vec(),
            ] {
                for tail in [&[1][..], &[2, 2, 2], &huge, &[1, 3], &[2, 3, 3]] {
                    let mut data = vec![0xff];
                    let rows = [&head[..], tail, &[0; 32]].concat();
                    let long = [&head[..], &[1], &huge, &[0; 16]].concat();
                    for piece in [&state[..], &[3, 0xff, 0xff], &rows, &long, &rows] {
                        data.extend_from_slice(piece);
                        data.extend_from_slice(CUT);
                    }
                    fuzz_segment(&data);
                }
            }
        }
    }
}
