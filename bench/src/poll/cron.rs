//! One run by cron: start, read the configuration, poll, write every file, end.

use super::poller::{Who, once};
use super::site::{Globals, Site};
use super::{DEVICES, DEVICES_QUICK, TARGETS, TARGETS_QUICK};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{bytes, median, ratio, significant};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "poll-cron",
    work: "as cron runs it, 3,164 targets of 32 devices: start, read, poll, write every .rrd, end; CPU, the first run (walks, new files) apart",
    bar: "≤ 1/30 of MRTG",
    aim: "1/40",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let (devices, targets) = (
        bench.pick(DEVICES, DEVICES_QUICK),
        bench.pick(TARGETS, TARGETS_QUICK),
    );
    let site = Site::new(bench, devices, targets)?;
    let mut medians = [None; 2];
    for (who, median_ms) in [Who::Mrtg, Who::KymoFiles].into_iter().zip(&mut medians) {
        if !who.is_here(bench) {
            continue;
        }
        let globals = Globals {
            interval_s: 300,
            is_daemon: false,
        };
        let configuration = site.configure(bench, globals, "")?;
        let first = once(bench, who, &configuration)?;
        let (mut cpu, mut wall, mut peak) = (Vec::new(), Vec::new(), 0);
        for _ in 0..bench.rounds {
            let usage = once(bench, who, &configuration)?;
            cpu.push(usage.cpu.as_secs_f64() * 1e3);
            wall.push(usage.wall.as_secs_f64() * 1e3);
            peak = usage.peak_bytes.max(peak);
        }
        *median_ms = Some(median(&cpu));
        outcome.figure(format!(
            "{}: {} ms CPU, {} ms wall, {}; first run {} ms",
            who.name(),
            significant(median(&cpu)),
            significant(median(&wall)),
            bytes(peak as f64),
            significant(first.cpu.as_secs_f64() * 1e3),
        ));
    }
    if let [Some(of_mrtg), Some(of_kymo)] = medians {
        outcome.figure(ratio(of_kymo, of_mrtg));
        outcome.check(Some(of_kymo / of_mrtg), 1.0 / 30.0, 1.0 / 40.0);
    }
    Ok(outcome)
}
