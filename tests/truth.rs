//! Are the numbers true? Processes add up to the machine, and totals are those of sar, iostat and
//! pidstat, over half minutes of steady load on the live machine.

use std::collections::HashMap;
use std::process::{Command, Stdio};

use kymo_tests::{Running, Scratch, parse_dump, run, stdout_of};
use serde_json::Value;

const SECONDS: usize = 30;
/// Ours and theirs begin and end nearly together: what others do at an edge may be in one of them alone. Numbers that are
/// wrong are so in each round.
const ROUNDS: usize = 6;
/// So often a number must be right.
const RIGHT: usize = 2;
/// The load asks for 1.8 cores; a machine shared with others may not give them all.
const LEAST_CORES: f64 = 1.0;

/// One round's comparisons: name → (ours, theirs).
type Round = HashMap<String, (f64, f64)>;

#[test]
fn numbers_are_true() {
    let load = Load::start();
    let mut right: HashMap<String, usize> = HashMap::new();
    for _ in 0..ROUNDS {
        let Some(round) = measure(&load) else {
            eprintln!("the load was too small");
            continue;
        };
        for (name, (ours, theirs)) in round {
            let error = (ours - theirs).abs() / theirs;
            let allowed = if name == "processes" { 0.02 } else { 0.01 };
            let percent = error * 100.0;
            eprintln!("{name}: {ours} and {theirs}: off by {percent:.2} %");
            *right.entry(name).or_default() += usize::from(error <= allowed);
        }
        if right.values().all(|&count| count >= RIGHT) {
            return;
        }
    }
    panic!("so often they were right: {right:?}");
}

/// At least 1.5 cores of multi-threaded programs whose leader sleeps, and some traffic.
struct Load {
    burners: Vec<Running>,
    _traffic: [Running; 2],
    _scratch: Scratch,
}

impl Load {
    fn start() -> Load {
        let scratch = Scratch::new("load");
        let start = |arguments: &[&str]| {
            let child = Command::new(env!("CARGO_BIN_EXE_load"))
                .args(arguments)
                .stdin(Stdio::null())
                .spawn();
            Running(child.expect("load starts"))
        };
        let load = Load {
            burners: (0..2).map(|_| start(&["burn", "2", "45"])).collect(),
            _traffic: [start(&["udp"]), start(&["disk", &scratch.text("file")])],
            _scratch: scratch,
        };
        std::thread::sleep(std::time::Duration::from_secs(2));
        load
    }
}

/// `None`: the machine was too busy with others for the load.
fn measure(load: &Load) -> Option<Round> {
    let scratch = Scratch::new("truth");
    let dir = scratch.text("ring");
    let seconds = SECONDS.to_string();
    let pid = load.burners[0].0.id().to_string();
    let peer = |words: &[&str]| {
        let child = Command::new(words[0])
            .args(&words[1..])
            .env("LC_ALL", "C")
            .env("S_TIME_FORMAT", "ISO")
            .stdout(Stdio::piped())
            .spawn();
        child.unwrap_or_else(|error| panic!("cannot run {}: {error}", words[0]))
    };
    let sar = peer(&["sar", "-u", "ALL", "-w", "-n", "DEV", &seconds, "1"]);
    let iostat = peer(&["iostat", "-d", "-k", "-y", &seconds, "1"]);
    let pidstat = peer(&["pidstat", "-u", "-p", &pid, &seconds, "1"]);
    // A tenth of a second: ours and theirs then begin and end at the same moment, nearly.
    stdout_of(&[
        "record",
        "-s",
        "cdnDNZ",
        "-i",
        ".1:.1",
        "-c",
        &(SECONDS * 10).to_string(),
        "-f",
        &dir,
    ]);
    let text = |child: std::process::Child| {
        String::from_utf8_lossy(&child.wait_with_output().expect("its output").stdout).into_owned()
    };
    let (sar, iostat, pidstat) = (text(sar), text(iostat), text(pidstat));

    let mut round = Round::new();
    let (processes, machine) = processes_and_machine(&dir);
    round.insert("processes".into(), (processes, machine));
    let elapsed = elapsed(&dir);
    compare_sar(&dir, elapsed, &sar, &mut round);
    compare_iostat(&dir, elapsed, &iostat, &mut round);
    compare_pidstat(&dir, elapsed, &pidstat, &pid, &mut round);
    (machine > LEAST_CORES * SECONDS as f64).then_some(round)
}

/// What `play -on` gives: counts of each interval.
fn rows(dir: &str, letters: &str) -> Vec<Value> {
    let json = stdout_of(&["play", dir, "-s", letters, "--json", "-on"]);
    let rows = json
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    rows.filter(|row: &Value| row.get("event").is_none())
        .collect()
}

fn sum<'a>(rows: impl IntoIterator<Item = &'a Value>, key: &str) -> f64 {
    rows.into_iter().map(|row| number(row, key)).sum()
}

/// Monotonic seconds from the first sample to the last.
fn elapsed(dir: &str) -> f64 {
    let dump = stdout_of(&["dump", dir, "--source", "proc/loadavg"]);
    let stamps = dump
        .lines()
        .filter(|line| line.starts_with(">>> "))
        .filter_map(|line| line.split(' ').nth(4)?.parse::<f64>().ok());
    let stamps: Vec<f64> = stamps.collect();
    stamps[stamps.len() - 1] - stamps[0]
}

fn number(row: &Value, key: &str) -> f64 {
    row.get(key).and_then(Value::as_f64).unwrap_or(0.0)
}

/// CPU seconds of all processes, and of the machine between the same samples.
fn processes_and_machine(dir: &str) -> (f64, f64) {
    let processes: f64 = rows(dir, "Z")
        .iter()
        .map(|row| number(row, "process.syst") + number(row, "process.usrt"))
        .sum();
    let frames = parse_dump(&run(&["dump", dir, "--source", "proc/stat"]).stdout);
    let ticks = |text: &[u8]| -> f64 {
        let text = String::from_utf8_lossy(text);
        let line = text.lines().next().unwrap_or_default();
        line.split_whitespace()
            .skip(1)
            .take(3)
            .map(|word| word.parse::<f64>().expect("ticks"))
            .sum()
    };
    let (first, last) = (
        frames.first().expect("a sample"),
        frames.last().expect("a sample"),
    );
    let machine = (ticks(&last.text) - ticks(&first.text)) / 100.0;
    (processes, machine)
}

/// The value under `column` in the line that begins (after the time) with `first`.
fn table(text: &str, header: &str, first: &str, column: &str) -> f64 {
    let mut lines = text
        .lines()
        .skip_while(|line| !line.split_whitespace().any(|word| word == header));
    let names: Vec<&str> = lines
        .next()
        .unwrap_or_else(|| panic!("no {header} in {text}"))
        .split_whitespace()
        .collect();
    let at = names
        .iter()
        .position(|name| *name == column)
        .unwrap_or_else(|| panic!("no {column} in {names:?}"));
    let row = lines
        .take_while(|line| !line.is_empty())
        .find(|line| line.split_whitespace().any(|word| word == first));
    let row = row.unwrap_or_else(|| panic!("no {first} under {header} in {text}"));
    row.split_whitespace()
        .nth(at)
        .and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("no number in {row}"))
}

fn compare_sar(dir: &str, elapsed: f64, sar: &str, round: &mut Round) {
    let ours = rows(dir, "cdn");
    let ticks = |name: &str| sum(&ours, &format!("cpu.{name}"));
    let all: f64 = [
        "user", "nice", "sys", "wait", "irq", "soft", "steal", "idle",
    ]
    .map(ticks)
    .iter()
    .sum();
    let mut compare =
        |name: &str, ours: f64, theirs: f64| round.insert(name.into(), (ours, theirs));
    compare(
        "sar %usr",
        ticks("user") / all * 100.0,
        table(sar, "%usr", "all", "%usr"),
    );
    compare(
        "sar %sys",
        ticks("sys") / all * 100.0,
        table(sar, "%usr", "all", "%sys"),
    );
    let rows = rows(dir, "N");
    let lo = || rows.iter().filter(|row| row["net.interface"] == "lo");
    compare(
        "sar lo rxpck/s",
        sum(lo(), "net.rx_packets") / elapsed,
        table(sar, "IFACE", "lo", "rxpck/s"),
    );
    compare(
        "sar lo txkB/s",
        sum(lo(), "net.tx_kb") / elapsed,
        table(sar, "IFACE", "lo", "txkB/s"),
    );
}

fn compare_iostat(dir: &str, elapsed: f64, iostat: &str, round: &mut Round) {
    // The disk that the load writes to is the busiest.
    let written = |line: &&str| {
        line.split_whitespace()
            .nth(3)
            .and_then(|kb| kb.parse::<f64>().ok())
            .unwrap_or(-1.0)
    };
    let busiest = iostat
        .lines()
        .max_by(|a, b| written(a).total_cmp(&written(b)));
    let disk = busiest
        .and_then(|line| line.split_whitespace().next())
        .expect("a disk");
    let rows = rows(dir, "D");
    let ours = sum(
        rows.iter().filter(|row| row["disk.disk"] == disk),
        "disk.write_kb",
    ) / elapsed;
    round.insert(
        "iostat kB_wrtn/s".into(),
        (ours, table(iostat, "Device", disk, "kB_wrtn/s")),
    );
}

fn compare_pidstat(dir: &str, elapsed: f64, pidstat: &str, pid: &str, round: &mut Round) {
    let rows = rows(dir, "Z");
    let own = || {
        rows.iter()
            .filter(|row| row["process.pid"].as_u64() == pid.parse().ok())
    };
    let ours = (sum(own(), "process.usrt") + sum(own(), "process.syst")) / elapsed * 100.0;
    let theirs = table(pidstat, "%usr", pid, "%usr") + table(pidstat, "%usr", pid, "%system");
    round.insert("pidstat %CPU".into(), (ours, theirs));
}
