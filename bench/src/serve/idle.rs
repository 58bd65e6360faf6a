//! The idle server, which only shows the present to one open page, among 200 processes.

use super::browser::Browser;
use super::served::Served;
use super::watch::{Side, watch};
use crate::bench::Bench;
use crate::crowd;
use crate::fault::Result;
use crate::figures::significant;
use crate::procfs::{cpu_ns, descendants, process_count, words};
use crate::report::Outcome;
use crate::row::Row;
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "idle",
    work: "idle with the page open, 200 processes, 1 s, after 1 h (its last two thirds)",
    bar: "≤ 0.5 % of a CPU for all its processes, RssAnon + RssShmem ≤ 40 MB",
    aim: "0.2 %, 25 MB",
    run,
};

const PROCESSES: usize = 200;
const SLACK: Duration = Duration::from_secs(120);
const MB: f64 = 1e6;

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        outcome.figure("no peer has it");
        return Ok(outcome);
    };
    let length = length(bench);
    let _crowd = fill_up(bench, length)?;
    let folder = bench.new_dir("idle")?;
    let served = Served::start(bench, kymo, &folder)?;
    let mut browser = Browser::start(bench, "stay", &[served.url()])?;
    browser.expect("open")?;
    let mut sides = members(&served)?;
    sides.push(Side {
        name: "the browser",
        roots: vec![browser.root()],
        place: None,
    });
    let (start, before_ns) = (Instant::now(), scheduled_ns(&served)?);
    let found = watch(&sides, length)?;
    let scheduled = (scheduled_ns(&served)? - before_ns) as f64 / start.elapsed().as_nanos() as f64;
    outcome.figure(format!("of {} s", length.as_secs()));
    outcome.figure(found[0].describe("kymo"));
    outcome.figure(format!(
        "by schedstat, from the start {} %",
        significant(scheduled * 100.0)
    ));
    for (side, found) in sides.iter().zip(&found).skip(1) {
        outcome.figure(found.describe(side.name));
    }
    outcome.figure(format!("{} processes", process_count()?));
    outcome.check(Some(found[0].cpu_percent), 0.5, 0.2);
    outcome.check(Some(found[0].memory_bytes / MB), 40.0, 25.0);
    browser.end()?;
    served.end()?;
    Ok(outcome)
}

/// Time for which the server and its peers are watched.
pub(super) fn length(bench: &Bench) -> Duration {
    let full = u64::from(bench.minutes.unwrap_or(60)) * 60;
    match bench.minutes {
        Some(_) => Duration::from_secs(full),
        None => Duration::from_secs(bench.pick(full, 12)),
    }
}

/// Starts as many sleepers as are lacking.
pub(super) fn fill_up(bench: &Bench, length: Duration) -> Result<crate::child::Running> {
    let lacking = PROCESSES.saturating_sub(process_count()?);
    crowd::start(bench, lacking as u32, length + SLACK)
}

/// kymo as a whole, then its processes one by one.
fn members(served: &Served) -> Result<Vec<Side>> {
    let side = |name, roots| Side {
        name,
        roots,
        place: None,
    };
    let mut sides = vec![side("kymo", vec![served.root()])];
    for process in descendants(served.root())? {
        let verb = words(process.pid);
        match verb.get(1).map(String::as_str) {
            Some("record") => sides.push(side("recorder", vec![process.pid])),
            Some("hub") => sides.push(side("hub", vec![process.pid])),
            Some("keeper") => sides.push(side("keeper", vec![process.pid])),
            _ => {}
        }
    }
    Ok(sides)
}

/// CPU time of living threads; to the nanosecond, except for those running at this moment.
fn scheduled_ns(served: &Served) -> Result<u64> {
    let family = descendants(served.root())?;
    family.iter().map(|process| cpu_ns(process.pid)).sum()
}
