//! Sealing one simulated day at 1 Hz, against the CPU of sampling that day.
//!
//! kymo alone knows the two apart: it is run with `--seal-args` and asked for
//! two lines, `sampling_cpu_ns N` and `sealing_cpu_ns N`, on either stream.

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

pub const ROW: Row = Row {
    name: "seal",
    work: "sealing one simulated day at 1 Hz: CPU",
    bar: "≤ 15 % of its sampling CPU",
    aim: "8 %",
    run,
};

const LIMIT: Duration = Duration::from_secs(240);

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        outcome.figure("no peer has it");
        return Ok(outcome);
    };
    let printed = cost(bench, kymo)?;
    let (sampling, sealing) = (
        number(&printed, "sampling_cpu_ns"),
        number(&printed, "sealing_cpu_ns"),
    );
    let (Some(sampling), Some(sealing)) = (sampling, sealing) else {
        outcome.figure("kymo printed no sampling_cpu_ns and sealing_cpu_ns");
        return Ok(outcome);
    };
    outcome.figure(format!("sampling {} s", seconds(sampling / 1e9)));
    outcome.figure(format!("sealing {} s", seconds(sealing / 1e9)));
    outcome.figure(format!("{} %", significant(100.0 * sealing / sampling)));
    outcome.check(Some(sealing / sampling), 0.15, 0.08);
    Ok(outcome)
}

/// What the command of `--seal-args` printed; `DIR` among them is a new one.
fn cost(bench: &Bench, kymo: &Path) -> Result<String> {
    let dir = bench.new_dir("seal")?;
    let mut command = Command::new(kymo);
    for word in bench.seal_args.split_whitespace() {
        match (word, bench.pick("86400", "2000")) {
            ("DIR", _) => command.arg(&dir),
            ("86400", count) => command.arg(count),
            _ => command.arg(word),
        };
    }
    printed(bench, &mut command)
}

/// Both streams of a command run to its end.
pub fn printed(bench: &Bench, command: &mut Command) -> Result<String> {
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
