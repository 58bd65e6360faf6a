//! The running machine on a terminal and in a pipe: the wait for the first interval, stamps, the first processes.

use std::process::Command;

use kymo_tests::{kymo, run, stdout_of};

/// The program's output on its own terminal.
fn on_a_terminal(arguments: &str) -> String {
    let command = format!("{} {arguments}", kymo().display());
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .output()
        .expect("script");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The terminal stayed empty for up to twice the interval.
#[test]
fn a_terminal_is_told_what_is_waited_for() {
    let said = on_a_terminal("-sc -i1 -c1");
    let mut lines = said.lines();
    let first = lines.next().unwrap_or_default().trim_end();
    let times = first
        .strip_prefix("kymo: waiting for the first interval, ")
        .and_then(|rest| rest.split_once(" to "));
    assert!(
        times.is_some_and(|(from, to)| from.len() == 8 && to.len() == 8),
        "{said}"
    );
    assert!(!on_a_terminal("-sc -i1 -c1 --quiet").contains("waiting"));
    let output = run(&["-sc", "-i1", "-c1"]);
    assert!(output.stderr.is_empty(), "a pipe is told nothing");
}

/// `-oT` had no effect on several tables; collectl stamps their lines live, and only live.
#[test]
fn several_tables_are_stamped_live() {
    let text = stdout_of(&["-scd", "--verbose", "-oT", "-i.1", "-c1"]);
    let is_time = |text: &str| {
        text.bytes()
            .zip(b"00:00:00".iter())
            .all(|(c, shape)| match shape {
                b':' => c == b':',
                _ => c.is_ascii_digit(),
            })
    };
    let tables: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("#Time "))
        .collect();
    let rows: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .collect();
    assert_eq!((tables.len(), rows.len()), (2, 2), "{text}");
    assert!(
        rows.iter().all(|row| row.len() > 8 && is_time(row)),
        "{text}"
    );
}

/// The first processes came after a minute, the default of the second interval.
#[test]
fn top_shows_processes_at_each_interval() {
    let text = stdout_of(&["--top", "time,2", "-sc", "-i.2", "-c3"]);
    let heads = text.matches("# TOP PROCESSES sorted by time").count();
    assert_eq!(heads, 3, "{text}");
}

/// `-c` counts first intervals; processes come at the second interval, if one is given.
#[test]
fn processes_have_an_interval_of_their_own() {
    let text = stdout_of(&["-scZ", "-i.1:.3", "-c7", "--procfilt", "p1"]);
    let records: Vec<(i64, bool)> = text
        .split("### RECORD")
        .skip(1)
        .map(|record| {
            let time = record.split(['(', ')']).nth(1);
            let seconds: f64 = time.and_then(|time| time.parse().ok()).expect("a time");
            let has_processes = record.contains("# PROCESS SUMMARY");
            ((seconds * 1000.0).round() as i64, has_processes)
        })
        .collect();
    assert_eq!(records.len(), 7, "{text}");
    // Processes come with the first sample after each multiple of 300 ms from a baseline that is not shown. How late
    // samples are depends on the machine.
    let fits = |phase_ms: i64| {
        let passed = |ms: i64| (ms - phase_ms).div_euclid(300);
        records.windows(2).all(|pair| {
            let ([before, now], has_processes) = ([pair[0].0, pair[1].0], pair[1].1);
            (passed(now) > passed(before)) == has_processes
        })
    };
    assert!((0..300).any(fits), "{text}");
}
