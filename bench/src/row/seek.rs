//! Search for one minute in a ring of a day and in one of thirty: bytes read and time.
//! The rings are simulated with kymo's own sampler and writer, unless `--ring1` and `--ring30` name some.

use super::Row;
use super::bytes::files_below;
use super::seal::simulate;
use crate::bench::Bench;
use crate::child::Running;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{bytes, median, significant};
use crate::report::Outcome;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "seek",
    work: "one minute sought in a 1-day and a 30-day ring",
    bar: "≤ 1 MiB read, same time",
    aim: "",
    run,
};

const LIMIT: Duration = Duration::from_secs(30);
const READ_BYTES_MAX: f64 = 1_048_576.0;
/// Two medians of a few ms count as equal within this factor.
const SAME_TIME: f64 = 1.5;
const MINUTE: u64 = 60;
const NS_FROM: u64 = 1_000_000_000_000_000;

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(kymo) = &bench.kymo else {
        outcome.figure("no peer has it");
        return Ok(outcome);
    };
    let (day, month) = (
        ring(bench, &bench.ring1, 1)?,
        ring(bench, &bench.ring30, bench.pick(30, 3))?,
    );
    let (day_s, day_read) = seek(bench, kymo, &day)?;
    let (month_s, month_read) = seek(bench, kymo, &month)?;
    for (days, wall_s, read) in [(1, day_s, day_read), (30, month_s, month_read)] {
        let wall = significant(wall_s * 1e3);
        outcome.figure(format!("{days} days: {wall} ms, {} read", bytes(read)));
        outcome.check(Some(read), READ_BYTES_MAX, READ_BYTES_MAX);
    }
    outcome.check(Some(month_s / day_s), SAME_TIME, SAME_TIME);
    Ok(outcome)
}

/// The named ring, or a new one of simulated days.
fn ring(bench: &Bench, named: &Option<PathBuf>, days: u32) -> Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named.clone());
    }
    let dir = bench.new_dir(&format!("ring{days}"))?;
    simulate(bench, days, &dir, false)?;
    Ok(dir)
}

/// Median seconds, and the bytes of its `read` calls.
fn seek(bench: &Bench, kymo: &Path, ring: &Path) -> Result<(f64, f64)> {
    let from = middle(ring)?;
    let [from, thru] = [from, from + MINUTE].map(local_time);
    let (from, thru) = (from?, thru?);
    let (mut walls, mut read) = (Vec::new(), 0);
    // The first round warms the caches.
    for round in 0..=bench.rounds {
        let mut command = Command::new(kymo);
        command.arg("play").arg(ring).args(["-s", "cdnm", "-P"]);
        command
            .args(["--from", &from, "--thru", &thru])
            .stdout(Stdio::null());
        let usage = Running::start(bench, &mut command)?.finish(LIMIT)?;
        read = usage.read_bytes.max(read);
        if round > 0 {
            walls.push(usage.wall.as_secs_f64());
        }
    }
    Ok((median(&walls), read as f64))
}

/// Begin of the middle block, in seconds since the epoch.
fn middle(ring: &Path) -> Result<u64> {
    let files = files_below(ring)?;
    let begins: Vec<u64> = files.iter().filter_map(|path| begin(path)).collect();
    let begin = begins.get(begins.len() / 2);
    begin
        .copied()
        .ok_or_else(|| Fault::new(format!("no block in {}", ring.display())))
}

/// WALLMIN of `SEQ-WALLMIN-WALLMAX.blk`, in seconds; the name has ns or s.
fn begin(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_suffix(".blk")?;
    let wall: u64 = name.split('-').nth(1)?.parse().ok()?;
    Some(if wall >= NS_FROM {
        wall / 1_000_000_000
    } else {
        wall
    })
}

/// The time in the form for `--from`: yyyymmdd:hh:mm:ss of the local zone.
fn local_time(seconds: u64) -> Result<String> {
    let mut date = Command::new("date");
    date.args(["-d", &format!("@{seconds}"), "+%Y%m%d:%H:%M:%S"]);
    let end = date.output().cannot("run date")?;
    Ok(String::from_utf8_lossy(&end.stdout).trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_tell_their_beginning() {
        for (name, want) in [
            ("/d/h/0007-1795295775-1795296675.blk", Some(1_795_295_775)),
            ("/d/h/7-1795295775000000000-1.blk", Some(1_795_295_775)),
            ("/d/h/tail.a", None),
        ] {
            assert_eq!(begin(Path::new(name)), want);
        }
    }
}
