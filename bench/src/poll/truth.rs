//! The stored rates beside the agents' true ones. Both poll the same agents at the same time.

use super::poller::{Daemon, Who};
use super::site::{Configuration, Globals, Site};
use super::{DEVICES, DEVICES_QUICK, TARGETS, TARGETS_QUICK};
use crate::bench::Bench;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::significant;
use crate::report::Outcome;
use crate::row::Row;
use kymo_agentfarm::traffic::{Direction, rate};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "poll-truth",
    work: "stored rates of 3,164 targets (every tenth is looked at) against those that the agents count with, MRTG and kymo on the same agents at once; largest difference of a primary data point, at 60 s a cycle",
    bar: "≤ 0.05 %; from MRTG ≤ 1 s / interval + 0.05 %",
    aim: "0.05 %",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let (devices, targets) = (
        bench.pick(DEVICES, DEVICES_QUICK),
        bench.pick(TARGETS, TARGETS_QUICK),
    );
    let site = Site::new(bench, devices, targets)?;
    let interval_s = bench.pick(60, 10);
    let globals = Globals {
        interval_s,
        is_daemon: true,
    };
    let mut running = Vec::new();
    for who in [Who::Mrtg, Who::KymoFiles] {
        if who.is_here(bench) {
            let configuration = site.configure(bench, globals, "")?;
            let daemon = Daemon::start(bench, who, &configuration)?;
            daemon.settle(&site, interval_s)?;
            running.push((who, configuration, daemon));
        }
    }
    sleep(Duration::from_secs(interval_s * bench.steps(8, 3)));
    for (who, configuration, daemon) in running {
        daemon.is_alive()?;
        daemon.end()?;
        let (worst, points) = worst(&site, &configuration, interval_s)?;
        outcome.figure(format!(
            "{}: at most {} % off in {points} points",
            who.name(),
            significant(worst * 100.0)
        ));
        let stamps = 1.0 / interval_s as f64;
        match who {
            // MRTG's stamps are whole seconds, taken after the reply.
            Who::Mrtg if worst > 2.0 * stamps => {
                return Err(Fault::new("MRTG is further off than its stamps explain"));
            }
            Who::Mrtg => {}
            _ => outcome.check(Some(worst), 0.0005, 0.0005),
        }
    }
    Ok(outcome)
}

/// The largest relative error of a known point, and the number of compared points.
fn worst(site: &Site, configuration: &Configuration, interval_s: u64) -> Result<(f64, usize)> {
    let (mut worst, mut points) = (0.0f64, 0);
    for device in 0..site.farm.settings().devices {
        for interface in (0..site.farm.interfaces(device)).step_by(10) {
            let path = configuration.folder.join(site.file_name(device, interface));
            for [inward, outward] in rows(&path.to_string_lossy(), interval_s)? {
                for (stored, direction) in [(inward, Direction::In), (outward, Direction::Out)] {
                    let exact = rate(device, interface, direction) as f64;
                    worst = worst.max((stored - exact).abs() / exact);
                    points += 1;
                }
            }
        }
    }
    match points {
        0 => Err(Fault::new("no known point in any file")),
        _ => Ok((worst, points)),
    }
}

/// The known primary data points of a file.
fn rows(path: &str, interval_s: u64) -> Result<Vec<[f64; 2]>> {
    let output = Command::new("rrdtool")
        .args(["fetch", path, "AVERAGE", "-r", &interval_s.to_string()])
        .args(["-s", &format!("-{}", interval_s * 12)])
        .output();
    let output = output.cannot("run rrdtool")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rows = text.lines().filter_map(|line| {
        let (_, values) = line.split_once(": ")?;
        let mut values = values
            .split_whitespace()
            .map(|value| value.parse::<f64>().ok());
        let row = [values.next()??, values.next()??];
        row.iter().all(|value| value.is_finite()).then_some(row)
    });
    Ok(rows.collect())
}
