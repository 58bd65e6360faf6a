//! `kymo rrd export` writes all files of a store without files; beside it `cp -r` of the same files, which reads and
//! writes as much without any conversion, and a sync: the exported files are on the disk.

use super::never;
use super::on_demand::send;
use super::series::{Crowd, Stamps};
use crate::bench::Bench;
use crate::child::{Running, Usage};
use crate::daemon::files;
use crate::daemon::side::Side;
use crate::fault::{Fault, Result};
use crate::figures::{ratio, significant};
use crate::report::Outcome;
use crate::row::Row;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "drum-export",
    work: "2,050 files that are not there by `kymo rrd export --all`, beside `cp -r` of such files and a sync",
    bar: "≤ 1.2 × cp's time",
    aim: "the same",
    run,
};

const LIMIT: Duration = Duration::from_secs(300);

fn run(bench: &Bench) -> Result<Outcome> {
    let Some(kymo) = &bench.kymo else {
        return Ok(never::skipped());
    };
    if !never::is_known(bench)? {
        return Ok(never::skipped());
    }
    if !never::help_has(bench, "rrd", "export")? {
        return Ok(Outcome::new(vec![
            "skipped: this kymo has no `rrd export`".into(),
        ]));
    }
    let count = bench.series(2_050, 500);
    let mut side = never::side_for_files(bench, count)?;
    never::create(&mut side.connect()?, 0..count)?;
    let last = send(&side, &mut Crowd::new(count, Stamps::Aligned), 0)?;
    side.stop()?;
    let export = export(bench, kymo, &side)?;
    for index in 0..count {
        if files::last_stamp(&side.base(), index)? < last {
            return Err(Fault::new(format!("file {index} is not current")));
        }
    }
    let copy = copy(bench, &side)?;
    let begun = Instant::now();
    side.disk.sync()?;
    let synced = begun.elapsed().as_secs_f64();
    let (ours, cp) = (export.wall.as_secs_f64(), copy.wall.as_secs_f64() + synced);
    let mut outcome = Outcome::new(vec![
        format!("{count} files"),
        usage_text("rrd export", &export),
        usage_text("cp -r", &copy),
        format!("its sync: {} ms", significant(synced * 1e3)),
        format!("time {} of cp's", ratio(ours, cp)),
    ]);
    outcome.check(Some(ours / cp), 1.2, 1.2);
    Ok(outcome)
}

fn export(bench: &Bench, kymo: &Path, side: &Side) -> Result<Usage> {
    let mut command = Command::new(kymo);
    command.args(["rrd", "export", "--all", "--store"]);
    command.arg(side.journal()).arg("-b").arg(side.base());
    command.stdout(Stdio::null());
    Running::start(bench, &mut command)?.finish(LIMIT)
}

/// Copies the files with `cp`. They were written a moment ago, so they are cached.
fn copy(bench: &Bench, side: &Side) -> Result<Usage> {
    let mut command = Command::new("cp");
    command.arg("-r").arg(side.base());
    command.arg(side.disk.dir().join("copy"));
    Running::start(bench, &mut command)?.finish(LIMIT)
}

fn usage_text(name: &str, usage: &Usage) -> String {
    let cpu = significant(usage.cpu.as_secs_f64() * 1e3);
    let wall = significant(usage.wall.as_secs_f64() * 1e3);
    format!("{name}: {wall} ms, {cpu} ms of CPU")
}
