//! Duration of a start after `kill -9`, with many series and nearly all their values unsaved, nothing cached.

use super::intake::{Form, round};
use super::never;
use super::series::{Crowd, Stamps};
use crate::bench::Bench;
use crate::daemon::files::{BIRTH, STEP};
use crate::daemon::side::Side;
use crate::fault::{Cannot, Fault, Result};
use crate::figures::{bytes, significant};
use crate::procfs;
use crate::progress::Progress;
use crate::report::Outcome;
use crate::row::Row;
use std::fs;
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "drum-start",
    work: "from the start after kill -9 to an answer to STATS: 500,000 series, 30 M unsaved records, caches dropped",
    bar: "≤ 10 s",
    aim: "4 s",
    run,
};

const LIMIT: Duration = Duration::from_secs(1800);

fn run(bench: &Bench) -> Result<Outcome> {
    if !never::is_known(bench)? {
        return Ok(never::skipped());
    }
    let series = bench.series(500_000, 2_000);
    let steps = (bench.records(30_000_000, 40_000) / series as u64).max(1);
    let mut side = never::side(bench, series, steps * series as u64)?;
    fill(&side, series, steps)?;
    side.kill();
    side.disk.sync()?;
    fs::write("/proc/sys/vm/drop_caches", "3").cannot("drop the caches")?;
    let begun = Instant::now();
    side.start_until(bench, &never::OPTIONS, "STATS", LIMIT)?;
    let seconds = begun.elapsed().as_secs_f64();
    let read = procfs::device_read_bytes(side.pid()?);
    let read = read.ok_or_else(|| Fault::new("the daemon has ended"))?;
    remembers(&side)?;
    let mut outcome = Outcome::new(vec![
        format!("{series} series, {} records", steps * series as u64),
        format!("{} s", significant(seconds)),
        format!("{} read", bytes(read as f64)),
    ]);
    outcome.check(Some(seconds), 10.0, 4.0);
    Ok(outcome)
}

fn fill(side: &Side, series: usize, steps: u64) -> Result<()> {
    let mut wire = side.connect()?;
    never::create(&mut wire, 0..series)?;
    let mut crowd = Crowd::new(series, Stamps::Unaligned);
    let mut progress = Progress::of("kymo, values a series");
    for step in 1..=steps {
        let at = BIRTH + STEP * step;
        round(&mut wire, &mut crowd, 0..series, Form::Batch, at)?;
        progress.at(step, steps);
    }
    Ok(())
}

/// Checks that the daemon knows the last values: only then does it refuse an older one.
fn remembers(side: &Side) -> Result<()> {
    let mut old = Vec::new();
    Crowd::new(1, Stamps::Aligned).lines(0..1, BIRTH + 1, &mut old);
    match side.connect()?.one_by_one(&old) {
        Err(fault) if fault.to_string().contains("illegal attempt") => Ok(()),
        Err(fault) => Err(fault),
        Ok(()) => Err(Fault::new("the values are lost")),
    }
}
