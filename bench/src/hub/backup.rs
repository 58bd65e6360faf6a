//! Backups to S3 (SeaweedFS on this machine) each minute, beside the same values without backups: bytes sent a value, CPU of
//! the keeper, and the way back: all values are restored and are the same as those of the source.

use super::contender::{Hub, Who};
use super::fleet::{Fleet, STEP_S};
use super::pace::Sender;
use super::{SERIES_OF_THE_CASE, SERIES_QUICK};
use crate::bench::Bench;
use crate::child::output_of;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{ratio, significant};
use crate::report::Outcome;
use crate::row::Row;
use crate::serve::number;
use kymo_tests::Scratch;
use kymo_tests::s3_server::{BUCKET, S3Server};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "hub-backup",
    work: "20,510 series, a value each 10 s of real time, a backup each minute to S3, 30 minutes: bytes sent a value, CPU of the keeper, restore",
    bar: "≤ 30 bytes, ≤ 1.05 × the CPU without, ≤ 60 s",
    aim: "15 bytes",
    run,
};

/// Longest wait for a backup.
const PATIENCE: Duration = Duration::from_secs(180);
const AGAIN: Duration = Duration::from_millis(200);

fn run(bench: &Bench) -> Result<Outcome> {
    let Some(kymo) = &bench.kymo else {
        return Ok(Outcome::new(vec!["skipped: kymo is not here".into()]));
    };
    let scratch = Scratch::new("bench-backup");
    let Some(server) = S3Server::start(&scratch) else {
        return Ok(Outcome::new(vec![
            "skipped: SeaweedFS is not here; tests/fetch-seaweedfs".into(),
        ]));
    };
    let minutes = u64::from(bench.minutes.unwrap_or(bench.pick(30, 3)));
    let series = bench.series(SERIES_OF_THE_CASE, SERIES_QUICK);
    let to = format!("s3://{BUCKET}/bench");
    let keys = server.keys.display().to_string();
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let table = format!(
        "[backup]\nto = \"{to}\"\nevery = \"1m\"\nendpoint = \"{endpoint}\"\ncredentials = \"{keys}\"\n"
    );
    let mut cpu = Vec::new();
    let mut outcome = Outcome::new(vec![format!("{series} series, {minutes} minutes")]);
    for more in ["", &table] {
        let work = Work {
            series,
            steps: minutes * 60 / STEP_S,
            more,
        };
        let (mut hub, values, seconds) = work.done(bench)?;
        cpu.push(seconds);
        if more.is_empty() {
            continue;
        }
        let sent = await_backup(kymo, &hub.data())?;
        let a_value = sent / values as f64;
        outcome.figure(format!(
            "{} MB sent for {values} values: {} bytes each",
            significant(sent / 1e6),
            significant(a_value)
        ));
        outcome.check(Some(a_value), 30.0, 15.0);
        hub.end()?;
        let way = Way {
            kymo,
            to: &to,
            endpoint: &endpoint,
            keys: &keys,
        };
        let seconds = way.restored(&hub, &scratch.path("restored"))?;
        outcome.figure(format!("restored in {} s, the same", significant(seconds)));
        outcome.check(Some(seconds), 60.0, 10.0);
    }
    let [without, with] = cpu[..] else {
        return Err(Fault::new("BUG: two runs"));
    };
    outcome.figure(format!(
        "CPU of the keeper {} of that without",
        ratio(with, without)
    ));
    outcome.check(Some(with / without), 1.05, 1.0);
    Ok(outcome)
}

/// A fleet that sends for a time.
struct Work<'a> {
    series: usize,
    steps: u64,
    more: &'a str,
}

impl Work<'_> {
    /// The hub with all values, their number, and seconds of the keeper's CPU.
    fn done(&self, bench: &Bench) -> Result<(Hub, u64, f64)> {
        let mut fleet = Fleet::new(self.series, 2 * STEP_S);
        let count = fleet.len();
        let values = (self.steps + 1) * count as u64;
        let hub = Hub::start_with(bench, Who::KymoInOneFolder, count, values, self.more)?;
        let mut sender = Sender::to(&hub, &fleet)?;
        sender.step(&mut fleet, 0)?;
        hub.await_rest()?;
        let before = hub.spent()?;
        sender.in_real_time(&mut fleet, 1, self.steps)?;
        let spent = hub.spent()?.since(&before);
        hub.lost_nothing()?;
        hub.await_rest()?;
        hub.has_all(&fleet)?;
        Ok((hub, values, spent.own_seconds))
    }
}

/// Waits for a backup that began after this moment; bytes sent for all.
fn await_backup(kymo: &Path, data: &Path) -> Result<f64> {
    let (now_ms, until) = (now_ms(), Instant::now() + PATIENCE);
    while Instant::now() < until {
        let status = output_of(Command::new(kymo).args(["status", "--json"]).arg(data))?.stdout;
        let newest = number(&status, "newest_ms").unwrap_or(0.0);
        if newest > now_ms {
            let sent = number(&status, "sent_bytes");
            return sent.ok_or_else(|| Fault::new("the status says no sent_bytes"));
        }
        sleep(AGAIN);
    }
    Err(Fault::new("no backup came"))
}

fn now_ms() -> f64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or_default().as_secs_f64() * 1000.0
}

/// The way back from a bucket.
struct Way<'a> {
    kymo: &'a Path,
    to: &'a str,
    endpoint: &'a str,
    keys: &'a str,
}

impl Way<'_> {
    /// Seconds of a restore. A fault unless all files of the store are as those of the source.
    fn restored(&self, hub: &Hub, folder: &Path) -> Result<f64> {
        let begun = Instant::now();
        let mut restore = Command::new(self.kymo);
        restore.args(["restore", "--endpoint", self.endpoint]);
        restore
            .args(["--credentials", self.keys, self.to])
            .arg(folder);
        output_of(&mut restore)?;
        let seconds = begun.elapsed().as_secs_f64();
        let source = hub.data();
        for data in [&*source, folder] {
            // A backup without .rrd files is restored without their folder.
            fs::create_dir_all(data.join("rrd")).cannot("make the base")?;
            let mut export = Command::new(self.kymo);
            export
                .args(["rrd", "export", "--all", "--store"])
                .arg(data.join("store"));
            export.arg("-b").arg(data.join("rrd"));
            export.arg("-o").arg(data.join("exported"));
            output_of(&mut export)?;
        }
        let mut same = Command::new("diff");
        same.arg("-rq")
            .arg(source.join("exported"))
            .arg(folder.join("exported"));
        let output = same.output().cannot("run diff")?;
        match output.status.success() {
            true => Ok(seconds),
            false => Err(Fault::new(format!(
                "the restored files differ: {}",
                String::from_utf8_lossy(&output.stdout)
                    .lines()
                    .next()
                    .unwrap_or_default()
            ))),
        }
    }
}
