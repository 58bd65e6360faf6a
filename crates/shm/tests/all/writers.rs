//! Writers that are stopped, killed, forked, or that publish as quickly as they can, seen by readers.

use std::collections::HashSet;
use std::process::Command;
use std::time::{Duration, Instant};

use kymo_shm::{
    Access, Description, Kind, Liveness, Publisher, Reader, Schema, Scratch, State, Value,
};

use crate::c::compile;
use crate::folder::Folder;
use crate::running::Running;

const WRITER: &str = "tests/all/programs/writer.c";
const BOTH: [Access; 2] = [Access::Read, Access::MapOwn];

/// Two folders: that of the program, that of its file.
fn folders(name: &str) -> (Folder, Folder) {
    (Folder::new(&format!("{name}-program")), Folder::new(name))
}

fn writer(programs: &Folder, files: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(compile(WRITER, programs.path(), &[]));
    command
        .arg(arguments[0])
        .arg(files.path())
        .args(&arguments[1..]);
    command
}

fn commands_total(reader: &mut Reader, scratch: &mut Scratch) -> u64 {
    reader.scan(scratch).expect("a scan");
    match reader.value(&reader.metrics()[0]) {
        Value::Counter(count) => count,
        other => panic!("{other:?}"),
    }
}

/// PostgreSQL's own counter of changes is odd while it is written: a reader of a stopped writer waits for ever.
#[test]
fn a_writer_stopped_or_killed_in_the_middle_leaves_the_version_before() {
    for (signal, state) in [(19, 'T'), (9, 'Z')] {
        let (programs, files) = folders(&format!("stop-{signal}"));
        let (running, _) = Running::start(&mut writer(
            &programs,
            &files,
            &["stop", &signal.to_string()],
        ));
        running.await_state(state);
        for access in BOTH {
            let (mut reader, mut scratch) = (files.open(access), Scratch::default());
            for _ in 0..2 {
                assert_eq!(reader.sample(&mut scratch).expect("a sample").busy, 0);
                let activity = &reader.activities()[0];
                assert_eq!(
                    activity.command.as_ref().expect("a command").text,
                    b"before"
                );
                assert_eq!((activity.commands, activity.state), (1, State::Active));
                assert_eq!(commands_total(&mut reader, &mut scratch), 1);
            }
            let expected = if signal == 9 {
                Liveness::Ended
            } else {
                Liveness::Alive
            };
            assert_eq!(reader.liveness(), Ok(expected));
        }
    }
}

/// Samples for a while; whole texts, mixed ones, and samples in which the slot was busy.
fn watch(reader: &mut Reader, samples: usize) -> (usize, usize) {
    let (mut scratch, mut whole, mut busy, mut texts) = (Scratch::default(), 0, 0, HashSet::new());
    let mut before = 0;
    while whole + busy < samples || texts.len() < 2 {
        let sampled = reader.sample(&mut scratch).expect("a sample");
        let activity = &reader.activities()[0];
        busy += sampled.busy;
        whole += 1 - sampled.busy;
        let Some(command) = &activity.command else {
            assert_eq!(whole, 0, "a command that was read is there");
            continue;
        };
        assert!(activity.commands >= before, "versions go backwards");
        before = activity.commands;
        // The first command is that of all tests; the others have their number as stamp, and as query id.
        if activity.commands > 1 {
            let (letter, length) = if command.stamp % 2 == 1 {
                (b'a', 1024)
            } else {
                (b'b', 700)
            };
            assert_eq!(command.text.len(), length);
            assert!(
                command.text.iter().all(|byte| *byte == letter),
                "a mix of two texts"
            );
            assert_eq!(
                (command.stamp, command.stamp + 2),
                (command.query_id, activity.commands)
            );
            texts.insert(letter);
        }
    }
    eprintln!("{whole} whole, {busy} busy");
    (whole, busy)
}

#[test]
fn a_reader_of_a_hundred_thousand_commands_a_second_is_hardly_ever_busy() {
    let (programs, files) = folders("alternate");
    let (_running, _) = Running::start(&mut writer(&programs, &files, &["alternate", "100000"]));
    for access in BOTH {
        let (whole, busy) = watch(&mut files.open(access), 20_000);
        assert!(
            busy * 100 <= whole,
            "{access:?}: {busy} busy, {whole} whole"
        );
    }
}

#[test]
fn texts_are_never_mixed_at_full_speed() {
    let (programs, files) = folders("full-speed");
    let (_running, _) = Running::start(&mut writer(&programs, &files, &["alternate", "0"]));
    for access in BOTH {
        let (whole, _) = watch(&mut files.open(access), 20_000);
        assert!(whole > 0);
    }
}

#[test]
fn cells_are_read_whole() {
    let (programs, files) = folders("cells");
    let (_running, _) = Running::start(&mut writer(&programs, &files, &["cells"]));
    for access in BOTH {
        let (mut reader, mut scratch, mut seen) =
            (files.open(access), Scratch::default(), HashSet::new());
        let begun = Instant::now();
        for _ in 0..100_000 {
            reader.scan(&mut scratch).expect("a scan");
            let bits = reader.totals()[1];
            assert!(bits == 0 || bits == u64::MAX, "{bits:x} is neither");
            seen.insert(bits);
        }
        // On one CPU the writer may not run while the reader does.
        while seen.len() < 2 && begun.elapsed() < Duration::from_secs(20) {
            reader.scan(&mut scratch).expect("a scan");
            seen.insert(reader.totals()[1]);
        }
        assert_eq!(seen.len(), 2);
    }
}

/// A program in Rust that forks: what its parent took does nothing in the child.
#[test]
#[ignore = "the next one starts it"]
#[allow(unsafe_code)]
fn forking_program() {
    let mut schema =
        Schema::new("forks", 2).folder(std::env::var_os("FOLDER").expect("a folder").as_ref());
    let counter = schema.counter(Description::new("commands_total", ""));
    let publisher = Publisher::create(&schema).expect("a publisher");
    let mut slot = publisher.take();
    slot.begin(Kind::Sql, b"parent", 0, 0);
    slot.add(counter, 1);
    // SAFETY: the child touches nothing that another thread of its parent may have held.
    let child = unsafe { libc::fork() };
    if child == 0 {
        slot.begin(Kind::Sql, b"of no one", 0, 0);
        slot.add(counter, 1);
        slot.state(State::Idle);
        drop(slot);
        let mut own = publisher.take();
        own.begin(Kind::Sql, b"child", 0, 0);
        own.add(counter, 1);
        let late = publisher.add_counter(Description::new("late_total", ""));
        // SAFETY: ends the child without what the parent's threads would have to do.
        unsafe { libc::_exit(i32::from(late.is_some())) };
    }
    let mut status = -1;
    // SAFETY: `status` is a place for a number.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0, "a child adds no metric");
    slot.begin(Kind::Sql, b"parent again", 0, 0);
    let mut again = publisher.take();
    assert!(again.is_enabled(), "the slot of the child that ended");
    again.begin(Kind::Sql, b"another", 0, 0);
    again.add(counter, 1);
    std::process::exit(0);
}

#[test]
fn a_child_of_a_program_in_rust_publishes_in_a_slot_of_its_own() {
    let files = Folder::new("fork-rust");
    let status = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "writers::forking_program", "--ignored"])
        .env("FOLDER", files.path())
        .status();
    assert!(status.expect("this program").success());
    let (mut reader, mut scratch) = (files.open(Access::Read), Scratch::default());
    reader.sample(&mut scratch).expect("a sample");
    let texts: Vec<&[u8]> = reader
        .activities()
        .iter()
        .map(|activity| {
            activity
                .command
                .as_ref()
                .expect("a command")
                .text
                .as_slice()
        })
        .collect();
    assert_eq!(texts, [&b"parent again"[..], b"another"]);
    let commands: Vec<u64> = reader
        .activities()
        .iter()
        .map(|activity| activity.commands)
        .collect();
    assert_eq!(commands, [2, 2], "what the child did counts");
    assert_eq!(commands_total(&mut reader, &mut scratch), 3);
    assert!(
        !reader.is_closed(),
        "the process that made it was killed, as it were"
    );
}

#[test]
fn a_child_publishes_in_a_slot_of_its_own() {
    let (programs, files) = folders("fork");
    let (mut running, line) = Running::start(&mut writer(&programs, &files, &["fork"]));
    assert_eq!(line, "ready");
    running.await_state('S');
    let (mut reader, mut scratch) = (files.open(Access::Read), Scratch::default());
    reader.sample(&mut scratch).expect("a sample");
    let [parent, child] = reader.activities() else {
        panic!("not two slots");
    };
    assert_eq!(parent.owner.expect("an owner").pid, running.pid());
    assert_eq!(
        parent.command.as_ref().expect("a command").text,
        b"parent again"
    );
    assert_eq!(parent.commands, 3);
    let child_owner = child.owner.expect("an owner");
    assert_ne!(child_owner.pid, running.pid());
    assert_eq!(child.command.as_ref().expect("a command").text, b"child");
    assert_eq!(commands_total(&mut reader, &mut scratch), 4);
    running.kill();
    assert_eq!(
        reader.liveness(),
        Ok(Liveness::Alive),
        "the child has the file"
    );
    Command::new("kill")
        .args(["-9", &child_owner.pid.to_string()])
        .status()
        .expect("a kill");
    while reader.liveness() == Ok(Liveness::Alive) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(commands_total(&mut reader, &mut scratch), 4, "counts stay");
}
