//! A kernel file that strace makes slow is noticed, named and read less often.

use std::collections::BTreeSet;
use std::process::Command;

use kymo_tests::{Scratch, kymo, parse_dump, run};
use serde_json::Value;

/// Runs kymo under strace, which delays each pread64 of one file by 15 ms.
fn with_slow(path: &str, arguments: &[&str]) -> (String, String) {
    let output = Command::new("strace")
        .args([
            "-f",
            "--seccomp-bpf",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=pread64",
            "-e",
            "inject=pread64:delay_enter=15000",
            "-P",
            path,
        ])
        .arg(kymo())
        .args(arguments)
        .output()
        .expect("strace runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Attempts at a check that a busy machine may upset.
const TRIES: usize = 20;

#[test]
fn doctor_warns_of_it() {
    // These files are now and then slow on this machine, without strace: a warning about them is right.
    let mut slow_anyway = BTreeSet::new();
    let mut said = Vec::new();
    while said.len() < TRIES {
        let (out, err) = with_slow("/proc/stat", &["doctor"]);
        let warning = out
            .lines()
            .find(|line| line.starts_with("WARNING: proc/stat is slow"))
            .unwrap_or_else(|| panic!("{out}{err}"));
        // The reader sleeps, so that it uses no CPU in this time.
        assert!(
            warning.ends_with("most of it without a CPU. Likely cause: a driver, a lock of the kernel or a tracer makes the reader wait."),
            "{warning}"
        );
        let anyway = run(&["doctor"]);
        let anyway = String::from_utf8_lossy(&anyway.stdout).into_owned();
        slow_anyway.extend(warned(&anyway).map(String::from));
        if warned(&out).all(|name| name == "proc/stat" || slow_anyway.contains(name)) {
            return;
        }
        said.push(out);
    }
    panic!("only that file is slow: {said:#?}");
}

/// Files with a warning.
fn warned(said: &str) -> impl Iterator<Item = &str> {
    let lines = said.lines();
    lines.filter_map(|line| line.strip_prefix("WARNING: ")?.split(' ').next())
}

#[test]
fn record_says_so_and_backs_off() {
    let scratch = Scratch::new("slow");
    let dir = scratch.text("ring");
    let (_, err) = with_slow(
        "/proc/stat",
        &["record", "-s", "cm", "-i", ".1", "-c", "20", "-f", &dir],
    );
    let slow: Vec<_> = said_slow(&err).collect();
    assert_eq!(slow.len(), 1, "one line a file: {err}");
    assert!(
        slow[0].contains("proc/stat") && slow[0].contains("read at 1 of 2 turns"),
        "{err}"
    );
    let frames = parse_dump(&run(&["dump", &dir]).stdout);
    let count = |source: &str, state: &str| {
        frames
            .iter()
            .filter(|f| f.source == source && f.state.starts_with(state))
            .count()
    };
    assert!(
        count("proc/stat", "not-read:slow") >= 8,
        "backed off: {}",
        count("proc/stat", "not-read:slow")
    );
    assert!(count("proc/meminfo", "") >= 20);
    // A slow source costs its own rows only.
    assert_eq!(count("proc/meminfo", "not-read"), 0, "{err}");
}

fn said_slow(err: &str) -> impl Iterator<Item = &str> {
    err.lines().filter(|line| line.contains("slow read"))
}

/// A slow file adds no line between rows of numbers; the message is on stderr, once.
#[test]
fn rows_are_not_interrupted() {
    for shape in [&["-P"][..], &["--json"], &[]] {
        let arguments = [&["-s", "c", "-i", ".1", "-c", "20"], shape].concat();
        let (out, err) = with_slow("/proc/stat", &arguments);
        assert_eq!(said_slow(&err).count(), 1, "{shape:?}: {err}");
        assert!(!out.contains("slow"), "{shape:?}: {out}");
    }
}

/// A recorder that shares its CPU with others waits; no file counts as slow because of that.
#[test]
fn waiting_for_a_cpu_makes_no_file_slow() {
    let mut waited = false;
    while !waited {
        let scratch = Scratch::new("slow-busy");
        let dir = scratch.text("ring");
        // Loops that end with the shell, all on the first CPU that this test may use.
        let script = format!(
            "cpu=$(taskset -pc $$ | sed 's/.*: //; s/[^0-9].*//'); taskset -pc $cpu $$ >/dev/null; \
             loops=; for n in 1 2 3 4 5 6; do (while :; do :; done) & loops=\"$loops $!\"; done; \
             trap 'kill $loops' EXIT; nice -n 5 {} record -s cdnm -i 0 -c 3000 -f {dir}; true",
            kymo().display()
        );
        let output = Command::new("sh").args(["-c", &script]).output();
        let err = String::from_utf8_lossy(&output.expect("sh").stderr).into_owned();
        assert_eq!(said_slow(&err).count(), 0, "{err}");
        waited = waited_long(&dir);
    }
}

/// True if a read took long by the clock.
fn waited_long(dir: &str) -> bool {
    const SLOW_NS: u64 = 10_000_000;
    let frames = parse_dump(&run(&["dump", dir]).stdout);
    frames.iter().any(|frame| frame.cost_ns > SLOW_NS)
}

#[test]
fn no_backoff_reads_on() {
    let scratch = Scratch::new("slow-on");
    let dir = scratch.text("ring");
    with_slow(
        "/proc/loadavg",
        &[
            "record",
            "-s",
            "c",
            "-i",
            ".1",
            "-c",
            "10",
            "-f",
            &dir,
            "--no-backoff",
        ],
    );
    let frames = parse_dump(&run(&["dump", &dir, "--source", "proc/loadavg"]).stdout);
    assert!(
        frames
            .iter()
            .all(|frame| !frame.state.starts_with("not-read"))
    );
}

/// The cost of a subsystem without files of its own is known as well: for NFS mounts the text's, for file systems the CPU
/// time of the threads that query them. A mount that hangs does not delay the others.
#[test]
fn doctor_has_a_price_of_mounts() {
    let scratch = Scratch::new("doctor");
    let put = |path: &str, text: &str| {
        let path = scratch.path(&format!("proc/1/{path}"));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    put(
        "mountstats",
        "device a:/b mounted on /c with fstype nfs4 statvers=1.1\n\tage:\t7\n\t    READ: 1 2 3 4 5 6 7 8 9\n",
    );
    put(
        "mountinfo",
        "31 23 8:1 / / rw - ext4 /dev/vda1 rw\n32 31 0:28 / /proc rw - proc proc rw\n",
    );
    let prices = |root: &str| -> Vec<Value> {
        let said = run(&["doctor", "--json", "--root", root]).stdout;
        let said = String::from_utf8_lossy(&said).into_owned();
        said.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    };
    let of = |prices: &[Value], source: &str| {
        let found = prices.iter().find(|price| price["source"] == source);
        found
            .unwrap_or_else(|| panic!("no {source}: {prices:?}"))
            .clone()
    };
    let said = prices(&scratch.text(""));
    for (source, files, bytes) in [
        (
            "mountstats*",
            1,
            "type nfs4 a:/b\nage 7\nREAD 1 2 3 4 5 6 7 8 9\n".len(),
        ),
        // A root that is not a machine's has one mount with room, and it is queried.
        ("statvfs*", 1, 1),
    ] {
        let price = of(&said, source);
        assert_eq!(price["files"], files, "{price}");
        assert!(price["bytes"].as_u64() >= Some(bytes as u64), "{price}");
        assert!(price["median_ns"].as_u64() > Some(0), "{price}");
        let (day, median) = (&price["day_60s_cpu_s"], &price["spaced_median_ns"]);
        let expect = median.as_f64().expect("a price") * 1440.0 / 1e9;
        assert!(
            (day.as_f64().expect("a price") - expect).abs() < 1e-3,
            "{price}"
        );
        assert_eq!(
            (&price["errno"], &price["kernel_bytes"]),
            (&0.into(), &0.into())
        );
    }
    // Without that file, the output has its error.
    std::fs::remove_file(scratch.path("proc/1/mountstats")).expect("a file");
    let said = prices(&scratch.text(""));
    assert_eq!(of(&said, "mountstats*")["errno"], 2);
}
