//! Test that docs/formats/store.md is sufficient: a script of a few
//! lines, which uses nothing else, reads the same rows and points.

use crate::compaction::tests::World;
use crate::consolidation::rows;
use crate::segment::file::path_of;
use crate::segment::placed::Placed;
use crate::segment::points;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recover_block.py");

/// Returns true if the tool exists and prints its version.
fn is_there(tool: &str) -> bool {
    let mut command = Command::new(tool);
    let command = command.arg("--version").stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Rows and points of a block in the script's format.
fn rows(world: &World, chunk: u32, placed: &Placed, out: &mut BTreeSet<String>) {
    let schema = &world.schemas[chunk as usize];
    let head = placed.head().unwrap().unwrap();
    for (stripe, part) in &head.parts {
        let raw = part.points.map(|frame| placed.frame(&frame).unwrap());
        for (member, count, entry) in points::each_entry(&raw.flatten().unwrap_or_default()) {
            let (slot, texts) = (stripe * 16 + member, points::texts(count, entry).unwrap());
            let texts = texts.iter().map(|text| str::from_utf8(text).unwrap());
            out.extend(texts.map(|text| format!("point {chunk} {slot} {text}")));
        }
        for (archive, frame) in part.rows.iter().enumerate() {
            let Some(frame) = frame else { continue };
            let raw = placed.frame(frame).unwrap().unwrap();
            let column = rows::ReadRows::parse(&raw, schema.width).unwrap();
            for entry in &column.entries {
                let slot = stripe * 16 + entry.member;
                let newest = entry.parts.iter().map(|part| part.rows()).sum::<u64>();
                let mut cells = vec![0.0; newest as usize * schema.width];
                let (member, first) = (entry.member, entry.first);
                rows::fill_member(&raw, schema.width, member, first, &mut cells).unwrap();
                for (row, cells) in cells.chunks(schema.width).enumerate() {
                    let number = entry.first + row as u64;
                    let mut line = format!("{chunk} {slot} {archive} {number}");
                    for cell in cells {
                        write!(line, " {:016x}", cell.to_bits()).unwrap();
                    }
                    out.insert(line);
                }
            }
        }
    }
}

#[test]
fn a_script_reads_the_same_rows_and_points() {
    let missing: Vec<&str> = ["python3", "zstd"]
        .into_iter()
        .filter(|tool| !is_there(tool))
        .collect();
    if !missing.is_empty() {
        return kymo_sys::skipped::skipped(&format!("{} is missing", missing.join(" and ")));
    }
    let mut world = World::new(8, &[0, 17, 255]);
    for number in 0..150 {
        let at = world.random(9) as usize;
        world.value(at);
        if number % 15 == 14 {
            world.save(number as u32 / 15 % 3).unwrap();
        }
    }
    world.sync().unwrap();
    let (mut segments, mut lines) = (BTreeSet::new(), 0);
    for round in 0..2 {
        let placed: Vec<(u32, Placed)> = (0..3)
            .flat_map(|chunk| {
                let blocks = world.segments.blocks(chunk);
                blocks
                    .iter()
                    .map(|placed| (chunk, placed.clone()))
                    .collect::<Vec<_>>()
            })
            .collect();
        let numbers: BTreeSet<_> = placed
            .iter()
            .map(|(_, placed)| placed.segment.numbers)
            .collect();
        for numbers in numbers {
            let (mut ours, mut blocks) = (BTreeSet::new(), BTreeSet::new());
            for (chunk, placed) in placed
                .iter()
                .filter(|(_, placed)| placed.segment.numbers == numbers)
            {
                rows(&world, *chunk, placed, &mut ours);
                blocks.insert(format!("block {chunk} {}", placed.position));
            }
            let path = path_of(Path::new("/segments"), numbers);
            let theirs = by_script(&world.disk.bytes(&path).unwrap());
            let (theirs_blocks, theirs): (BTreeSet<_>, BTreeSet<_>) = theirs
                .into_iter()
                .partition(|line| line.starts_with("block "));
            assert_eq!(theirs, ours, "{}", path.display());
            assert!(
                theirs_blocks.is_superset(&blocks),
                "{theirs_blocks:?} {blocks:?}"
            );
            lines += ours.len();
            segments.insert(numbers);
        }
        if round == 0 {
            world.reopen().unwrap();
            world.sync().unwrap();
            world.segments.merge_all(&world).unwrap();
        }
    }
    assert!(segments.len() > 2 && lines > 500, "{segments:?} {lines}");
}

/// Output of the script, with the cells of a row on one line.
fn by_script(segment: &[u8]) -> Vec<String> {
    let path = std::env::temp_dir().join(format!("kymo-segment-{}", std::process::id()));
    std::fs::write(&path, segment).unwrap();
    let output = Command::new("python3")
        .arg(SCRIPT)
        .arg(&path)
        .output()
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let mut lines: Vec<String> = Vec::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (row, cell) = line.rsplit_once(' ').unwrap();
        let of_row = |before: &&mut String| {
            before.len() > row.len()
                && before.starts_with(&format!("{row} "))
                && !row.starts_with("block")
                && !row.starts_with("point")
        };
        match lines.last_mut().filter(of_row) {
            Some(before) => write!(before, " {cell}").unwrap(),
            None => lines.push(line.to_string()),
        }
    }
    lines
}
