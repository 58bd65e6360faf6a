//! Time for reading a large configuration.

use super::poller::{Who, check};
use super::site::{Globals, Site};
use crate::bench::Bench;
use crate::fault::Result;
use crate::figures::{bytes, median, ratio, significant};
use crate::report::Outcome;
use crate::row::Row;

pub(super) const ROW: Row = Row {
    name: "poll-start",
    work: "reading 31,640 targets of 320 devices (`--check`): wall, and memory at its peak",
    bar: "≤ 0.15 s, ≤ 60 MB",
    aim: "0.08 s, 40 MB",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let (devices, targets) = bench.pick((320, 31_640), (70, 700));
    let site = Site::new(bench, devices, targets)?;
    let globals = Globals {
        interval_s: 300,
        is_daemon: false,
    };
    let configuration = site.configure(bench, globals, "")?;
    let mut of_mrtg = None;
    for who in [Who::Mrtg, Who::KymoFiles] {
        if !who.is_here(bench) {
            continue;
        }
        let (mut wall, mut cpu, mut peak) = (Vec::new(), Vec::new(), 0);
        for _ in 0..bench.rounds {
            let usage = check(bench, who, &configuration)?;
            wall.push(usage.wall.as_secs_f64());
            cpu.push(usage.cpu.as_secs_f64());
            peak = usage.peak_bytes.max(peak);
        }
        let seconds = median(&wall);
        let mut figure = format!(
            "{}: {} s ({} s of CPU), {}",
            who.name(),
            significant(seconds),
            significant(median(&cpu)),
            bytes(peak as f64)
        );
        match (who, of_mrtg) {
            (Who::Mrtg, _) => of_mrtg = Some(seconds),
            (_, Some(of_mrtg)) => figure += &format!(", {}", ratio(seconds, of_mrtg)),
            _ => {}
        }
        outcome.figure(figure);
        if who != Who::Mrtg {
            outcome.check(Some(seconds), 0.15, 0.08);
            outcome.check(Some(peak as f64 / 1e6), 60.0, 40.0);
        }
    }
    Ok(outcome)
}
