//! A question for the series of one label among many.

use super::engine::{Engine, Who};
use super::fleet::{Fleet, METRIC};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{median, significant};
use crate::report::Outcome;
use crate::row::Row;
use std::thread::sleep;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "query-label",
    work: "100,000 series: an instant query of the 1,000 that have one value of a label, from request to answer, again and again; ms",
    bar: "≤ 30",
    aim: "10",
    run,
};

const SERIES: usize = 100_000;
const SERIES_QUICK: usize = 5_000;
const SETTLED: Duration = Duration::from_secs(5);

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let series = bench.series(SERIES, SERIES_QUICK);
    let fleet = Fleet::new(series);
    for who in Who::ALL {
        if !who.is_here(bench) {
            outcome.figure(format!("{} is not here", who.name()));
            continue;
        }
        let engine = Engine::start(bench, who)?;
        engine.fill(&fleet, series, 2, 5)?;
        sleep(SETTLED);
        let path = format!("/api/v1/query?query={METRIC}%7Bgroup%3D%22group-17%22%7D");
        let ms = median(&engine.times(&path, series / 100, bench.rounds.max(5))?);
        outcome.figure(format!("{}: {} ms", who.name(), significant(ms)));
        if who == Who::Kymo {
            outcome.check(Some(ms), 30.0, 10.0);
        }
        engine.end()?;
    }
    Ok(outcome)
}
