//! Kills, power cuts, full disks, broken syncs: what was promised is in the .rrd files, bit for bit, and nothing
//! else. Every fault is counted, so that no test passes because nothing happened.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Bench, SECOND};
use kymo_sys::sim_disk::{Fate, Faults};

/// One step of a script that has everything: values, flushes, due files, syncs, checkpoints.
fn step(bench: &mut Bench, number: u64) {
    bench.clock.advance_ns(SECOND / 2);
    match number % 16 {
        5 => {
            let at = bench.random(bench.files.len() as u64) as usize;
            let name = bench.files[at].0.clone();
            let _faults = bench.flush(&name);
        }
        9 => bench.sync(),
        11 => {
            let store = bench.store().clone();
            let mut turn = store.turn();
            turn.flush_all();
            let _faults = turn.commit();
            store.flush_due();
        }
        14 if number % 32 == 30 => bench.store().checkpoint(),
        _ => {
            let _faults = bench.any_update();
        }
    }
}

/// After a cut: it opens by itself, what was synced is there, and it goes on.
fn survives(mut bench: Bench, least: usize, story: &str) {
    bench.reopen();
    no_damage(&bench, story);
    bench.judge(least, story);
}

/// Nothing was found that only a damaged disk explains.
fn no_damage(bench: &Bench, story: &str) {
    let mut notices = bench.replayed.notices.iter();
    let damage = notices.find(|notice| !notice.contains("the power failed when it was begun?"));
    assert_eq!(damage, None, "{story}");
}

#[test]
fn power_cut_with_every_fate_of_a_few_operations() {
    let mut cuts = 0;
    for seed in 0..2 {
        let mut bench = Bench::new(seed, 2);
        bench.open();
        for number in 0..70 {
            step(&mut bench, number);
            let pending = bench.disk.pending_len() as u32;
            if pending > 4 {
                continue;
            }
            for combination in 0..3_usize.pow(pending) {
                let cut = bench.fork();
                cut.disk.crash(
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
fn power_cut_at_every_operation() {
    let (mut lost, mut cuts) = (0, 0);
    for at in 1..330 {
        let mut bench = Bench::new(at, 3);
        let before = bench.disk.counts().operations;
        bench.disk.set_faults(Faults {
            power_off_at: Some(before + at),
            ..Faults::default()
        });
        if bench.try_open().is_ok() {
            for number in 0..200 {
                step(&mut bench, number);
                if bench.disk.counts().faults > 3 {
                    break;
                }
            }
        }
        cuts += u64::from(bench.disk.counts().faults > 0);
        bench.disk.crash_by_chance(at);
        lost += bench.disk.counts().lost_at_cut;
        let least = bench.synced;
        survives(bench, least, &format!("seed {at}, power off at {at}"));
    }
    assert!(cuts > 250 && lost > 300, "{cuts} {lost}");
}

#[test]
fn kill_at_every_step() {
    for seed in 0..6 {
        let mut bench = Bench::new(seed, 3);
        bench.open();
        for number in 0..90 {
            step(&mut bench, number);
            let mut killed = bench.fork();
            killed.disk.kill();
            killed.reopen();
            let all = killed.acked.len();
            killed.judge(all, &format!("seed {seed}, step {number}"));
        }
    }
}

/// Life after life on one disk, each ended by a kill or a power cut.
#[test]
fn many_lives() {
    let seeds = std::env::var("KYMO_SEEDS").ok();
    let seeds = seeds.and_then(|text| text.parse().ok()).unwrap_or(30);
    let mut lost = 0;
    for seed in 0..seeds {
        let mut bench = Bench::new(seed, 3);
        for life in 0..8 {
            let story = format!("seed {seed}, life {life}");
            bench.reopen();
            no_damage(&bench, &story);
            for number in 0..bench.random(60) {
                step(&mut bench, number);
            }
            let least = match bench.random(3) {
                0 => {
                    bench.disk.kill();
                    bench.acked.len()
                }
                _ => {
                    let chance = bench.random(u64::MAX);
                    bench.disk.crash_by_chance(chance);
                    bench.synced
                }
            };
            let mut look = bench.fork();
            look.reopen();
            look.judge(least, &story);
            // What was not synced may be gone or not: what is there decides.
            let kept = (least..=look.acked.len()).rev().find(|&k| {
                look.files.iter().all(|(name, before)| {
                    let acked = look.acked[..k].iter().filter(|acked| acked.name == *name);
                    let values: Vec<&[u8]> = acked.map(|acked| &acked.text[..]).collect();
                    common::oracle(before, &values) == look.bytes(name)
                })
            });
            bench.acked.truncate(kept.unwrap());
            bench.synced = bench.acked.len().min(least);
        }
        lost += bench.disk.counts().lost_at_cut;
    }
    assert!(lost > 10 * seeds, "{lost}");
}
