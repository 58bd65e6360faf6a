//! A rate over an hour of many series, and their sums.

use super::engine::{Engine, Who, now_ms};
use super::fleet::{Fleet, METRIC};
use super::push::{SERIES, STEP_S, STEPS};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{median, significant};
use crate::report::Outcome;
use crate::row::Row;
use std::thread::sleep;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "query-rate",
    work: "`rate(x[5m])` of 1,000 series, a sample each 5 s, 1 h at a step of 15 s, and `sum by (group) (rate(x[5m]))` of the same: \
           from request to answer, again and again; ms",
    bar: "≤ 40, ≤ 20",
    aim: "20, 10",
    run,
};

/// Samples become visible after a second or two.
const SETTLED: Duration = Duration::from_secs(3);

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let steps = bench.steps(STEPS, 60);
    let fleet = Fleet::new(SERIES);
    for who in Who::ALL {
        if !who.is_here(bench) {
            outcome.figure(format!("{} is not here", who.name()));
            continue;
        }
        let engine = Engine::start(bench, who)?;
        engine.fill(&fleet, SERIES, steps, STEP_S)?;
        sleep(SETTLED);
        let end = now_ms()? / 1000 - 60;
        let range = format!("start={}&end={end}&step=15", end - 3600);
        let rate = format!("rate({METRIC}%5B5m%5D)");
        let mut both = Vec::new();
        for (expression, series) in [
            (rate.clone(), SERIES),
            (format!("sum%20by%20(group)%20({rate})"), 100),
        ] {
            let path = format!("/api/v1/query_range?query={expression}&{range}");
            both.push(median(&engine.times(&path, series, bench.rounds.max(5))?));
        }
        outcome.figure(format!(
            "{}: {} ms, summed {} ms",
            who.name(),
            significant(both[0]),
            significant(both[1])
        ));
        if who == Who::Kymo {
            outcome.check(Some(both[0]), 40.0, 20.0);
            outcome.check(Some(both[1]), 20.0, 10.0);
        }
        engine.end()?;
    }
    Ok(outcome)
}
