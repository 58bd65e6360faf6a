//! The page's first view of an hour, in 1440 x 900 pixels, against a static page with the charts that are in sight: the same
//! uPlot, the same numbers, the same canvases, drawn by the same options, without requests and without layout.

use super::browser::Browser;
use super::rings::ring;
use super::served::Served;
use crate::bench::Bench;
use crate::fault::{Fault, Result};
use crate::figures::{median, ratio, significant, spread};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "first-view",
    work: "first view of 1 h in Chromium, until all charts in sight are drawn, nothing cached",
    bar: "≤ 1.5 × a static page with the same uPlot data",
    aim: "",
    run,
};

const RATIO_MAX: f64 = 1.5;
const HOUR_S: f64 = 3600.0;

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        outcome.figure("no peer has it");
        return Ok(outcome);
    };
    let served = Served::start(bench, kymo, &ring(bench)?)?;
    let (from, thru) = served.extent()?;
    // In the middle, where the ring has no holes.
    let from = ((from + thru) / 2.0).round();
    let url = format!("{}?from={from}&thru={}", served.url(), from + HOUR_S);
    let rounds: usize = bench.pick(7, 2);
    let folder = bench.new_dir("static")?.display().to_string();
    let mut browser = Browser::start(bench, "first-view", &[url, rounds.to_string(), folder])?;
    let charts = browser.expect("charts")?;
    let (mut own, mut still) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let times = browser.expect("view")?;
        let &[kymo_ms, static_ms] = &times[..] else {
            return Err(Fault::new("the browser told something else"));
        };
        own.push(kymo_ms);
        still.push(static_ms);
    }
    browser.end()?;
    served.end()?;
    for (name, times) in [("kymo", &own), ("static", &still)] {
        let (low, high) = spread(times);
        let [middle, low, high] = [median(times), low, high].map(significant);
        outcome.figure(format!("{name} {middle} ms [{low}-{high}]"));
    }
    outcome.figure(format!(
        "{} charts in sight of {} lines and bands",
        charts[0], charts[1]
    ));
    let (own, still) = (median(&own), median(&still));
    outcome.figure(format!("kymo/static {}", ratio(own, still)));
    outcome.check(Some(own / still), RATIO_MAX, RATIO_MAX);
    Ok(outcome)
}
