//! Files brought up to date because somebody wants them: FLUSHALL with 30 values pending for each; and files that are
//! not there at all, written by `kymo rrd export`, beside `cp -r` of the same files.

use super::intake::{Form, round};
use super::never;
use super::series::{Crowd, Stamps};
use crate::bench::Bench;
use crate::child::{Running, Usage};
use crate::daemon::files::{self, BIRTH, STEP};
use crate::daemon::side::{Side, Who, in_turns, of, present};
use crate::daemon::tell;
use crate::fault::{Fault, Result};
use crate::figures::{median, ratio, significant};
use crate::procfs;
use crate::report::Outcome;
use crate::row::Row;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub const ROW: Row = Row {
    name: "drum-files",
    work: "2,050 files, 30 values behind: FLUSHALL until QUEUE is empty and all are current; those that are not there, \
           by `kymo rrd export`, beside `cp -r`",
    bar: "≤ stock, each",
    aim: "1/2",
    run,
};

const VALUES: u64 = 30;
const LIMIT: Duration = Duration::from_secs(300);
const AGAIN: Duration = Duration::from_millis(2);

/// Of one FLUSHALL.
struct Flush {
    cpu_seconds: f64,
    wall_seconds: f64,
}

fn run(bench: &Bench) -> Result<Outcome> {
    let count = bench.series(2_050, 500);
    let mut outcome = Outcome::new(vec![format!("{count} files")]);
    let mut sides = Vec::new();
    for who in present(bench) {
        // As much again for the copy.
        let side = Side::with_room(bench, who, 2 * files::mb(count))?;
        files::fill(&side.base(), count)?;
        sides.push(side);
    }
    for side in &mut sides {
        side.start(bench, &[])?;
    }
    let mut crowd = Crowd::new(count, Stamps::Aligned);
    let found = in_turns(bench.rounds, &mut sides, |side, turn| {
        flush(side, &mut crowd, turn as u64 * VALUES)
    })?;
    judge(&found, &mut outcome);
    if let Some(side) = sides.first() {
        outcome.figure(copy(bench, side)?);
    }
    drop(sides);
    outcome.figure(export(bench, count)?);
    Ok(outcome)
}

fn judge(found: &[(Who, Vec<Flush>)], outcome: &mut Outcome) {
    type Part = fn(&Flush) -> f64;
    let parts: [(&str, Part); 2] = [
        ("CPU", |flush| flush.cpu_seconds * 1e3),
        ("time", |flush| flush.wall_seconds * 1e3),
    ];
    for (name, part) in parts {
        let each = |who| -> Option<Vec<f64>> { Some(of(found, who)?.iter().map(part).collect()) };
        for who in [Who::Stock, Who::Ours] {
            if let Some(each) = each(who) {
                outcome.figure(tell(&format!("{name} {}", who.name()), "ms", &each));
            }
        }
        if let (Some(stock), Some(ours)) = (each(Who::Stock), each(Who::Ours)) {
            let (stock, ours) = (median(&stock), median(&ours));
            outcome.figure(format!("{} of stock", ratio(ours, stock)));
            outcome.check(Some(ours / stock), 1.0, 0.5);
        }
    }
}

fn flush(side: &mut Side, crowd: &mut Crowd, from: u64) -> Result<Flush> {
    let last = send(side, crowd, from)?;
    let pid = side.pid()?;
    let (cpu_ns, begun) = (procfs::cpu_ns(pid)?, Instant::now());
    side.connect()?.ask("FLUSHALL")?;
    await_current(side, crowd.len(), last)?;
    let wall_seconds = begun.elapsed().as_secs_f64();
    let cpu_seconds = (procfs::cpu_ns(pid)? - cpu_ns) as f64 / 1e9;
    Ok(Flush {
        cpu_seconds,
        wall_seconds,
    })
}

/// The last stamp of so many values for each series.
fn send(side: &Side, crowd: &mut Crowd, from: u64) -> Result<u64> {
    let mut wire = side.connect()?;
    let (mut at, count) = (0, crowd.len());
    for step in from + 1..=from + VALUES {
        at = BIRTH + STEP * step;
        round(&mut wire, crowd, 0..count, Form::Batch, at)?;
    }
    side.disk.sync()?;
    Ok(at)
}

fn await_current(side: &Side, count: usize, last: u64) -> Result<()> {
    let until = Instant::now() + LIMIT;
    let mut current = 0;
    let mut wire = side.connect()?;
    loop {
        while current < count && files::last_stamp(&side.base(), current)? >= last {
            current += 1;
        }
        if current == count && wire.lines("QUEUE")?.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(Fault::new(format!("file {current} does not get current")));
        }
        sleep(AGAIN);
    }
}

/// The floor: all is cached, and read as a whole.
fn copy(bench: &Bench, side: &Side) -> Result<String> {
    let mut command = Command::new("cp");
    command.arg("-r").arg(side.base());
    command.arg(side.disk.dir().join("copy"));
    let usage = Running::start(bench, &mut command)?.finish(LIMIT)?;
    Ok(told("cp -r", &usage, 0.0))
}

/// All series into files that were never there; what the daemon does for it is counted, too.
fn export(bench: &Bench, count: usize) -> Result<String> {
    if !never::is_known(bench)? || !never::help_has(bench, "rrd", "export")? {
        return Ok("skipped: this kymo has no `--files never` with `rrd export`".into());
    }
    // Ten times the room, for the files.
    let side = never::side(bench, count * 10, 0)?;
    never::create(&mut side.connect()?, 0..count)?;
    let last = send(&side, &mut Crowd::new(count, Stamps::Aligned), 0)?;
    let cpu_ns = procfs::cpu_ns(side.pid()?)?;
    let kymo = bench.kymo.as_ref();
    let mut command = Command::new(kymo.ok_or_else(|| Fault::new("kymo is not here"))?);
    let daemon = format!("unix:{}", side.socket().display());
    command.args(["rrd", "export", "--all", "--daemon", &daemon]);
    command.current_dir(side.base()).stdout(Stdio::null());
    let usage = Running::start(bench, &mut command)?.finish(LIMIT)?;
    let of_daemon = (procfs::cpu_ns(side.pid()?)? - cpu_ns) as f64 / 1e9;
    await_current(&side, count, last)?;
    Ok(told("rrd export", &usage, of_daemon))
}

fn told(name: &str, usage: &Usage, more_seconds: f64) -> String {
    let cpu = significant((usage.cpu.as_secs_f64() + more_seconds) * 1e3);
    let wall = significant(usage.wall.as_secs_f64() * 1e3);
    format!("{name}: {cpu} ms of CPU, {wall} ms of time")
}
