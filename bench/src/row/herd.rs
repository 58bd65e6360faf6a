//! Number of processes that run or wait for a CPU at a whole second and a while after it: many other programs wake up at whole
//! seconds, so a sample that is taken then sees mostly those.

use super::Row;
use crate::bench::Bench;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::significant;
use crate::report::Outcome;
use crate::ticks::Ticks;
use std::fs;

pub(super) const ROW: Row = Row {
    name: "herd",
    work: "`procs_running` at 0, 1, 10, 20, 50 and 500 ms after whole seconds, 300 s: mean and most, the reader left out",
    bar: "at 10 ms no more than at 0 ms",
    aim: "",
    run,
};

const PHASES_MS: [u64; 6] = [0, 1, 10, 20, 50, 500];
const SECOND_NS: u64 = 1_000_000_000;

fn run(bench: &Bench) -> Result<Outcome> {
    let seconds = bench.pick(300, 5);
    let started = PHASES_MS.map(|ms| Ticks::start(SECOND_NS, ms * 1_000_000));
    let mut running: [Vec<u64>; 6] = Default::default();
    for _ in 0..seconds {
        for (ticks, seen) in started.iter().zip(&mut running) {
            match ticks {
                Ok(ticks) => ticks.wait()?,
                Err(fault) => return Err(Fault::new(fault.to_string())),
            }
            seen.push(others_running()?);
        }
    }
    let mut outcome = Outcome::default();
    let mean = |seen: &[u64]| seen.iter().sum::<u64>() as f64 / seen.len().max(1) as f64;
    for (ms, seen) in PHASES_MS.iter().zip(&running) {
        let most = seen.iter().max().copied().unwrap_or(0);
        let mean = significant(mean(seen));
        outcome.figure(format!("{ms} ms: {mean}, at most {most}"));
    }
    let [at_once, _, later, ..] = running.map(|seen| mean(&seen));
    outcome.check(Some(later), at_once, at_once);
    Ok(outcome)
}

/// Number of runnable processes, without this program, which runs while it reads.
fn others_running() -> Result<u64> {
    let text = fs::read_to_string("/proc/stat").cannot("read /proc/stat")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("procs_running "));
    let count: Option<u64> = line.and_then(|count| count.parse().ok());
    count
        .map(|count| count.saturating_sub(1))
        .ok_or_else(|| Fault::new("/proc/stat has no procs_running"))
}
