//! Duration of a cycle with slow answers: 5 ms from request to reply.

use super::poller::{Daemon, Who};
use super::site::{Globals, Site};
use super::{DEVICES, DEVICES_QUICK, TARGETS, TARGETS_QUICK};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{median, significant};
use crate::report::Outcome;
use crate::row::Row;
use kymo_agentfarm::Counts;
use std::thread::sleep;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "poll-latency",
    work: "3,164 targets of 32 devices, 5 ms from request to reply: from the first request of a cycle to its last reply, in a burst, steady",
    bar: "≤ 0.5 s",
    aim: "0.15 s",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let (devices, targets) = (
        bench.pick(DEVICES, DEVICES_QUICK),
        bench.pick(TARGETS, TARGETS_QUICK),
    );
    let site = Site::new(bench, devices, targets)?;
    for device in 0..devices {
        site.farm
            .change(device, |behaviour, _| behaviour.latency_us = 5_000);
    }
    for (who, interval_s) in [(Who::Mrtg, bench.pick(40, 10)), (Who::KymoFiles, 10)] {
        if !who.is_here(bench) {
            continue;
        }
        let globals = Globals {
            interval_s,
            is_daemon: true,
        };
        let configuration = site.configure(bench, globals, "")?;
        site.farm.forget_counts();
        let daemon = Daemon::start(bench, who, &configuration)?;
        daemon.settle(&site, interval_s)?;
        let cycles = watch(&site, &daemon, interval_s, bench.pick(3, 1))?;
        daemon.end()?;
        let walls: Vec<f64> = cycles.iter().map(|devices| wall(devices)).collect();
        let seconds = median(&walls);
        outcome.figure(format!("{}: {} s", who.name(), significant(seconds)));
        if who != Who::Mrtg {
            outcome.check(Some(seconds), 0.5, 0.15);
        }
    }
    Ok(outcome)
}

/// Counts of each device in each of the next cycles.
/// The interval has to be twice as long as a cycle.
pub(super) fn watch(
    site: &Site,
    daemon: &Daemon,
    interval_s: u64,
    cycles: u32,
) -> Result<Vec<Vec<Counts>>> {
    let mut seen = Vec::new();
    for _ in 0..cycles {
        site.farm.forget_counts();
        sleep(Duration::from_secs(interval_s));
        let devices = 0..site.farm.settings().devices;
        seen.push(devices.map(|device| site.farm.counts_of(device)).collect());
    }
    daemon.is_alive()?;
    Ok(seen)
}

/// Seconds from the first request to the last reply.
fn wall(devices: &[Counts]) -> f64 {
    let mut all = Counts::default();
    devices.iter().for_each(|&counts| all += counts);
    all.last_ns.saturating_sub(all.first_ns) as f64 / 1e9
}
