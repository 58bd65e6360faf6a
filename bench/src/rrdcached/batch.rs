//! Intake of values by BATCH on one connection, with the journal on; without the writing of files.

use crate::bench::Bench;
use crate::daemon::side::{Side, Who, in_turns, of, present_with_before};
use crate::daemon::{describe, files};
use crate::fault::Result;
use crate::figures::{median, ratio};
use crate::report::Outcome;
use crate::row::Row;
use std::time::Instant;

pub(super) const ROW: Row = Row {
    name: "rrd-batch",
    work: "BATCH, one connection, journal on, 1,000 files, values a second",
    bar: "≥ stock (which loses them to kill -9)",
    aim: "2 × stock",
    run,
};

pub(super) const FILES: usize = 1_000;

fn run(bench: &Bench) -> Result<Outcome> {
    let turns: u64 = bench.pick(500, 20);
    let more = format!("{} values a round", turns * FILES as u64);
    Ok(judge(&rates(bench, turns, once)?, "values/s", &[more]))
}

/// The results of `once` for each daemon, in turns, with files that are already open.
pub(super) fn rates(
    bench: &Bench,
    turns: u64,
    once: fn(&mut Side, u64, u64) -> Result<f64>,
) -> Result<Vec<(Who, Vec<f64>)>> {
    let mut sides = Vec::new();
    for who in present_with_before(bench) {
        let mut side = Side::prepare(bench, who, FILES)?;
        side.start(bench, &[])?;
        sides.push(side);
    }
    // The first round opens the files.
    let mut found = in_turns(bench.rounds + 1, &mut sides, |side, round| {
        once(side, round as u64 * turns, turns)
    })?;
    for (_, rates) in &mut found {
        rates.remove(0);
    }
    Ok(found)
}

fn once(side: &mut Side, from: u64, turns: u64) -> Result<f64> {
    let mut wire = side.connect()?;
    let before = side.values_written()?;
    // Built before the measurement, so that no side's time includes it.
    let batches: Vec<Vec<u8>> = (from..from + turns)
        .collect::<Vec<u64>>()
        .chunks(10)
        .map(|turns| {
            let mut lines = Vec::new();
            for &turn in turns {
                files::round(turn, FILES, &mut lines);
            }
            lines
        })
        .collect();
    let start = Instant::now();
    for lines in &batches {
        wire.batch(lines)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let values = turns * FILES as u64;
    side.flush_all(before + values)?;
    side.disk.sync()?;
    Ok(values as f64 / seconds)
}

/// Compares rates; more is better.
pub(super) fn judge(found: &[(Who, Vec<f64>)], unit: &str, more: &[String]) -> Outcome {
    let mut outcome = Outcome::new(more.to_vec());
    for (who, rates) in found {
        outcome.figure(describe(who.name(), unit, rates));
    }
    let middle = |who| of(found, who).map(median);
    if let (Some(stock), Some(ours)) = (middle(Who::Stock), middle(Who::Ours)) {
        outcome.figure(format!("{} stock's rate", ratio(ours, stock)));
        outcome.check(Some(stock / ours), 1.0, 0.5);
    }
    if let (Some(before), Some(ours)) = (middle(Who::Before), middle(Who::Ours)) {
        outcome.figure(format!("{} the rate before", ratio(ours, before)));
    }
    outcome
}
