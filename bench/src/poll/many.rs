//! A hundred thousand targets.

use super::poller::{Daemon, Who};
use super::site::{Globals, Site};
use crate::bench::Bench;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{bytes, significant};
use crate::report::Outcome;
use crate::row::Row;
use kymo_sys::clock;
use std::fs;

pub(super) const ROW: Row = Row {
    name: "poll-many",
    work: "100,000 targets of 1,010 devices, values stored, in a burst: CPU of a cycle (poller and keeper), the first one apart, with the floor of its files; from its first request to its last reply; RssAnon of the poller",
    bar: "≤ 1.5 s CPU, within 60 s, ≤ 300 MB",
    aim: "0.4 s",
    run,
};

/// Seconds of a cycle.
const INTERVAL_S: u64 = 60;

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if !Who::KymoStored.is_here(bench) {
        return Ok(outcome);
    }
    let (devices, targets) = bench.pick((1010, 100_000), (70, 1400));
    let site = Site::new(bench, devices, targets)?;
    let interval_s = bench.pick(INTERVAL_S, 10);
    let globals = Globals {
        interval_s,
        is_daemon: true,
    };
    let configuration = site.configure(bench, globals, "")?;
    site.farm.forget_counts();
    let daemon = Daemon::start(bench, Who::KymoStored, &configuration)?;
    daemon.settle(&site, interval_s)?;
    let first = daemon.spent()?;
    let cycles = bench.steps(4, 1);
    let (mut cpu, mut wall) = (0.0, 0.0f64);
    for _ in 0..cycles {
        site.farm.forget_counts();
        let spent = daemon.cycle(interval_s, 1)?;
        cpu += (spent.poller + spent.keeper) / cycles as f64;
        let counts = site.farm.counts();
        if counts.varbinds < 2 * u64::from(targets) {
            return Err(Fault::new(format!(
                "{} varbinds of a cycle",
                counts.varbinds
            )));
        }
        wall = wall.max(counts.last_ns.saturating_sub(counts.first_ns) as f64 / 1e9);
    }
    let memory = daemon.memory_bytes()?;
    daemon.end()?;
    outcome.figure(format!(
        "kymo: {} s CPU, {} s, {}; until after its second cycle {} s CPU",
        significant(cpu),
        significant(wall),
        bytes(memory as f64),
        significant(first.poller + first.keeper)
    ));
    let files = empty_files(bench, targets)?;
    outcome.figure(format!(
        "{targets} empty files in a folder, which its first cycle makes in place of .rrd files: {} s",
        significant(files)
    ));
    outcome.check(Some(cpu), 1.5, 0.4);
    outcome.check(Some(wall), 60.0, 60.0);
    outcome.check(Some(memory as f64 / 1e6), 300.0, 300.0);
    Ok(outcome)
}

/// CPU seconds of this thread to create so many files.
fn empty_files(bench: &Bench, count: u32) -> Result<f64> {
    let folder = bench.new_dir("empty")?;
    let before_ns = clock::thread_cpu_ns();
    for number in 0..count {
        let path = folder.join(format!("{number}.rrd"));
        fs::File::create_new(path).cannot("create a file")?;
    }
    Ok((clock::thread_cpu_ns() - before_ns) as f64 / 1e9)
}
