//! `kymo why` about random minutes of a day, recorded with a sample and a scan of 400 processes each second; the pages
//! of the ring's files are dropped before each question.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::bench::Bench;
use crate::child::Running;
use crate::fault::{Cannot, Result};
use crate::figures::{bytes, median, significant, spread};
use crate::report::Outcome;
use crate::row::Row;
use crate::serve::forget;
use crate::world::Chance;

pub(super) const ROW: Row = Row {
    name: "top-why",
    work: "`kymo why HH:MM` on a day's ring, a sample and a scan of 400 processes each second, pages dropped; from start to end",
    bar: "≤ 1 s",
    aim: "0.2 s",
    run,
};

/// Minutes of a day whose hour before is recorded, too.
const FIRST_MINUTE: f64 = 120.0;
const LAST_MINUTE: f64 = 1400.0;
const PROCESSES: u32 = 400;
const PROCESSES_QUICK: u32 = 40;
/// Room for the whole day.
const MIB: u32 = 8192;
const MAKE_LIMIT: Duration = Duration::from_secs(3600);
const LIMIT: Duration = Duration::from_secs(60);

/// Records a machine whose processes are scanned each second; the folder of its host.
pub(super) fn made_ring(bench: &Bench, dir: &Path, words: &[&str]) -> Result<PathBuf> {
    let mut command = Command::new(&bench.own);
    command.arg("world").arg("--dir").arg(dir).args(words);
    let processes = bench.pick(PROCESSES, PROCESSES_QUICK);
    command.args(["--processes", &processes.to_string(), "--scan", "1"]);
    Running::start(bench, command.stdout(Stdio::null()))?.finish(MAKE_LIMIT)?;
    let host = fs::read_dir(dir).cannot("list the ring")?.flatten();
    let host = host.map(|entry| entry.path()).find(|path| path.is_dir());
    Ok(host.unwrap_or_else(|| dir.into()))
}

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        outcome.figure("no peer has it");
        return Ok(outcome);
    };
    let dir = bench.new_dir("day")?;
    let host = made_ring(bench, &dir, &["--mib", &MIB.to_string()])?;
    let mut chance = Chance::new(36);
    let (mut wall, mut cpu, mut held) = (Vec::new(), Vec::new(), 0);
    for _ in 0..bench.pick(40, 4) {
        // The end of the day is now: minutes back from it.
        let back = FIRST_MINUTE.max(chance.part() * (LAST_MINUTE - FIRST_MINUTE));
        held = forget(&dir)?;
        let mut command = Command::new(kymo);
        command.args(["why", &format!("-{back:.0}m")]).arg(&host);
        let usage = Running::start(bench, command.stdout(Stdio::null()))?.finish(LIMIT)?;
        wall.push(usage.wall.as_secs_f64());
        cpu.push(usage.cpu.as_secs_f64());
    }
    outcome.figure(bytes(held as f64));
    let [middle, worst] = [median(&wall), spread(&wall).1].map(significant);
    outcome.figure(format!("{middle} s, worst {worst} s"));
    outcome.figure(format!("{} s CPU", significant(median(&cpu))));
    outcome.check(Some(median(&wall)), 1.0, 0.2);
    outcome.check(Some(spread(&wall).1), 1.0, 1.0);
    Ok(outcome)
}
