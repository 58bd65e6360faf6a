//! The keeper's memory without series, and with a hub's series; and its CPU while idle.

use super::contender::{Hub, Who};
use super::fleet::Fleet;
use super::pace::Sender;
use super::{SERIES_OF_THE_CASE, SERIES_QUICK};
use crate::bench::Bench;
use crate::fault::{Fault, Result};
use crate::figures::{bytes, significant};
use crate::procfs;
use crate::report::Outcome;
use crate::row::Row;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "hub-memory",
    work: "the keeper's RssAnon + RssShmem: idle, and with 20,510 series, 96 values each; its CPU while idle, 60 s",
    bar: "≤ 2 MB, ≤ 60 MB; ≤ 0.03 % of a core",
    aim: "1 MB, 45 MB; 0.01 %",
    run,
};

/// Between two saves, so that half of a block's values is in memory.
const STEPS: u64 = 96;
const DAY_S: u64 = 86_400;

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if !Who::Kymo.is_here(bench) {
        return Ok(outcome);
    }
    let mut fleet = Fleet::new(bench.series(SERIES_OF_THE_CASE, SERIES_QUICK), DAY_S);
    let count = fleet.len();
    let hub = Hub::start(bench, Who::Kymo, count, STEPS * count as u64)?;
    hub.await_rest()?;
    let keeper = hub.own_pid()?;
    let idle_bytes = memory(keeper)?;
    let (before_ns, begun) = (procfs::cpu_ns(keeper)?, Instant::now());
    sleep(Duration::from_secs(bench.pick(60, 10)));
    let cpu_ns = (procfs::cpu_ns(keeper)? - before_ns) as f64;
    let percent = cpu_ns * 100.0 / begun.elapsed().as_nanos() as f64;
    let mut sender = Sender::to(&hub, &fleet)?;
    sender.step(&mut fleet, 0)?;
    hub.await_files(count)?;
    sender.steps(&mut fleet, 1..STEPS)?;
    hub.await_rest()?;
    hub.lost_nothing()?;
    let busy_bytes = memory(keeper)?;
    outcome.figure(format!("idle {}", bytes(idle_bytes)));
    outcome.figure(format!("{count} series {}", bytes(busy_bytes)));
    outcome.figure(format!("idle {} % of a CPU", significant(percent)));
    outcome.check(Some(idle_bytes / 1e6), 2.0, 1.0);
    outcome.check(Some(busy_bytes / 1e6), 60.0, 45.0);
    outcome.check(Some(percent), 0.03, 0.01);
    Ok(outcome)
}

fn memory(pid: u32) -> Result<f64> {
    let found = procfs::private_bytes(pid);
    let found = found.ok_or_else(|| Fault::new("the keeper has ended"))?;
    Ok(found as f64)
}
