//! The effect of a dead device on the others.

use super::latency::watch;
use super::poller::{Daemon, Who};
use super::site::{Globals, Site};
use super::{DEVICES, DEVICES_QUICK, TARGETS, TARGETS_QUICK};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{percentile, ratio, significant};
use crate::report::Outcome;
use crate::row::Row;
use kymo_agentfarm::Counts;

pub(super) const ROW: Row = Row {
    name: "poll-dead",
    work: "a device of 32 dies, 5 ms from request to reply: when the others have their last reply (p99 of devices and cycles), without and with it",
    bar: "≤ 1.1 × without",
    aim: "1.1 ×",
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
    // The first device: MRTG polls in the order of the configuration.
    let dead = 0;
    for who in [Who::Mrtg, Who::KymoFiles] {
        if !who.is_here(bench) {
            continue;
        }
        let interval_s = match who {
            Who::Mrtg => bench.pick(90, 50),
            _ => bench.pick(30, 10),
        };
        let globals = Globals {
            interval_s,
            is_daemon: true,
        };
        let configuration = site.configure(bench, globals, "")?;
        site.farm.forget_counts();
        let daemon = Daemon::start(bench, who, &configuration)?;
        daemon.settle(&site, interval_s)?;
        let mut last = [0.0; 2];
        for (is_dead, last) in [false, true].into_iter().zip(&mut last) {
            site.farm
                .change(dead, |behaviour, _| behaviour.dead = is_dead);
            let cycles = watch(&site, &daemon, interval_s, bench.pick(3, 1))?;
            let times: Vec<f64> = cycles
                .iter()
                .flat_map(|cycle| completions(cycle, dead))
                .collect();
            *last = percentile(&times, 0.99);
        }
        daemon.end()?;
        site.farm
            .change(dead, |behaviour, _| behaviour.dead = false);
        let [without, with] = last;
        outcome.figure(format!(
            "{}: {} s without, {} s with, {}",
            who.name(),
            significant(without),
            significant(with),
            ratio(with, without)
        ));
        if who != Who::Mrtg {
            outcome.check(Some(with / without), 1.1, 1.1);
        }
    }
    Ok(outcome)
}

/// Seconds from the cycle's first request to each living device's last reply.
fn completions(devices: &[Counts], dead: u32) -> Vec<f64> {
    let mut all = Counts::default();
    devices.iter().for_each(|&counts| all += counts);
    let living = (0..).zip(devices).filter(|&(device, _)| device != dead);
    living
        .map(|(_, counts)| counts.last_ns.saturating_sub(all.first_ns) as f64 / 1e9)
        .collect()
}
