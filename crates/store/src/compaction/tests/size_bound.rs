//! The size of all segments is bounded by their live content, however long values arrive.

use crate::compaction::tests::World;
use crate::segment::file::BLOCKS_OFFSET;
use kymo_sys::sim_disk::SimDisk;

/// Archives that are full after 100 and 360 values.
const DEFINITIONS: &[&[&str]] = &[&[
    "DS:x:GAUGE:6000:U:U",
    "RRA:AVERAGE:0.5:60:100",
    "RRA:MAX:0.5:360:60",
]];
const GAP: u64 = 600;
const FULL: u64 = 360;

/// Bytes of all segments.
fn disk_bytes(disk: &SimDisk) -> u64 {
    let files = disk.files().into_iter();
    let segments = files.filter(|(path, _)| path.to_string_lossy().contains("/segment-"));
    segments.map(|(_, bytes)| bytes - BLOCKS_OFFSET).sum()
}

/// Bytes that remain after a merge of all segments.
fn least_bytes(world: &World) -> u64 {
    let world = world.on(&world.disk.fork()).unwrap();
    world.segments.merge_all(&world).unwrap();
    disk_bytes(&world.disk)
}

/// Adds ten times the values that the archives hold. `gap` returns the time since the last value for a series and a
/// round, or `None` for no value.
fn run(story: &str, slots: &[u8], gap: impl Fn(u64, u64) -> Option<u64>) {
    let disk = SimDisk::new(7);
    let mut world = World::of(&disk, 7, slots, DEFINITIONS).unwrap();
    for round in 0..10 * FULL {
        for at in 0..slots.len() {
            if let Some(gap) = gap(at as u64, round) {
                let number = world.random(1 << 30);
                world.put(at, gap, number);
            }
        }
        if round % 8 != 7 {
            continue;
        }
        world.save(0).unwrap();
        world.sync().unwrap();
        let mut merges = 0;
        while world.merge().unwrap() {
            merges += 1;
            assert!(
                merges < 10,
                "{story} {round}: what was merged is merged again"
            );
        }
        let weight = world.segments.weight(&world);
        let live = weight.bytes - weight.dead;
        // The open segment is not merged, and its last block may extend beyond the usual size.
        let open = world.segments.segment_bytes + 4000;
        let taken = disk_bytes(&disk);
        assert!(
            taken <= 2 * live + open,
            "{story} {round}: {taken} bytes, {live} live"
        );
        if round % 72 == 71 {
            let least = least_bytes(&world);
            assert!(
                taken <= 2 * least + open,
                "{story} {round}: {taken} bytes, {least} needed"
            );
        }
    }
    world.check(story);
}

#[test]
fn series_that_all_go_on() {
    run("busy", &[0, 1, 16, 40, 200], |_, _| Some(GAP));
}

#[test]
fn series_that_end_one_after_the_other() {
    run("ending", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], |at, round| {
        (at == 9 || round < at * FULL).then_some(GAP)
    });
}

#[test]
fn series_that_pause_in_turn() {
    run("pausing", &[0, 1, 16, 40, 200], |at, round| {
        let turn = round / 40 % 5;
        match () {
            () if turn != at => Some(GAP),
            () if round % 40 == 39 => Some(40 * GAP),
            () => None,
        }
    });
}

#[test]
fn a_series_that_is_a_year_ahead() {
    run("ahead", &[0, 1, 16, 40, 200], |at, round| {
        match (at, round) {
            (3, 30) => Some(365 * 86_400),
            _ => Some(GAP),
        }
    });
}
