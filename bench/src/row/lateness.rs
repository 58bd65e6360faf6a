//! Lateness of 3,000 samples at `-i.1`, on an idle machine and under a storm of
//! compilations and fsyncs, beside a bare timerfd loop, half an interval away so
//! that the two do not queue behind each other. The tail of the distribution needs
//! all 3,000: five minutes each.

use super::Row;
use crate::bench::Bench;
use crate::child::Running;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{percentile, significant};
use crate::load::{self, Kind};
use crate::peer::{Peer, Take};
use crate::report::Outcome;
use crate::ticks::nanos;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "lateness",
    work: "lateness of 3,000 samples at `-i.1`, idle / compile + fsync storm",
    bar: "p99.9 ≤ 2 ms / 10 ms, or ≤ 2 × the bare loop; none missed",
    aim: "",
    run,
};

const INTERVAL: f64 = 0.1;
const BARE_PHASE: f64 = INTERVAL / 2.0;
const SLACK: Duration = Duration::from_secs(60);
/// The smallest text: its dump has the stamps.
const SOURCE: &str = "proc/loadavg";

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    measure(bench, &mut outcome, "idle", None, 2.0)?;
    let storm = Some(Kind::CompileAndFsync);
    measure(bench, &mut outcome, "storm", storm, 10.0)?;
    Ok(outcome)
}

fn measure(
    bench: &Bench,
    outcome: &mut Outcome,
    name: &str,
    load: Option<Kind>,
    bar_ms: f64,
) -> Result<()> {
    let count = bench.pick(3000, 30);
    let limit = Duration::from_secs_f64(f64::from(count) * INTERVAL) + SLACK;
    let _load = load
        .map(|kind| load::start(bench, kind, limit))
        .transpose()?;
    let (bare_running, bare_path) = start_bare(bench, count)?;
    let kymo = start_kymo(bench, count)?;
    bare_running.finish(limit)?;
    let bare = Lateness::of(&bare_stamps(&bare_path)?, INTERVAL, BARE_PHASE);
    outcome.figure(bare.describe(&format!("{name}: bare loop")));
    if let Some((running, dir)) = kymo {
        running.finish(limit)?;
        // The first sample has cold caches and closed files.
        let stamps = kymo_stamps(bench, &dir)?;
        let ours = Lateness::of(stamps.get(1..).unwrap_or_default(), INTERVAL, 0.0);
        outcome.figure(ours.describe("kymo"));
        let bar_ms = bar_ms.max(2.0 * bare.p999_ms());
        outcome.check(Some(ours.p999_ms()), bar_ms, bar_ms);
        outcome.check(Some(ours.missing(count) as f64), 0.0, 0.0);
    }
    Ok(())
}

fn start_bare(bench: &Bench, count: u32) -> Result<(Running, PathBuf)> {
    let path = bench.new_path("ticks");
    let mut command = Command::new(&bench.own);
    command
        .args([
            "tick",
            "-i",
            &INTERVAL.to_string(),
            "-c",
            &count.to_string(),
        ])
        .args(["--phase", &BARE_PHASE.to_string()])
        .stdout(File::create(&path).cannot("create a file for ticks")?);
    Ok((Running::start(bench, &mut command)?, path))
}

fn start_kymo(bench: &Bench, count: u32) -> Result<Option<(Running, PathBuf)>> {
    if !Peer::Kymo.is_here(bench) {
        return Ok(None);
    }
    let take = Take {
        letters: "cdnm",
        interval: ".1",
        count,
    };
    let dir = bench.new_dir("lateness")?;
    let mut command = Peer::Kymo.command(bench, take, &dir)?;
    Ok(Some((Running::start(bench, &mut command)?, dir)))
}

fn bare_stamps(path: &Path) -> Result<Vec<u64>> {
    let text = fs::read_to_string(path).cannot("read the ticks")?;
    text.lines()
        .map(|line| line.parse().cannot("understand a tick"))
        .collect()
}

/// Time of each sample of a recording, in ns since 1970.
pub(crate) fn kymo_stamps(bench: &Bench, dir: &Path) -> Result<Vec<u64>> {
    let kymo = bench
        .kymo
        .as_ref()
        .ok_or_else(|| Fault::new("kymo is not here"))?;
    let path = bench.new_path("dump");
    let mut command = Command::new(kymo);
    command.arg("dump").arg(dir).args(["--source", SOURCE]);
    command.stdout(File::create(&path).cannot("create a file for the dump")?);
    Running::start(bench, &mut command)?.finish(SLACK)?;
    let dump = BufReader::new(File::open(&path).cannot("open the dump")?);
    let mut stamps = Vec::new();
    for line in dump.lines() {
        stamps.extend(wall_of(&line.cannot("read the dump")?));
    }
    Ok(stamps)
}

/// WALL, in ns, of `>>> SOURCE SEQ WALL MONO COST STATE LEN`; in the text it is
/// ns, or seconds with a fraction.
fn wall_of(line: &str) -> Option<u64> {
    let rest = line.strip_prefix(">>> ")?.strip_prefix(SOURCE)?;
    let wall = rest.split_whitespace().nth(1)?;
    match wall.split_once('.') {
        None => wall.parse().ok(),
        Some((seconds, fraction)) => {
            let seconds: u64 = seconds.parse().ok()?;
            let fraction: u64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
            Some(seconds * 1_000_000_000 + fraction)
        }
    }
}

/// Lateness of samples.
pub(crate) struct Lateness {
    late_ms: Vec<f64>,
    missed: u64,
}

impl Lateness {
    /// Lateness of stamps that should be at multiples
    /// of the interval, plus `phase`; both in seconds.
    pub(crate) fn of(stamps: &[u64], interval: f64, phase: f64) -> Lateness {
        let (interval_ns, phase_ns) = (nanos(interval), nanos(phase));
        let tick = |stamp: &u64| (stamp - phase_ns) / interval_ns;
        let late = |stamp: &u64| ((stamp - phase_ns) % interval_ns) as f64 / 1e6;
        let skipped = |pair: &[u64]| tick(&pair[1]).saturating_sub(tick(&pair[0]) + 1);
        Lateness {
            late_ms: stamps.iter().map(late).collect(),
            missed: stamps.windows(2).map(skipped).sum(),
        }
    }

    pub(crate) fn p999_ms(&self) -> f64 {
        percentile(&self.late_ms, 0.999)
    }

    /// Number of skipped ticks, or of absent samples if that is larger.
    pub(crate) fn missing(&self, count: u32) -> u64 {
        let absent = u64::from(count).saturating_sub(self.late_ms.len() as u64);
        self.missed.max(absent)
    }

    pub(crate) fn describe(&self, who: &str) -> String {
        let at = |share| significant(percentile(&self.late_ms, share));
        let (p50, p99, p999, most) = (at(0.5), at(0.99), at(0.999), at(1.0));
        format!(
            "{who} {p50}/{p99}/{p999}/{most} ms (p50/99/99.9/max), {} missed",
            self.missed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_both_spellings() {
        for (line, want) in [
            (
                ">>> proc/loadavg 7 12.5 3 100 changed 20",
                Some(12_500_000_000),
            ),
            (
                ">>> proc/loadavg 7 1795295775000000123 3 1 same 0",
                Some(1_795_295_775_000_000_123),
            ),
            (">>> proc/stat 7 12.5 3 100 changed 20", None),
            ("0.05 0.15 0.08 2/97 1", None),
        ] {
            assert_eq!(wall_of(line), want, "{line}");
        }
    }

    #[test]
    fn late_and_missed() {
        let ms = |n: u64| n * 1_000_000;
        let lateness = Lateness::of(&[ms(1001), ms(1102), ms(1403)], INTERVAL, 0.0);
        assert_eq!(lateness.late_ms, [1.0, 2.0, 3.0]);
        assert_eq!(lateness.missed, 2);
        assert_eq!(lateness.missing(5), 2);
        assert_eq!(lateness.missing(9), 6);
        assert_eq!(Lateness::of(&[ms(1051)], INTERVAL, 0.05).late_ms, [1.0]);
    }
}
