//! The tail: definitions before values, invalid positions, the cap and missed values beyond it, removed series.

use crate::common::SECOND;
use crate::common::follower::{Follower, NAME, Told, labels};
use kymo_store::{
    Missed, Point, PointsKind, PointsSchema, Position, TailError, TailFrom, TailSink as _,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// A store with some files and point series, whose values are all on the disk, and a registered tail.
fn filled(seed: u64, steps: u64) -> Follower {
    let mut follower = Follower::new(seed, 2, 3);
    follower.bench.open();
    follower.open().unwrap();
    for number in 0..steps {
        follower.bench.clock.advance_ns(SECOND);
        follower.send();
        if number % 10 == 9 {
            follower.bench.store().maintain();
        }
    }
    follower.sync();
    follower
}

#[test]
fn all_values_come_in_their_order_wherever_a_reader_begins() {
    let mut follower = filled(1, 400);
    follower.read(u64::MAX).unwrap();
    follower.judge(follower.accepted.len(), "at once");
    assert_eq!(
        follower.told.count,
        follower.accepted.len() as u64,
        "each once"
    );
    // Reads small pieces, each with a new reader.
    let store = follower.bench.store().clone();
    let (mut position, mut told, mut readers) = (TailFrom::Oldest, Told::default(), 0);
    loop {
        let mut reader = store.tail(None, position).unwrap();
        let before = reader.position();
        told.names.clear();
        reader.read(700, &mut told).unwrap();
        if reader.position() == before {
            break;
        }
        position = TailFrom::Position(reader.position());
        readers += 1;
    }
    assert!(readers > 5, "{readers}");
    assert_eq!(told.values, follower.told.values);
    assert!(told.missed.is_empty());
    let mut now = store.tail(None, TailFrom::Now).unwrap();
    let mut nothing = Told::default();
    now.read(u64::MAX, &mut nothing).unwrap();
    assert_eq!(nothing.count, 0);
    assert!(!now.wait(Duration::ZERO));
}

#[test]
fn what_is_not_on_the_disk_is_not_given() {
    let mut follower = filled(2, 20);
    follower.read(u64::MAX).unwrap();
    let before = follower.told.count;
    let count = follower.accepted.len();
    follower.send();
    assert!(follower.accepted.len() > count);
    follower.read(u64::MAX).unwrap();
    assert_eq!(follower.told.count, before);
    let store = follower.bench.store().clone();
    let reader = follower.reader.take().unwrap();
    let waits = std::thread::spawn(move || (reader.wait(Duration::from_secs(600)), reader));
    store.durable(Position(u64::MAX)).unwrap();
    let (has_more, reader) = waits.join().unwrap();
    assert!(has_more);
    follower.reader = Some(reader);
    follower.read(u64::MAX).unwrap();
    assert!(follower.told.count > before);
    // A waiting reader returns when the store ends its tails.
    let reader = follower.reader.take().unwrap();
    let waits = std::thread::spawn(move || reader.wait(Duration::from_secs(600)));
    store.end_waiting_tails();
    assert!(!waits.join().unwrap());
}

#[test]
fn definitions_say_what_a_series_is() {
    let mut follower = filled(3, 60);
    follower.read(u64::MAX).unwrap();
    let of = |name: &[u8]| {
        let defined = &follower.told.defined;
        let found = defined.iter().find(|series| series.known.name == name);
        found.unwrap().clone()
    };
    let file = of(b"f1.rrd");
    assert_eq!((file.known.points, file.heartbeat_s), (None, 60));
    assert_eq!(
        (file.known.columns.step, &file.known.columns.columns[0]),
        (10, &(b"x".to_vec(), b"COUNTER".to_vec()))
    );
    let points = of(labels("p0").text());
    assert_eq!(
        points.known.points.map(|(_, kind)| kind),
        Some(PointsKind::Gauge)
    );
    assert_eq!((points.heartbeat_s, points.known.columns.step), (60, 10));
}

/// A position beyond the end or within a record is an error; one before the oldest record gives a missed range. None
/// gives garbage.
#[test]
fn positions_that_are_none() {
    let mut follower = filled(4, 400);
    let store = follower.bench.store().clone();
    let end = store.tail(None, TailFrom::Now).unwrap().position().0;
    for position in [end + 1, end + (1 << 40), u64::MAX] {
        let from = TailFrom::Position(Position(position));
        for name in [None, Some(NAME), Some("new")] {
            let refused = store.tail(name, from).err().unwrap();
            assert!(matches!(refused, TailError::Beyond { .. }), "{refused:?}");
        }
    }
    let mut reader = store.tail(None, TailFrom::Oldest).unwrap();
    let (mut starts, mut told) = (BTreeSet::new(), Told::default());
    while {
        starts.insert(reader.position().0);
        reader.read(1, &mut told).unwrap();
        !starts.contains(&reader.position().0)
    } {}
    let oldest = *starts.first().unwrap();
    for position in oldest..=end.min(oldest + 3000) {
        let opened = store.tail(None, TailFrom::Position(Position(position)));
        match starts.contains(&position) {
            true => assert_eq!(opened.unwrap().position().0, position),
            false => {
                assert!(matches!(opened.err(), Some(TailError::NotARecord(at)) if at == position))
            }
        }
    }
    assert_eq!(store.tails().len(), 1, "none of these was registered");
    // The store drops journal files that no tail needs.
    assert!(store.end_tail(NAME).unwrap());
    assert!(!store.end_tail(NAME).unwrap());
    follower.reader = None;
    for _ in 0..8 {
        follower.bench.clock.advance_ns(7 * 3600 * SECOND);
        follower.bench.store().maintain();
        follower.bench.store().checkpoint();
        (0..300).for_each(|_| follower.send());
    }
    follower.sync();
    let mut told = Told::default();
    let mut reader = store
        .tail(None, TailFrom::Position(Position(oldest)))
        .unwrap();
    reader.read(u64::MAX, &mut told).unwrap();
    let [Missed { from, to, values }] = told.missed[..] else {
        panic!("{:?}", told.missed)
    };
    assert_eq!((from, values), (oldest, None));
    assert!(to > oldest, "{to}");
    let refused = follower.bench.store().tail(Some("new/name"), TailFrom::Now);
    assert!(matches!(refused.err(), Some(TailError::Name)));
}

#[test]
fn there_are_sixteen_tails_at_most() {
    let follower = filled(5, 20);
    let store = follower.bench.store();
    for number in 1..16 {
        store
            .tail(Some(&format!("tail{number}")), TailFrom::Now)
            .unwrap();
    }
    let refused = store.tail(Some("another"), TailFrom::Now);
    assert!(matches!(refused.err(), Some(TailError::TooMany)));
    // A registered tail can be opened again, and an ended tail makes room.
    store.tail(Some("tail3"), TailFrom::Now).unwrap();
    assert!(store.end_tail("tail3").unwrap());
    store.tail(Some("another"), TailFrom::Now).unwrap();
    assert_eq!(store.tails().len(), 16);
}

/// Journal files that the store no longer needs stay for an absent tail, however often the store is opened.
#[test]
fn files_are_kept_for_a_tail_that_is_away() {
    let mut follower = Follower::new(6, 2, 3);
    follower.bench.settings.journal_file_bytes = 8 << 10;
    follower.bench.open();
    follower.open().unwrap();
    follower.reader = None;
    for number in 0..2500u64 {
        follower.bench.clock.advance_ns(SECOND / 10);
        follower.send();
        if number % 50 == 49 {
            follower.bench.store().maintain();
            follower.bench.store().checkpoint();
        }
        if number % 400 == 399 {
            follower.sync();
            follower.reopen();
        }
    }
    follower.sync();
    let kept = || {
        let files = follower.bench.disk.files();
        let names = files
            .iter()
            .filter_map(|(path, _)| path.file_name()?.to_str());
        names.filter(|name| name.starts_with("tailed-")).count()
    };
    assert!(kept() > 3, "{}", kept());
    let [status] = &follower.bench.store().tails()[..] else {
        panic!("one tail")
    };
    assert!(status.backlog_bytes > 50_000, "{status:?}");
    assert!((150.0..260.0).contains(&status.backlog_age_s), "{status:?}");
    follower.read(u64::MAX).unwrap();
    follower.judge(follower.accepted.len(), "after a while");
    follower.acknowledge().unwrap();
    let files = follower.bench.disk.files();
    let is_kept = |path: &std::path::Path| path.to_string_lossy().contains("tailed-");
    assert!(
        !files.iter().any(|(path, _)| is_kept(path)),
        "what is acknowledged goes"
    );
    let [status] = &follower.bench.store().tails()[..] else {
        panic!("one tail")
    };
    assert_eq!(
        (
            status.backlog_bytes,
            status.backlog_age_s,
            status.missed_values
        ),
        (0, 0.0, 0)
    );
}

/// The store drops files beyond the cap and counts their values for the tail: delivered and missed values add up to all.
#[test]
fn the_cap_is_kept_and_what_is_missed_is_counted() {
    for (bytes, age_s, reopens) in [
        (30_000, 1 << 40, false),
        (30_000, 1 << 40, true),
        (u64::MAX, 60, false),
    ] {
        let story = format!("{bytes} bytes, {age_s} s, {reopens}");
        let mut follower = Follower::new(7, 2, 3);
        follower.bench.settings.journal_file_bytes = 8 << 10;
        follower.bench.settings.tail_bytes = bytes;
        follower.bench.settings.tail_age = Duration::from_secs(age_s);
        follower.bench.open();
        for _ in 0..7 {
            follower.send();
        }
        follower.sync();
        follower.open().unwrap();
        follower.read(300).unwrap();
        follower.acknowledge().unwrap();
        let before = follower.told.count;
        assert!(before > 0);
        follower.reader = None;
        for number in 0..3000u64 {
            follower.bench.clock.advance_ns(SECOND / 10);
            follower.send();
            if number % 50 == 49 {
                follower.bench.store().maintain();
                follower.bench.store().checkpoint();
            }
            if reopens && number % 700 == 699 {
                follower.sync();
                follower.reopen();
            }
        }
        follower.sync();
        let sizes = follower.bench.disk.files();
        let kept = sizes
            .iter()
            .filter(|(path, _)| path.to_string_lossy().contains("tailed-"));
        let kept: u64 = kept.map(|(_, size)| *size).sum();
        assert!(kept <= bytes, "{story}: {kept}");
        let [status] = &follower.bench.store().tails()[..] else {
            panic!("one tail")
        };
        let missed_values = status.missed_values;
        assert!(missed_values > 500, "{story}: {status:?}");
        // The tail reports missed values until they are acknowledged.
        for _ in 0..2 {
            let mut told = Told::default();
            let mut reader = follower
                .bench
                .store()
                .tail(Some(NAME), TailFrom::Now)
                .unwrap();
            reader.read(1, &mut told).unwrap();
            assert_eq!(told.missed.len(), 1, "{story}");
        }
        follower.reopen();
        follower.read(u64::MAX).unwrap();
        let [missed] = follower.told.missed[..] else {
            panic!("{story}: {:?}", follower.told.missed)
        };
        assert_eq!(
            (missed.from, missed.values),
            (follower.acknowledged, Some(missed_values)),
            "{story}"
        );
        let told = follower.told.count;
        assert_eq!(
            told + missed_values,
            follower.accepted.len() as u64,
            "{story}"
        );
        follower.acknowledge().unwrap();
        let mut told = Told::default();
        let mut reader = follower
            .bench
            .store()
            .tail(Some(NAME), TailFrom::Now)
            .unwrap();
        reader.read(u64::MAX, &mut told).unwrap();
        assert!(
            told.missed.is_empty() && told.count == 0,
            "{story}: {told:?}"
        );
        assert_eq!(
            follower.bench.store().tails()[0].missed_values,
            missed_values
        );
    }
}

/// A tail with a time of its own loses older values. The files stay for the other one, which gets all values.
#[test]
fn a_tail_may_have_a_time_of_its_own() {
    const SHORT: &str = "short";
    let mut follower = Follower::new(17, 1, 3);
    follower.bench.settings.journal_file_bytes = 8 << 10;
    follower.bench.settings.tail_bytes = u64::MAX;
    follower.bench.settings.tail_ages = vec![(SHORT.into(), Duration::from_secs(60))];
    follower.bench.open();
    let short = follower.bench.store().tail(Some(SHORT), TailFrom::Oldest);
    drop(short.unwrap());
    follower.open().unwrap();
    follower.reader = None;
    for number in 0..3000u64 {
        follower.bench.clock.advance_ns(SECOND / 10);
        follower.send();
        if number % 50 == 49 {
            follower.bench.store().maintain();
            follower.bench.store().checkpoint();
        }
    }
    follower.sync();
    let tails = follower.bench.store().tails();
    let missed: Vec<(&str, u64)> = tails
        .iter()
        .map(|tail| (&*tail.name, tail.missed_values))
        .collect();
    let [(NAME, 0), (SHORT, missed)] = missed[..] else {
        panic!("{missed:?}")
    };
    assert!(missed > 500, "{missed}");
    let mut told = Told::default();
    let mut short = follower
        .bench
        .store()
        .tail(Some(SHORT), TailFrom::Now)
        .unwrap();
    short.read(u64::MAX, &mut told).unwrap();
    assert_eq!(told.count + missed, follower.accepted.len() as u64);
    follower.read(u64::MAX).unwrap();
    follower.judge(follower.accepted.len(), "the patient tail");
}

/// A tail is away for a day, while the store starts again and its machine loses power. Within its time it gets all values in
/// their order; beyond it the gap is counted exactly.
#[test]
fn an_outage_of_a_day_loses_nothing_within_the_time() {
    for hours in [36, 12] {
        let mut follower = Follower::new(18, 2, 20);
        follower.bench.settings.journal_file_bytes = 256 << 10;
        follower.bench.settings.tail_bytes = u64::MAX;
        follower.bench.settings.tail_ages = vec![(NAME.into(), Duration::from_secs(hours * 3600))];
        follower.bench.open();
        follower.send();
        follower.sync();
        follower.open().unwrap();
        follower.read(u64::MAX).unwrap();
        follower.acknowledge().unwrap();
        for round in 0..8640u64 {
            follower.bench.clock.advance_ns(10 * SECOND);
            follower.bench.now_s += 9;
            follower.send();
            if round % 30 == 29 {
                follower.bench.store().maintain();
                follower.bench.store().checkpoint();
            }
            if round % 2000 == 1999 {
                follower.sync();
                follower.reopen();
            }
        }
        follower.sync();
        let missed = follower.bench.store().tails()[0].missed_values;
        assert_eq!(missed > 0, hours < 24, "{hours} h: {missed}");
        follower.read(u64::MAX).unwrap();
        let told = follower.told.count + missed;
        assert_eq!(told, follower.accepted.len() as u64, "{hours} h");
        match hours {
            36 => follower.judge(follower.accepted.len(), "a day"),
            _ => assert_eq!(follower.told.missed[0].values, Some(missed)),
        }
    }
}

/// A store that keeps no values has names and states in its blocks. The tail gets all values, over starts, and the blocks do not
/// grow with them.
#[test]
fn a_store_that_keeps_no_values_carries_them_on() {
    let blocks = [true, false].map(|keeps_values| {
        let mut follower = Follower::new(19, 0, 5);
        follower.bench.settings.journal_file_bytes = 8 << 10;
        follower.bench.settings.files = kymo_store::Files::Never;
        follower.bench.settings.keeps_values = keeps_values;
        follower.bench.open();
        follower.open().unwrap();
        follower.reader = None;
        for number in 0..3000u64 {
            follower.bench.clock.advance_ns(SECOND / 10);
            follower.send();
            if number % 50 == 49 {
                follower.bench.store().maintain();
                follower.bench.store().checkpoint();
            }
            if number % 1000 == 999 {
                follower.sync();
                follower.reopen();
            }
        }
        follower.send();
        follower.sync();
        let store = follower.bench.store().clone();
        let series = store.find_points(&labels("p0")).unwrap();
        let readable = store.samples(series, (0, i64::MAX)).unwrap().points.len();
        let sent = follower.accepted.iter();
        let sent = sent.filter(|(name, _)| name.contains("p0")).count();
        match keeps_values {
            true => assert_eq!(readable, sent),
            // The newest are in memory.
            false => assert!(0 < readable && readable < sent / 10, "{readable} of {sent}"),
        }
        drop(store);
        follower.read(u64::MAX).unwrap();
        follower.judge(follower.accepted.len(), "a store without values");
        follower.acknowledge().unwrap();
        let disk = std::sync::Arc::new(follower.bench.disk.clone());
        let summary = kymo_store::verify::verify(disk, &super::common::folder(), &mut |_| {});
        assert_eq!(summary.unwrap().damaged, 0);
        let files = follower.bench.disk.files();
        let blocks = files
            .iter()
            .filter(|(path, _)| path.to_string_lossy().contains("segment"));
        blocks.map(|(_, size)| *size).sum::<u64>()
    });
    assert!(blocks[1] < blocks[0] / 4, "{blocks:?}");
}

/// A reader without registration delays nothing: the store reuses its files, and the reader learns which range is gone.
#[test]
fn a_reader_that_sleeps_hears_what_is_gone() {
    let mut follower = filled(8, 100);
    let store = follower.bench.store().clone();
    store.end_tail(NAME).unwrap();
    follower.reader = None;
    let mut sleeper = store.tail(None, TailFrom::Oldest).unwrap();
    let mut told = Told::default();
    sleeper.read(200, &mut told).unwrap();
    let at = sleeper.position().0;
    for number in 0..3000u64 {
        follower.bench.clock.advance_ns(SECOND / 10);
        follower.send();
        if number % 50 == 49 {
            store.maintain();
            store.checkpoint();
        }
    }
    follower.sync();
    sleeper.read(u64::MAX, &mut told).unwrap();
    let [missed] = told.missed[..] else {
        panic!("{:?}", told.missed)
    };
    assert_eq!((missed.from, missed.values), (at, None));
    let newest = follower.accepted.iter().rev().take(50);
    for (name, value) in newest {
        assert!(told.values[name].contains(value), "{name}");
    }
}

/// Values of a removed series that a tail had not read still arrive, with the series' name, and then its removal.
#[test]
fn series_that_go_are_told() {
    for reopens in [false, true] {
        let mut follower = Follower::new(9, 1, 2);
        follower.bench.open();
        follower.open().unwrap();
        for _ in 0..30 {
            follower.send();
        }
        follower.sync();
        let name = labels("p0").text().to_vec();
        let [removed] = &follower.bench.store().remove(std::slice::from_ref(&name))[..] else {
            panic!("one outcome")
        };
        assert!(removed.is_ok());
        if reopens {
            follower.reopen();
        }
        follower.read(u64::MAX).unwrap();
        follower.judge(follower.accepted.len(), "removed");
        assert_eq!(
            follower.told.gone,
            [String::from_utf8(name.clone()).unwrap()]
        );
        // The name begins again, as another series.
        follower.send();
        follower.send();
        follower.sync();
        follower.read(u64::MAX).unwrap();
        follower.judge(follower.accepted.len(), "begun again");
        let ids: BTreeSet<u32> = follower
            .told
            .defined
            .iter()
            .filter(|series| series.known.name == name)
            .map(|series| series.known.id)
            .collect();
        assert_eq!(ids.len(), 2);
    }
}

/// A series that takes another's place repeats values in the journal; the tail delivers them once.
#[test]
fn repeated_values_come_once() {
    let mut follower = Follower::new(10, 1, 0);
    follower.bench.open();
    follower.open().unwrap();
    for _ in 0..20 {
        follower.send();
    }
    follower.sync();
    let (name, value) = follower.accepted[5].clone();
    let at = value.0 / 1000;
    let range = kymo_store::TimeRange { from: at, thru: at };
    let erased = follower.bench.store().erase(&[name.into_bytes()], range);
    assert!(erased.iter().all(Result::is_ok), "{erased:?}");
    for _ in 0..5 {
        follower.send();
    }
    follower.sync();
    follower.read(u64::MAX).unwrap();
    assert_eq!(follower.told.count, follower.accepted.len() as u64);
    follower.judge(follower.accepted.len(), "erased in part");
}

/// A damaged place loses its samples, and the tail reports that; samples stored as steps from lost ones are counted.
#[test]
fn damage_is_told() {
    let mut follower = filled(11, 40);
    follower.read(u64::MAX).unwrap();
    let all = follower.told.count;
    let files = follower.bench.disk.files();
    let is_journal = |path: &std::path::Path| path.to_string_lossy().contains("journal-");
    let (path, _) = files.iter().find(|(path, _)| is_journal(path)).unwrap();
    let mut bytes = follower.bench.disk.bytes(path).unwrap();
    bytes[4096 + 1500] ^= 1;
    follower.bench.disk.set_bytes(path, bytes);
    let mut told = Told::default();
    let mut reader = follower.bench.store().tail(None, TailFrom::Oldest).unwrap();
    reader.read(u64::MAX, &mut told).unwrap();
    let damaged: Vec<&Missed> = told
        .missed
        .iter()
        .filter(|missed| missed.values.is_none())
        .collect();
    assert_eq!(damaged.len(), 1, "{:?}", told.missed);
    let lost: u64 = told.missed.iter().filter_map(|missed| missed.values).sum();
    assert!(
        told.count + lost < all && told.count > 0,
        "{} {lost} {all}",
        told.count
    );
    told.missed(*damaged[0]);
}

/// On a full disk, files kept for a tail make room, and the store goes on.
#[test]
fn a_dead_tail_does_not_fill_the_disk() {
    let mut follower = Follower::new(12, 2, 3);
    follower.bench.settings.journal_file_bytes = 8 << 10;
    follower.bench.open();
    follower.open().unwrap();
    follower.reader = None;
    for number in 0..20_000u64 {
        follower.bench.clock.advance_ns(SECOND / 10);
        follower.send();
        if number % 50 == 49 {
            follower.bench.store().maintain();
            follower.bench.store().checkpoint();
        }
        if number == 1500 {
            let room = follower.bench.disk.allocated_bytes() + 40_000;
            follower.bench.disk.set_faults(kymo_sys::sim_disk::Faults {
                capacity_bytes: Some(room),
                ..Default::default()
            });
        }
        if follower.bench.store().tails()[0].missed_values > 0 {
            break;
        }
    }
    assert!(
        follower.bench.disk.counts().faults > 0,
        "the disk was never full"
    );
    let before = follower.accepted.len();
    (0..20).for_each(|_| follower.send());
    assert!(follower.accepted.len() > before + 15, "it goes on");
    follower.bench.disk.set_faults(Default::default());
    follower.sync();
    follower.read(u64::MAX).unwrap();
    let missed = follower.bench.store().tails()[0].missed_values;
    assert!(missed > 0);
    assert_eq!(follower.told.count + missed, follower.accepted.len() as u64);
}

/// The tail delivers samples as they were sent, also late, infinite and stale ones.
#[test]
fn samples_come_as_they_were_sent() {
    let mut follower = Follower::new(13, 0, 2);
    follower.bench.open();
    follower.open().unwrap();
    let schema = PointsSchema::new(PointsKind::Counter, 10, 60);
    let store = follower.bench.store().clone();
    let series = store
        .define_points(&[(labels("odd"), schema)])
        .remove(0)
        .unwrap();
    let sent: Vec<(i64, f64)> = vec![
        (1_000_000_000_000, 1.5),
        (1_000_000_010_000, f64::INFINITY),
        (1_000_000_005_000, -0.0),
        (1_000_000_020_001, f64::from_bits(0x7ff0_0000_0000_0002)),
        (1_000_000_030_000, 1.0 / 3.0),
        (1_000_000_040_000, 1e300),
    ];
    for part in sent.chunks(2) {
        let points: Vec<_> = part
            .iter()
            .map(|&(t_ms, v)| (series, Point { t_ms, v }))
            .collect();
        let mut batch = store.write_batch();
        batch.append_points(&points, &mut |_, why| panic!("{why:?}"));
        batch.commit().unwrap();
    }
    follower.sync();
    follower.read(u64::MAX).unwrap();
    let name = String::from_utf8(labels("odd").text().to_vec()).unwrap();
    let expected: Vec<(i64, u64)> = sent.iter().map(|(t_ms, v)| (*t_ms, v.to_bits())).collect();
    assert_eq!(follower.told.values[&name], expected);
}

/// CPU time per sample of a tail: a million samples of a thousand series, ten seconds apart.
#[test]
#[ignore = "a measurement"]
fn what_a_sample_costs() {
    let mut follower = Follower::new(14, 0, 0);
    follower.bench.settings.journal_file_bytes = 16 << 20;
    follower.bench.settings.segment_bytes = 64 << 20;
    follower.bench.settings.chunk_values = 64;
    follower.bench.open();
    let store = follower.bench.store().clone();
    let schema = PointsSchema::new(PointsKind::Counter, 10, 60);
    let all: Vec<_> = (0..1000)
        .map(|at| (labels(&format!("m{at}")), schema.clone()))
        .collect();
    let series: Vec<_> = store
        .define_points(&all)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let mut random = 1;
    let mut values = vec![0.0; series.len()];
    for round in 0..1000 {
        let t_ms = 1_000_000_000_000 + round * 10_000;
        let points = series.iter().zip(&mut values).map(|(&series, value)| {
            *value += (kymo_base::random::next_random(&mut random) % 5000) as f64;
            (series, Point { t_ms, v: *value })
        });
        let points: Vec<_> = points.collect();
        for part in points.chunks(100) {
            let mut batch = store.write_batch();
            batch.append_points(part, &mut |_, why| panic!("{why:?}"));
            batch.commit().unwrap();
        }
    }
    store.durable(Position(u64::MAX)).unwrap();
    let mut reader = store.tail(None, TailFrom::Oldest).unwrap();
    let mut sum = Sum::default();
    let begun_ns = thread_cpu_ns();
    reader.read(u64::MAX, &mut sum).unwrap();
    let cpu_ns = (thread_cpu_ns() - begun_ns) as f64;
    assert_eq!(sum.0, 1_000_000);
    let bytes = reader.position().0;
    eprintln!(
        "{:.1} ns of CPU a sample, {bytes} bytes of journal",
        cpu_ns / 1e6
    );
}

fn thread_cpu_ns() -> u64 {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    account.split(' ').next().unwrap().parse().unwrap()
}

#[derive(Default)]
struct Sum(u64, f64);

impl kymo_store::TailSink for Sum {
    fn defined(&mut self, _series: &kymo_store::TailSeries) {}

    fn gone(&mut self, _series: u32) {}

    fn missed(&mut self, missed: Missed) {
        panic!("{missed:?}");
    }

    fn samples(&mut self, samples: &[kymo_store::TailSample]) {
        self.0 += samples.len() as u64;
        self.1 += samples.iter().map(|sample| sample.v).sum::<f64>();
    }
}
