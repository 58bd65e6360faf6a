//! Playing one hour at 1 s to `-P`: wall time, warm, without collectl's start.
//!
//! The hour is 3,600 samples that both take at the same time, 10 ms apart, beside a
//! compilation; collectl's stamps are then rewritten to be a second apart. kymo's
//! stay: its rates are odd, its work is the same. kymo also plays collectl's file.

use super::Row;
use crate::bench::Bench;
use crate::child::Running;
use crate::collectl_raw;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{median, ratio, significant, spread};
use crate::load::{self, Kind};
use crate::peer::{Peer, Take, present};
use crate::report::Outcome;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "play",
    work: "playing one hour at 1 s to `-P`: wall, warm, collectl's start taken off",
    bar: "≥ 50 × faster than `collectl -p -P`",
    aim: "300 ×",
    run,
};

const PEERS: [Peer; 2] = [Peer::Kymo, Peer::Collectl];
const RECORD_LIMIT: Duration = Duration::from_secs(120);
const PLAY_LIMIT: Duration = Duration::from_secs(60);
/// Intervals that show collectl's start alone.
const SHORT_INTERVALS: usize = 2;

#[derive(Default)]
struct Hour {
    kymo: Option<PathBuf>,
    collectl: Option<PathBuf>,
    collectl_short: Option<PathBuf>,
}

fn run(bench: &Bench) -> Result<Outcome> {
    let hour = record(bench, bench.pick(3600, 100))?;
    let mut outcome = Outcome::default();
    let theirs = play_collectl(bench, &hour, &mut outcome)?;
    let Some(kymo) = &bench.kymo else {
        return Ok(outcome);
    };
    let own = play_kymo(bench, kymo, hour.kymo.as_deref(), "its own", &mut outcome)?;
    play_kymo(
        bench,
        kymo,
        hour.collectl.as_deref(),
        "collectl's",
        &mut outcome,
    )?;
    if let (Some(own), Some(theirs)) = (own, theirs) {
        outcome.figure(format!("kymo/collectl {}", ratio(own, theirs)));
        outcome.check(Some(own / theirs), 1.0 / 50.0, 1.0 / 300.0);
    }
    Ok(outcome)
}

fn record(bench: &Bench, count: u32) -> Result<Hour> {
    let take = Take {
        letters: "cdnm",
        interval: "0.01",
        count,
    };
    let _load = load::start(bench, Kind::Compile, RECORD_LIMIT)?;
    let mut running = Vec::new();
    for peer in present(bench, &PEERS) {
        let dir = bench.new_dir(peer.name())?;
        let mut command = peer.command(bench, take, &dir)?;
        running.push((peer, dir, Running::start(bench, &mut command)?));
    }
    let mut hour = Hour::default();
    for (peer, dir, child) in running {
        child.finish(RECORD_LIMIT)?;
        match peer {
            Peer::Kymo => hour.kymo = Some(dir),
            _ => restamp(bench, &dir, &mut hour, count as usize)?,
        }
    }
    Ok(hour)
}

fn restamp(bench: &Bench, dir: &Path, hour: &mut Hour, intervals: usize) -> Result<()> {
    let raw = collectl_raw::find(dir)?;
    let copy =
        |name, intervals| collectl_raw::copy_in_seconds(&raw, &bench.new_dir(name)?, intervals);
    hour.collectl = Some(copy("hour", intervals)?);
    hour.collectl_short = Some(copy("short", SHORT_INTERVALS)?);
    Ok(())
}

/// Median seconds of collectl, without its start.
fn play_collectl(bench: &Bench, hour: &Hour, outcome: &mut Outcome) -> Result<Option<f64>> {
    let (Some(program), Some(long), Some(short)) =
        (&bench.collectl, &hour.collectl, &hour.collectl_short)
    else {
        return Ok(None);
    };
    let command = |file: &Path| words(program, &["-p".as_ref(), file.as_ref(), "-P".as_ref()]);
    let rows = count_rows(bench, command(long))?;
    let whole = walls(bench, || command(long))?;
    let start = median(&walls(bench, || command(short))?);
    let net = median(&whole) - start;
    let [net_text, start, whole] = [net, start, median(&whole)].map(significant);
    outcome.figure(format!(
        "collectl {net_text} s ({whole} - {start} start), {rows} rows"
    ));
    Ok(Some(net))
}

/// Median seconds of kymo, with its start.
fn play_kymo(
    bench: &Bench,
    program: &Path,
    what: Option<&Path>,
    whose: &str,
    outcome: &mut Outcome,
) -> Result<Option<f64>> {
    let Some(path) = what else {
        return Ok(None);
    };
    let command = || {
        let path: &OsStr = path.as_ref();
        words(
            program,
            &[
                "play".as_ref(),
                path,
                "-s".as_ref(),
                "cdnm".as_ref(),
                "-P".as_ref(),
            ],
        )
    };
    let rows = count_rows(bench, command())?;
    let walls = walls(bench, command)?;
    let (low, high) = spread(&walls);
    let [middle, low, high] = [median(&walls), low, high].map(significant);
    outcome.figure(format!(
        "kymo on {whose} {middle} s [{low}-{high}], {rows} rows"
    ));
    Ok(Some(median(&walls)))
}

fn words(program: &Path, args: &[&OsStr]) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

fn walls(bench: &Bench, command: impl Fn() -> Command) -> Result<Vec<f64>> {
    let once = |_| {
        let running = Running::start(bench, command().stdout(Stdio::null()))?;
        Ok(running.finish(PLAY_LIMIT)?.wall.as_secs_f64())
    };
    (0..bench.rounds).map(once).collect()
}

/// Counts the rows, which warms the caches and
/// shows that there is something to compare.
fn count_rows(bench: &Bench, mut command: Command) -> Result<usize> {
    let mut running = Running::start(bench, command.stdout(Stdio::piped()))?;
    let pipe = running
        .stdout()
        .ok_or_else(|| Fault::new("a pipe is missing"))?;
    let mut rows = 0;
    for line in BufReader::new(pipe).lines() {
        let line = line.cannot("read what was played")?;
        rows += usize::from(!line.starts_with('#') && !line.is_empty());
    }
    running.finish(PLAY_LIMIT)?;
    Ok(rows)
}
