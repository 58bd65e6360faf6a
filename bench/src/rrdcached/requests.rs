//! One request, one reply, on one connection: as collectd sends its values. On two CPUs most of the time is the wake-up of a
//! sleeping CPU, which in a virtual machine varies from 10 us to 60 by the minute; so the row is measured on one CPU, too.

use super::batch::{FILES, judge, rates};
use crate::bench::Bench;
use crate::daemon::side::{Side, Who, on_one_cpu};
use crate::daemon::{describe, files};
use crate::fault::Result;
use crate::report::Outcome;
use crate::row::Row;
use std::time::Instant;

pub(super) const ROW: Row = Row {
    name: "rrd-requests",
    work: "one request, one reply, one connection, journal on, 1,000 files, requests a second",
    bar: "≥ stock",
    aim: "2 × stock",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let turns: u64 = bench.pick(100, 4);
    one_at_a_time("requests/s", || rates(bench, turns, once))
}

/// Rates with the kernel's placement of client and daemon; and on one CPU, where no CPU has to be woken.
pub(super) fn one_at_a_time(
    unit: &str,
    rates: impl Fn() -> Result<Vec<(Who, Vec<f64>)>>,
) -> Result<Outcome> {
    let mut outcome = judge(&rates()?, unit, &[]);
    let alone = on_one_cpu(rates)?;
    let alone = alone
        .iter()
        .map(|(who, rates)| describe(who.name(), unit, rates));
    let alone: Vec<String> = alone.collect();
    outcome.figure(format!("on one CPU {}", alone.join(", ")));
    Ok(outcome)
}

fn once(side: &mut Side, from: u64, turns: u64) -> Result<f64> {
    let mut wire = side.connect()?;
    let before = side.values_written()?;
    let mut lines = Vec::new();
    for turn in from..from + turns {
        files::round(turn, FILES, &mut lines);
    }
    let start = Instant::now();
    wire.one_by_one(&lines)?;
    let seconds = start.elapsed().as_secs_f64();
    let values = turns * FILES as u64;
    side.flush_all(before + values)?;
    side.disk.sync()?;
    Ok(values as f64 / seconds)
}
