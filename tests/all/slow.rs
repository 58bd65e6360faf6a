//! A kernel file made slow from outside is noticed, named and backed off.

use std::process::Command;

use kymo_tests::{Scratch, kymo, parse_dump, run};

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

/// On a busy machine another file may be slow, too, but not each time.
fn at_most_five_times(mut only_that_one: impl FnMut() -> Result<(), String>) {
    let mut said = Vec::new();
    while said.len() < 5 {
        match only_that_one() {
            Ok(()) => return,
            Err(others) => said.push(others),
        }
    }
    panic!("only that file is slow: {said:#?}");
}

#[test]
fn doctor_warns_of_it() {
    at_most_five_times(|| {
        let (out, err) = with_slow("/proc/stat", &["doctor"]);
        let warning = out
            .lines()
            .find(|line| line.starts_with("WARNING: proc/stat is slow"))
            .unwrap_or_else(|| panic!("{out}{err}"));
        assert!(
            warning.contains("Likely cause") && warning.contains("interrupts"),
            "{warning}"
        );
        // What is slow on this machine without strace, too, is warned of rightly.
        let anyway = run(&["doctor"]);
        let anyway = String::from_utf8_lossy(&anyway.stdout).into_owned();
        let others = warned(&out).filter(|name| *name != "proc/stat");
        match others
            .filter(|name| !warned(&anyway).any(|of| of == *name))
            .count()
        {
            0 => Ok(()),
            _ => Err(out),
        }
    });
}

/// The files that are said to be slow.
fn warned(said: &str) -> impl Iterator<Item = &str> {
    let lines = said.lines();
    lines.filter_map(|line| line.strip_prefix("WARNING: ")?.split(' ').next())
}

#[test]
fn record_says_so_and_backs_off() {
    at_most_five_times(record_backs_off);
}

fn record_backs_off() -> Result<(), String> {
    let scratch = Scratch::new("slow");
    let dir = scratch.text("ring");
    let (_, err) = with_slow(
        "/proc/stat",
        &["record", "-s", "cm", "-i", ".1", "-c", "20", "-f", &dir],
    );
    let slow: Vec<_> = err
        .lines()
        .filter(|line| line.contains("slow read: proc/stat"))
        .collect();
    assert_eq!(slow.len(), 1, "one line a minute: {err}");
    assert!(slow[0].contains("read at 1 of 2 turns"), "{err}");
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
    match count("proc/meminfo", "not-read") {
        0 => Ok(()),
        _ => Err(err),
    }
}

/// A recorder that shares its CPU with others waits, and no file is slow for that.
#[test]
fn waiting_for_a_cpu_makes_no_file_slow() {
    at_most_five_times(|| {
        let scratch = Scratch::new("slow-busy");
        let dir = scratch.text("ring");
        // Loops that end with the shell, all on the first CPU this test may use.
        let script = format!(
            "cpu=$(taskset -pc $$ | sed 's/.*: //; s/[^0-9].*//'); taskset -pc $cpu $$ >/dev/null; \
             loops=; for n in 1 2 3 4 5 6; do (while :; do :; done) & loops=\"$loops $!\"; done; \
             trap 'kill $loops' EXIT; {} record -s cdnm -i 0 -c 3000 -f {dir}; true",
            kymo().display()
        );
        let output = Command::new("sh").args(["-c", &script]).output();
        let err = String::from_utf8_lossy(&output.expect("sh").stderr).into_owned();
        match err.contains("slow read") {
            true => Err(err),
            false => waited_long(&dir)
                .then_some(())
                .ok_or("it never waited".into()),
        }
    });
}

/// Whether reads took long by the clock.
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
