//! Power cuts, full disks, failed syncs, flipped bits: promised records are read back, wrong ones
//! never are, and the recorder resumes without help. Every fault is counted, so that no test
//! passes for lack of faults.

use crate::common::{Bench, Read, SECOND, START_NS, dir, read, tiny};
use kymo_base::random::next_random;
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_recording::writer::Options;
use kymo_recording::{fuzz, record};
use kymo_sys::disk::Disk;
use kymo_sys::sim_disk::{Fate, Faults, SimDisk};
use std::path::PathBuf;
use std::time::Duration;

/// A copy of the bench with a copy of its disk and without a writer.
fn fork(bench: &Bench) -> Bench {
    let mut copy = Bench::new(bench.random, bench.options.clone());
    copy.disk = bench.disk.fork();
    copy.clock = std::sync::Arc::new(kymo_sys::sim_clock::SimClock::new(bench.now()));
    copy.submitted = bench.submitted.clone();
    copy.acked = bench.acked.clone();
    copy.synced = bench.synced.clone();
    copy.ticks = bench.ticks;
    copy
}

/// Checks that after a power cut all synced records are readable, at once and after a restart.
fn survives(mut bench: Bench, story: &str) {
    if let Ok(found) = read(&bench.disk, &dir(), TimeRange::ALL, Kinds::ALL) {
        bench.judge(&found, &bench.synced, story);
    } else {
        assert!(bench.synced.is_empty(), "{story}");
    }
    let synced = bench.synced.clone();
    bench.acked.clear();
    bench.reboot();
    bench.open();
    let notices = bench.writer().take_notices();
    assert_eq!(notices, Vec::<String>::new(), "{story}");
    for _ in 0..12 {
        bench.sample();
        bench.tick();
    }
    assert_eq!(bench.acked.len(), 12, "{story}");
    let wanted: Vec<u64> = synced.iter().chain(&bench.acked).copied().collect();
    bench.judge(&bench.read(), &wanted, story);
    bench.writer.take().unwrap().close().unwrap();
    bench.judge(&bench.read(), &wanted, story);
}

#[test]
fn power_cut_with_every_fate_of_a_few_operations() {
    let mut cuts = 0;
    for seed in 0..3 {
        eprintln!("seed {seed}");
        let options = Options {
            sync_interval: Duration::from_secs(2),
            seal_bytes: 2048,
            ..tiny()
        };
        let mut bench = Bench::new(seed, options);
        bench.open();
        for _ in 0..40 {
            bench.sample();
            bench.tick();
            let pending = bench.disk.pending_len() as u32;
            if pending > 4 {
                continue;
            }
            for combination in 0..3_usize.pow(pending) {
                let cut = fork(&bench);
                cut.disk.crash(
                    &mut |number| match combination / 3_usize.pow(number as u32) % 3 {
                        0 => Fate::Keep,
                        1 => Fate::Drop,
                        _ => Fate::Torn(combination as u64),
                    },
                );
                cuts += 1;
                survives(cut, &format!("seed {seed}, fates {combination}"));
            }
        }
    }
    assert!(cuts > 300, "{cuts}");
}

#[test]
fn power_cut_at_every_operation() {
    let (mut lost, mut cuts) = (0, 0);
    for interval in [0, 3] {
        for at in 1..260 {
            let seed = at * 31 + interval;
            let options = Options {
                sync_interval: Duration::from_secs(interval),
                seal_bytes: 2048,
                ..tiny()
            };
            let mut bench = Bench::new(seed, options);
            bench.disk.set_faults(Faults {
                power_off_at: Some(at),
                ..Faults::default()
            });
            run_until_dark(&mut bench);
            cuts += u64::from(bench.disk.counts().faults > 0);
            bench.disk.crash_by_chance(seed);
            lost += bench.disk.counts().lost_at_cut;
            survives(bench, &format!("seed {seed}, power off at {at}"));
        }
    }
    assert!(cuts > 200 && lost > 300, "{cuts} {lost}");
}

/// Many recorders in turn on one disk, with kills, power cuts, full disks and failed syncs.
#[test]
fn many_faults_by_chance() {
    let seeds = kymo_sys::effort::effort(40);
    let (mut lost, mut faults) = (0, 0);
    for seed in 0..seeds {
        let mut bench = Bench::new(seed, tiny());
        for life in 0..6 {
            let story = format!("seed {seed}, life {life}");
            bench.open();
            let wrong = one_life(&mut bench);
            bench.judge(&bench.read(), &bench.acked, &story);
            match bench.random(3) {
                0 => bench.kill(),
                1 => drop(bench.writer.take().unwrap().close()),
                _ => {
                    let chance = bench.random(u64::MAX);
                    bench.disk.crash_by_chance(chance);
                    // A failed sync may have lost records that were acknowledged before it.
                    bench.acked = if wrong {
                        Vec::new()
                    } else {
                        bench.synced.clone()
                    };
                    bench.reboot();
                }
            }
            bench
                .synced
                .retain(|seq| bench.acked.binary_search(seq).is_ok());
            faults += bench.disk.counts().faults;
            bench.disk.set_faults(Faults::default());
            if let Ok(found) = read(&bench.disk, &dir(), TimeRange::ALL, Kinds::ALL) {
                bench.judge(&found, &bench.acked, &story);
            }
        }
        lost += bench.disk.counts().lost_at_cut;
        bench.acked.clear();
        bench.synced.clear();
        bench.reboot();
        survives(bench, &format!("seed {seed}, at last"));
    }
    assert!(lost > 2 * seeds && faults > seeds, "{lost} {faults}");
}

/// Runs one recorder; returns true if a write or a sync failed.
fn one_life(bench: &mut Bench) -> bool {
    let mut wrong = false;
    for _ in 0..1 + bench.random(4) {
        let counts = bench.disk.counts();
        let mut faults = Faults::default();
        match bench.random(5) {
            0 => {
                let from = counts.writes + bench.random(20);
                faults.full_writes = Some((from, from + bench.random(6)));
            }
            1 => faults.capacity_bytes = Some(bench.disk.allocated_bytes() + bench.random(20_000)),
            2 => faults.broken_sync = Some(counts.syncs + 1 + bench.random(8)),
            3 => faults.broken_write = Some(counts.writes + 1 + bench.random(20)),
            _ => {}
        }
        wrong |= faults.broken_sync.is_some() || faults.broken_write.is_some();
        bench.disk.set_faults(faults);
        for _ in 0..bench.random(60) {
            bench.sample();
            if bench.random(4) > 0 {
                bench.tick();
            }
        }
    }
    wrong
}

fn run_until_dark(bench: &mut Bench) {
    let Ok(writer) = bench.try_open() else {
        return;
    };
    bench.writer = Some(writer);
    for _ in 0..60 {
        bench.sample();
        let errors = bench.writer().counters().write_errors;
        if errors == 0 && bench.options.sync_interval.is_zero() {
            bench.synced = bench.acked.clone();
        }
        bench.tick();
        if bench.disk.counts().faults > 3 {
            return;
        }
    }
}

#[test]
fn full_disk_at_every_write() {
    let mut faults = 0;
    for (at, length) in (2..120).flat_map(|at| [(at, 1), (at, 4), (at, 9)]) {
        let mut bench = Bench::new(at, tiny());
        bench.disk.set_faults(Faults {
            full_writes: Some((at, at + length)),
            ..Faults::default()
        });
        bench.open();
        for _ in 0..150 {
            bench.sample();
            bench.tick();
        }
        let story = format!("seed {at}, full for writes {at} to {}", at + length);
        let happened = bench.disk.counts().faults;
        let counters = bench.writer().counters();
        faults += happened;
        assert!(happened == 0 || counters.write_errors > 0, "{story}");
        assert_eq!(
            counters.dropped_records + bench.acked.len() as u64,
            bench.submitted.len() as u64 + dropped_events(&bench),
            "{story}"
        );
        let last = *bench.submitted.keys().last().unwrap();
        assert_eq!(
            bench.acked.last(),
            Some(&last),
            "{story}: it did not resume"
        );
        bench.judge(&bench.read(), &bench.acked, &story);
        bench.writer.take().unwrap().close().unwrap();
        bench.judge(&bench.read(), &bench.acked, &story);
    }
    assert!(faults > 1000, "{faults}");
}

/// Dropped events of the writer itself, which have sequence numbers but are not in `submitted`.
fn dropped_events(bench: &Bench) -> u64 {
    let counters = bench.writer.as_ref().unwrap().counters();
    let samples_dropped = (bench.submitted.len() - bench.acked.len()) as u64;
    counters.dropped_records - samples_dropped
}

#[test]
fn a_disk_that_fills_up_and_is_emptied() {
    let mut bench = Bench::new(3, tiny());
    bench.open();
    for round in 0..7 {
        for _ in 0..60 {
            bench.sample();
            bench.tick();
        }
        let capacity_bytes = match round % 2 {
            0 => Some(bench.disk.allocated_bytes()),
            _ => None,
        };
        bench.disk.set_faults(Faults {
            capacity_bytes,
            ..Faults::default()
        });
    }
    assert!(bench.disk.counts().faults > 0);
    let found = bench.read();
    bench.judge(&found, &bench.acked, "seed 3");
    let last = *bench.submitted.keys().last().unwrap();
    assert_eq!(bench.acked.last(), Some(&last));
    assert!(
        found
            .events
            .iter()
            .any(|(_, text)| text.contains("cannot write")),
        "{:?}",
        found.events
    );
}

#[test]
fn a_sync_that_fails_once() {
    broken(&|at| Faults {
        broken_sync: Some(at),
        ..Faults::default()
    });
}

#[test]
fn a_write_that_fails_once() {
    broken(&|at| Faults {
        broken_write: Some(at),
        ..Faults::default()
    });
}

/// After a failure the file is not used again: all records acknowledged before the last good sync
/// survive even a power cut.
fn broken(faults: &dyn Fn(u64) -> Faults) {
    let (mut happened, mut renewals) = (0, 0);
    for at in 1..100 {
        let mut bench = Bench::new(at, tiny());
        bench.disk.set_faults(faults(at));
        let Ok(writer) = bench.try_open() else {
            continue;
        };
        bench.writer = Some(writer);
        for _ in 0..150 {
            bench.sample();
            bench.tick();
        }
        bench.clock.advance_ns(10 * SECOND);
        bench.tick();
        let story = format!("seed {at}, broken at {at}");
        happened += bench.disk.counts().faults;
        renewals += bench.writer().counters().tail_renewals;
        bench.judge(&bench.read(), &bench.acked, &story);
        assert!(
            bench.acked.len() > 130,
            "{story}: {:?}",
            bench.writer().counters()
        );
        let synced = bench.acked.clone();
        bench.disk.crash(&mut |_| Fate::Drop);
        bench.judge(&bench.read(), &synced, &story);
        bench.synced = synced;
        survives(bench, &story);
    }
    assert!(happened > 30 && renewals > 10, "{happened} {renewals}");
}

#[test]
fn slow_writes_delay_and_lose_nothing() {
    let mut bench = Bench::new(1, tiny());
    bench.open();
    bench.disk.set_faults(Faults {
        slow_write: Some((bench.clock.clone(), 5 * SECOND)),
        ..Faults::default()
    });
    let start = bench.now().mono_ns;
    for _ in 0..100 {
        bench.sample();
        bench.tick();
    }
    assert!(bench.now().mono_ns - start > 600 * SECOND);
    assert_eq!(bench.acked.len(), 100);
    bench.judge(&bench.read(), &bench.acked, "slow");
}

fn small(samples: usize) -> Bench {
    let options = Options {
        seal_bytes: 16 << 10,
        ..tiny()
    };
    let mut bench = Bench::new(7, options);
    bench.open();
    for _ in 0..samples {
        bench.sample();
    }
    bench
}

fn only_file(bench: &Bench, end: &str) -> PathBuf {
    let mut files = bench.disk.files().into_iter().map(|(path, _)| path);
    files
        .find(|path| path.to_str().unwrap().ends_with(end))
        .unwrap()
}

#[test]
fn every_byte_of_a_tail_flipped() {
    let bench = small(45);
    let path = only_file(&bench, "tail-A");
    let bytes = bench.disk.bytes(&path).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut lost_most = 0;
    for at in 0..used {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        bench.disk.set_bytes(&path, flipped);
        let found = bench.read();
        bench.judge(&found, &[], &format!("byte {at}"));
        let lost = 45 - found.samples.len();
        lost_most = lost_most.max(lost);
        // One key group is ten samples.
        assert!(lost <= 10, "byte {at}: {lost} lost, {:?}", found.gaps);
        let last_record_lost = lost == 1 && found.samples.last().unwrap().head.seq == 44;
        assert!(
            lost == 0 || last_record_lost || found.gaps.len() == 1,
            "byte {at}: {:?}",
            found.gaps
        );
    }
    assert!(lost_most > 5);
}

#[test]
fn every_byte_of_a_block_flipped() {
    let mut bench = small(45);
    bench.writer.take().unwrap().close().unwrap();
    let path = only_file(&bench, ".blk");
    let bytes = bench.disk.bytes(&path).unwrap();
    let (mut whole, mut by_kind, mut unread) = (0, 0, 0);
    for at in 0..bytes.len() {
        for bit in [1 << (at % 8), 0xff] {
            let mut flipped = bytes.clone();
            flipped[at] ^= bit;
            bench.disk.set_bytes(&path, flipped);
            let found = bench.read();
            match block_damage(&bench, &found, at) {
                Damage::None => unread += 1,
                Damage::Kind => by_kind += 1,
                Damage::Whole => whole += 1,
            }
        }
    }
    eprintln!(
        "{} bytes: unread {unread}, a kind {by_kind}, all {whole}",
        bytes.len()
    );
    assert!(by_kind > 100 && whole > 100);
}

enum Damage {
    None,
    Kind,
    Whole,
}

fn block_damage(bench: &Bench, found: &Read, at: usize) -> Damage {
    let kinds: Vec<u8> = found.gaps.iter().filter_map(|gap| gap.kind).collect();
    assert!(kinds.len() <= 1, "byte {at}");
    for sample in &found.samples {
        let mut whole = bench.submitted[&sample.head.seq].clone();
        whole.sections.retain(|section| !kinds.contains(&section.0));
        assert_eq!(*sample, whole, "byte {at}");
    }
    match (found.samples.len(), kinds.len()) {
        (45, 0) => Damage::None,
        (45, 1) => Damage::Kind,
        (0, 0) => {
            assert_eq!(found.gaps.len(), 1, "byte {at}");
            Damage::Whole
        }
        other => unreachable!("byte {at}: {other:?}"),
    }
}

#[test]
fn cut_at_every_byte() {
    for end in ["tail-A", ".blk"] {
        let mut bench = small(25);
        if end == ".blk" {
            bench.writer.take().unwrap().close().unwrap();
        }
        let path = only_file(&bench, end);
        let bytes = bench.disk.bytes(&path).unwrap();
        for length in 0..bytes.len() {
            bench.disk.set_bytes(&path, bytes[..length].to_vec());
            let found = bench.read();
            bench.judge(&found, &[], &format!("{end} cut at {length}"));
        }
    }
}

#[test]
fn hostile_files_do_no_harm() {
    let mut bench = small(25);
    let tail = bench.disk.bytes(&only_file(&bench, "tail-A")).unwrap();
    bench.writer.take().unwrap().close().unwrap();
    let block = bench.disk.bytes(&only_file(&bench, ".blk")).unwrap();
    let mut random = 11;
    eprintln!("seed {random}");
    for _ in 0..300 {
        let (mut tail, mut block) = (tail.clone(), block.clone());
        for _ in 0..1 + next_random(&mut random) % 8 {
            let at = next_random(&mut random) as usize;
            let byte = next_random(&mut random) as u8;
            let (tail_len, block_len) = (tail.len(), block.len());
            tail[at % tail_len] = byte;
            block[at % block_len] = byte;
        }
        fuzz::fuzz_tail(&tail);
        fuzz::fuzz_block(&block);
    }
    fuzz::fuzz_tail(&[]);
    fuzz::fuzz_block(&[]);
}

/// As above, but with checksums that match again, as only an attacker makes them.
#[test]
fn malicious_files_do_no_harm() {
    let mut bench = small(25);
    let tail = bench.disk.bytes(&only_file(&bench, "tail-A")).unwrap();
    bench.writer.take().unwrap().close().unwrap();
    let block = bench.disk.bytes(&only_file(&bench, ".blk")).unwrap();
    let mut random = 12;
    eprintln!("seed {random}");
    for _ in 0..2000 {
        let (mut tail, mut block) = (tail.clone(), block.clone());
        let index = u64_at(&block, block.len() - 32) as usize;
        spoil(&mut block[index..], &mut random);
        let end = block.len() - 12;
        let crc = crc32c::crc32c(&block[index..end]);
        block[end..end + 4].copy_from_slice(&crc.to_le_bytes());
        spoil(&mut tail[16..64], &mut random);
        let crc = crc32c::crc32c(&tail[16..64]);
        tail[12..16].copy_from_slice(&crc.to_le_bytes());
        let length = u64_at(&tail, 8192) as u32 as usize;
        let epoch = u64_at(&tail, 16);
        let seq = u64_at(&tail, 24);
        spoil(&mut tail[8192 + 16..8192 + length], &mut random);
        record::seal(&mut tail[8192..8192 + length], epoch, seq);
        fuzz::fuzz_tail(&tail);
        fuzz::fuzz_block(&block);
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn spoil(bytes: &mut [u8], random: &mut u64) {
    for _ in 0..next_random(random) % 4 {
        let at = next_random(random) as usize % (bytes.len() - 12);
        let value = match next_random(random) % 4 {
            0 => u64::MAX,
            1 => 0,
            2 => next_random(random) % (1 << 27),
            _ => next_random(random),
        };
        let width = 1 << (next_random(random) % 4);
        bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }
}

/// A tail with many candidates, each as long as the file, must not make the search quadratic.
#[test]
fn a_tail_made_to_be_slow_is_not() {
    let bench = small(3);
    let mut tail = bench.disk.bytes(&only_file(&bench, "tail-A")).unwrap();
    tail.resize(4 << 20, 0);
    let mut fake = Vec::new();
    record::push_event(&mut fake, bench.now(), "");
    for at in (12 << 10..tail.len() - 64).step_by(56) {
        fake[0..4].copy_from_slice(&((tail.len() - at - 48) as u32 & !7).to_le_bytes());
        fake[8..16].copy_from_slice(&9u64.to_le_bytes());
        tail[at..at + 48].copy_from_slice(&fake[..48]);
    }
    let start = std::time::Instant::now();
    fuzz::fuzz_tail(&tail);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn the_cap_holds_at_every_instant() {
    for seed in 0..2 {
        eprintln!("seed {seed}");
        let options = Options {
            cap_bytes: 128 << 10,
            tail_bytes: 16 << 10,
            seal_bytes: 8 << 10,
            ..tiny()
        };
        let cap = options.cap_bytes;
        let mut bench = Bench::new(seed, options);
        bench.open();
        while bench.writer().counters().record_bytes < 100 * cap {
            bench.sample();
            while bench.submitted.len() > 20_000 {
                bench.submitted.pop_first();
            }
        }
        let newest = bench.acked.split_off(bench.acked.len() - 200);
        let counters = bench.writer().counters();
        assert!(counters.unlinks > 100, "{counters:?}");
        assert_eq!(counters.dropped_records, 0, "{counters:?}");
        let most = bench.disk.counts().allocated_bytes_max;
        assert!(most <= cap && most > cap * 3 / 4, "{most} of {cap}");
        let found = bench.read();
        assert_eq!(found.gaps, []);
        assert!(found.samples.len() > 200, "{}", found.samples.len());
        bench.judge(&found, &newest, "at the cap");
    }
}

#[test]
fn records_too_large_for_the_cap_are_dropped_and_the_rest_goes_on() {
    let options = Options {
        cap_bytes: 128 << 10,
        ..tiny()
    };
    let mut bench = Bench::new(1, options);
    bench.open();
    bench.sample();
    for size in [
        100usize,
        20 << 10,
        30 << 10,
        40 << 10,
        20 << 10,
        1 << 20,
        100,
    ] {
        bench.clock.advance_ns(SECOND);
        let mut batch = Vec::new();
        let head = record::Head::sample(bench.now(), true, 0);
        let sections = vec![(1, 1, noise(size))];
        crate::common::push(&mut batch, &head, &sections);
        let content = crate::common::RecordContent {
            head,
            sections,
            text: String::new(),
        };
        bench.submit(batch, vec![content]);
    }
    for _ in 0..50 {
        bench.sample();
    }
    assert_eq!(
        bench.writer().counters().dropped_records,
        3 + dropped_events(&bench)
    );
    assert!(bench.disk.counts().allocated_bytes_max <= 128 << 10);
    bench.judge(&bench.read(), &bench.acked[30..], "large");
}

fn noise(size: usize) -> Vec<u8> {
    let mut random = 5;
    (0..size).map(|_| next_random(&mut random) as u8).collect()
}

#[test]
fn tails_of_dead_boots_are_sealed_and_empty_folders_go() {
    let options = Options {
        cap_bytes: 128 << 10,
        ..tiny()
    };
    let mut bench = Bench::new(2, options);
    for boot in 0..6 {
        bench.open();
        for _ in 0..25 {
            bench.sample();
        }
        if boot % 2 == 0 {
            bench.kill();
        } else {
            bench.disk.crash(&mut |_| Fate::Keep);
        }
        bench.judge(&bench.read(), &bench.acked, "before restart");
        bench.reboot();
    }
    bench.open();
    let tails = bench.disk.files().into_iter().map(|(path, _)| path);
    let tails: Vec<PathBuf> = tails
        .filter(|path| path.to_str().unwrap().contains("tail"))
        .collect();
    assert_eq!(tails, Vec::<PathBuf>::new());
    bench.judge(&bench.read(), &bench.acked, "after restart");
    for _ in 0..5000 {
        bench.sample();
    }
    let mut folders = 0;
    bench.disk.list(&dir(), &mut |_, _| folders += 1).unwrap();
    assert_eq!(folders, 2, "the lock and the folder of this boot");
}

#[test]
fn a_start_on_a_full_disk_keeps_what_is_there_and_goes_on_later() {
    for same_boot in [true, false] {
        let mut bench = Bench::new(4, tiny());
        bench.open();
        for _ in 0..100 {
            bench.sample();
        }
        bench.kill();
        if !same_boot {
            bench.reboot();
        }
        bench.disk.set_faults(Faults {
            full_writes: Some((0, u64::MAX)),
            ..Faults::default()
        });
        bench.open();
        for _ in 0..50 {
            bench.sample();
            bench.tick();
            bench.judge(&bench.read(), &bench.acked, "full");
        }
        assert_eq!(bench.acked.len(), 100);
        assert!(bench.disk.counts().faults > 3);
        bench.disk.set_faults(Faults::default());
        for _ in 0..50 {
            bench.sample();
            bench.tick();
        }
        assert!(bench.acked.len() > 130, "{}", bench.acked.len());
        bench.judge(&bench.read(), &bench.acked, "room again");
    }
}

#[test]
fn kill_and_start_again_in_the_same_boot() {
    for seed in 0..10 {
        eprintln!("seed {seed}");
        let mut bench = Bench::new(seed, tiny());
        for _ in 0..12 {
            bench.open();
            for _ in 0..bench.random(30) {
                bench.sample();
            }
            bench.kill();
            bench.judge(&bench.read(), &bench.acked, "killed");
        }
        bench.open();
        let found = bench.read();
        bench.judge(&found, &bench.acked, "started");
        assert_eq!(found.gaps, []);
    }
}

#[test]
fn wall_clock_steps_lose_nothing() {
    let day = 86_400 * SECOND as i64;
    for step in [
        -day / 2,
        -(SECOND as i64),
        3650 * day,
        -START_NS,
        i64::MIN,
        i64::MAX,
    ] {
        let options = Options {
            keep: Some(Duration::from_secs(7 * 86_400)),
            ..tiny()
        };
        let mut bench = Bench::new(1, options);
        bench.open();
        for round in 0..400 {
            bench.sample();
            bench.tick();
            match round {
                150 => bench.clock.step_wall_ns(step),
                250 => bench.clock.step_wall_ns(step.saturating_neg()),
                350 => bench.clock.suspend_ns(8 * 3600 * SECOND),
                _ => {}
            }
        }
        assert_eq!(bench.acked.len(), 400);
        assert_eq!(bench.writer().counters().unlinks, 0);
        bench.judge(&bench.read(), &bench.acked, &format!("step {step}"));
    }
}

#[test]
fn keep_removes_what_is_old() {
    let options = Options {
        keep: Some(Duration::from_secs(300)),
        ..tiny()
    };
    let mut bench = Bench::new(1, options);
    bench.open();
    for _ in 0..2000 {
        bench.sample();
    }
    let found = bench.read();
    let first = found.samples[0].head.seq;
    assert!((1500..=1700).contains(&first), "{first}");
    assert!(bench.writer().counters().unlinks > 10);
}

#[test]
fn a_fork_of_the_disk_is_its_own() {
    let disk = SimDisk::new(1);
    let copy = disk.fork();
    copy.create_dir_all(&dir()).unwrap();
    assert!(disk.name_kind(&dir()).is_err());
}
