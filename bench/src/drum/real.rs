//! Real time: a value each 10 s for every file, spread over the 10 s, so that the
//! daemon does little often, and the kernel writes at its own times. Values are
//! written to files when they are five minutes old, and all of stock's at its end.

use super::series::{Crowd, Stamps};
use crate::bench::Bench;
use crate::daemon::cost::{Cost, Mark};
use crate::daemon::files::{BIRTH, STEP};
use crate::daemon::side::{Side, Who, present};
use crate::fault::Result;
use crate::figures::{ratio, significant};
use crate::progress::Progress;
use crate::report::Outcome;
use crate::row::Row;
use std::ops::Range;
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "drum-real",
    work: "20,500 files, a value each 10 s of real time, BATCHes spread over the 10 s, 10 minutes: CPU share, writes",
    bar: "≤ 0.5 % of a core, ≤ 3 writes a second",
    aim: "half",
    run,
};

/// Slices of a step.
const SLICES: usize = 100;

fn run(bench: &Bench) -> Result<Outcome> {
    let count = bench.series(20_500, 500);
    compare(bench, 0.5, |who| {
        let mut side = Side::prepare(bench, who, count)?;
        side.start(bench, options(who))?;
        let mark = Mark::now(&side)?;
        send(bench, &side, count)?;
        mark.to_the_end(&mut side)
    })
}

/// Options as packaged; all of stock's values end up in its files, kymo's in its store.
pub(super) fn options(who: Who) -> &'static [&'static str] {
    match who {
        Who::Stock => &["-w", "300", "-F"],
        Who::Before | Who::Ours => &["-w", "300"],
    }
}

/// Measures one daemon after the other.
pub(super) fn compare(
    bench: &Bench,
    percent: f64,
    once: impl Fn(Who) -> Result<Cost>,
) -> Result<Outcome> {
    let mut outcome = Outcome::new(vec![format!("{} minutes", minutes(bench))]);
    let seconds = f64::from(minutes(bench)) * 60.0;
    let mut costs = [None; 2];
    for who in present(bench) {
        let cost = once(who)?;
        outcome.figure(format!(
            "{}: {} % of a CPU, {} writes and {} kB a second",
            who.name(),
            significant(cost.cpu_seconds * 100.0 / seconds),
            significant(cost.writes / seconds),
            significant(cost.bytes / 1e3 / seconds),
        ));
        costs[usize::from(who == Who::Ours)] = Some(cost);
    }
    if let Some(ours) = costs[1] {
        let share = ours.cpu_seconds * 100.0 / seconds;
        outcome.check(Some(share), percent, percent / 2.0);
        outcome.check(Some(ours.writes / seconds), 3.0, 1.5);
    }
    if let [Some(stock), Some(ours)] = costs {
        let pairs = [
            ("CPU", ours.cpu_seconds, stock.cpu_seconds),
            ("writes", ours.writes, stock.writes),
            ("bytes", ours.bytes, stock.bytes),
        ];
        for (name, ours, stock) in pairs {
            outcome.figure(format!("{name} {} of stock", ratio(ours, stock)));
        }
    }
    Ok(outcome)
}

fn minutes(bench: &Bench) -> u32 {
    bench.minutes.unwrap_or(bench.pick(10, 1))
}

fn send(bench: &Bench, side: &Side, count: usize) -> Result<()> {
    let mut crowd = Crowd::new(count, Stamps::Unaligned);
    let mut wire = side.connect()?;
    paced(bench, side.who.name(), count, |step, slice| {
        let mut lines = Vec::new();
        crowd.lines(slice, BIRTH + STEP * (step + 1), &mut lines);
        wire.batch(&lines)
    })
}

/// Calls `send` for each slice of the series at its moment of each step.
pub(super) fn paced(
    bench: &Bench,
    name: &str,
    count: usize,
    mut send: impl FnMut(u64, Range<usize>) -> Result<()>,
) -> Result<()> {
    let begun = Instant::now();
    let steps = u64::from(minutes(bench)) * 60 / STEP;
    let slice_time = Duration::from_secs(STEP) / SLICES as u32;
    let mut progress = Progress::of(format!("{name}, steps of {STEP} s"));
    for step in 0..steps {
        for slice in 0..SLICES {
            let due = Duration::from_secs(step * STEP) + slice_time * slice as u32;
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
            send(step, count * slice / SLICES..count * (slice + 1) / SLICES)?;
            progress.at(step, steps);
        }
    }
    let whole = Duration::from_secs(steps * STEP);
    std::thread::sleep(whole.saturating_sub(begun.elapsed()));
    Ok(())
}
