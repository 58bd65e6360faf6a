//! A recorder with a filter of processes reads and keeps no others, and the recording says so.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};

use kymo_tests::machine::must_skip;
use kymo_tests::served::{Served, eventually, get};
use kymo_tests::{Running, Scratch, kymo, parse_dump, put, run, stdout_of};

/// A process that sleeps until the test is over.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Sleeper {
        let mut command = Command::new("sleep");
        Sleeper(command.arg("3600").spawn().expect("a sleeper"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Records three scans; returns the names of the recorded kernel files.
fn recorded(arguments: &[&str], dir: &str) -> BTreeSet<String> {
    stdout_of(&[arguments, &["-sZ", "-i0:1", "-c3", "-f", dir]].concat());
    let dump = run(&["dump", dir]);
    let frames = parse_dump(&dump.stdout);
    frames.into_iter().map(|frame| frame.source).collect()
}

/// collectl's author has commands whose filter saves him most of the cost. kymo read and kept all processes.
#[test]
fn the_chosen_processes_alone_are_read_and_kept() {
    let scratch = Scratch::new("chosen");
    let sleepers = [Sleeper::new(), Sleeper::new()];
    let [chosen, other] = sleepers.each_ref().map(Sleeper::pid);
    let filter = format!("p{chosen}");
    let lines: [(&str, &[&str]); 3] = [
        ("record", &["record", "--procfilt", &filter]),
        ("collectl", &["collectl", "--procfilt", &filter]),
        (
            "fixed",
            &["record", "--procfilt", &filter, "--procopts", "p"],
        ),
    ];
    for (name, arguments) in lines {
        let dir = scratch.text(name);
        let sources = recorded(arguments, &dir);
        let is_of = |source: &String| {
            let mut parts = source.split('/').skip(1);
            parts.next() == Some(chosen.to_string().as_str())
        };
        assert!(sources.iter().all(is_of), "{name}: {sources:?}");
        for file in ["stat", "io"] {
            let source = format!("proc/{chosen}/{file}");
            assert!(sources.contains(&source), "{name}: {sources:?}");
        }
        let shown = stdout_of(&["play", &dir, "-sZ"]);
        let said = format!("not recorded: other processes than those of --procfilt {filter}");
        assert!(shown.contains(&said), "{name}: {shown}");
        let none = stdout_of(&["play", &dir, "-sZ", "--procfilt", &format!("p{other}")]);
        assert!(none.contains(&said), "{name}: {none}");
    }
}

/// The page's table of processes says which ones the recording left out.
#[test]
fn a_table_of_processes_says_what_was_not_recorded() {
    let scratch = Scratch::new("chosen-table");
    let sleeper = Sleeper::new();
    let filter = format!("p{}", sleeper.pid());
    let said = format!("other processes than those of --procfilt {filter}, I/O of processes");
    let lines: [(&str, &[&str], serde_json::Value); 2] = [
        (
            "chosen",
            &["--procfilt", &filter, "--procopts", "I"],
            said.into(),
        ),
        ("all", &[], serde_json::Value::Null),
    ];
    for (name, arguments, expected) in lines {
        let dir = scratch.text(name);
        recorded(&[&["record"][..], arguments].concat(), &dir);
        let mut served = Served::start(&["--open", &dir, "--listen", "127.0.0.1:0"]);
        let table = get(&served.address(), "/kymo/v1/processes?at=now", "");
        assert_eq!(table["not_recorded"], expected, "{name}");
        assert!(table["total"].as_u64() >= Some(1), "{name}: {table}");
    }
}

/// Bytes of the blocks and tails below a folder.
fn recorded_bytes(dir: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(dir).expect("a folder").flatten();
    let size = |entry: std::fs::DirEntry| match entry.path().is_dir() {
        true => recorded_bytes(&entry.path()),
        false => entry.metadata().expect("a file").len(),
    };
    entries.map(size).sum()
}

/// A recorder that chose 2 of 100 processes opens their files and, at first and second sight, those by which it judges the
/// others. Without a filter it opens `stat`, `io` and `status` of each.
#[test]
fn what_is_not_chosen_costs_no_reads_and_no_bytes() {
    if must_skip(&["strace"]) {
        return;
    }
    let scratch = Scratch::new("chosen-costs");
    let sleepers: Vec<Sleeper> = std::iter::repeat_with(Sleeper::new).take(100).collect();
    let [first, second] = [sleepers[0].pid(), sleepers[1].pid()];
    let filter = format!("p{first},p{second}");
    let traced = |name: &str, more: &[&str]| {
        let (dir, trace) = (scratch.text(name), scratch.text(&format!("{name}.trace")));
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "trace=openat", "-o", &trace]);
        command
            .arg(kymo())
            .args(["record", "-sZ", "-i0:1", "-c20", "-f", &dir]);
        let output = command.args(more).output().expect("strace");
        assert!(output.status.success(), "{output:?}");
        let trace = std::fs::read_to_string(&trace).expect("a trace");
        let opened = |pid: u32| {
            let below = [format!("\"{pid}/"), format!("\"proc/{pid}/")];
            let is_of = |line: &&str| below.iter().any(|below| line.contains(below));
            trace.lines().filter(is_of).count()
        };
        let others = sleepers[2..].iter().map(|other| opened(other.pid()));
        let bytes = recorded_bytes(std::path::Path::new(&dir));
        (opened(first) + opened(second), others.sum::<usize>(), bytes)
    };
    let (chosen, others, bytes) = traced("chosen", &["--procfilt", &filter]);
    let (_, all_others, all_bytes) = traced("all", &[]);
    assert!(chosen >= 2 * 3, "{chosen} opens of the chosen");
    assert_eq!(others, 0, "a filter of pids needs no file to judge by");
    assert!(all_others >= 98 * 3, "{all_others} opens without a filter");
    assert!(bytes < all_bytes / 2, "{bytes} bytes, {all_bytes} of all");
}

#[test]
fn io_that_is_not_asked_for_is_not_read() {
    let scratch = Scratch::new("chosen-io");
    let sleeper = Sleeper::new();
    let filter = format!("p{}", sleeper.pid());
    for word in ["record", "collectl"] {
        let dir = scratch.text(word);
        let arguments = [word, "--procfilt", &filter, "--procopts", "I"];
        let sources = recorded(&arguments, &dir);
        assert!(sources.contains(&format!("proc/{}/stat", sleeper.pid())));
        let has_io = sources.iter().any(|source| source.ends_with("/io"));
        assert!(!has_io, "{word}: {sources:?}");
        let shown = stdout_of(&["play", &dir, "-sZ", "--procopts", "i"]);
        assert!(shown.contains("I/O of processes"), "{word}: {shown}");
    }
}

/// A pid is used again between two scans: by then it belongs to another process, which the filter did not choose.
#[test]
fn a_process_that_takes_the_number_of_a_chosen_one_is_not_recorded() {
    let scratch = Scratch::new("chosen-reborn");
    let root = scratch.path("root");
    let process = |pid: u32, name: &str, start: u32| {
        let zeros = "0 ".repeat(31);
        let stat =
            format!("{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 {start} {zeros}0\n");
        put(&root, &format!("proc/{pid}/stat"), &stat);
    };
    put(&root, "proc/loadavg", "0.00 0.00 0.00 1/10 8\n");
    process(7, "chosen", 100);
    process(8, "chosen", 100);
    let dir = scratch.text("out");
    let scans = |pid: u32| -> Vec<(u64, String)> {
        let frames = parse_dump(&run(&["dump", &dir]).stdout);
        let source = format!("proc/{pid}/stat");
        let of_it = frames.into_iter().filter(|frame| frame.source == source);
        of_it
            .map(|frame| (frame.seq, String::from_utf8_lossy(&frame.text).into_owned()))
            .collect()
    };
    let mut command = Command::new(kymo());
    command.args(["record", "-sZ", "-i", ".1:.1", "--procfilt", "cchosen"]);
    command.args(["--root", root.to_str().expect("a name"), "-f", &dir]);
    let recorder = Running(command.stderr(Stdio::null()).spawn().expect("kymo"));
    let has = |pid, wanted| eventually(|| (scans(pid).len() >= wanted).then_some(()));
    has(7, 3).expect("three scans");
    process(7, "another", 200);
    let before = scans(8).len();
    has(8, before + 5).expect("five scans more");
    drop(recorder);
    let others = scans(7);
    let others = others.iter().filter(|(_, text)| text.contains("another"));
    assert!(others.count() <= 1, "only the scan that found it out");
    let (last, _) = scans(8).pop().expect("a scan");
    assert!(
        scans(7).iter().all(|&(seq, _)| seq < last),
        "{:?}",
        scans(7)
    );
}

#[test]
fn a_filter_that_cannot_be_read_is_refused() {
    let scratch = Scratch::new("chosen-wrong");
    let dir = scratch.text("out");
    for (switch, value, cause) in [
        ("--procfilt", "x1", "it begins with one of"),
        ("--procopts", "?", "cannot use --procopts"),
    ] {
        let output = run(&["record", "-sZ", "-c1", "-f", &dir, switch, value]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{switch}: {stderr}");
        assert!(stderr.contains(cause), "{switch}: {stderr}");
    }
}
