//! Measures the bytes that a value of collectd's default file needs in blocks. Prints numbers:
//! `cargo test -p kymo-store --lib compaction::tests::bytes_per_value -- --ignored --nocapture`.

use crate::consolidation::apply::Applier;
use crate::consolidation::rows::{Column, ReadRows};
use crate::consolidation::samples;
use crate::consolidation::schema::Schema;
use crate::layout::{CHUNK, STRIPE};
use crate::memtable::buffer::Pending;
use crate::segment::builder::Builder;
use crate::segment::catalog::{CatalogHead, Line, put_catalog};
use crate::segment::file::BLOCKS_OFFSET;
use crate::segment::points;
use crate::wal::live::Live;
use crate::wal::record::Identity;
use kymo_base::random::next_random;
use kymo_rrd::update::Now;
use std::collections::BTreeSet;

const START: i64 = 1_000_000_000;
const VALUES: usize = 64;
const BLOCKS: usize = 10;
const ARCHIVES: usize = 15;

/// Bytes of each kind, and of rows laid out row after row.
#[derive(Default)]
struct Bytes {
    state: usize,
    rows: usize,
    points: usize,
    head: usize,
    rows_across: usize,
}

fn definitions(kind: usize) -> Vec<String> {
    let source = if kind == 2 { "DERIVE" } else { "GAUGE" };
    let mut all = vec![format!("DS:value:{source}:20:U:U")];
    for cf in ["AVERAGE", "MIN", "MAX"] {
        let archives = [(1, 1200), (7, 1235), (50, 1210), (223, 1202), (2635, 1201)];
        all.extend(archives.map(|(pdps, rows)| format!("RRA:{cf}:0.1:{pdps}:{rows}")));
    }
    all
}

/// A value of an idle gauge, a random walk with two decimals, a counter, or noise.
fn text(kind: usize, walk: &mut f64, random: &mut u64) -> String {
    let chance = (next_random(random) >> 11) as f64 / (1u64 << 53) as f64;
    match kind {
        0 => format!("{:.6}", 42.0),
        1 => {
            *walk += ((chance - 0.5) * 100.0).round() / 100.0;
            format!("{walk:.6}")
        }
        2 => {
            *walk += (chance * 5000.0).floor();
            format!("{walk:.0}")
        }
        _ => format!("{:.6}", chance * 100.0),
    }
}

fn packed(raw: &[u8]) -> usize {
    zstd::bulk::compress(raw, 3).unwrap().len()
}

/// A column with its cells row after row: the first rows of all entries, then the second rows, and so on.
fn across(raw: &[u8]) -> Vec<u8> {
    let column = ReadRows::parse(raw, 1).unwrap();
    let stored = |parts: &[crate::consolidation::row_sink::Part]| {
        parts.iter().map(|part| part.stored()).sum()
    };
    let counts: Vec<u64> = column.entries.iter().map(|at| stored(&at.parts)).collect();
    let head = raw.len() - 8 * counts.iter().sum::<u64>() as usize;
    let (mut out, cells) = (raw[..head].to_vec(), raw[head..].as_chunks::<8>().0);
    for row in 0..counts.iter().copied().max().unwrap_or(0) {
        let mut first = 0;
        for &count in &counts {
            if row < count {
                out.extend_from_slice(&cells[(first + row) as usize]);
            }
            first += count;
        }
    }
    out
}

/// Series of one kind or of mixed kinds, with aligned stamps or stamps with an offset for each series.
struct Chunk {
    aligned: bool,
    mixed: bool,
    schemas: Vec<Schema>,
    states: Vec<Vec<u64>>,
    walks: Vec<f64>,
    random: u64,
    applier: Applier,
    entries: points::PointsWriter,
}

impl Chunk {
    fn new(aligned: bool, mixed: bool) -> Chunk {
        let mut chunk = Chunk {
            aligned,
            mixed,
            schemas: Vec::new(),
            states: Vec::new(),
            walks: vec![1000.0; CHUNK],
            random: 9,
            applier: Applier::default(),
            entries: points::PointsWriter::default(),
        };
        // The row pointers are the same for all series of a schema, as CREATE makes them.
        let rrd = |kind: usize, random: u64| {
            let texts = definitions(kind);
            let texts: Vec<&str> = texts.iter().map(|text| &text[..]).collect();
            samples::rrd(&texts, random)
        };
        chunk.schemas = (0..4)
            .map(|kind| Schema::of(&rrd(kind, 1).header).unwrap())
            .collect();
        for slot in 0..CHUNK {
            let kind = chunk.kind(slot);
            let (schema, mut words) = (&chunk.schemas[kind], Vec::new());
            schema.pack(&samples::series(schema, &rrd(kind, 1)), &mut words);
            chunk.states.push(words);
        }
        chunk
    }

    fn kind(&self, slot: usize) -> usize {
        if self.mixed { slot % 4 } else { slot / 64 }
    }

    fn texts(&mut self, slot: usize, block: usize) -> Vec<String> {
        let first = START + 10 * (1 + block * VALUES) as i64;
        let stamps = (0..VALUES as i64).map(|value| first + 10 * value);
        let kind = self.kind(slot);
        let values = stamps.map(|stamp| {
            let text = text(kind, &mut self.walks[slot], &mut self.random);
            let jitter = next_random(&mut self.random) % 400;
            match self.aligned {
                true => format!("{stamp}:{text}"),
                false => format!("{stamp}.{:06}:{text}", slot as u64 * 3900 + jitter),
            }
        });
        values.collect()
    }

    /// Adds a stripe of series with new values to a block; returns the size of their rows in the other layout.
    fn stripe(&mut self, builder: &mut Builder, (block, stripe): (usize, usize)) -> usize {
        let mut columns: Vec<Column> = (0..ARCHIVES).map(|_| Column::default()).collect();
        let (mut new, mut points) = (Vec::new(), Vec::new());
        for member in 0..STRIPE {
            let slot = stripe * STRIPE + member;
            let texts = self.texts(slot, block);
            let values: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
            let (schema, state) = (&self.schemas[self.kind(slot)], &self.states[slot]);
            let now = Now { sec: 0, usec: 0 };
            let applied = self.applier.apply(schema, state, b"", &values, now);
            applied.unwrap();
            assert!(self.applier.refused.is_empty());
            let last_up = self.applier.header().unwrap().last_up;
            for (archive, column) in columns.iter_mut().enumerate() {
                let rows = &self.applier.captured.archives[archive];
                column.push(member as u8, schema.newest(archive, last_up), rows);
            }
            let mut words = Vec::new();
            self.applier.pack(schema, &mut words);
            new.push((member as u8, words.clone()));
            self.states[slot] = words;
            let mut pending = Pending::default();
            values.iter().for_each(|text| pending.push(text));
            self.entries.put(&mut points, member as u8, &pending);
        }
        builder.part(stripe as u8);
        builder.state(&new).unwrap();
        builder.points(&points).unwrap();
        let mut seen = BTreeSet::new();
        for (archive, column) in columns.iter().enumerate() {
            builder.rows(archive, column, column.newest).unwrap();
            let mut raw = Vec::new();
            column.encode(&mut raw);
            seen.extend((!column.is_empty()).then_some(raw));
        }
        seen.iter().map(|raw| packed(&across(raw))).sum()
    }
}

fn measure(aligned: bool, mixed: bool) -> Bytes {
    let (mut chunk, mut bytes) = (Chunk::new(aligned, mixed), Bytes::default());
    let mut builder = Builder::new(ARCHIVES).unwrap();
    for block in 0..BLOCKS {
        builder.begin(0, block as u64, ARCHIVES);
        for stripe in 0..STRIPE {
            bytes.rows_across += chunk.stripe(&mut builder, (block, stripe));
        }
        let head = builder.finish(1, BLOCKS_OFFSET, &mut Vec::new());
        bytes.state += head.state_bytes() as usize;
        bytes.rows += head.row_bytes().iter().sum::<u64>() as usize;
        let points = head.parts.iter().filter_map(|(_, part)| part.points);
        bytes.points += points.map(|frame| frame.len as usize).sum::<usize>();
        // The first frame follows the head.
        bytes.head += head.part(0).unwrap().state.unwrap().offset as usize;
    }
    bytes
}

/// Size of the names of a chunk whose files lie in folders of a hundred:
/// adopted files (`files` is 0), files made by CREATE (1), or none (2).
fn names(files: usize) -> usize {
    let mut random = 3;
    let lines: Vec<Line> = (0..CHUNK as u32)
        .map(|at| {
            let left = Identity {
                device: 2049,
                inode: 1_310_000 + u64::from(at),
                size_bytes: 152_000,
                mtime_ns: START * 1_000_000_000
                    + (next_random(&mut random) % 50_000) as i64
                    + 60_000 * i64::from(at),
            };
            let first = START as f64;
            let stamp = START as f64 + 640.0;
            Line {
                slot: at as u8,
                id: 5 + at,
                path: format!(
                    "/var/lib/rrdcached/db/h{:03}/f{:02}.rrd",
                    at / 100,
                    at % 100
                )
                .into_bytes(),
                forgotten: false,
                create_unsynced: false,
                applied: stamp,
                published: stamp,
                base: (files == 0).then_some(START),
                left: (files < 2).then_some((left, first, first)),
                live: (files < 2).then_some(Live {
                    updated: next_random(&mut random) as u32,
                    tuned: next_random(&mut random) as u32,
                }),
                held: Pending::default(),
            }
        })
        .collect();
    let about = CatalogHead {
        front: vec![0; 100],
        slots: 256,
        next_id: 300,
    };
    let mut raw = Vec::new();
    put_catalog(&mut raw, &about, &lines);
    packed(&raw)
}

#[test]
#[ignore = "a measurement"]
fn bytes_a_name() {
    for (files, what) in ["taken over", "made", "no files"].iter().enumerate() {
        let bytes = names(files) as f64 / CHUNK as f64;
        eprintln!(
            "{what:10} {bytes:6.1} a series, {:5.2} a value",
            bytes / VALUES as f64
        );
    }
}

#[test]
#[ignore = "a measurement"]
fn bytes_a_value() {
    eprintln!("stamps     series          state   rows  points   head    all   rows across");
    for (aligned, stamps) in [(true, "aligned  "), (false, "unaligned")] {
        for (mixed, series) in [(false, "side by side"), (true, "mixed       ")] {
            let bytes = measure(aligned, mixed);
            let each = |bytes: usize| bytes as f64 / (CHUNK * VALUES * BLOCKS) as f64;
            let all = bytes.state + bytes.rows + bytes.points + bytes.head;
            eprintln!(
                "{stamps}  {series}  {:7.2} {:6.2} {:7.2} {:6.2} {:6.2} {:13.2}",
                each(bytes.state),
                each(bytes.rows),
                each(bytes.points),
                each(bytes.head),
                each(all),
                each(bytes.rows_across)
            );
        }
    }
}
