//! Written records are read back: from tails, from blocks, while they are written, and by range.

use crate::common::{Bench, SECOND, START_NS, dir, drain, read, tiny};
use kymo_recording::Error;
use kymo_recording::cursor::Cursor;
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_recording::record::Head;
use kymo_recording::writer::Options;
use std::sync::Arc;

#[test]
fn samples_come_back_from_tails_and_blocks() {
    for seed in 0..20 {
        eprintln!("seed {seed}");
        let mut bench = Bench::new(seed, tiny());
        bench.open();
        for _ in 0..200 {
            bench.sample();
            bench.tick();
        }
        let counters = bench.writer().counters();
        assert!(counters.seals > 3, "{counters:?}");
        assert_eq!(counters.dropped_records + counters.write_errors, 0);
        let live = bench.read();
        bench.judge(&live, &bench.acked, "live");
        assert_eq!(live.gaps, []);
        bench.writer.take().unwrap().close().unwrap();
        let closed = bench.read();
        bench.judge(&closed, &bench.acked, "closed");
        assert_eq!(closed.samples.len(), 200);
        assert_eq!(closed.gaps, []);
        assert!(
            closed
                .contexts
                .iter()
                .all(|text| text == "os=Linux\ncpus=2\n")
        );
        let tails = bench.disk.files();
        assert!(tails.iter().all(|(path, _)| !path.ends_with("tail-A")));
    }
}

/// Batches of several records that a switch may split, and sections from no bytes to many pieces.
#[test]
fn records_of_every_shape() {
    for seed in 0..12 {
        eprintln!("seed {seed}");
        let options = Options {
            seal_bytes: 200_000,
            tail_bytes: 256 << 10,
            cap_bytes: 64 << 20,
            ..tiny()
        };
        let mut bench = Bench::new(seed, options);
        bench.open();
        for round in 0..60 {
            let (mut batch, mut contents) = (Vec::new(), Vec::new());
            for number in 0..1 + bench.random(5) {
                bench.clock.advance_ns(SECOND);
                let key = number == 2 || round == 0;
                let missed = bench.random(3) as u32;
                let head = Head::sample(bench.now(), key, missed);
                let mut sections = Vec::new();
                for _ in 0..bench.random(6) {
                    let length = [0, 1, 127, 128, 5000, 70_000][bench.random(6) as usize];
                    let (kind, cost) = (bench.random(256) as u8, bench.random(256) as u8);
                    let bytes = (0..length)
                        .map(|_| (bench.random(7) as u8).wrapping_add(kind))
                        .collect();
                    sections.push((kind, cost, bytes));
                }
                crate::common::push(&mut batch, &head, &sections);
                contents.push(crate::common::RecordContent {
                    head,
                    sections,
                    text: String::new(),
                });
            }
            bench.submit(batch, contents);
        }
        let counters = bench.writer().counters();
        assert!(
            counters.seals > 2 && counters.dropped_records == 0,
            "{counters:?}"
        );
        assert!(counters.appends < 60 + counters.switches + 1);
        bench.judge(&bench.read(), &bench.acked, "live");
        bench.writer.take().unwrap().close().unwrap();
        let read = bench.read();
        bench.judge(&read, &bench.acked, "closed");
        assert_eq!(read.gaps, []);
    }
}

#[test]
fn a_batch_that_is_no_batch_is_refused() {
    let mut bench = Bench::new(1, tiny());
    bench.open();
    let mut whole = Vec::new();
    bench.build(&mut whole, true);
    let mut torso = whole.clone();
    torso.extend_from_slice(&whole[..40]);
    let message = bench.writer().append(&mut torso).unwrap_err().to_string();
    let expected = format!(
        "cannot append a batch: byte {} starts no whole record",
        whole.len()
    );
    assert_eq!(message, expected);
    assert_eq!(bench.writer().append(&mut []).unwrap().recorded, 0);
}

#[test]
fn a_live_reader_sees_everything_once() {
    let mut bench = Bench::new(5, tiny());
    bench.open();
    bench.sample();
    let recording = Recording::open(Arc::new(bench.disk.clone()), &dir()).unwrap();
    let mut cursor = Cursor::new(&recording, TimeRange::ALL, Kinds::ALL);
    let mut seen = crate::common::Read::default();
    for round in 0..300 {
        bench.sample();
        if round % 7 == 0 || round % 50 < 5 {
            drain(&mut cursor, &mut seen).unwrap();
        }
        if round == 150 {
            bench.writer.take().unwrap().close().unwrap();
            bench.open();
        }
    }
    drain(&mut cursor, &mut seen).unwrap();
    bench.judge(&seen, &bench.acked, "follow");
    assert_eq!(seen.gaps, []);
    assert!(!cursor.poll_more().unwrap());
    bench.sample();
    assert!(cursor.poll_more().unwrap());
}

#[test]
fn a_range_reads_little_and_has_a_predecessor() {
    let mut bench = Bench::new(9, tiny());
    bench.open();
    for _ in 0..2000 {
        bench.sample();
    }
    let all = bench.read();
    for start in (5..1990).step_by(37) {
        let range = TimeRange {
            from_ns: START_NS + start * SECOND as i64,
            thru_ns: START_NS + (start + 9) * SECOND as i64,
        };
        let few = read(&bench.disk, &dir(), range, [7].into_iter().collect()).unwrap();
        let wanted: Vec<u64> = (start as u64..start as u64 + 10).collect();
        let got: Vec<u64> = few.samples.iter().map(|sample| sample.head.seq).collect();
        assert_eq!(got, wanted);
        assert_eq!(few.gaps, []);
        assert!(few.warmups.contains(&(start as u64 - 1)), "{few:?}");
        assert!(
            few.samples
                .iter()
                .all(|sample| sample.sections.iter().all(|s| s.0 == 7))
        );
        assert!(few.bytes_read < all.bytes_read / 2);
    }
}

#[test]
fn a_reader_finds_its_recording() {
    let mut bench = Bench::new(1, tiny());
    bench.open();
    for _ in 0..100 {
        bench.sample();
    }
    let folder = bench.writer().folder().to_path_buf();
    let count = |path: &std::path::Path| {
        read(&bench.disk, path, TimeRange::ALL, Kinds::ALL).map(|read| read.samples.len())
    };
    assert_eq!(count(&dir()).unwrap(), 100);
    assert_eq!(count(&dir().join("web-1")).unwrap(), 100);
    assert_eq!(count(&folder).unwrap(), 100);
    let files = bench.disk.files();
    let (block, _) = files
        .iter()
        .find(|(path, _)| path.extension().is_some_and(|end| end == "blk"))
        .unwrap();
    assert!(count(block).unwrap() > 5);
    assert!(matches!(
        count(&dir().join("web-2")),
        Err(Error::NotFound { .. })
    ));
    let mut other = bench.place();
    other.host = "db".to_string();
    let clock = bench.clock.clone();
    let mut writer =
        kymo_recording::writer::Writer::open(Arc::new(bench.disk.clone()), clock, other, tiny())
            .unwrap();
    writer.recover().unwrap();
    let message = count(&dir()).unwrap_err().to_string();
    assert_eq!(
        message,
        "cannot choose a recording in /rec: it holds db, web-1; name one, as DIR/HOST"
    );
}

#[test]
fn texts_and_contexts() {
    let mut bench = Bench::new(1, tiny());
    bench.open();
    bench.sample();
    bench.writer().set_context("os=Linux\ncpus=4\n").unwrap();
    let mut batch = Vec::new();
    kymo_recording::record::push_event(&mut batch, bench.now(), "disk sda came");
    bench.writer().append(&mut batch).unwrap();
    for _ in 0..100 {
        bench.sample();
    }
    let read = bench.read();
    assert_eq!(read.events, [(3, "disk sda came".to_string())]);
    assert_eq!(read.contexts[0], "os=Linux\ncpus=2\n");
    assert!(read.contexts.len() > 3);
    assert!(
        read.contexts[1..]
            .iter()
            .all(|text| text == "os=Linux\ncpus=4\n")
    );
    assert_eq!(read.gaps, []);
}

/// Regression test: reading the last seconds read the whole tail. Records before the key of the range
/// are skipped, except for the context.
#[test]
fn the_end_of_a_tail_is_read_from_a_key_on() {
    let options = Options {
        seal_bytes: 1 << 20,
        tail_bytes: 1 << 20,
        cap_bytes: 64 << 20,
        ..tiny()
    };
    let mut bench = Bench::new(3, options);
    bench.open();
    bench.sample();
    bench.writer().set_context("os=Linux\ncpus=4\n").unwrap();
    for _ in 0..400 {
        bench.sample();
    }
    assert_eq!(bench.writer().counters().seals, 0);
    let range = TimeRange {
        from_ns: bench.now().real_ns - 9 * SECOND as i64,
        thru_ns: i64::MAX,
    };
    let few = read(&bench.disk, &dir(), range, Kinds::ALL).unwrap();
    assert_eq!(few.samples.len(), 10);
    let warm = few.warmups.len();
    assert!((1..100).contains(&warm), "{warm}");
    assert_eq!(few.contexts.last().unwrap(), "os=Linux\ncpus=4\n");
    assert_eq!(few.gaps, []);
}

#[test]
fn a_second_recorder_is_told_who_is_first() {
    let mut bench = Bench::new(1, tiny());
    bench.open();
    let message = bench.try_open().err().unwrap().to_string();
    let expected = format!(
        "cannot record to /rec/web-1.lock: process {} is recording there",
        std::process::id()
    );
    assert_eq!(message, expected);
    bench.sample();
    bench.kill();
    bench.open();
}

#[test]
fn a_small_cap_is_refused() {
    let mut options = tiny();
    options.cap_bytes = 8 * options.tail_bytes - 1;
    let bench = Bench::new(1, options);
    let message = bench.try_open().err().unwrap().to_string();
    assert_eq!(
        message,
        "cannot record within 131071 bytes: the least is 131072, eight blocks"
    );
}
