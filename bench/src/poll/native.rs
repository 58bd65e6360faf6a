//! One run by cron without `LogFormat: rrdtool`: each target has its .log, which MRTG has a program of its own write.

use super::poller::{Who, once};
use super::site::{Configuration, Globals, Site};
use super::{DEVICES, DEVICES_QUICK, TARGETS, TARGETS_QUICK};
use crate::bench::Bench;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{bytes, median, ratio, significant};
use crate::report::Outcome;
use crate::row::Row;
use std::fs;
use std::time::SystemTime;

pub(super) const ROW: Row = Row {
    name: "poll-native",
    work: "as cron runs it without LogFormat: rrdtool, 3,164 targets of 32 devices, every .log current after it; CPU, and bytes of the files written a target (MRTG's: pictures and pages, too); the first run apart",
    bar: "≤ 1/20 of MRTG's CPU, no more bytes",
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
    let mut costs = [None; 2];
    for (who, cost) in [Who::Mrtg, Who::KymoFiles].into_iter().zip(&mut costs) {
        if !who.is_here(bench) {
            continue;
        }
        let configuration = configure(bench, &site)?;
        let first = once(bench, who, &configuration)?;
        let (mut cpu, mut written) = (Vec::new(), Vec::new());
        for _ in 0..bench.rounds {
            let begun = SystemTime::now();
            cpu.push(once(bench, who, &configuration)?.cpu.as_secs_f64() * 1e3);
            let bytes = written_since(&configuration, begun, targets)?;
            written.push(bytes as f64 / f64::from(targets));
        }
        *cost = Some((median(&cpu), median(&written)));
        outcome.figure(format!(
            "{}: {} ms CPU, {} a target; first run {} ms",
            who.name(),
            significant(median(&cpu)),
            bytes(median(&written)),
            significant(first.cpu.as_secs_f64() * 1e3),
        ));
    }
    if let [Some(of_mrtg), Some(of_kymo)] = costs {
        outcome.figure(ratio(of_kymo.0, of_mrtg.0));
        outcome.check(Some(of_kymo.0 / of_mrtg.0), 1.0 / 20.0, 1.0 / 40.0);
        outcome.check(Some(of_kymo.1 / of_mrtg.1), 1.0, 1.0);
    }
    Ok(outcome)
}

/// cfgmaker's configuration with MRTG's own logs.
pub(super) fn configure(bench: &Bench, site: &Site) -> Result<Configuration> {
    let globals = Globals {
        interval_s: 300,
        is_daemon: false,
    };
    let configuration = site.configure(bench, globals, "")?;
    let text = fs::read_to_string(&configuration.file).cannot("read a configuration")?;
    let native = text.replace("LogFormat: rrdtool\n", "");
    if native == text {
        return Err(Fault::new("cfgmaker wrote no LogFormat"));
    }
    fs::write(&configuration.file, native).cannot("write a configuration")?;
    Ok(configuration)
}

/// Bytes of the files written since then, among which each target's .log must be.
fn written_since(configuration: &Configuration, begun: SystemTime, targets: u32) -> Result<u64> {
    let (mut bytes, mut logs) = (0, 0);
    let files = fs::read_dir(&configuration.folder).cannot("list a folder")?;
    for file in files {
        let file = file.cannot("list a folder")?;
        let stat = file.metadata().cannot("look at a file")?;
        if stat.is_file() && stat.modified().cannot("look at a file")? >= begun {
            bytes += stat.len();
            logs += u32::from(file.file_name().to_string_lossy().ends_with(".log"));
        }
    }
    match logs == targets {
        true => Ok(bytes),
        false => Err(Fault::new(format!("{logs} .log files were written"))),
    }
}
