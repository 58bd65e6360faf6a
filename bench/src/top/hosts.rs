//! `kymo top` with 50 hosts: 50 feeds of one recording, which is being made, through a program in place of ssh.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::bench::Bench;
use crate::child::Running;
use crate::family::Family;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{median, significant};
use crate::procfs::{cpu_ns, descendants, words};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "top-hosts",
    work: "50 hosts on a terminal of 80 × 24, each a feed of a recording with 1 s; share of a core after start: kymo's own, and of each feed",
    bar: "≤ 0.5 %, ≤ 0.3 %",
    aim: "",
    run,
};

const HOSTS: usize = 50;
/// Start of all programs, which is left out.
const BEGIN: Duration = Duration::from_secs(10);

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        outcome.figure("no peer has it");
        return Ok(outcome);
    };
    let seconds = bench.pick(60, 5);
    let dir = bench.new_dir("hosts")?;
    let recording = dir.join("rec");
    let mut command = Command::new(kymo);
    command.args(["record", "-s", "cmdnpGZ", "-i", "1:5", "-f"]);
    let recorder = Running::start(bench, command.arg(&recording).stdout(Stdio::null()))?;
    std::thread::sleep(BEGIN);
    let way = dir.join("way");
    let text = format!(
        "#!/bin/sh\nexec {} feed --stdio --data {}\n",
        kymo.display(),
        recording.display()
    );
    fs::write(&way, text).cannot("write a program")?;
    fs::set_permissions(&way, fs::Permissions::from_mode(0o755)).cannot("write a program")?;
    let hosts: String = (1..=HOSTS).map(|host| format!(" host{host}:")).collect();
    let line = format!("stty cols 80 rows 24; exec {} top{hosts}", kymo.display());
    let mut script = Command::new("script");
    script.args(["-qefc", &line, "/dev/null"]);
    script.env("TERM", "xterm-256color").env("KYMO_SSH", &way);
    let family = Family::start(bench, script.stdout(Stdio::null()))?;
    std::thread::sleep(BEGIN);
    let (top, feeds) = (pids(&family, kymo, "top")?, pids(&family, kymo, "feed")?);
    if top.len() != 1 || feeds.len() != HOSTS {
        let complaint = family.complaint();
        return Err(Fault::new(format!("{} feeds: {complaint}", feeds.len())));
    }
    let all: Vec<u32> = top.iter().chain(&feeds).copied().collect();
    let spent = || {
        all.iter()
            .map(|pid| cpu_ns(*pid))
            .collect::<Result<Vec<_>>>()
    };
    let before = spent()?;
    std::thread::sleep(Duration::from_secs(seconds));
    let after = spent()?;
    family.end()?;
    recorder.terminate(BEGIN)?;
    let share = |(after, before): (&u64, &u64)| (after - before) as f64 / (seconds as f64 * 1e9);
    let shares: Vec<f64> = after.iter().zip(&before).map(share).collect();
    let (own, feed) = (shares[0], median(&shares[1..]));
    outcome.figure(format!("kymo {} %", significant(own * 100.0)));
    outcome.figure(format!("a feed {} %", significant(feed * 100.0)));
    outcome.check(Some(own), 0.005, 0.005);
    outcome.check(Some(feed), 0.003, 0.003);
    Ok(outcome)
}

/// Processes of kymo with this command.
fn pids(family: &Family, kymo: &Path, word: &str) -> Result<Vec<u32>> {
    let is_it = |pid: &u32| {
        let words = words(*pid);
        let named = words.first().is_some_and(|first| Path::new(first) == kymo);
        named && words.get(1).is_some_and(|second| second == word)
    };
    let found = descendants(family.root())?;
    Ok(found
        .iter()
        .map(|process| process.pid)
        .filter(is_it)
        .collect())
}
