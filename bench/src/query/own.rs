//! A series of this machine over a day of samples each second.

use crate::bench::Bench;
use crate::child::Running;
use crate::fault::{Fault, Result};
use crate::figures::{median, significant};
use crate::report::Outcome;
use crate::row::Row;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "query-own",
    work: "a series of this machine, a generated day at 1 s with 200 processes, from its first second to its last at a step of 60 s, by \
           `kymo query --open`: start, read, answer; ms",
    bar: "≤ 100",
    aim: "30",
    run,
};

const LIMIT: Duration = Duration::from_secs(1800);
/// Metrics of two sources: few numbers, and many.
const METRICS: [&str; 2] = ["node_load1", "node_memory_MemFree_bytes"];

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        return Ok(outcome);
    };
    let dir = bench.new_dir("world")?;
    let mut command = Command::new(&bench.own);
    command.arg("world").arg("--dir").arg(&dir);
    command.args(["--days", "1", "--mib", "1024"]);
    Running::start(bench, command.stdout(Stdio::null()))?.finish(LIMIT)?;
    for metric in METRICS {
        let mut times = Vec::new();
        for _ in 0..=bench.rounds.max(5) {
            let mut command = Command::new(kymo);
            command.args(["query", metric, "--open"]).arg(&dir);
            command.args(["--from", "-24h", "--step", "60", "--csv"]);
            let begun = Instant::now();
            let output = command.output();
            let output = output.map_err(|cause| Fault::because("run kymo query", cause))?;
            if !output.status.success() || output.stdout.len() < 10_000 {
                let text = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(Fault::because("query a day", text));
            }
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        let ms = median(&times[1..]);
        outcome.figure(format!("{metric}: {} ms", significant(ms)));
        outcome.check(Some(ms), 100.0, 30.0);
    }
    Ok(outcome)
}
