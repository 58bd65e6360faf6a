//! Files updated on request: FLUSHALL with 30 pending values for each.

use super::intake::{Form, round};
use super::series::{Crowd, Stamps};
use crate::bench::Bench;
use crate::daemon::describe;
use crate::daemon::files::{self, BIRTH, STEP};
use crate::daemon::side::{Side, Who, in_turns, of, present};
use crate::fault::{Fault, Result};
use crate::figures::{median, ratio, significant};
use crate::report::Outcome;
use crate::row::Row;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "drum-files",
    work: "2,050 files, 30 values behind: FLUSHALL until QUEUE is empty and all are current",
    bar: "≤ stock, each",
    aim: "1/2",
    run,
};

const VALUES: u64 = 30;
const LIMIT: Duration = Duration::from_secs(300);
const AGAIN: Duration = Duration::from_millis(2);

/// Cost of one FLUSHALL.
struct Flush {
    cpu_seconds: f64,
    wall_seconds: f64,
}

fn run(bench: &Bench) -> Result<Outcome> {
    let count = bench.series(2_050, 500);
    let mut outcome = Outcome::new(vec![format!("{count} files")]);
    let mut sides = Vec::new();
    for who in present(bench) {
        let mut side = Side::prepare(bench, who, count)?;
        side.start(bench, &[])?;
        sides.push(side);
    }
    let mut crowd = Crowd::new(count, Stamps::Aligned);
    let found = in_turns(bench.rounds, &mut sides, |side, turn| {
        flush(side, &mut crowd, turn as u64 * VALUES)
    })?;
    judge(&found, &mut outcome);
    Ok(outcome)
}

fn judge(found: &[(Who, Vec<Flush>)], outcome: &mut Outcome) {
    for (who, flushes) in found {
        let times: Vec<f64> = flushes.iter().map(|each| each.wall_seconds * 1e3).collect();
        let cpu = significant(cpu_seconds(flushes) * 1e3);
        outcome.figure(describe(who.name(), "ms", &times));
        outcome.figure(format!("{cpu} ms of CPU"));
    }
    let (Some(stock), Some(ours)) = (of(found, Who::Stock), of(found, Who::Ours)) else {
        return;
    };
    let pairs = [
        ("time", wall_seconds(ours), wall_seconds(stock)),
        ("CPU", cpu_seconds(ours), cpu_seconds(stock)),
    ];
    for (name, ours, stock) in pairs {
        outcome.figure(format!("{name} {} of stock", ratio(ours, stock)));
        outcome.check(Some(ours / stock), 1.0, 0.5);
    }
}

/// The mean, since the time of one flush is counted in hundredths of a second.
fn cpu_seconds(flushes: &[Flush]) -> f64 {
    let sum: f64 = flushes.iter().map(|flush| flush.cpu_seconds).sum();
    sum / flushes.len() as f64
}

fn wall_seconds(flushes: &[Flush]) -> f64 {
    let each: Vec<f64> = flushes.iter().map(|flush| flush.wall_seconds).collect();
    median(&each)
}

fn flush(side: &mut Side, crowd: &mut Crowd, from: u64) -> Result<Flush> {
    let last = send(side, crowd, from)?;
    let (cpu_before, begun) = (side.cpu_seconds()?, Instant::now());
    side.connect()?.ask("FLUSHALL")?;
    await_current(side, crowd.len(), last)?;
    let wall_seconds = begun.elapsed().as_secs_f64();
    Ok(Flush {
        cpu_seconds: side.cpu_seconds()? - cpu_before,
        wall_seconds,
    })
}

/// Sends [`VALUES`] values for each series; returns the last stamp.
pub(super) fn send(side: &Side, crowd: &mut Crowd, from: u64) -> Result<u64> {
    let mut wire = side.connect()?;
    let (mut at, count) = (0, crowd.len());
    for step in from + 1..=from + VALUES {
        at = BIRTH + STEP * step;
        round(&mut wire, crowd, 0..count, Form::Batch, at)?;
    }
    side.disk.sync()?;
    Ok(at)
}

/// Waits until the files are current and the queue is empty.
pub(super) fn await_current(side: &Side, count: usize, last: u64) -> Result<()> {
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
