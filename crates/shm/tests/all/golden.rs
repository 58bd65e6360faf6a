//! Both writers make the same file, byte for byte: `fixtures/shm-1.1`, which is written again with `KYMO_BLESS=1`, by the writer in C.
//! Readers of all later versions read it, and the one of version 1.0.

use std::path::PathBuf;
use std::process::Command;

use kymo_shm::{
    Access, Buckets, Description, GaugeType, Kind, Origin, Publisher, Reader, Schema, Scratch,
    Slot, StampClock, State, Value, file_name,
};

use crate::c::{compile, crate_folder};
use crate::folder::Folder;

fn fixture(minor: u16) -> PathBuf {
    crate_folder().join(format!("tests/fixtures/shm-1.{minor}"))
}

fn numbers(first: u8) -> [u8; 16] {
    std::array::from_fn(|number| first + number.to_le_bytes()[0])
}

/// Makes the same calls as `programs/golden.c`.
fn write(folder: &Folder) -> (Publisher, Slot, Slot) {
    let mut schema = Schema::new("golden", 3)
        .text_bytes(99)
        .slot_labels(&["database", "user", "a name of thirty-one characters"])
        .stamp_clock(StampClock::Postgres)
        .spare(1, 64)
        .folder(folder.path())
        .origin(Origin {
            pid: 4711,
            start: 123_456,
            boot: numbers(0xb0),
            epoch: numbers(0xe0),
            created_ns: 1_700_000_000_000_000_001,
        });
    let described = |name| Description::new(name, "");
    let commands = Description::new("commands_total", "Commands.")
        .label("kind", "select")
        .label("db", "");
    let commands = schema.counter(commands);
    let open = schema.gauge(described("open"), GaugeType::Signed);
    let load = schema.gauge(described("load").unit("ratio", 0.5), GaugeType::Double);
    let queue = schema.gauge(described("queue"), GaugeType::Unsigned);
    let buckets = Buckets::new(2, 10, 20).expect("buckets");
    let duration = schema.histogram(
        Description::new("duration", "How long.").unit("seconds", 1e-9),
        buckets,
    );
    let publisher = Publisher::create(&schema).expect("a publisher");
    let text: Vec<u8> = (0..200u32)
        .map(|number| (number * 7 + 1).to_le_bytes()[0])
        .collect();
    let (mut first, mut second) = (publisher.take(), publisher.take_at(2));
    assert!(first.is_enabled() && second.is_enabled() && !publisher.take_at(2).is_enabled());
    let application = b"an application whose name is longer than sixty-three characters are";
    first.identify_as(4712, Some(4711), 99, &[b"stock", b"", application]);
    second.identify_as(4713, None, 0, &[]);
    for length in 0..150 {
        let number = length as u64;
        first.begin(Kind::Sql, &text[..length], number * 1000, number);
        first.add(commands, 3);
        first.observe(duration, number * number * 500, number % 3 + 1);
    }
    first.end();
    second.begin(Kind::Secret, &text[..20], 5, 0);
    second.begin(Kind::Plain, &text[..5], 6, u64::MAX);
    second.state(State::IdleInTransaction);
    first.set(open, -2.0);
    first.set(load, 0.75);
    second.set(queue, 17.0);
    let late = publisher
        .add_counter(described("late_total"))
        .expect("room");
    second.add(late, u64::MAX);
    drop(second);
    let mut second = publisher.take_at(2);
    second.begin(Kind::Sql, b"COMMIT", 7, 8);
    (publisher, first, second)
}

/// A golden file, but for the processes that have slots: their pid is 1, their start 2, and they have no lock.
fn without_processes(mut bytes: Vec<u8>) -> Vec<u8> {
    // The third entry of the section table is that of heads.
    let entry = 512 + 2 * 32;
    let heads = u64::from_le_bytes(
        bytes[entry + 8..entry + 16]
            .try_into()
            .expect("eight bytes"),
    );
    for head in bytes[heads.try_into().expect("an offset")..]
        .chunks_exact_mut(64)
        .take(3)
    {
        if head[..4] != [0; 4] {
            head[..4].copy_from_slice(&1u32.to_le_bytes());
            head[40..48].copy_from_slice(&2u64.to_le_bytes());
            assert_eq!(head[56..60], 1u32.to_le_bytes(), "the first life");
            head[56..60].fill(0);
        }
    }
    bytes
}

#[test]
fn both_writers_make_the_same_file() {
    let (by_rust, by_c) = (Folder::new("golden-rust"), Folder::new("golden-c"));
    let program = compile("tests/all/programs/golden.c", by_c.path(), &[]);
    let output = Command::new(program)
        .arg(by_c.path())
        .output()
        .expect("golden.c");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let read = |folder: &Folder| {
        let path = folder.path().join(file_name(&numbers(0xe0)));
        without_processes(std::fs::read(path).expect("a golden file"))
    };
    let made_by_c = read(&by_c);
    if std::env::var_os("KYMO_BLESS").is_some() {
        std::fs::write(fixture(1), &made_by_c).expect("the fixture");
    }
    let golden = std::fs::read(fixture(1)).expect("the fixture");
    assert!(
        made_by_c == golden,
        "kymo.h makes another file than version 1.1 is"
    );
    let _publisher = write(&by_rust);
    let made_by_rust = read(&by_rust);
    for (at, (rust, golden)) in made_by_rust.iter().zip(&golden).enumerate() {
        assert_eq!(rust, golden, "at {at}");
    }
    assert_eq!(made_by_rust.len(), golden.len());
}

#[test]
fn all_versions_are_read() {
    for minor in [0, 1] {
        let folder = Folder::new(&format!("golden-read-{minor}"));
        let name = file_name(&numbers(0xe0));
        std::fs::copy(fixture(minor), folder.path().join(&name)).expect("a copy");
        for access in [Access::Read, Access::MapOwn] {
            check(&mut folder.open(access), minor);
        }
    }
}

fn check(reader: &mut Reader, minor: u16) {
    let header = reader.header();
    assert_eq!(header.minor, minor);
    assert_eq!(
        (header.pid, header.start, header.created_ns),
        (4711, 123_456, 1_700_000_000_000_000_001)
    );
    assert_eq!((header.boot, header.epoch), (numbers(0xb0), numbers(0xe0)));
    assert_eq!(
        (header.slots, header.text_bytes, header.stamp_clock),
        (3, 104, StampClock::Postgres)
    );
    let labels: Vec<&[u8]> = header.label_names.iter().map(Vec::as_slice).collect();
    assert_eq!(
        labels,
        [
            &b"database"[..],
            b"user",
            b"a name of thirty-one characters"
        ]
    );
    let mut scratch = Scratch::default();
    reader.scan(&mut scratch).expect("a scan");
    let values: Vec<Value> = reader
        .metrics()
        .iter()
        .map(|metric| reader.value(metric))
        .collect();
    assert_eq!(
        values[..4],
        [
            Value::Counter(450),
            Value::Gauge(-2.0),
            Value::Gauge(0.75),
            // A slot that is taken again begins its gauges at 0, since version 1.1.
            Value::Gauge(if minor == 0 { 17.0 } else { 0.0 })
        ]
    );
    let Value::Histogram(duration) = values[4] else {
        panic!("no histogram");
    };
    let all = 0..150u64;
    assert_eq!((duration.samples, duration.count()), (150, 300));
    assert_eq!(
        duration.sum,
        all.map(|number| number * number * 500 * (number % 3 + 1))
            .sum::<u64>()
    );
    assert_eq!(duration.weights[0], 1 + 2, "0 and 500 are below 1024");
    assert_eq!(values[5], Value::Counter(u64::MAX));
    let described = &reader.metrics()[0].description;
    assert_eq!(
        described.labels,
        [
            (b"kind".to_vec(), b"select".to_vec()),
            (b"db".to_vec(), Vec::new())
        ]
    );
    assert_eq!(reader.metrics()[4].description.scale, 1e-9);
    assert!(!reader.has_bad_metrics() && !reader.is_closed());
    check_activities(reader, &mut scratch);
}

fn check_activities(reader: &mut Reader, scratch: &mut Scratch) {
    reader.sample(scratch).expect("a sample");
    let [first, none, second] = reader.activities() else {
        panic!("not three slots");
    };
    assert_eq!((first.commands, first.state), (150, State::Idle));
    let command = first.command.as_ref().expect("a command");
    assert_eq!(
        (
            command.text.len(),
            command.whole_bytes,
            command.is_truncated()
        ),
        (104, 149, true)
    );
    assert_eq!((command.stamp, command.query_id), (149_000, 149));
    let identity = first.identity.as_ref().expect("an identity");
    assert_eq!(
        (identity.pid, identity.leader, identity.stamp),
        (4712, Some(4711), 99)
    );
    let labels: Vec<(&[u8], bool)> = identity
        .labels
        .iter()
        .map(|label| (label.text.as_slice(), label.is_truncated))
        .collect();
    let application = &b"an application whose name is longer than sixty-three characters"[..];
    assert_eq!(
        labels,
        [(&b"stock"[..], false), (b"", false), (application, true)]
    );
    assert_eq!((none.owner, none.commands), (None, 0));
    assert_eq!((second.commands, second.state), (3, State::Active));
    assert_eq!(second.owner.expect("an owner").taken, 2);
    assert_eq!(second.command.as_ref().expect("a command").text, b"COMMIT");
    assert_eq!(second.identity, None, "the owner before said who it was");
}
