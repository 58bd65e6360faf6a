//! The whole way of a value, from the socket into the file: 20,500 files in collectd's form, 30 values each, sent by
//! BATCH round by round, then FLUSHALL. CPU of the daemon for each value, and its device's writes.

use crate::bench::Bench;
use crate::daemon::cost::{Cost, Mark};
use crate::daemon::side::{Side, Who, in_turns, of, present_with_before};
use crate::daemon::{describe, files};
use crate::fault::Result;
use crate::figures::{median, ratio, significant};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "rrd-values",
    work: "accept and write, 20,500 files × 30 values, CPU per value",
    bar: "≤ 0.62 × stock",
    aim: "0.4 ×",
    run,
};

const VALUES: u64 = 30;

fn run(bench: &Bench) -> Result<Outcome> {
    let count = bench.pick(20_500, 500);
    let mut sides = Vec::new();
    for who in present_with_before(bench) {
        let mut side = Side::prepare(bench, who, count)?;
        side.start(bench, &[])?;
        sides.push(side);
    }
    let found = in_turns(bench.rounds, &mut sides, |side, round| {
        once(side, round as u64 * VALUES, count)
    })?;
    let all = VALUES as f64 * count as f64;
    let mut outcome = Outcome::new(vec![format!("{count} files")]);
    for (who, costs) in &found {
        let each = |part: fn(&Cost) -> f64| {
            costs
                .iter()
                .map(|cost| part(cost) / all)
                .collect::<Vec<f64>>()
        };
        let micros: Vec<f64> = each(|cost| cost.cpu_seconds * 1e6);
        outcome.figure(describe(who.name(), "us", &micros));
        outcome.figure(format!(
            "{} us of time, {} bytes and {} writes a value",
            significant(median(&each(|cost| cost.wall_seconds * 1e6))),
            significant(median(&each(|cost| cost.bytes))),
            significant(median(&each(|cost| cost.writes))),
        ));
    }
    let cpu = |who| {
        let costs = of(&found, who)?;
        Some(median(
            &costs
                .iter()
                .map(|cost| cost.cpu_seconds)
                .collect::<Vec<f64>>(),
        ))
    };
    if let (Some(stock), Some(ours)) = (cpu(Who::Stock), cpu(Who::Ours)) {
        outcome.figure(format!("{} of stock", ratio(ours, stock)));
        outcome.check(Some(ours / stock), 0.62, 0.4);
    }
    if let (Some(before), Some(ours)) = (cpu(Who::Before), cpu(Who::Ours)) {
        outcome.figure(format!("{} of before", ratio(ours, before)));
    }
    Ok(outcome)
}

fn once(side: &mut Side, from: u64, count: usize) -> Result<Cost> {
    let mark = Mark::now(side)?;
    let written = side.values_written()?;
    let mut wire = side.connect()?;
    for turn in from..from + VALUES {
        let mut lines = Vec::new();
        files::round(turn, count, &mut lines);
        wire.batch(&lines)?;
    }
    side.flush_all(written + VALUES * count as u64)?;
    mark.so_far(side)
}
