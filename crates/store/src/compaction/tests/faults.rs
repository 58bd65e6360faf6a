//! Power cuts, full disks, failed writes and syncs: the newest block of each chunk
//! is at least the one last synced, and every series has the result of its values
//! up to there. Every fault is counted, so that no test passes for lack of faults.

use crate::compaction::tests::World;
use crate::segment::file::{Numbers, path_of};
use kymo_sys::sim_disk::{Fate, Faults, SimDisk};
use std::io;
use std::path::Path;

const SLOTS: &[u8] = &[0, 3, 200];

/// One step of a script of values, blocks, syncs, merges with and without a sync before, and restarts.
fn step(world: &mut World, number: u64) -> io::Result<()> {
    for _ in 0..world.random(12) {
        let at = world.random(world.members.len() as u64) as usize;
        world.value(at);
    }
    match number % 11 {
        0 | 2 | 3 | 5 | 7 | 8 => {
            let chunk = world.random(3) as u32;
            world.save(chunk)
        }
        1 | 6 => world.sync(),
        4 => world.merge().map(drop),
        9 => world.sync().and_then(|()| world.merge()).map(drop),
        _ if number % 33 == 10 => world.reopen(),
        _ => Ok(()),
    }
}

#[test]
fn power_cut_at_every_operation() {
    let (mut lost, mut cuts, mut early) = (0, 0, 0);
    for at in 1..170 {
        let disk = SimDisk::new(at);
        disk.set_faults(Faults {
            power_off_at: Some(at),
            ..Faults::default()
        });
        let story = format!("power off at {at}");
        let begun = World::begin(&disk, at, SLOTS);
        if let Ok(mut world) = begun {
            for number in 0..200 {
                let _faults = step(&mut world, number);
                if disk.counts().faults > 3 {
                    break;
                }
            }
            world.check(&format!("{story}, before"));
            cuts += u64::from(disk.counts().faults > 0);
            disk.crash_by_chance(at);
            let mut after = world.on(&disk).unwrap();
            after.judge(&story);
            goes_on(after, &story);
        } else {
            early += 1;
            disk.crash_by_chance(at);
            World::begin(&disk, at, SLOTS).unwrap();
        }
        lost += disk.counts().lost_at_cut;
    }
    assert!(
        cuts > 160 && lost > 200 && early > 0,
        "{cuts} {lost} {early}"
    );
}

/// Continues with a new process and crashes it again.
fn goes_on(mut world: World, story: &str) {
    for number in 0..23 {
        step(&mut world, number).unwrap_or_else(|error| panic!("{story}: {error}"));
    }
    world.check(&format!("{story}, later"));
    world.disk.crash_by_chance(7);
    let disk = world.disk.clone();
    let mut after = world.on(&disk).unwrap();
    after.judge(&format!("{story}, cut again"));
}

#[test]
fn power_cut_with_every_fate_of_a_few_operations() {
    let mut cuts = 0;
    for seed in 0..2 {
        let mut world = World::new(seed, &[0, 17]);
        for number in 0..80 {
            step(&mut world, number).unwrap();
            let pending = world.disk.pending_len() as u32;
            if pending > 3 {
                continue;
            }
            for combination in 0..3_usize.pow(pending) {
                let disk = world.disk.fork();
                disk.crash(&mut |at| match combination / 3_usize.pow(at as u32) % 3 {
                    0 => Fate::Keep,
                    1 => Fate::Drop,
                    _ => Fate::Torn(combination as u64),
                });
                cuts += 1;
                let mut after = world.on(&disk).unwrap();
                after.judge(&format!("seed {seed}, step {number}, fates {combination}"));
            }
        }
    }
    assert!(cuts > 150, "{cuts}");
}

/// A power cut may also lose parts of the changes that a restart makes to the folder of a killed process.
#[test]
fn killed_at_every_operation_and_cut_after_the_next_start() {
    let mut cuts = 0;
    for at in 8..120 {
        let mut world = World::new(at, &[0, 17]);
        let before = world.disk.counts().operations;
        world.disk.set_faults(Faults {
            power_off_at: Some(before + at),
            ..Faults::default()
        });
        for number in 0..200 {
            let _faults = step(&mut world, number);
            if world.disk.counts().faults > 0 {
                break;
            }
        }
        world.disk.set_faults(Faults::default());
        world.disk.kill();
        let disk = world.disk.clone();
        let mut after = world.on(&disk).unwrap();
        after.judge(&format!("killed at {at}"));
        for chance in 0..4 {
            let story = format!("killed at {at}, chance {chance}");
            judge_fork(&after, &story, &mut |disk| disk.crash_by_chance(chance));
            cuts += 1;
        }
    }
    assert!(cuts > 400, "{cuts}");
}

/// If a merge cannot sync its names, the name of the newly begun segment is lost too.
#[test]
fn names_that_a_merge_loses() {
    let mut lost = 0;
    for seed in 0..6 {
        let mut world = World::new(seed, SLOTS);
        for number in 0..60 {
            step(&mut world, number).unwrap();
            let story = format!("seed {seed}, step {number}");
            let mut fork = world.on(&world.disk.fork()).unwrap();
            fork.value(0);
            fork.save(0).unwrap();
            let syncs = fork.disk.counts().syncs;
            fork.disk.set_faults(Faults {
                broken_sync: Some(syncs + 2),
                ..Faults::default()
            });
            if fork.merge().is_ok() {
                continue;
            }
            lost += 1;
            fork.sync().unwrap();
            fork.check(&story);
            // Files that the next start removes must not be needed.
            let disk = fork.disk.fork();
            disk.kill();
            let next = fork.on(&disk).unwrap();
            let worst = &mut |disk: &SimDisk| disk.crash(&mut |_| Fate::Drop);
            judge_fork(&next, &format!("{story}, next start"), worst);
            let rather = &mut |disk: &SimDisk| disk.crash(&mut |_| Fate::Keep);
            judge_fork(&next, &format!("{story}, next start, all kept"), rather);
            judge_both(fork, &story);
        }
    }
    assert!(lost > 10, "{lost}");
}

/// Many processes in turn on one disk, each ended by a kill or a power cut.
#[test]
fn many_lives() {
    let seeds = kymo_sys::effort::effort(10);
    let mut lost = 0;
    for seed in 0..seeds {
        let mut world = World::new(seed, SLOTS);
        for life in 0..8 {
            for number in 0..world.random(40) {
                step(&mut world, number).unwrap();
            }
            match world.random(3) {
                0 => world.disk.kill(),
                _ => world.disk.crash_by_chance(seed * 100 + life),
            }
            let disk = world.disk.clone();
            world = world.on(&disk).unwrap();
            world.judge(&format!("seed {seed}, life {life}"));
        }
        lost += world.disk.counts().lost_at_cut;
    }
    assert!(lost > 5 * seeds, "{lost}");
}

/// A full disk: unsaved values stay pending, and saving resumes when there is space.
#[test]
fn full_at_every_write() {
    let (mut refused, mut faults) = (0, 0);
    for (at, length) in (1..28).flat_map(|at| [(at, 1), (at, 20)]) {
        let mut world = World::new(at, SLOTS);
        let before = world.disk.counts().writes;
        world.disk.set_faults(Faults {
            full_writes: Some((before + at, before + at + length)),
            ..Faults::default()
        });
        let story = format!("full for writes {at} to {}", at + length);
        for number in 0..70 {
            refused += u64::from(step(&mut world, number).is_err());
            if number % 9 == 0 {
                world.check(&format!("{story}, step {number}"));
            }
        }
        faults += world.disk.counts().faults;
        world.disk.set_faults(Faults::default());
        judge_both(world, &story);
    }
    assert!(refused > 100 && faults > 200, "{refused} {faults}");
}

/// With little space a merge may fail for lack of it; another merge then frees some.
#[test]
fn full_of_bytes() {
    let mut refused = 0;
    for seed in 0..12 {
        let mut world = World::new(seed, SLOTS);
        let story = format!("seed {seed}");
        for number in 0..300 {
            let room = world.disk.allocated_bytes() + 4096 * (number / 7 % 8);
            world.disk.set_faults(Faults {
                capacity_bytes: (number % 40 < 30).then_some(room),
                ..Faults::default()
            });
            refused += u64::from(step(&mut world, number).is_err());
        }
        world.disk.set_faults(Faults::default());
        judge_both(world, &story);
    }
    assert!(refused > 100, "{refused}");
}

/// A failed segment is never written again. Its blocks are read from memory until they are in another segment,
/// whatever the kernel still returns for the file.
#[test]
fn broken_once() {
    let (mut given_up, mut refused) = (0, 0);
    for at in 1..22 {
        for (sync, twice) in [(false, false), (true, false), (true, true)] {
            let mut world = World::new(at, SLOTS);
            let before = world.disk.counts();
            world.disk.set_faults(Faults {
                broken_write: (!sync).then_some(before.writes + at),
                broken_sync: sync.then_some(before.syncs + at),
                ..Faults::default()
            });
            let story = format!("broken at {at}, sync {sync}, twice {twice}");
            let (mut known, mut look) = (Vec::new(), 0);
            for number in 0..70 {
                refused += u64::from(step(&mut world, number).is_err());
                let now = failed(&world);
                if now.iter().any(|number| !known.contains(number)) {
                    given_up += 1;
                    forget_pages(&world);
                    let syncs = world.disk.counts().syncs;
                    world.disk.set_faults(Faults {
                        broken_sync: (twice && known.is_empty()).then_some(syncs + 1),
                        ..Faults::default()
                    });
                    world.check(&format!("{story}, given up"));
                    judge_fork(&world, &story, &mut |disk| disk.crash(&mut |_| Fate::Drop));
                    look = 6;
                }
                if look > 0 {
                    look -= 1;
                    for chance in 0..2 {
                        let story = format!("{story}, step {number}, chance {chance}");
                        let cut = &mut |disk: &SimDisk| disk.crash_by_chance(number * 10 + chance);
                        judge_fork(&world, &story, cut);
                    }
                }
                known.extend(now);
            }
            world.disk.set_faults(Faults::default());
            world.check(&story);
            judge_both(world, &story);
        }
    }
    assert!(given_up > 30 && refused > 15, "{given_up} {refused}");
}

/// Drops the cached pages of failed segments, so that reads return the content of the disk.
fn forget_pages(world: &World) {
    let dead = world.disk.fork();
    dead.crash(&mut |_| Fate::Drop);
    for number in failed(world) {
        let path = path_of(Path::new("/segments"), Numbers::of(number));
        if let Some(bytes) = dead.bytes(&path) {
            world.disk.set_bytes(&path, bytes);
        }
    }
}

/// Numbers of the segments with blocks that are only in memory.
fn failed(world: &World) -> Vec<u64> {
    let writer = world.segments.writer();
    let open = writer.open.as_ref().map(|open| open.segment.numbers.first);
    let kept = writer.kept.iter().map(|kept| kept.segment);
    kept.filter(|number| Some(*number) != open).collect()
}

fn judge_fork(world: &World, story: &str, crash: &mut dyn FnMut(&SimDisk)) {
    let disk = world.disk.fork();
    crash(&disk);
    let mut after = world.on(&disk).unwrap();
    after.judge(story);
}

/// Judges the world after a kill, after a power cut that loses most, and after a sync and a power cut.
fn judge_both(mut world: World, story: &str) {
    judge_fork(&world, &format!("{story}, killed"), &mut |disk| disk.kill());
    let worst = &mut |disk: &SimDisk| disk.crash(&mut |_| Fate::Drop);
    judge_fork(&world, &format!("{story}, cut"), worst);
    for chunk in 0..world.schemas.len() as u32 {
        world.save(chunk).unwrap();
    }
    world.sync().unwrap();
    world.check(story);
    judge_fork(&world, &format!("{story}, synced and cut"), worst);
    goes_on(world, story);
}
