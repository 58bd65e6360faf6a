//! 24 hours of the CPU graph from a ring at one sample a second: without roll-ups the oldest day, since
//! they are made newest first; with them the newest, once they exist.

use super::request::{Form, get_ok};
use super::rings::ring;
use super::served::Served;
use crate::bench::Bench;
use crate::fault::{Fault, Result};
use crate::figures::{median, significant, spread};
use crate::report::Outcome;
use crate::row::Row;
use crate::row::files_below;
use std::path::Path;
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "day",
    work: "24 h of one graph (8 lines, 1,200 points) from a 1 s ring, with / without roll-ups",
    bar: "≤ 50 ms / ≤ 2 s",
    aim: "10 ms / 0.5 s",
    run,
};

const FIELDS: &str = "cpu.user,cpu.nice,cpu.sys,cpu.irq,cpu.soft,cpu.steal,cpu.wait,cpu.total";
const DAY_S: f64 = 86_400.0;
const MARGIN_S: f64 = 3600.0;
const PATIENCE: Duration = Duration::from_secs(600);

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        outcome.figure("no peer has it");
        return Ok(outcome);
    };
    let folder = ring(bench)?;
    let served = Served::start(bench, kymo, &folder)?;
    let (from, thru) = served.extent()?;
    let length = DAY_S.min((thru - from) / 2.0 - MARGIN_S);
    let rounds = bench.pick(7, 2);
    let old = ask(&served, from + MARGIN_S, length, rounds)?;
    if rolled_up(&folder, from, from + MARGIN_S + length)? > 0 {
        return Err(Fault::new(
            "the ring has roll-ups of its oldest day already",
        ));
    }
    let waited = await_rollups(&folder, thru - length)?;
    let new = ask(&served, thru - length, length, rounds)?;
    served.end()?;
    for (name, times) in [("with", &new), ("without", &old)] {
        let (low, high) = spread(times);
        let [middle, low, high] = [median(times), low, high].map(significant);
        outcome.figure(format!("{name} roll-ups {middle} ms [{low}-{high}]"));
    }
    outcome.figure(format!("roll-ups of the day were there after {waited} s"));
    outcome.check(Some(median(&new)), 50.0, 10.0);
    outcome.check(Some(median(&old)), 2000.0, 500.0);
    Ok(outcome)
}

/// Durations of requests in ms, without the first one.
fn ask(served: &Served, from: f64, length: f64, rounds: usize) -> Result<Vec<f64>> {
    let thru = from + length;
    let path = format!("/kymo/v1/series?fields={FIELDS}&from={from:.0}&thru={thru:.0}&points=1200");
    let once = |_| Ok(get_ok(served.port, &path, Form::Gzip)?.wall.as_secs_f64() * 1e3);
    let times = (0..=rounds).map(once).collect::<Result<Vec<f64>>>()?;
    Ok(times[1..].to_vec())
}

/// Waits until all later blocks have roll-ups; returns the seconds. They are made newest first: once an
/// older one exists, all do.
fn await_rollups(folder: &Path, from: f64) -> Result<u64> {
    let start = Instant::now();
    while rolled_up(folder, 0.0, from)? == 0 {
        if start.elapsed() > PATIENCE {
            let there = rolled_up(folder, from, f64::INFINITY)?;
            return Err(Fault::new(format!("only {there} roll-ups are there")));
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(start.elapsed().as_secs())
}

/// Number of roll-ups of blocks that end between `from` and `thru`.
fn rolled_up(folder: &Path, from: f64, thru: f64) -> Result<usize> {
    let rollups = folder.join("rollups");
    if !rollups.is_dir() {
        return Ok(0);
    }
    let ends = |path: &Path| -> Option<f64> {
        let name = path.file_name()?.to_str()?.strip_suffix(".rol")?;
        name.split('-').nth(2)?.parse().ok()
    };
    let files = files_below(&rollups)?;
    let within = files.iter().filter_map(|path| ends(path));
    Ok(within.filter(|end| (from..thru).contains(end)).count())
}
