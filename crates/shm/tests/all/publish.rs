//! A reader reads the values that a program in Rust publishes, from a file and from a mapping.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::c::compile;
use crate::folder::Folder;
use kymo_shm::{
    Access, Buckets, Description, GaugeType, Kind, Liveness, Publisher, Reader, Schema, Scratch,
    Slot, StampClock, State, Value,
};

const BOTH: [Access; 2] = [Access::Read, Access::MapOwn];

fn counts(reader: &mut Reader) -> Vec<String> {
    reader.scan(&mut Scratch::default()).expect("a scan");
    let metrics = reader.metrics().iter();
    let texts = metrics.map(|metric| {
        let name = String::from_utf8_lossy(&metric.description.name).into_owned();
        match reader.value(metric) {
            Value::Counter(value) => format!("{name} {value}"),
            Value::Gauge(value) => format!("{name} {value}"),
            Value::Histogram(total) => {
                let weights: Vec<String> = total
                    .weights
                    .iter()
                    .enumerate()
                    .filter(|(_, weight)| **weight != 0)
                    .map(|(bucket, weight)| format!("{}:{weight}", total.buckets.lower(bucket)))
                    .collect();
                format!(
                    "{name} {} {} {} {}",
                    total.samples,
                    total.sum,
                    total.count(),
                    weights.join(" ")
                )
            }
        }
    });
    texts.collect()
}

#[test]
fn a_reader_reads_no_more_slots_than_it_was_told() {
    let folder = Folder::new("at-most");
    let mut schema = Schema::new("shop", 1000).folder(folder.path());
    let sold = schema.counter(Description::new("sold_total", ""));
    let publisher = Publisher::create(&schema).expect("a publisher");
    for access in BOTH {
        let mut reader = folder.open(access);
        let before = reader.slots_in_use().expect("their number");
        let mut slots: Vec<Slot> = (0..4).map(|_| publisher.take()).collect();
        slots.iter_mut().for_each(|slot| slot.add(sold, 1));
        assert_eq!(reader.slots_in_use(), Ok(4));
        assert!(before == 0 || before == 4, "a slot is in use for ever");
        for most in [0, 1, 3, 4, 1000] {
            let counted = if before == 0 { 1 } else { 2 } * most.min(4);
            reader.read_at_most(most);
            assert_eq!(counts(&mut reader), [format!("sold_total {counted}")]);
            reader.sample(&mut Scratch::default()).expect("a sample");
            assert_eq!(reader.activities().len(), most.min(4), "{most}");
            assert_eq!(reader.slots_used(), most.min(4), "{most}");
        }
    }
}

#[test]
fn totals_are_of_all_slots_and_stay_when_processes_end() {
    let folder = Folder::new("totals");
    let mut schema = Schema::new("shop", 3).folder(folder.path()).spare(1, 200);
    let sold = schema.counter(Description::new("sold_total", "Things sold.").label("kind", "book"));
    let open = schema.gauge(Description::new("open", ""), GaugeType::Signed);
    let load = schema.gauge(Description::new("load", ""), GaugeType::Double);
    let buckets = Buckets::new(2, 10, 20).expect("buckets");
    let took = schema.histogram(Description::new("took", "").unit("seconds", 1e-9), buckets);
    let publisher = Publisher::create(&schema).expect("a publisher");
    for access in BOTH {
        let mut reader = folder.open(access);
        assert_eq!(reader.is_mapped(), access == Access::MapOwn);
        assert_eq!(reader.header().name, b"shop");
        assert_eq!(reader.header().pid, std::process::id());
        assert_eq!(
            counts(&mut reader),
            ["sold_total 0", "open 0", "load 0", "took 0 0 0 "]
        );
    }
    let mut readers = BOTH.map(|access| folder.open(access));
    let mut slots: Vec<Slot> = (0..3).map(|_| publisher.take()).collect();
    assert!(!publisher.take().is_enabled(), "a slot more than there are");
    for (number, slot) in slots.iter_mut().enumerate() {
        slot.add(sold, 10 + number as u64);
        slot.set(open, number as f64 - 2.0);
        slot.set(load, 0.25);
        slot.observe(took, 1000 << number, 1);
    }
    slots[0].observe(took, 1500, 64);
    for reader in &mut readers {
        let took = format!("took 4 {} 67 0:1 1280:64 1792:1 3584:1", 7000 + 1500 * 64);
        assert_eq!(
            counts(reader),
            ["sold_total 33", "open -3", "load 0.75", took.as_str()]
        );
        assert_eq!(reader.slots_used(), 3);
    }
    slots.truncate(1);
    let mut again = publisher.take();
    assert!(again.is_enabled());
    again.add(sold, 1);
    let late = publisher
        .add_counter(Description::new("late_total", ""))
        .expect("room");
    assert!(
        publisher
            .add_counter(Description::new("later_total", ""))
            .is_none()
    );
    again.add(late, 5);
    for reader in &mut readers {
        let expected = ["sold_total 34", "open -2", "load 0.25"];
        assert_eq!(
            counts(reader)[..3],
            expected,
            "counters stay, gauges begin at 0 with who takes a slot again"
        );
        assert_eq!(counts(reader)[4], "late_total 5");
        assert!(!reader.is_closed());
        assert_eq!(reader.liveness(), Ok(Liveness::Alive));
    }
    drop((slots, again, publisher));
    for reader in &mut readers {
        assert_eq!(counts(reader)[0], "sold_total 34");
        assert!(reader.is_closed());
        // A child that another test is starting has the lock, too, until its program begins.
        let is_alive = || reader.liveness() == Ok(Liveness::Alive);
        let _looks = (0..60_000).find(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            !is_alive()
        });
        assert_eq!(reader.liveness(), Ok(Liveness::Ended));
    }
}

#[test]
fn a_reader_sees_what_slots_do() {
    let folder = Folder::new("slots");
    let schema = Schema::new("shop", 2)
        .folder(folder.path())
        .text_bytes(600)
        .slot_labels(&["database", "user"])
        .stamp_clock(StampClock::Realtime);
    let publisher = Publisher::create(&schema).expect("a publisher");
    for access in BOTH {
        let mut slot = publisher.take();
        let (mut reader, mut scratch) = (folder.open(access), Scratch::default());
        begins_and_ends(&mut slot, &mut reader, &mut scratch);
        texts_are_cut(&mut slot, &mut reader, &mut scratch);
        slot.begin(Kind::Secret, b"PASSWORD", 0, 0);
        assert!(
            !std::fs::read(publisher.path().expect("a path"))
                .expect("the file")
                .windows(8)
                .any(|part| part == b"PASSWORD")
        );
        drop(slot);
        reader.sample(&mut scratch).expect("a sample");
        let activity = &reader.activities()[0];
        assert_eq!(
            (activity.owner, activity.state, &activity.command),
            (None, State::Gone, &None)
        );
        let _other = publisher.take();
        reader.sample(&mut scratch).expect("a sample");
        let activity = &reader.activities()[0];
        assert!(
            activity.owner.is_some() && activity.command.is_none() && activity.identity.is_none(),
            "what its last owner did is not the new one's"
        );
    }
}

/// A command is seen with who gave it, and stays when it has ended.
fn begins_and_ends(slot: &mut Slot, reader: &mut Reader, scratch: &mut Scratch) {
    reader.sample(scratch).expect("a sample");
    let before = reader.activities()[0].clone();
    assert_eq!(
        (before.state, before.command, before.identity),
        (State::None, None, None)
    );
    slot.identify(Some(7), 5, &[b"stock", "x".repeat(70).as_bytes()]);
    slot.begin(Kind::Sql, b"SELECT 1;", 1234, 99);
    let sampled = reader.sample(scratch).expect("a sample");
    assert_eq!((sampled.changed, sampled.copied, sampled.busy), (1, 1, 0));
    let activity = reader.activities()[0].clone();
    let command = activity.command.clone().expect("a command");
    assert_eq!(activity.state, State::Active);
    assert_eq!(activity.commands, before.commands + 1);
    assert_eq!(
        (command.kind, command.stamp, command.query_id),
        (Kind::Sql, 1234, 99)
    );
    assert_eq!(
        (command.text.as_slice(), command.is_truncated()),
        (&b"SELECT 1;"[..], false)
    );
    let identity = activity.identity.expect("an identity");
    assert_eq!(
        (identity.pid, identity.leader, identity.stamp),
        (std::process::id(), Some(7), 5)
    );
    let label = |at: usize| &identity.labels[at];
    assert_eq!(
        (label(0).text.as_slice(), label(0).is_truncated),
        (&b"stock"[..], false)
    );
    assert_eq!((label(1).text.len(), label(1).is_truncated), (63, true));
    slot.end();
    let sampled = reader.sample(scratch).expect("a sample");
    assert_eq!(
        (sampled.changed, sampled.copied),
        (1, 0),
        "an end copies no text"
    );
    assert_eq!(reader.activities()[0].state, State::Idle);
    assert_eq!(reader.activities()[0].command, Some(command));
    assert_eq!(reader.sample(scratch).expect("a sample").changed, 0);
}

/// A text that has no room is cut, and how long it was is known.
fn texts_are_cut(slot: &mut Slot, reader: &mut Reader, scratch: &mut Scratch) {
    for length in [0, 1, 8, 479, 480, 481, 599, 600, 601, 5000] {
        let text: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        slot.begin(Kind::Plain, &text, 0, 0);
        slot.state(State::IdleInTransaction);
        reader.sample(scratch).expect("a sample");
        let command = reader.activities()[0].command.clone().expect("a command");
        assert_eq!(command.text, text[..length.min(600)], "{length}");
        assert_eq!(command.is_truncated(), length > 600);
        assert_eq!(command.whole_bytes as usize, length);
        assert_eq!(reader.activities()[0].state, State::IdleInTransaction);
    }
}

#[test]
fn a_publisher_that_is_disabled_does_nothing() {
    let (publisher, why) =
        Publisher::create_or_disabled(&Schema::new("shop", 1).folder("/nonexistent".as_ref()));
    assert_eq!(
        why.expect("a cause").to_string(),
        "cannot open folder /nonexistent: No such file or directory"
    );
    let mut slot = publisher.take();
    slot.begin(Kind::Sql, b"SELECT 1;", 0, 0);
    slot.end();
    slot.identify(None, 0, &[b"x"]);
    assert!(!slot.is_enabled());
}

/// A folder with a publisher that lives, and with files of programs that have ended.
struct Ended {
    folder: Folder,
    schema: Schema,
    living: Publisher,
    /// The oldest one first.
    paths: Vec<PathBuf>,
}

impl Ended {
    /// `count` programs that ended in the last moments. A stamp of the future is as young as one of now, and stays so.
    fn new(count: usize) -> Ended {
        let folder = Folder::new("ended");
        let schema = Schema::new("shop", 1).folder(folder.path()).text_bytes(8);
        let living = Publisher::create(&schema).expect("a publisher");
        let made = (0..count).map(|number| {
            let publisher = Publisher::create(&schema).expect("a publisher");
            let path = publisher.path().expect("a path").to_path_buf();
            stamp(&path, u64::MAX / 2 + number as u64);
            path
        });
        let paths = made.collect();
        std::fs::write(folder.path().join("kymo.other"), "").expect("another file");
        Ended {
            folder,
            schema,
            living,
            paths,
        }
    }

    /// All of them have ended more than 30 s ago.
    fn age(&self) {
        for (number, path) in self.paths.iter().enumerate() {
            stamp(path, 1 + number as u64);
        }
    }

    /// A program begins, and ends; by the program in C, if there is one.
    fn run(&self, writer: Option<&Path>) {
        let Some(writer) = writer else {
            return drop(Publisher::create(&self.schema).expect("a publisher"));
        };
        let mut writer = Command::new(writer);
        writer.args(["once".as_ref(), self.folder.path()]);
        let status = writer.stdout(Stdio::null()).status();
        assert!(status.expect("writer.c").success());
    }

    /// How many have gone: the oldest ones.
    fn gone(&self) -> usize {
        let gone = self.paths.iter().take_while(|path| !path.exists()).count();
        assert!(self.paths[gone..].iter().all(|path| path.exists()));
        assert!(self.living.path().expect("a path").exists());
        gone
    }
}

/// Writes when a file was made, as docs/formats/shm.md has it.
fn stamp(path: &Path, created_ns: u64) {
    let file = std::fs::File::options().write(true).open(path);
    let written = file.and_then(|file| file.write_all_at(&created_ns.to_le_bytes(), 72));
    written.expect("a stamp");
}

/// A program that ends at once and is started again and again would fill the memory: files of ended ones stay until they are collected.
/// Where a collector is there, those that it had not seen yet were lost: 29 of 1,000 programs that followed each other at once.
#[test]
fn a_folder_keeps_64_files_of_ended_programs_and_more_of_the_last_seconds() {
    let programs = Folder::new("ended-programs");
    let by_c = compile("tests/all/programs/writer.c", programs.path(), &[]);
    for writer in [Some(&*by_c), None] {
        for (count, is_old, gone) in [
            (63, true, 0),
            (64, true, 1),
            (70, true, 7),
            (64, false, 0),
            (511, false, 0),
            (512, false, 1),
        ] {
            let ended = Ended::new(count);
            if is_old {
                ended.age();
            }
            ended.run(writer);
            assert_eq!(ended.gone(), gone, "{count}, old: {is_old}");
        }
        // After a burst there are as few as before in a while.
        let ended = Ended::new(512);
        ended.age();
        ended.run(writer);
        assert_eq!(ended.gone(), 16);
        (0..40).for_each(|_| ended.run(writer));
        assert_eq!(ended.folder.names().len(), 64 + 2, "with the others");
    }
}

#[test]
fn slots_that_threads_take_at_once_are_different_ones() {
    let folder = Folder::new("threads");
    let mut schema = Schema::new("shop", 64).folder(folder.path()).text_bytes(8);
    let counter = schema.counter(Description::new("sold_total", ""));
    let publisher = Publisher::create(&schema).expect("a publisher");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let mut slots: Vec<Slot> = (0..8).map(|_| publisher.take()).collect();
                    for slot in &mut slots {
                        assert!(slot.is_enabled());
                        slot.add(counter, 1);
                    }
                }
            });
        }
    });
    let mut reader = folder.open(Access::MapOwn);
    assert_eq!(
        counts(&mut reader),
        [format!("sold_total {}", 8 * 200 * 8)],
        "a slot with two writers loses counts"
    );
}
