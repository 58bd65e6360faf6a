//! Runs by cron with pages in a folder: at first all four graphs of each target are due, later that of the day alone.

use super::native;
use super::poller::{Who, once};
use super::site::{Configuration, Site};
use crate::bench::Bench;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{median, ratio, significant};
use crate::report::Outcome;
use crate::row::Row;
use std::fs;

/// Targets, of so many devices.
const TARGETS: u32 = 100;
const TARGETS_QUICK: u32 = 8;
const DEVICES: u32 = 2;
/// Ends of the names of a target's graphs; the first one is drawn after each value.
const GRAPHS: [&str; 4] = ["-day.png", "-week.png", "-month.png", "-year.png"];

pub(super) const ROW: Row = Row {
    name: "poll-pages",
    work: "as cron runs it with MRTG's own logs, 100 targets of 2 devices, with graphs and pages; CPU where all four graphs are due, and where that of the day is",
    bar: "≤ 1/10 of MRTG's CPU, both",
    aim: "1/20",
    run,
};

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let targets = bench.pick(TARGETS, TARGETS_QUICK);
    let site = Site::new(bench, DEVICES, targets)?;
    let mut costs = [None; 2];
    for (who, cost) in [Who::Mrtg, Who::KymoFiles].into_iter().zip(&mut costs) {
        if !who.is_here(bench) {
            continue;
        }
        let configuration = native::configure(bench, &site)?;
        once(bench, who, &configuration)?;
        let (mut all, mut daily) = (Vec::new(), Vec::new());
        for _ in 0..bench.rounds {
            remove_graphs(&configuration)?;
            all.push(once(bench, who, &configuration)?.cpu.as_secs_f64() * 1e3);
            has_graphs(&configuration, targets)?;
            daily.push(once(bench, who, &configuration)?.cpu.as_secs_f64() * 1e3);
        }
        *cost = Some([median(&all), median(&daily)]);
        outcome.figure(format!(
            "{}: {} ms CPU with all graphs, {} ms with those of the day",
            who.name(),
            significant(median(&all)),
            significant(median(&daily)),
        ));
    }
    if let [Some(of_mrtg), Some(of_kymo)] = costs {
        for (of_kymo, of_mrtg) in of_kymo.into_iter().zip(of_mrtg) {
            outcome.figure(ratio(of_kymo, of_mrtg));
            outcome.check(Some(of_kymo / of_mrtg), 1.0 / 10.0, 1.0 / 20.0);
        }
    }
    Ok(outcome)
}

/// Removes the graphs, so that all are due.
fn remove_graphs(configuration: &Configuration) -> Result<()> {
    for file in fs::read_dir(&configuration.folder).cannot("list a folder")? {
        let path = file.cannot("list a folder")?.path();
        if path.extension().is_some_and(|end| end == "png") {
            fs::remove_file(path).cannot("remove a graph")?;
        }
    }
    Ok(())
}

/// Fails unless each target has its graphs and its page.
fn has_graphs(configuration: &Configuration, targets: u32) -> Result<()> {
    let files = fs::read_dir(&configuration.folder).cannot("list a folder")?;
    let names = files.flatten().map(|file| file.file_name());
    let names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    for end in GRAPHS.into_iter().chain([".html"]) {
        let count = names.iter().filter(|name| name.ends_with(end)).count();
        if u32::try_from(count) != Ok(targets) {
            return Err(Fault::new(format!("{count} files end in {end}")));
        }
    }
    Ok(())
}
