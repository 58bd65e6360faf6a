//! Series and points that the store drops by itself, and those that stay.

use crate::common::{Bench, SECOND, START, base, folder, oracle};
use kymo_rrd::Rrd;
use kymo_store::Files;
use kymo_store::status::status;
use kymo_sys::disk::Disk;
use std::path::Path;
use std::sync::Arc;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

fn series(bench: &Bench) -> u64 {
    let found = status(Arc::new(bench.disk.clone()), &*bench.clock, &folder());
    found.unwrap().series
}

/// Sends a value to one series every hour, with maintenance between; returns the notices.
fn hours(bench: &mut Bench, name: &str, count: u64) -> Vec<String> {
    let mut said = Vec::new();
    for _ in 0..count {
        bench.clock.advance_ns(HOUR * SECOND);
        bench.now_s += HOUR as i64;
        let text = format!("{}:1", bench.now_s);
        bench.update(name, &[&text]).unwrap();
        for _ in 0..2 {
            bench.store().maintain();
        }
        said.extend(bench.store().take_notices());
    }
    said
}

fn values<'a>(bench: &'a Bench, name: &str) -> Vec<&'a [u8]> {
    let mine = bench.acked.iter().filter(|acked| acked.name == name);
    mine.map(|acked| &acked.text[..]).collect()
}

fn fill(bench: &mut Bench, name: &str) {
    for number in 1..10 {
        let text = format!("{}:{number}", START + 10 * number);
        bench.update(name, &[&text]).unwrap();
    }
}

#[test]
fn series_without_files_go_when_they_were_silent_for_long() {
    let mut bench = Bench::new(1, 3);
    bench.settings.files = Files::Never;
    bench.open();
    for (name, bytes) in &bench.files {
        let rrd = Rrd::parse(bytes).unwrap();
        bench.store().install(name.as_bytes(), &rrd, false).unwrap();
    }
    fill(&mut bench, "f0.rrd");
    fill(&mut bench, "f1.rrd");
    // Only newer values of other series make a series silent, however late the clock is.
    bench.clock.step_wall_ns((3650 * DAY * SECOND) as i64);
    for _ in 0..10 {
        bench.clock.advance_ns(DAY * SECOND);
        bench.store().maintain();
    }
    assert_eq!(series(&bench), 3);
    bench.clock.step_wall_ns(-((3660 * DAY * SECOND) as i64));
    let said = hours(&mut bench, "f2.rrd", 7 * 24);
    assert_eq!((series(&bench), said), (3, vec![]));
    let said = hours(&mut bench, "f2.rrd", 4);
    let line = "2 series that got no values for as long as their archives reach are no longer kept";
    assert_eq!((series(&bench), said), (1, vec![line.to_string()]));
    assert!(bench.store().export(b"f0.rrd").is_err());
    let listed = bench
        .store()
        .list(&base().into_os_string().into_encoded_bytes(), true);
    assert_eq!(listed.unwrap(), vec![b"f2.rrd".to_vec()]);
    for _ in 0..2 {
        bench.disk.kill();
        bench.reopen();
        assert_eq!(series(&bench), 1);
        let exported = bench.store().export(b"f2.rrd").unwrap();
        assert!(exported.bytes == oracle(&bench.files[2].1, &values(&bench, "f2.rrd")));
    }
    // A series made anew begins empty.
    let rrd = Rrd::parse(&bench.files[0].1).unwrap();
    bench.store().install(b"f0.rrd", &rrd, false).unwrap();
    assert!(bench.store().export(b"f0.rrd").unwrap().bytes == bench.files[0].1);
}

#[test]
fn series_with_files_go_when_their_files_have_everything_and_come_back() {
    let mut bench = Bench::new(2, 3);
    bench.settings.checkpoint_every = std::time::Duration::from_secs(2 * HOUR);
    bench.open();
    fill(&mut bench, "f0.rrd");
    fill(&mut bench, "f1.rrd");
    let said = hours(&mut bench, "f2.rrd", 7 * 24);
    assert_eq!((series(&bench), said), (3, vec![]));
    let said = hours(&mut bench, "f2.rrd", 6);
    assert_eq!((series(&bench), said.len()), (1, 1), "{said:?}");
    let expected = oracle(&bench.files[0].1, &values(&bench, "f0.rrd"));
    assert!(bench.bytes("f0.rrd") == expected);
    let stamp = bench.now_s + 7;
    bench.update("f0.rrd", &[&format!("{stamp}:8")]).unwrap();
    assert_eq!(series(&bench), 2);
    let all = bench.acked.len();
    bench.judge(all, "taken over again");
    bench.disk.kill();
    bench.reopen();
    bench.judge(all, "and opened again");
}

#[test]
fn values_of_files_wait_for_a_base_that_is_away() {
    let mut bench = Bench::new(3, 2);
    bench.open();
    fill(&mut bench, "f0.rrd");
    fill(&mut bench, "f1.rrd");
    bench.flush("f1.rrd").unwrap();
    let away = |bench: &Bench, from: &Path, to: &Path| {
        for (name, _) in &bench.files {
            if bench.disk.metadata(&from.join(name)).is_ok() {
                bench.disk.rename(&from.join(name), &to.join(name)).unwrap();
            }
        }
    };
    let other = Path::new("/away");
    bench.disk.create_dir_all(other).unwrap();
    away(&bench, &base(), other);
    bench.disk.rmdir(&base()).unwrap();
    assert!(bench.flush("f0.rrd").is_err() && bench.flush("f1.rrd").is_err());
    for _ in 0..20 {
        bench.clock.advance_ns(DAY * SECOND);
        bench.store().maintain();
    }
    assert_eq!(series(&bench), 2);
    bench.disk.create_dir_all(&base()).unwrap();
    away(&bench, other, &base());
    // All files are there and no request comes: no series is dropped.
    for _ in 0..9 {
        bench.clock.advance_ns(DAY * SECOND);
        bench.store().maintain();
    }
    assert_eq!(series(&bench), 2);
    bench.judge(bench.acked.len(), "the base is back");
    // A file is removed: its series goes, with the values.
    bench.disk.unlink(&base().join("f0.rrd")).unwrap();
    assert!(bench.flush("f0.rrd").is_err());
    for _ in 0..9 {
        bench.clock.advance_ns(DAY * SECOND);
        bench.store().maintain();
    }
    assert_eq!(series(&bench), 1);
}

/// Sends many values, ten seconds apart, so that no point is old; returns the notices, and the most bytes of blocks and of
/// points.
fn stream(bench: &mut Bench, count: i64) -> (Vec<String>, u64, u64) {
    let (mut said, mut most, mut points) = (Vec::new(), 0, 0);
    for number in 0..count {
        bench.now_s += 10;
        bench.clock.advance_ns(10 * SECOND);
        let text = format!("{}:{}.5", bench.now_s, number * number % 977);
        for name in ["f0.rrd", "f1.rrd", "f2.rrd"] {
            let text = if name == "f0.rrd" {
                text.clone()
            } else {
                text.replace(".5", "")
            };
            bench.update(name, &[&text]).unwrap();
        }
        for _ in 0..3 {
            bench.store().maintain();
        }
        said.extend(bench.store().take_notices());
        if number % 20 == 0 {
            let found = status(Arc::new(bench.disk.clone()), &*bench.clock, &folder());
            let found = found.unwrap();
            let bytes = found.bytes;
            let frames = bytes.rows + bytes.states + bytes.points + bytes.names;
            let blocks = frames + bytes.heads - 4096 * found.segments;
            (most, points) = (most.max(blocks), points.max(bytes.points));
        }
    }
    (said, most, points)
}

#[test]
fn points_go_where_room_is_short_and_archives_stay() {
    let run = |store_bytes: u64| {
        let mut bench = Bench::new(4, 3);
        bench.settings.store_bytes = store_bytes;
        bench.settings.segment_bytes = 8000;
        bench.open();
        let found = stream(&mut bench, 900);
        bench.judge(bench.acked.len(), "with a cap");
        let all = bench.acked.len();
        bench.reopen();
        bench.judge(all, "opened again");
        found
    };
    let (said, most, points) = run(1 << 30);
    assert!(most > 25_000 && points > 12_000, "{most} {points}");
    assert_eq!(said, Vec::<String>::new());
    let (said, most, points) = run(20_000);
    // The segment being written has its own room.
    assert!(most < 20_000 + 5000 && points > 5000, "{most} {points}");
    assert_eq!(said, Vec::<String>::new());
    let (said, _, points) = run(500);
    assert!(points < 5000, "{points}");
    // A notice an hour at most, in two and a half hours.
    assert_eq!(said.len(), 3, "{said:?}");
    for line in said {
        assert!(
            line.starts_with("archives alone take ") && line.contains("more than 500 "),
            "{line}"
        );
    }
}

#[test]
fn many_series_are_told_of_once_and_all_are_kept() {
    let mut bench = Bench::new(5, 60);
    bench.settings.max_series = 30;
    bench.settings.max_new = 15;
    bench.open();
    let mut said = Vec::new();
    for number in 0..60 {
        let name = format!("f{number}.rrd");
        // Ten new series a minute, then twenty.
        bench
            .clock
            .advance_ns(if number < 40 { 6 } else { 3 } * SECOND);
        bench.now_s += 6;
        let text = format!("{}:1", bench.now_s);
        bench.update(&name, &[&text]).unwrap();
        bench.store().maintain();
        let notices = bench.store().take_notices().into_iter();
        said.extend(notices.map(|line| (number, line)));
    }
    assert_eq!(series(&bench), 60);
    let many = said
        .iter()
        .filter(|(_, line)| line.contains("(--max-series)"));
    let fast = said.iter().filter(|(_, line)| line.contains("(--max-new)"));
    let (many, fast): (Vec<_>, Vec<_>) = (many.collect(), fast.collect());
    assert!(many.len() == 1 && (30..45).contains(&many[0].0), "{said:?}");
    assert!(fast.len() == 1 && fast[0].0 > 45, "{said:?}");
}
