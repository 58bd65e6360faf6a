//! A cycle of a daemon after which each .rrd file is current.

use super::poller::{Daemon, Who};
use super::site::{Globals, Site, rrd_files};
use super::{DEVICES, DEVICES_QUICK, INTERVAL_S, TARGETS, TARGETS_QUICK, touch};
use crate::bench::Bench;
use crate::fault::{Fault, Result};
use crate::figures::{ratio, significant};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "poll-files",
    work: "CPU of a cycle of a daemon, 3,164 targets of 32 devices, every .rrd current after it, once requests have grown, in a burst; beside a bare loop of open, lock, fstat, 3 pwrites and close a file, once in an interval, too",
    bar: "≤ 1.6 × the loop + 10 ms",
    aim: "1.3 ×",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let (devices, targets) = (
        bench.pick(DEVICES, DEVICES_QUICK),
        bench.pick(TARGETS, TARGETS_QUICK),
    );
    let site = Site::new(bench, devices, targets)?;
    let cycles = bench.steps(12, 2);
    let (mut of_mrtg, mut of_kymo, mut floor) = (None, None, None);
    for who in [Who::Mrtg, Who::KymoFiles] {
        if !who.is_here(bench) {
            continue;
        }
        let globals = Globals {
            interval_s: INTERVAL_S,
            is_daemon: true,
        };
        let configuration = site.configure(bench, globals, "")?;
        site.farm.forget_counts();
        let daemon = Daemon::start(bench, who, &configuration)?;
        daemon.settle_grown(bench, who, &site, INTERVAL_S)?;
        let ms = daemon.cycle(INTERVAL_S, cycles)?.poller * 1e3;
        daemon.end()?;
        let files = rrd_files(&configuration.folder)?;
        if files != targets as usize {
            return Err(Fault::new(format!("{} has {files} files", who.name())));
        }
        match who {
            Who::Mrtg => of_mrtg = Some(ms),
            _ => of_kymo = Some(ms),
        }
        outcome.figure(format!("{}: {} ms", who.name(), significant(ms)));
        if floor.is_none() {
            floor = Some(touch::floor(bench, &configuration.folder, INTERVAL_S)?);
        }
    }
    let Some(floor) = floor else {
        return Ok(outcome);
    };
    let (in_a_row, floor) = (floor.in_a_row * 1e3, floor.paced * 1e3);
    outcome.figure(format!(
        "bare loop, once in an interval: {} ms ({} one round behind the other)",
        significant(floor),
        significant(in_a_row)
    ));
    if let Some(ms) = of_kymo {
        outcome.figure(format!("kymo is {} the loop", ratio(ms, floor)));
        if let Some(of_mrtg) = of_mrtg {
            outcome.figure(format!("{} MRTG", ratio(ms, of_mrtg)));
        }
        outcome.check(Some(ms), 1.6 * floor + 10.0, 1.3 * floor);
    }
    Ok(outcome)
}
