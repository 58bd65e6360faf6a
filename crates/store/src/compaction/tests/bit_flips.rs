//! A changed byte or a truncated file never gives a wrong number: a series is in its state as of some block, and each cell
//! has the value of that time or is unknown.

use crate::compaction::tests::{Member, World};
use kymo_rrd::Rrd;
use kymo_rrd::update::begin_hole;
use kymo_sys::disk::Disk;
use kymo_sys::sim_disk::SimDisk;
use std::path::{Path, PathBuf};

/// A world with merged, finished and unfinished segments.
fn world() -> World {
    let mut world = World::new(3, &[0, 17]);
    let mut merges = 0;
    for number in 0..180 {
        let at = world.random(6) as usize;
        world.value(at);
        if number % 4 == 3 {
            let chunk = world.random(3) as u32;
            world.save(chunk).unwrap();
        }
        if number % 45 == 44 {
            world.sync().unwrap();
            merges += u64::from(number < 140 && world.merge().unwrap());
        }
    }
    for chunk in 0..3 {
        world.save(chunk).unwrap();
        world.sync().unwrap();
    }
    assert!(merges > 0 && segments(&world.disk).len() > 2, "{merges}");
    world
}

fn segments(disk: &SimDisk) -> Vec<(PathBuf, u64)> {
    let mut files = disk.files();
    files.retain(|(path, _)| path.to_string_lossy().contains("/segment-"));
    files
}

/// States of a series after each of its values.
struct Past(Vec<Rrd>);

impl Past {
    fn of(member: &Member) -> Past {
        let mut positions = member.positions();
        positions.push(u64::MAX);
        Past(positions.iter().map(|&at| member.at(at)).collect())
    }

    /// Returns `None` if the series never was in this state, as far as it is known; else true if all of it is known.
    fn judge(&self, now: &Rrd) -> Option<bool> {
        let same = self.0.iter().rev().find(|then| {
            let mut lost = then.header.clone();
            begin_hole(&mut lost);
            [&then.header, &lost].contains(&&now.header)
        })?;
        let mut pairs = same.cells.iter().zip(&now.cells);
        let right = pairs.all(|(then, now)| now.is_nan() || then.to_bits() == now.to_bits());
        let is_last = self.0.last().is_some_and(|last| last.header == now.header);
        let all = same.cells.iter().zip(&now.cells);
        let all = all.filter(|(then, now)| then.is_nan() == now.is_nan());
        right.then_some(is_last && all.count() == now.cells.len())
    }
}

/// Number of series that are complete.
fn judge(world: &World, past: &[Past], story: &str) -> usize {
    let mut whole = 0;
    for (member, past) in world.members.iter().zip(past) {
        let mut member = member.clone();
        member.pending.clear();
        let (now, _) = world.view(&member);
        let (chunk, slot) = (member.chunk, member.slot);
        let known = past.judge(&now);
        let known = known.unwrap_or_else(|| panic!("{story}: chunk {chunk} slot {slot}"));
        whole += usize::from(known);
    }
    whole
}

/// Opens a disk with one changed file and judges it, in some cases also after a merge of all segments.
fn changed(world: &World, past: &[Past], path: &Path, bytes: Vec<u8>, story: &str) -> usize {
    let disk = world.disk.fork();
    let len = bytes.len();
    disk.set_bytes(path, bytes);
    let after = world.on(&disk).unwrap();
    let whole = judge(&after, past, story);
    if len.is_multiple_of(16) || story.len().is_multiple_of(4) {
        after.segments.sync().unwrap();
        after.segments.merge_all(&after).unwrap();
        let story = format!("{story}, merged");
        let later = judge(&after, past, &story);
        assert!(later >= whole, "{story}: {later} of {whole}");
    }
    whole
}

/// Offsets of bytes to change: all of the heads, and some of the rest.
fn offsets(bytes: &[u8]) -> Vec<usize> {
    let mut offsets: Vec<usize> = (0..32).chain(2048..2060).collect();
    let mut head = 0;
    for at in 4096..bytes.len() {
        if at % 8 == 0 && bytes[at..].starts_with(b"KYMOBLCK") {
            head = at + 90;
        }
        if at < head && at % 5 == 0 || at % 61 == 0 {
            offsets.push(at);
        }
    }
    offsets
}

#[test]
fn one_byte_is_another() {
    let world = world();
    let past: Vec<Past> = world.members.iter().map(Past::of).collect();
    assert_eq!(judge(&world, &past, "as it was"), world.members.len());
    let (mut flips, mut harmless, mut noticed) = (0, 0, 0);
    for (path, _) in segments(&world.disk) {
        let bytes = world.disk.bytes(&path).unwrap();
        for at in offsets(&bytes) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            let story = format!("{} byte {at}", path.display());
            let whole = changed(&world, &past, &path, bytes, &story);
            flips += 1;
            harmless += usize::from(whole == world.members.len());
            noticed += world.members.len() - whole;
            // A segment's head is stored twice.
            assert!(at >= 4096 || whole == world.members.len(), "{story}");
        }
    }
    assert!(flips > 400 && noticed > 200, "{flips} {harmless} {noticed}");
}

#[test]
fn a_file_ends_too_early() {
    let world = world();
    let past: Vec<Past> = world.members.iter().map(Past::of).collect();
    let mut cuts = 0;
    for (path, size_bytes) in segments(&world.disk) {
        let bytes = world.disk.bytes(&path).unwrap();
        for end in (0..size_bytes as usize).step_by(64) {
            let story = format!("{} ends at {end}", path.display());
            changed(&world, &past, &path, bytes[..end].to_vec(), &story);
            cuts += 1;
        }
        let disk = world.disk.fork();
        disk.unlink(&path).unwrap();
        let after = world.on(&disk).unwrap();
        judge(&after, &past, &format!("{} is missing", path.display()));
    }
    assert!(cuts > 150, "{cuts}");
}
