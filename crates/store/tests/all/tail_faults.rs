//! Kills, power cuts and full disks while a tail reads and acknowledges beside updates, flushes, merges and checkpoints: the
//! tail gets every value that was on the disk, each series in order, and an acknowledged position is never lost.

use crate::common::SECOND;
use crate::common::follower::Follower;
use kymo_sys::sim_disk::{Fate, Faults};

/// One step of a script of updates, syncs, reads, acknowledgements, flushes, checkpoints and maintenance.
fn step(follower: &mut Follower, number: u64) {
    follower.bench.clock.advance_ns(SECOND / 2);
    match number % 16 {
        2 | 6 => follower.sync(),
        4 if number % 32 == 4 => follower.bench.store().checkpoint(),
        8 => drop(follower.bench.store().maintain()),
        3 | 10 => {
            let bytes = 1 + follower.bench.random(900);
            let _faults = follower.read(bytes);
        }
        5 | 12 => {
            if follower.read(1 << 20).is_ok() {
                let _faults = follower.acknowledge();
            }
        }
        13 if !follower.bench.files.is_empty() => {
            let name = follower.bench.files[0].0.clone();
            let _faults = follower.bench.flush(&name);
        }
        14 if number % 64 == 46 => follower.reader = None,
        _ => follower.send(),
    }
}

/// After a cut, the tail goes on at its acknowledged position and gets the rest.
fn survives(mut follower: Follower, least: usize, story: &str) {
    follower.reopen();
    follower
        .open()
        .unwrap_or_else(|error| panic!("{story}: {error}"));
    for number in 0..8 {
        follower.send();
        step(&mut follower, number);
    }
    follower.sync();
    follower.read(u64::MAX).unwrap();
    follower.acknowledge().unwrap();
    follower.judge(least, story);
}

#[test]
fn power_cut_at_every_operation() {
    let (mut lost, mut cuts) = (0, 0);
    for at in 1..340 {
        let mut follower = Follower::new(at, 2, 3);
        let before = follower.bench.disk.counts().operations;
        follower.bench.disk.set_faults(Faults {
            power_off_at: Some(before + at),
            ..Faults::default()
        });
        if follower.bench.try_open().is_ok() && follower.open().is_ok() {
            for number in 0..200 {
                step(&mut follower, number);
                if follower.bench.disk.counts().faults > 3 {
                    break;
                }
            }
        }
        cuts += u64::from(follower.bench.disk.counts().faults > 0);
        follower.bench.disk.crash_by_chance(at);
        lost += follower.bench.disk.counts().lost_at_cut;
        let least = follower.synced;
        // If the cut came before its registration, the tail begins with the oldest record.
        survives(follower, least, &format!("power off at {at}"));
    }
    assert!(cuts > 250 && lost > 300, "{cuts} {lost}");
}

#[test]
fn power_cut_with_every_fate_of_a_few_operations() {
    let mut cuts = 0;
    for seed in 0..2 {
        let mut follower = Follower::new(seed, 1, 2);
        follower.bench.open();
        follower.open().unwrap();
        for number in 0..90 {
            step(&mut follower, number);
            let pending = follower.bench.disk.pending_len() as u32;
            if pending > 4 {
                continue;
            }
            for combination in 0..3_usize.pow(pending) {
                let cut = follower.fork();
                cut.bench
                    .disk
                    .crash(
                        &mut |number| match combination / 3_usize.pow(number as u32) % 3 {
                            0 => Fate::Keep,
                            1 => Fate::Drop,
                            _ => Fate::Torn(combination as u64),
                        },
                    );
                cuts += 1;
                let least = cut.synced;
                survives(
                    cut,
                    least,
                    &format!("seed {seed}, step {number}, fates {combination}"),
                );
            }
        }
    }
    assert!(cuts > 300, "{cuts}");
}

#[test]
fn kill_at_every_step() {
    for seed in 0..4 {
        let mut follower = Follower::new(seed, 2, 3);
        follower.bench.open();
        follower.open().unwrap();
        for number in 0..120 {
            step(&mut follower, number);
            let killed = follower.fork();
            killed.bench.disk.kill();
            let all = killed.accepted.len();
            survives(killed, all, &format!("seed {seed}, step {number}"));
        }
    }
}

/// Several lives on one disk, each ended by a kill or a power cut.
#[test]
fn many_lives() {
    let seeds = kymo_sys::effort::effort(20);
    for seed in 0..seeds {
        let mut follower = Follower::new(seed, 2, 3);
        follower.bench.open();
        follower.open().unwrap();
        let mut least = 0;
        for life in 0..8 {
            for number in 0..follower.bench.random(80) {
                step(&mut follower, number);
            }
            let all = follower.accepted.len();
            let kept = match follower.bench.random(3) {
                0 => {
                    follower.bench.disk.kill();
                    all
                }
                _ => {
                    let chance = follower.bench.random(u64::MAX);
                    follower.bench.disk.crash_by_chance(chance);
                    follower.synced
                }
            };
            follower.reopen();
            follower.read(u64::MAX).unwrap();
            // Values that were not on the disk may be lost.
            let promised: Vec<bool> = (0..all).map(|at| at < least.max(kept)).collect();
            let values = follower.accepted.clone();
            let told = |at: usize| {
                let (name, value) = &values[at];
                let told = follower.told.values.get(name);
                told.is_some_and(|told| told.contains(value))
            };
            let kept: Vec<_> = (0..all).filter(|&at| promised[at] || told(at)).collect();
            follower.accepted = kept.iter().map(|&at| values[at].clone()).collect();
            least = follower.accepted.len();
            follower.synced = least;
            follower.judge(least, &format!("seed {seed}, life {life}"));
        }
    }
}

/// On a full disk an acknowledgement may fail, but a successful one stays.
#[test]
fn full_at_every_write() {
    let mut faults = 0;
    for (at, length) in (1..90).flat_map(|at| [(at, 1), (at, 3), (at, 40)]) {
        let mut follower = Follower::new(at, 2, 3);
        follower.bench.open();
        follower.open().unwrap();
        let from = follower.bench.disk.counts().writes + at;
        follower.bench.disk.set_faults(Faults {
            full_writes: Some((from, from + length)),
            ..Faults::default()
        });
        for number in 0..110 {
            step(&mut follower, number);
        }
        let story = format!("full for writes {at} to {}", at + length);
        faults += follower.bench.disk.counts().faults;
        follower.bench.disk.set_faults(Faults::default());
        let killed = follower.fork();
        killed.bench.disk.kill();
        let all = killed.accepted.len();
        survives(killed, all, &story);
        follower.sync();
        follower.read(u64::MAX).unwrap();
        follower.judge(all, &story);
    }
    assert!(faults > 300, "{faults}");
}

/// After a failed sync the journal goes on in another file, which begins with all values that no block has.
#[test]
fn broken_syncs_lose_nothing() {
    let mut faults = 0;
    for at in 1..60 {
        let mut follower = Follower::new(at, 2, 3);
        follower.bench.open();
        follower.open().unwrap();
        let from = follower.bench.disk.counts().syncs + at;
        follower.bench.disk.set_faults(Faults {
            broken_sync: Some(from),
            ..Faults::default()
        });
        for number in 0..110 {
            step(&mut follower, number);
        }
        faults += follower.bench.disk.counts().faults;
        let all = follower.accepted.len();
        follower.sync();
        follower.read(u64::MAX).unwrap();
        follower.judge(all, &format!("sync {at} fails"));
    }
    assert!(faults > 40, "{faults}");
}
