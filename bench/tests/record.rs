//! The harness itself, on the live machine: rows run in their quick form with a
//! stand-in for kymo, and nothing stays behind when the bench is killed.
//! No time is asserted.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BENCH: &str = env!("CARGO_BIN_EXE_kymo-bench");
/// Without rows that need root or much time.
const ROWS: &str = "day,spaced,processes,seal,bytes,memory,start,play,seek";

/// Accepts kymo's command lines and costs as much as the floor.
const STAND_IN: &str = r##"#!/bin/sh
verb=$1; shift
case $verb in
record)
  while [ $# -gt 0 ]; do
    case $1 in
    -s) letters=$2; shift ;;
    -i) interval=$2; shift ;;
    -c) count=$2; shift ;;
    -f) dir=$2; shift ;;
    --ack-fd) ack=--ack; shift ;;
    --cost) echo "12 kB of the kernel"; echo "sampling_cpu_ns 100"; echo "sealing_cpu_ns 5" ;;
    esac
    shift
  done
  mkdir -p "$dir/host-00000000"
  echo block > "$dir/host-00000000/1-1795295775-1795295790.blk"
  exec "$FLOOR" floor -s "$letters" -i "$interval" -c "$count" $ack ;;
play) echo "#Date Time"; echo "20261121 10:00:00 1" ;;
esac
"##;

/// A directory of the test, removed at drop.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("bench-test-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Dir(path.canonicalize().unwrap())
    }

    fn entries(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn stand_in(dir: &Path) -> PathBuf {
    let path = dir.join("kymo");
    fs::write(&path, STAND_IN).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn rows_give_figures_and_verdicts() {
    let (programs, work) = (Dir::new("programs"), Dir::new("work"));
    let ring = programs.0.join("ring");
    fs::create_dir(&ring).unwrap();
    fs::write(ring.join("1-1795295775-1795295790.blk"), "").unwrap();
    let results = programs.0.join("RESULTS.md");
    let out = Command::new(BENCH)
        .args(["record", "--quick", "--rounds", "1", "--only", ROWS])
        .arg("--kymo")
        .arg(stand_in(&programs.0))
        .args(["--ring1".as_ref(), ring.as_os_str()])
        .args(["--ring30".as_ref(), ring.as_os_str()])
        .args(["--dir".as_ref(), work.0.as_os_str()])
        .args(["--results".as_ref(), results.as_os_str()])
        .env("FLOOR", BENCH)
        .output()
        .unwrap();
    let table = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{table}");
    for row in ROWS.split(',') {
        let line = table
            .lines()
            .find(|line| line.starts_with(&format!("| {row} |")));
        let line = line.unwrap_or_else(|| panic!("no {row} in {table}"));
        let verdict = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        assert!(
            ["aim met", "met", "missed"].contains(&verdict) || !has_peer(row),
            "{line}"
        );
    }
    assert!(table.contains("it prints: 12 kB of the kernel"), "{table}");
    assert!(fs::read_to_string(&results).unwrap().contains("| day |"));
    assert_eq!(work.entries(), 0, "files left behind");
}

/// Rows judged against collectl have no verdict where it is not installed.
fn has_peer(row: &str) -> bool {
    let is_collectls = ["processes", "bytes", "play"].contains(&row);
    !is_collectls || Path::new("/usr/bin/collectl").exists()
}

#[test]
fn a_killed_bench_leaves_nothing() {
    let work = Dir::new("killed");
    let mut bench = Command::new(BENCH)
        .args(["record", "--only", "spaced", "--dir"])
        .arg(&work.0)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    await_that("a load", || processes_naming(&work.0) > 1);
    bench.kill().unwrap();
    bench.wait().unwrap();
    await_that("no files", || work.entries() == 0);
    await_that("no processes", || processes_naming(&work.0) == 0);
}

#[test]
fn bad_words_are_one_line_and_exit_2() {
    for (words, want) in [
        (&["record", "--only", "x"][..], "no such row: x"),
        (&["serve", "--only", "day,spaced"], "no such row: spaced"),
        (&["world"], "no folder is given"),
        (&["record", "--kymo", "/no/such"], "cannot find /no/such"),
        (&["floor", "-c", "x"], "cannot understand -c x"),
        (&["floor", "--no-such"], "unknown switch: --no-such"),
        (&["load"], "--dir is needed"),
    ] {
        let out = Command::new(BENCH).args(words).output().unwrap();
        let complaint = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{words:?}");
        assert!(complaint.contains(want), "{words:?}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

fn await_that(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Living processes with `dir` in their command line.
fn processes_naming(dir: &Path) -> usize {
    let dir = dir.to_str().unwrap();
    let names = |path: PathBuf| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(dir)
    };
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| names(entry.path()))
        .count()
}
