//! True counters: sockets, slabs, inodes, free memory and interrupts, compared with ss, slabtop and sar on the live machine.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use kymo_tests::machine::must_skip;
use kymo_tests::stdout_of;
use serde_json::Value;

/// Attempts at comparing momentary numbers.
const ROUNDS: usize = 20;

fn tool_output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The last interval of a letter, as one object.
fn last(arguments: &[&str]) -> Value {
    let json = stdout_of(&[arguments, &["--json"]].concat());
    let line = json
        .lines()
        .last()
        .unwrap_or_else(|| panic!("nothing: {arguments:?}"));
    serde_json::from_str(line).expect("JSON")
}

fn number(row: &Value, key: &str) -> f64 {
    row[key]
        .as_f64()
        .unwrap_or_else(|| panic!("no {key} in {row}"))
}

/// The numbers of the last line that begins so.
fn numbers(text: &str, begins: &str) -> Vec<f64> {
    let line = text
        .lines()
        .rfind(|line| line.trim_start().starts_with(begins));
    let line = line.unwrap_or_else(|| panic!("no {begins} in {text}"));
    let words = line.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.filter_map(|word| word.parse().ok()).collect()
}

/// True if both are equal to within this share.
fn near(ours: f64, theirs: f64, share: f64) -> bool {
    (ours - theirs).abs() <= share * ours.abs().max(theirs.abs())
}

/// Repeats a comparison until it succeeds.
fn holds(what: &str, mut compare: impl FnMut() -> Result<(), String>) {
    let mut wrong = Vec::new();
    for _ in 0..ROUNDS {
        match compare() {
            Ok(()) => return,
            Err(error) => wrong.push(error),
        }
    }
    panic!("{what}: {wrong:#?}");
}

#[test]
fn sockets_are_those_of_ss() {
    // Sockets of both IP versions that stay open.
    let _held = ["127.0.0.1:0", "[::1]:0"]
        .map(|address| std::net::UdpSocket::bind(address).expect("a port"));
    let _listening = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    holds("ss", || {
        let row = last(&["-ss", "-i.05", "-c1"]);
        let ss = tool_output("ss", &["-s"]);
        let (udp, raw, total) = (
            numbers(&ss, "UDP"),
            numbers(&ss, "RAW"),
            numbers(&ss, "Total:"),
        );
        let ours =
            ["udp", "udp6", "raw", "used"].map(|key| number(&row, &format!("sockets.{key}")));
        let theirs = [udp[1], udp[2], raw[1], total[0]];
        let is_same = ours == theirs && ours[0] >= 1.0 && ours[1] >= 1.0;
        is_same
            .then_some(())
            .ok_or_else(|| format!("{ours:?}, not {theirs:?}"))
    });
}

#[test]
fn slabs_are_those_of_slabtop() {
    if must_skip(&["slabtop"]) {
        return;
    }
    holds("slabtop", || {
        let row = last(&["-sy", "-i.05:.05", "-c1"]);
        let slabtop = tool_output("slabtop", &["-o"]);
        let objects = numbers(&slabtop, "Active / Total Objects");
        let caches = numbers(&slabtop, "Active / Total Caches");
        let ours =
            ["objects_in_use", "objects", "caches"].map(|key| number(&row, &format!("slab.{key}")));
        let theirs = [objects[0], objects[1], caches[1]];
        let is_same = ours
            .iter()
            .zip(theirs)
            .all(|(&ours, theirs)| near(ours, theirs, 0.02));
        is_same
            .then_some(())
            .ok_or_else(|| format!("{ours:?}, not {theirs:?}"))
    });
}

#[test]
fn files_and_inodes_are_those_of_sar() {
    if must_skip(&["sar"]) {
        return;
    }
    holds("sar -v", || {
        let row = last(&["-si", "-i.05", "-c1"]);
        let sar = tool_output("sar", &["-v", "1", "1"]);
        let theirs = numbers(&sar, "Average:");
        let ours = ["dentries_unused", "files", "inodes"]
            .map(|key| number(&row, &format!("inodes.{key}")));
        let is_same = ours
            .iter()
            .zip(&theirs)
            .all(|(&ours, &theirs)| near(ours, theirs, 0.1));
        is_same
            .then_some(())
            .ok_or_else(|| format!("{ours:?}, not {theirs:?}"))
    });
}

/// A count of each CPU, and the times before and after it was read.
struct Reading {
    began: f64,
    ended: f64,
    counts: Vec<f64>,
}

fn now() -> f64 {
    let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed();
    since_1970.expect("a clock past 1970").as_secs_f64()
}

/// The interrupts of each CPU, by the columns of /proc/interrupts.
fn interrupts() -> Reading {
    let began = now();
    let text = std::fs::read_to_string("/proc/interrupts").expect("/proc/interrupts");
    let ended = now();
    let mut lines = text.lines();
    let cpus = lines.next().expect("a header").split_whitespace().count();
    let mut counts = vec![0.0; cpus];
    for line in lines {
        let words = line.split_whitespace().skip(1).take(cpus);
        let numbers: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
        // ERR and MIS have one number, which is of no CPU.
        if numbers.len() == cpus {
            counts
                .iter_mut()
                .zip(numbers)
                .for_each(|(count, n)| *count += n);
        }
    }
    Reading {
        began,
        ended,
        counts,
    }
}

/// A row, and the time at which it was shown.
type Shown = (Value, f64);

/// The least and the most that a CPU can have counted between the samples of two rows. Each sample was read after its stamp and
/// before its row was shown, and counters only grow.
fn bounds(readings: &[Reading], cpu: usize, rows: [&Shown; 2]) -> Option<(f64, f64)> {
    // Stamps are truncated to milliseconds.
    let before = |(row, _): &Shown| {
        let stamp = number(row, "time");
        readings.iter().rfind(|r| r.ended <= stamp)
    };
    let after = |(_, shown): &Shown| readings.iter().find(|r| r.began >= *shown);
    let [first, second] = rows;
    let least = before(second)?.counts[cpu] - after(first)?.counts[cpu];
    let most = after(second)?.counts[cpu] - before(first)?.counts[cpu];
    Some((least, most))
}

/// Rows of kymo, and readings from before the first row to after the last one.
fn beside_readings() -> (Vec<Shown>, Vec<Reading>) {
    let child = Command::new(kymo_tests::kymo())
        .args(["-sj", "-i1", "-c4", "--json"])
        .stdout(std::process::Stdio::piped())
        .spawn();
    let mut child = kymo_tests::Running(child.expect("kymo"));
    let pipe = BufReader::new(child.0.stdout.take().expect("a pipe"));
    let rows = std::thread::spawn(|| {
        let lines = pipe.lines().map(|line| {
            let row = serde_json::from_str(&line.expect("a line"));
            (row.expect("JSON"), now())
        });
        lines.collect::<Vec<Shown>>()
    });
    let mut readings = Vec::new();
    while !rows.is_finished() {
        readings.push(interrupts());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    readings.push(interrupts());
    (rows.join().expect("rows"), readings)
}

/// In each round, readings before and after an interval of kymo bound its counts. Bounds are wide on a busy machine and then
/// prove little, so some have to be narrow.
#[test]
fn interrupts_are_those_of_the_kernel() {
    let mut narrow = 0;
    for _ in 0..ROUNDS {
        let (rows, readings) = beside_readings();
        assert_eq!(rows.len(), 4, "{rows:?}");
        for pair in rows.windows(2) {
            let [first, second] = pair else { continue };
            let elapsed = number(&second.0, "time") - number(&first.0, "time");
            let mut is_narrow = true;
            for cpu in 0..readings[0].counts.len() {
                let ours = number(&second.0, &format!("interrupts.cpu{cpu}")) * elapsed;
                let (least, most) =
                    bounds(&readings, cpu, [first, second]).expect("readings around");
                // Both times are truncated to milliseconds, rates after some digits.
                let cut = 1.0 + ours * 0.002 / elapsed;
                assert!(
                    least - cut <= ours && ours <= most + cut,
                    "CPU {cpu}: {ours}, not in {least} to {most}"
                );
                is_narrow &= ours > 0.0 && most - least < 0.2 * ours;
            }
            narrow += usize::from(is_narrow);
        }
        if narrow > 0 {
            return;
        }
    }
    panic!("no interval is narrow: this machine is too busy to tell");
}

/// The free pieces of all sizes are the free pages of all zones, except for pages that CPUs keep for themselves. MemFree may
/// differ: on a virtual machine it was 12 GB more, where the zones agreed with the pieces.
#[test]
fn free_pieces_are_the_free_memory() {
    holds("buddy", || {
        let row = last(&["-sb", "-i.05", "-c1"]);
        let pieces = number(&row, "buddy.free_kb");
        let pages = numbers(&tool_output("cat", &["/proc/vmstat"]), "nr_free_pages ");
        let page = numbers(&tool_output("getconf", &["PAGESIZE"]), "");
        let free = pages[0] * page[0] / 1024.0;
        let is_same = near(pieces, free, 0.05);
        is_same
            .then_some(())
            .ok_or_else(|| format!("{pieces} KiB, not {free}"))
    });
}
