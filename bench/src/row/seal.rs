//! Sealing one simulated day at 1 Hz, against the CPU of sampling that day.
//!
//! `kymo-bench ring` runs kymo's own sampler and writer under simulated
//! stamps and measures each alone. A day's sampling is 86,400 times the
//! cost of a sample at one a second, with cold caches.

use super::Row;
use crate::bench::Bench;
use crate::child::Running;
use crate::fault::{Cannot, Result};
use crate::figures::{seconds, significant};
use crate::report::Outcome;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "seal",
    work: "sealing one simulated day at 1 Hz: CPU",
    bar: "≤ 15 % of its sampling CPU",
    aim: "8 %",
    run,
};

const LIMIT: Duration = Duration::from_secs(240);

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let printed = simulate(bench, 1, &bench.new_dir("seal")?, true)?;
    let (sampling, sealing) = (
        number(&printed, "sampling_cpu_ns"),
        number(&printed, "sealing_cpu_ns"),
    );
    let (Some(sampling), Some(sealing)) = (sampling, sealing) else {
        outcome.figure("the simulation did not end");
        return Ok(outcome);
    };
    if let Some(warm) = number(&printed, "warm_sampling_cpu_ns") {
        outcome.figure(format!(
            "sampling with warm caches {} s",
            seconds(warm / 1e9)
        ));
    }
    outcome.figure(format!("sampling {} s", seconds(sampling / 1e9)));
    outcome.figure(format!("sealing {} s", seconds(sealing / 1e9)));
    outcome.figure(format!("{} %", significant(100.0 * sealing / sampling)));
    outcome.check(Some(sealing / sampling), 0.15, 0.08);
    Ok(outcome)
}

/// Makes a ring of simulated days; returns the printed costs.
pub(super) fn simulate(bench: &Bench, days: u32, dir: &Path, cold: bool) -> Result<String> {
    let mut command = Command::new(&bench.own);
    command
        .args(["ring", "--days", &days.to_string(), "--dir"])
        .arg(dir);
    if cold {
        command.arg("--cold");
    }
    printed(bench, &mut command)
}

/// Runs a command to its end; returns both of its streams.
pub(super) fn printed(bench: &Bench, command: &mut Command) -> Result<String> {
    let path = bench.new_path("stdout");
    command.stdout(File::create(&path).cannot("create a file for output")?);
    let running = Running::start(bench, command)?;
    let complaints = running.stderr().to_path_buf();
    running.finish(LIMIT)?;
    let mut text = fs::read_to_string(&path).cannot("read the output")?;
    text.push_str(&fs::read_to_string(&complaints).cannot("read the output")?);
    Ok(text)
}

/// The number after `key` on a line of its own.
fn number(text: &str, key: &str) -> Option<f64> {
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(key))?;
    line.trim_start_matches([' ', ':', '='])
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_stand_after_their_key() {
        let text = "talk\n sampling_cpu_ns 120\nsealing_cpu_ns: 9 of it\n";
        assert_eq!(super::number(text, "sampling_cpu_ns"), Some(120.0));
        assert_eq!(super::number(text, "sealing_cpu_ns"), Some(9.0));
        assert_eq!(super::number(text, "other"), None);
    }
}
