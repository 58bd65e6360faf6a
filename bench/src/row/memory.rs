//! Peak resident memory up to the exit, seals included. Kernel memory (kept
//! descriptors) is not part of it; kymo itself prints it (`record --cost`).

use super::Row;
use super::seal::printed;
use crate::bench::Bench;
use crate::child::Running;
use crate::fault::Result;
use crate::figures::bytes;
use crate::peer::{Peer, Take, kymo};
use crate::report::Outcome;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "memory",
    work: "peak memory before exit, `-scdnm` / `-scdnmZ` / all letters, recorder-only and full build",
    bar: "≤ 6 / 8 / 12 MB",
    aim: "4 / 5 / 8 MB",
    run,
};

const LIMIT: Duration = Duration::from_secs(120);
const MB: f64 = 1e6;
/// Every subsystem, also those that collectl does not have.
const ALL: &str = "bcdfgijmnpstxyEKMWZ";

/// Letters, interval, full and quick count, bar and aim in MB. Without pause, so
/// that seals occur within the run.
const TAKES: [(&str, &str, u32, u32, f64, f64); 3] = [
    ("cdnm", "0", 8640, 300, 6.0, 4.0),
    ("cdnmZ", "0:1", 300, 20, 8.0, 5.0),
    (ALL, "0:1", 300, 20, 12.0, 8.0),
];

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (letters, interval, full, quick, bar, aim) in TAKES {
        let take = Take {
            letters,
            interval,
            count: bench.pick(full, quick),
        };
        for (build, program) in [("kymo", &bench.kymo), ("kymo-small", &bench.kymo_small)] {
            if let Some(program) = program {
                let peak = peak_of_kymo(bench, program, take)?;
                outcome.figure(format!("{build} -s{letters} {}", bytes(peak)));
                outcome.check(Some(peak), bar * MB, aim * MB);
            }
        }
        if letters != ALL && Peer::Collectl.is_here(bench) {
            let mut command = Peer::Collectl.command(bench, take, &bench.new_dir("memory")?)?;
            let peak = peak(bench, &mut command)?;
            outcome.figure(format!("collectl -s{letters} {}", bytes(peak)));
        }
    }
    tell_kernel_memory(bench, &mut outcome);
    Ok(outcome)
}

fn peak_of_kymo(bench: &Bench, program: &Path, take: Take) -> Result<f64> {
    let mut command = kymo(program, take, &bench.new_dir("memory")?);
    peak(bench, command.stdout(Stdio::null()))
}

fn peak(bench: &Bench, command: &mut Command) -> Result<f64> {
    let running = Running::start(bench, command)?;
    Ok(running.finish_watching_memory(LIMIT)?.peak_bytes as f64)
}

/// Adds kymo's own line about kernel memory, if it prints one.
fn tell_kernel_memory(bench: &Bench, outcome: &mut Outcome) {
    let Some(program) = &bench.kymo else { return };
    let take = Take {
        letters: "cdnmZ",
        interval: "0:1",
        count: 20,
    };
    let line = bench.new_dir("memory").and_then(|dir| {
        let mut command = kymo(program, take, &dir);
        let text = printed(bench, command.arg("--cost"))?;
        Ok(text
            .lines()
            .find(|line| line.contains("kernel"))
            .map(str::to_string))
    });
    match line {
        Ok(Some(line)) => outcome.figure(format!("it prints: {}", line.trim())),
        _ => outcome.figure("kernel memory: kymo printed none"),
    }
}
