//! True numbers: processes add up to the machine, and totals equal those of sar, iostat and pidstat, over half a
//! minute of steady load on the live machine, whatever else runs there.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

use kymo_tests::{Running, Scratch, kymo, parse_dump, run, stdout_of};
use serde_json::Value;

/// Time that the peers measure.
const SECONDS: usize = 30;
/// Additional seconds of recording, since a busy machine may start the peers late.
const LONGER: usize = 4;
/// Rounds, since a machine may be too busy for the load, or the peers may start too late.
const ROUNDS: usize = 4;
/// The load uses 1.8 cores if it can; a machine shared with others may not give it all of them.
const LEAST_CORES: f64 = 1.0;

#[test]
fn numbers_are_true() {
    let load = Load::start();
    let mut wrong = Vec::new();
    for _ in 0..ROUNDS {
        match measure(&load) {
            Ok(()) => return,
            Err(error) => {
                eprintln!("{error}");
                wrong.push(error);
            }
        }
    }
    panic!("{wrong:#?}");
}

/// At least 1.5 cores of multi-threaded programs whose leader sleeps, programs that run now and then, and some traffic.
struct Load {
    burners: Vec<Running>,
    _dozers: Vec<Running>,
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
            _dozers: (0..10).map(|_| start(&["doze"])).collect(),
            burners: (0..2).map(|_| start(&["burn", "2", "45"])).collect(),
            _traffic: [start(&["udp"]), start(&["disk", &scratch.text("file")])],
            _scratch: scratch,
        };
        std::thread::sleep(std::time::Duration::from_secs(2));
        load
    }
}

/// One round; the error names what differs.
fn measure(load: &Load) -> Result<(), String> {
    let scratch = Scratch::new("truth");
    let dir = scratch.text("ring");
    let seconds = SECONDS.to_string();
    let pid = load.burners[0].0.id().to_string();
    let recorder = start(&[
        kymo().to_str().expect("a path"),
        "record",
        "-s",
        "cdnDNZ",
        "-i",
        ".1:.1",
        "-c",
        &((SECONDS + LONGER) * 10).to_string(),
        "-f",
        &dir,
    ]);
    // The recorder has a sample before the peers begin.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let sar = start(&["sar", "-u", "ALL", "-n", "DEV", &seconds, "1"]);
    let iostat = start(&["iostat", "-d", "-k", "-y", &seconds, "1"]);
    let pidstat = start(&["pidstat", "-u", "-p", &pid, &seconds, "1"]);
    let (sar, iostat, pidstat) = (text(sar), text(iostat), text(pidstat));
    text(recorder);
    let ring = Ring::read(&dir);
    add_up(&dir, &ring)?;
    ring.compare("sar", &sar_figures(&ring, &sar))?;
    ring.compare("iostat", &iostat_figures(&ring, &iostat))?;
    ring.compare("pidstat", &pidstat_figures(&ring, &pidstat, &pid))
}

fn start(words: &[&str]) -> Child {
    let child = Command::new(words[0])
        .args(&words[1..])
        .env("LC_ALL", "C")
        .env("S_TIME_FORMAT", "ISO")
        .stdout(Stdio::piped())
        .spawn();
    child.unwrap_or_else(|error| panic!("cannot run {}: {error}", words[0]))
}

fn text(child: Child) -> String {
    let output = child.wait_with_output().expect("its output");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Counts of intervals, each by the time of its end.
type Counts = BTreeMap<u64, f64>;

/// A peer's number and kymo's: the counts, their divisor (`None`: the seconds), and the unit.
struct Figure {
    name: &'static str,
    counts: Counts,
    whole: Option<Counts>,
    unit: f64,
    theirs: f64,
}

/// Rows of `play -on` for a recording: counts of each interval.
struct Ring {
    rows: BTreeMap<&'static str, Vec<Value>>,
}

impl Ring {
    fn read(dir: &str) -> Ring {
        let rows = ["c", "D", "N", "Z"].map(|letter| (letter, rows(dir, letter)));
        Ring { rows: rows.into() }
    }

    /// The sum of columns over the wanted rows of each interval.
    fn counts(&self, letter: &str, columns: &[&str], wanted: impl Fn(&Value) -> bool) -> Counts {
        let mut counts = Counts::new();
        for row in self.rows[letter].iter().filter(|row| wanted(row)) {
            let sum: f64 = columns.iter().map(|column| number(row, column)).sum();
            *counts.entry(end_ms(row)).or_default() += sum;
        }
        counts
    }

    /// A peer's begin is known only to within its start-up time. All its numbers must fit the same half minute.
    fn compare(&self, peer: &str, figures: &[Figure]) -> Result<(), String> {
        let ends: Vec<u64> = self.rows["c"].iter().map(end_ms).collect();
        let last = *ends.last().ok_or("nothing was recorded")?;
        let mut nearest = (f64::MAX, String::new());
        for begin in ends {
            let end = begin + SECONDS as u64 * 1000;
            if end > last {
                break;
            }
            let (mut worst, mut said) = (0.0_f64, format!("{peer}:"));
            for figure in figures {
                let ours = figure.between(begin, end);
                let error = (ours - figure.theirs).abs() / figure.theirs;
                worst = worst.max(error);
                said += &format!(" {} {ours:.2} and {:.2};", figure.name, figure.theirs);
            }
            if worst < nearest.0 {
                nearest = (worst, said);
            }
        }
        let (worst, said) = nearest;
        eprintln!("{said} off by {:.2} %", worst * 100.0);
        match worst <= 0.01 {
            true => Ok(()),
            false => Err(said),
        }
    }
}

impl Figure {
    fn between(&self, begin_ms: u64, end_ms: u64) -> f64 {
        let sum = |counts: &Counts| {
            counts
                .range(begin_ms + 1..=end_ms)
                .map(|(_, count)| count)
                .sum::<f64>()
        };
        let seconds = (end_ms - begin_ms) as f64 / 1000.0;
        sum(&self.counts) / self.whole.as_ref().map_or(seconds, sum) * self.unit
    }
}

fn rows(dir: &str, letter: &str) -> Vec<Value> {
    let json = stdout_of(&["play", dir, "-s", letter, "--json", "-on"]);
    let rows = json
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    rows.filter(|row: &Value| row.get("event").is_none())
        .collect()
}

fn end_ms(row: &Value) -> u64 {
    (number(row, "time") * 1000.0).round() as u64
}

fn number(row: &Value, key: &str) -> f64 {
    row.get(key).and_then(Value::as_f64).unwrap_or(0.0)
}

/// The CPU time of all processes is that of the machine. Time of processes that began and ended between two scans is
/// missing: at most the time that the kernel added to their parents.
fn add_up(dir: &str, ring: &Ring) -> Result<(), String> {
    let processes: f64 = ring.rows["Z"]
        .iter()
        .map(|row| number(row, "process.syst") + number(row, "process.usrt"))
        .sum();
    let (machine, ended) = machine_and_ended(dir);
    eprintln!(
        "processes {processes:.2} s, machine {machine:.2} s, children that ended {ended:.2} s"
    );
    if machine < LEAST_CORES * SECONDS as f64 {
        return Err(format!(
            "the machine was too busy for the load: {machine} s"
        ));
    }
    match ((machine - ended) * 0.98..=machine * 1.02).contains(&processes) {
        true => Ok(()),
        false => Err(format!(
            "processes {processes} s, machine {machine} s, of it {ended} s of children that ended"
        )),
    }
}

/// CPU seconds of the machine between the first sample and the last, and
/// those of children that ended meanwhile, from the kernel's counters.
fn machine_and_ended(dir: &str) -> (f64, f64) {
    let (mut machine, mut children) = (Vec::new(), BTreeMap::new());
    let frames = parse_dump(&run(&["dump", dir]).stdout);
    let first_scan = frames.first().map(|frame| frame.seq);
    for frame in frames {
        let text = String::from_utf8_lossy(&frame.text);
        if frame.source == "proc/stat" {
            machine.push(ticks(&text, 1..4));
        } else if frame.source.ends_with("/stat")
            && let Some((_, words)) = text.rsplit_once(')')
        {
            // Words after the name: state is word 0, cutime and cstime are 13 and 14, starttime 19.
            let born = words.split_whitespace().nth(19).map(str::to_string);
            let ended = ticks(words, 13..15);
            let before = if Some(frame.seq) == first_scan {
                ended
            } else {
                0.0
            };
            let (_, newest) = children
                .entry((frame.source, born))
                .or_insert((before, ended));
            *newest = ended;
        }
    }
    let ended: f64 = children.values().map(|(first, last)| last - first).sum();
    let machine = machine[machine.len() - 1] - machine[0];
    (machine / 100.0, ended / 100.0)
}

/// The sum of a line's words.
fn ticks(text: &str, words: std::ops::Range<usize>) -> f64 {
    let line = text.lines().next().unwrap_or_default();
    line.split_whitespace()
        .skip(words.start)
        .take(words.len())
        .map(|word| word.parse::<f64>().expect("ticks"))
        .sum()
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

fn sar_figures(ring: &Ring, sar: &str) -> [Figure; 4] {
    let cpu = |names: &[&str]| {
        let columns: Vec<String> = names.iter().map(|name| format!("cpu.{name}")).collect();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        ring.counts("c", &columns, |_| true)
    };
    let share = |name, columns: &[&str]| Figure {
        name,
        counts: cpu(columns),
        whole: Some(cpu(&[
            "user", "nice", "sys", "wait", "irq", "soft", "steal", "idle",
        ])),
        unit: 100.0,
        theirs: table(sar, "%usr", "all", name),
    };
    let lo = |name, column: &str| Figure {
        name,
        counts: ring.counts("N", &[column], |row| row["net.interface"] == "lo"),
        whole: None,
        unit: 1.0,
        theirs: table(sar, "IFACE", "lo", name),
    };
    [
        share("%usr", &["user"]),
        share("%sys", &["sys"]),
        lo("rxpck/s", "net.rx_packets"),
        lo("txkB/s", "net.tx_kb"),
    ]
}

fn iostat_figures(ring: &Ring, iostat: &str) -> [Figure; 1] {
    // The disk to which the load writes is the busiest.
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
    [Figure {
        name: "kB_wrtn/s",
        counts: ring.counts("D", &["disk.write_kb"], |row| row["disk.disk"] == disk),
        whole: None,
        unit: 1.0,
        theirs: table(iostat, "Device", disk, "kB_wrtn/s"),
    }]
}

fn pidstat_figures(ring: &Ring, pidstat: &str, pid: &str) -> [Figure; 1] {
    let own = |row: &Value| row["process.pid"].as_u64() == pid.parse().ok();
    [Figure {
        name: "%CPU",
        counts: ring.counts("Z", &["process.usrt", "process.syst"], own),
        whole: None,
        unit: 100.0,
        theirs: table(pidstat, "%usr", pid, "%usr") + table(pidstat, "%usr", pid, "%system"),
    }]
}
