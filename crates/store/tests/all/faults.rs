//! Kills, power cuts, full disks, failed syncs: the .rrd files hold every promised value, bit for bit, and no others. Each test
//! counts its faults, so that none passes without faults.

use crate::common::{Bench, SECOND};
use kymo_rrd::Rrd;
use kymo_store::{Files, Fresh, Position};
use kymo_sys::sim_disk::{Fate, Faults};
use std::time::Duration;

/// One step of a script of values, flushes, FORGETs, due files, syncs, checkpoints and maintenance, with occasional jumps of
/// the wall clock.
fn step(bench: &mut Bench, number: u64) {
    bench.clock.advance_ns(SECOND / 2);
    if number % 8 == 3 {
        let days = bench.random(800) as i64 - 400;
        bench.clock.step_wall_ns(days * 86_400 * SECOND as i64);
    }
    match number % 16 {
        5 => {
            let at = bench.random(bench.files.len() as u64) as usize;
            let name = bench.files[at].0.clone();
            let _faults = bench.flush(&name);
        }
        9 => bench.sync(),
        // FORGET after a flush has no pending value to lose.
        13 => {
            let at = bench.random(bench.files.len() as u64) as usize;
            let name = bench.files[at].0.clone();
            if bench.flush(&name).is_ok() {
                let mut batch = bench.store().write_batch();
                batch.forget(name.as_bytes());
                let _faults = batch.commit();
            }
        }
        11 => {
            let store = bench.store().clone();
            let mut batch = store.write_batch();
            batch.flush_all();
            let _faults = batch.commit();
            store.flush_due();
        }
        14 if number % 32 == 30 => bench.store().checkpoint(),
        // Periodic work of the threads: saves chunks, merges segments.
        7 | 15 => drop(bench.store().maintain()),
        _ => {
            let _faults = bench.any_update();
        }
    }
}

/// Opens the store after a cut: it reports no damage and has the first `least` values.
fn survives(mut bench: Bench, least: usize, story: &str) {
    bench.reopen();
    no_damage(&bench, story);
    bench.judge(least, story);
}

/// Checks that the start reported only faults that a power cut explains.
fn no_damage(bench: &Bench, story: &str) {
    let mut notices = bench.replayed.notices.iter();
    let power = ["the power failed when it was begun?", "did the power fail?"];
    let damage = notices.find(|notice| !power.iter().any(|text| notice.contains(text)));
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

/// Several lives on one disk, each ended by a kill or a power cut.
#[test]
fn many_lives() {
    let seeds = kymo_sys::effort::effort(30);
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
            // Values without a sync may be lost: the files show how many are left.
            let kept = (least..=look.acked.len()).rev().find(|&k| {
                look.files.iter().all(|(name, before)| {
                    let acked = look.acked[..k].iter().filter(|acked| acked.name == *name);
                    let values: Vec<&[u8]> = acked.map(|acked| &acked.text[..]).collect();
                    crate::common::oracle(before, &values) == look.bytes(name)
                })
            });
            bench.acked.truncate(kept.unwrap());
            bench.synced = bench.acked.len().min(least);
        }
        lost += bench.disk.counts().lost_at_cut;
    }
    assert!(lost > 10 * seeds, "{lost}");
}

/// A full disk refuses a batch as a whole, without effect; updates work again once there is room.
#[test]
fn full_at_every_write() {
    let (mut refused, mut faults) = (0, 0);
    for (at, length) in (1..120).flat_map(|at| [(at, 1), (at, 3), (at, 40)]) {
        let mut bench = Bench::new(at, 3);
        bench.open();
        let before = bench.disk.counts();
        let from = before.writes + at;
        bench.disk.set_faults(Faults {
            full_writes: Some((from, from + length)),
            ..Faults::default()
        });
        let story = format!("full for writes {at} to {}", at + length);
        for number in 0..120 {
            let (acked, pending) = (bench.acked.len(), pending(&bench));
            step(&mut bench, number);
            let is_update = ![5, 7, 9, 11, 13, 14, 15].contains(&(number % 16));
            if is_update && bench.acked.len() == acked {
                refused += 1;
                assert_eq!(self::pending(&bench), pending, "{story}, step {number}");
            }
        }
        let happened = bench.disk.counts().faults - before.faults;
        faults += happened;
        bench.disk.set_faults(Faults::default());
        bench
            .any_update()
            .unwrap_or_else(|error| panic!("{story}: {error}"));
        let all = bench.acked.len();
        let mut killed = bench.fork();
        bench.judge(all, &story);
        killed.disk.kill();
        killed.reopen();
        killed.judge(all, &format!("{story}, killed"));
    }
    assert!(refused > 300 && faults > 1000, "{refused} {faults}");
}

/// A read never depends on a write: FETCH once failed on values in memory because the journal was full.
#[test]
fn a_full_disk_can_be_read() {
    for files in [Files::After(Duration::from_secs(86_400)), Files::Never] {
        let mut bench = Bench::new(7, 3);
        bench.settings.files = files;
        bench.open();
        if files == Files::Never {
            for (name, bytes) in &bench.files {
                let rrd = kymo_rrd::Rrd::parse(bytes).unwrap();
                bench.store().install(name.as_bytes(), &rrd, true).unwrap();
            }
        }
        let name = "f0.rrd";
        bench.now_s += 10;
        let value = format!("{}:5", bench.now_s);
        bench.update(name, &[&value]).unwrap();
        let full = Faults {
            full_writes: Some((0, u64::MAX)),
            ..Faults::default()
        };
        // The second round starts the store on the full disk.
        for _ in 0..2 {
            bench.disk.set_faults(full.clone());
            let story = format!("{files:?}");
            let refused = bench.update(name, &[&format!("{}:6", bench.now_s + 1)]);
            assert!(refused.is_err(), "{story}");
            assert_eq!(pending(&bench)[0], [value.as_bytes()], "{story}");
            let as_is = bench.store().read(name.as_bytes(), Fresh::AsIs);
            assert!(as_is.unwrap().header.last_up < bench.now_s, "{story}");
            let range = (bench.now_s - 20, bench.now_s + 20);
            let rows = bench.store().fetch(name.as_bytes(), b"AVERAGE", range);
            let rows = rows.unwrap_or_else(|error| panic!("{story}: {error:?}"));
            assert!(rows.rows.contains(&5.0), "{story}: {:?}", rows.rows);
            let whole = bench.store().load(name.as_bytes()).unwrap();
            assert_eq!(whole.header.last_up, bench.now_s, "{story}");
            assert_eq!(pending(&bench)[0], Vec::<Vec<u8>>::new(), "{story}");
            bench.disk.kill();
            bench.reopen();
        }
        bench.disk.set_faults(Faults::default());
        bench.clock.advance_ns(60 * SECOND);
        bench.any_update().unwrap();
    }
}

fn pending(bench: &Bench) -> Vec<Vec<Vec<u8>>> {
    let batch = bench.store().write_batch();
    let pending = bench.files.iter().map(|(name, _)| {
        let mut texts = Vec::new();
        batch.pending(name.as_bytes(), &mut |text| texts.push(text.to_vec()));
        texts
    });
    pending.collect()
}

/// After a failed write or sync the store never trusts that journal file again, and loses nothing while the process lives.
#[test]
fn broken_once() {
    let (mut given_up, mut refused) = (0, 0);
    for at in 1..100 {
        for sync in [false, true] {
            let mut bench = Bench::new(at, 3);
            bench.open();
            let before = bench.disk.counts();
            bench.disk.set_faults(Faults {
                broken_write: (!sync).then_some(before.writes + at),
                broken_sync: sync.then_some(before.syncs + at),
                ..Faults::default()
            });
            let story = format!("broken at {at}, sync {sync}");
            for number in 0..160 {
                let acked = bench.acked.len();
                step(&mut bench, number);
                let is_update = ![5, 7, 9, 11, 13, 14, 15].contains(&(number % 16));
                refused += u64::from(is_update && acked == bench.acked.len());
            }
            given_up += bench.store().write_batch().stats().journals_given_up;
            bench.disk.set_faults(Faults::default());
            bench.store().durable(Position(u64::MAX)).unwrap();
            let all = bench.acked.len();
            for how in 0..2 {
                let mut after = bench.fork();
                match how {
                    0 => after.disk.kill(),
                    _ => after.disk.crash(&mut |_| Fate::Drop),
                }
                after.reopen();
                after.judge(all, &format!("{story}, ended by {how}"));
            }
            bench.judge(all, &story);
        }
    }
    assert!(given_up > 60 && refused > 20, "{given_up} {refused}");
}

/// SEASONAL archives change in place, so a redo must begin with their former state.
#[test]
fn power_cut_with_seasons() {
    let definitions: [&[u8]; 3] = [
        b"DS:x:GAUGE:60:U:U",
        b"RRA:AVERAGE:0.5:1:9",
        b"RRA:HWPREDICT:250:0.1:0.0035:200",
    ];
    // Both series share a chunk, but are smoothed at different rows.
    let made = ["hw.rrd", "another.rrd"].map(|name| {
        let create = kymo_rrd::create::Create {
            file_name: name.as_bytes(),
            step: 10,
            start: Some(crate::common::START),
            definitions: &definitions,
        };
        let rrd =
            kymo_rrd::create::create(&create, crate::common::START, &mut 1, None, &[]).unwrap();
        (name, rrd.to_bytes())
    });
    let (mut redone, mut cuts) = (0, 0);
    for at in 1..220 {
        let mut bench = Bench::new(at, 1);
        for (name, bytes) in &made {
            let path = crate::common::base().join(name);
            bench.disk.set_bytes(&path, bytes.clone());
            bench.files.push((name.to_string(), bytes.clone()));
        }
        let before = bench.disk.counts().operations;
        bench.disk.set_faults(Faults {
            power_off_at: Some(before + at),
            ..Faults::default()
        });
        if bench.try_open().is_ok() {
            for number in 0..110 {
                step(&mut bench, number);
                if bench.disk.counts().faults > 3 {
                    break;
                }
            }
        }
        cuts += u64::from(bench.disk.counts().faults > 0);
        bench.disk.crash_by_chance(at);
        bench.reopen();
        redone += bench.replayed.redone;
        bench.judge(bench.synced, &format!("power off at {at}"));
    }
    assert!(redone > 60 && cuts > 150, "{redone} {cuts}");
}

/// A start recreates a file that CREATE made and a cut tore or lost, with every promised value.
#[test]
fn power_cut_after_create() {
    let (mut made, mut redone) = (0, 0);
    for at in 1..200 {
        let mut bench = Bench::new(at, 1);
        let new = crate::common::rrd(b"GAUGE");
        let before = bench.disk.counts().operations;
        bench.disk.set_faults(Faults {
            power_off_at: Some(before + at),
            ..Faults::default()
        });
        if bench.try_open().is_ok() {
            for number in 0..110 {
                if number == 3 {
                    let store = bench.store().clone();
                    let installed = store.install(b"new.rrd", &new, false).is_ok();
                    if installed && store.durable(Position(u64::MAX)).is_ok() {
                        bench.files.push(("new.rrd".into(), new.to_bytes()));
                    }
                }
                step(&mut bench, number);
                if bench.disk.counts().faults > 3 {
                    break;
                }
            }
        }
        bench.disk.crash_by_chance(at);
        bench.reopen();
        made += usize::from(bench.files.len() == 2);
        redone += bench.replayed.redone;
        bench.judge(bench.synced, &format!("power off at {at}"));
    }
    assert!(made > 100 && redone > 60, "{made} {redone}");
}

/// Another program tunes a file that lacks recent values, and the power fails while the store merges this edit.
#[test]
fn power_cut_while_edits_are_merged() {
    use kymo_sys::disk::{Disk, OpenMode};
    let (mut cuts, mut torn) = (0, 0);
    for at in 1..60 {
        let mut bench = Bench::new(at, 1);
        bench.open();
        let name = bench.files[0].0.clone();
        let values: Vec<String> = (1..30)
            .map(|i| format!("{}:{i}", crate::common::START + 10 * i))
            .collect();
        for (i, value) in values.iter().enumerate() {
            bench.update(&name, &[value]).unwrap();
            if i == 9 {
                bench.flush(&name).unwrap();
                if at % 2 == 0 {
                    bench.store().checkpoint();
                }
            }
        }
        bench.clock.advance_ns(7 * 3600 * SECOND);
        bench.store().maintain();
        bench.sync();
        bench
            .disk
            .sync_file_system(std::path::Path::new("/db"))
            .unwrap();
        let edit = |bytes: &[u8]| {
            let mut rrd = kymo_rrd::Rrd::parse(bytes).unwrap();
            rrd.header.ds[0].par[2] = 20f64.to_bits();
            rrd.to_bytes()
        };
        let file = bench
            .disk
            .open(&crate::common::base().join(&name), OpenMode::Write);
        let file = file.unwrap();
        file.write_at(&edit(&bench.bytes(&name)), 0).unwrap();
        file.sync_data().unwrap();
        drop(file);
        let before = bench.disk.counts();
        bench.disk.set_faults(Faults {
            power_off_at: Some(before.operations + at / 2),
            ..Faults::default()
        });
        let _faults = bench.flush(&name);
        cuts += u64::from(bench.disk.counts().faults > before.faults);
        bench.disk.set_faults(Faults::default());
        bench.disk.crash_by_chance(at);
        bench.reopen();
        no_damage(&bench, &format!("cut at {at}"));
        torn += bench.replayed.files;
        bench.flush(&name).unwrap();
        bench.update(&name, &["1000000300:7"]).unwrap();
        bench.update(&name, &["1000000310:77"]).unwrap();
        bench.flush(&name).unwrap();
        let texts: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let tuned = edit(&crate::common::oracle(&bench.files[0].1, &texts));
        let expected = crate::common::oracle(&tuned, &[b"1000000300:7", b"1000000310:77"]);
        assert!(bench.bytes(&name) == expected, "cut at {at}");
    }
    assert!(cuts > 10 && torn > 10, "{cuts} {torn}");
}

/// The power fails while the store tunes a file with two names in place.
#[test]
fn power_cut_while_a_file_with_two_names_is_tuned() {
    let (mut cuts, mut before, mut after) = (0, 0, 0);
    for at in 1..80 {
        let mut bench = Bench::new(at, 1);
        bench.open();
        let name = bench.files[0].0.clone();
        let base = crate::common::base();
        bench
            .disk
            .hard_link(&base.join(&name), &base.join("other.rrd"));
        let values = ["1000000010:1", "1000000020:2", "1000000030:3"];
        bench.update(&name, &values).unwrap();
        bench.flush(&name).unwrap();
        bench.store().checkpoint();
        bench.sync();
        let edit = |mut rrd: kymo_rrd::Rrd| {
            // A change of one byte, which a cut cannot tear.
            rrd.header.ds[0].par[0] = 15;
            Ok(rrd)
        };
        let counts = bench.disk.counts();
        bench.disk.set_faults(Faults {
            power_off_at: Some(counts.operations + at / 4),
            ..Faults::default()
        });
        let tuned = bench.store().rewrite(name.as_bytes(), &mut { edit });
        cuts += u64::from(bench.disk.counts().faults > counts.faults);
        bench.disk.set_faults(Faults::default());
        bench.disk.crash_by_chance(at);
        bench.reopen();
        no_damage(&bench, &format!("cut at {at}"));
        bench.update(&name, &["1000000060:77"]).unwrap();
        bench.flush(&name).unwrap();
        let texts: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let old = crate::common::oracle(&bench.files[0].1, &texts);
        let new = edit(kymo_rrd::Rrd::parse(&old).unwrap())
            .unwrap()
            .to_bytes();
        let [old, new] = [old, new].map(|bytes| crate::common::oracle(&bytes, &[b"1000000060:77"]));
        let bytes = bench.bytes(&name);
        assert_eq!(bytes, bench.bytes("other.rrd"));
        assert!(
            bytes == new || bytes == old && tuned.is_err(),
            "cut at {at}, {tuned:?}"
        );
        before += u64::from(bytes == old);
        after += u64::from(bytes == new);
    }
    assert!(
        cuts > 20 && before > 5 && after > 5,
        "{cuts} {before} {after}"
    );
}

/// A write fails after an earlier one has ended. The earlier write once counted as on the disk although no checkpoint had
/// followed, and was not repeated after a power cut.
#[test]
fn power_cut_after_a_write_that_failed() {
    let (mut failed, mut lost) = (0, 0);
    for seed in 0..60 {
        let mut bench = Bench::new(seed, 1);
        bench.open();
        let name = bench.files[0].0.clone();
        let send = |bench: &mut Bench, from: i64, to: i64| {
            for at in from..to {
                let value = format!("{}:{at}", crate::common::START + 10 * at);
                bench.update(&name, &[&value]).unwrap();
            }
        };
        send(&mut bench, 1, 4);
        bench.flush("f0.rrd").unwrap();
        send(&mut bench, 4, 6);
        let before = bench.disk.counts();
        bench.disk.set_faults(Faults {
            // The first write puts START into the journal.
            broken_write: Some(before.writes + 1 + seed % 3),
            ..Faults::default()
        });
        failed += u64::from(bench.flush("f0.rrd").is_err());
        bench.disk.set_faults(Faults::default());
        bench.store().maintain();
        bench.sync();
        bench.disk.crash_by_chance(seed);
        lost += bench.disk.counts().lost_at_cut;
        let least = bench.synced;
        survives(bench, least, &format!("seed {seed}"));
    }
    assert!(failed > 20 && lost > 20, "{failed} {lost}");
}

/// A power cut tears the new file of a series that had none. The start once restored the file's rows but not its definitions.
#[test]
fn power_cut_after_a_series_without_a_file_got_one() {
    let (mut redone, mut lost) = (0, 0);
    for seed in 0..200 {
        let mut bench = Bench::new(seed, 0);
        let files = std::mem::replace(&mut bench.settings.files, Files::Never);
        bench.open();
        let new = crate::common::rrd(b"GAUGE");
        bench.store().install(b"new.rrd", &new, true).unwrap();
        bench.files.push(("new.rrd".into(), new.to_bytes()));
        for at in 1..6 {
            let value = format!("{}:{at}", crate::common::START + 10 * at);
            bench.update("new.rrd", &[&value]).unwrap();
        }
        bench.store().maintain();
        bench.store().checkpoint();
        bench.settings.files = files;
        bench.reopen();
        bench.flush("new.rrd").unwrap();
        bench.sync();
        bench.disk.crash_by_chance(seed);
        lost += bench.disk.counts().lost_at_cut;
        let least = bench.synced;
        bench.reopen();
        redone += bench.replayed.redone;
        no_damage(&bench, &format!("seed {seed}"));
        bench.judge(least, &format!("seed {seed}"));
    }
    assert!(redone > 20 && lost > 20, "{redone} {lost}");
}

/// CREATE replaces a file whose rows were on the disk: a power cut leaves the new or the old file, not a torn one.
#[test]
fn power_cut_after_create_replaced_a_file() {
    let mut lost = 0;
    for seed in 0..60 {
        let mut bench = Bench::new(seed, 1);
        bench.open();
        for _ in 0..12 {
            bench.any_update().unwrap();
        }
        let name = bench.files[0].0.clone();
        bench.flush(&name).unwrap();
        bench.sync();
        let new = crate::common::rrd(b"GAUGE");
        bench.store().install(name.as_bytes(), &new, true).unwrap();
        bench.store = None;
        bench.disk.crash_by_chance(seed);
        lost += bench.disk.counts().lost_at_cut;
        let all = bench.disk.files().into_iter();
        let files = all.filter(|(path, _)| path.extension().is_some_and(|end| end == "rrd"));
        let files: Vec<_> = files.map(|(path, _)| path).collect();
        assert_eq!(files.len(), 1, "seed {seed}");
        let bytes = bench.disk.bytes(&files[0]).unwrap();
        assert!(Rrd::parse(&bytes).is_ok(), "seed {seed}: a torn file");
        bench.reopen();
        no_damage(&bench, &format!("seed {seed}"));
    }
    assert!(lost > 20, "{lost}");
}

/// A start recreates files that a crash cut short, and a power cut loses the END that names them. Torn files under known names
/// once counted as files of other programs.
#[test]
fn power_cut_after_files_were_made_again() {
    let (mut redone, mut lost) = (0, 0);
    for seed in 0..60 {
        let mut bench = Bench::new(seed, 0);
        bench.open();
        for i in 0..4 {
            let (name, new) = (format!("new{i}.rrd"), crate::common::rrd(b"GAUGE"));
            bench.store().install(name.as_bytes(), &new, false).unwrap();
            bench.files.push((name, new.to_bytes()));
        }
        for _ in 0..12 {
            bench.any_update().unwrap();
        }
        for (name, _) in &bench.files {
            bench.flush(name).unwrap();
        }
        bench.sync();
        // Each start recreates them, as no checkpoint has settled them.
        for _ in 0..=seed % 2 {
            bench.disk.kill();
            bench.reopen();
            redone += bench.replayed.redone;
        }
        bench.store = None;
        bench.disk.crash_by_chance(seed);
        lost += bench.disk.counts().lost_at_cut;
        let least = bench.synced;
        survives(bench, least, &format!("seed {seed}"));
    }
    assert!(redone > 200 && lost > 100, "{redone} {lost}");
}
