//! A million series without files, an hour of values with a year's gap in its middle: the use of memory, time and disk.

use super::intake::{Form, round};
use super::never;
use super::series::{Crowd, Stamps};
use crate::bench::Bench;
use crate::daemon::cost::Mark;
use crate::daemon::files::{BIRTH, STEP};
use crate::daemon::side::Side;
use crate::fault::{Cannot, Result};
use crate::figures::{bytes, significant};
use crate::procfs;
use crate::progress::Progress;
use crate::report::Outcome;
use crate::row::{Row, files_below};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

pub(super) const ROW: Row = Row {
    name: "drum-million",
    work: "1,000,000 series without files, 360 values each, a year's gap in the middle: memory, CPU, segments, disk",
    bar: "≤ 2.5 GiB, ≤ 64 segments",
    aim: "the same",
    run,
};

const GAP_SECONDS: u64 = 365 * 86_400;
const MEMORY_BYTES: f64 = 2.5 * (1u64 << 30) as f64;
/// Unit of the blocks in `stat`.
const BLOCK_BYTES: u64 = 512;

fn run(bench: &Bench) -> Result<Outcome> {
    if !never::is_known(bench)? {
        return Ok(never::skipped());
    }
    let series = bench.series(1_000_000, 4_000);
    let steps = bench.steps(360, 200);
    let values = steps * series as u64;
    let mut side = never::side(bench, series, values)?;
    let begun = Instant::now();
    never::create(&mut side.connect()?, 0..series)?;
    let created = begun.elapsed().as_secs_f64();
    let mark = Mark::now(&side)?;
    let peak = send(&side, series, steps)?;
    let cost = mark.to_the_end(&mut side)?;
    let (segments, on_disk) = on_disk(&side)?;
    let a_value = |total: f64| significant(total / values as f64);
    let mut outcome = Outcome::new(vec![
        format!("{series} series × {steps} values"),
        format!("CREATEd in {} s", significant(created)),
        format!("RssAnon at most {}", bytes(peak as f64)),
        format!("{} us of CPU a value", a_value(cost.cpu_seconds * 1e6)),
        format!("{} us of time", a_value(cost.wall_seconds * 1e6)),
        format!("{} bytes written", a_value(cost.bytes)),
        format!("{segments} segments"),
        format!("{} on the disk", bytes(on_disk as f64)),
    ]);
    outcome.check(Some(peak as f64), MEMORY_BYTES, MEMORY_BYTES);
    outcome.check(Some(segments as f64), 64.0, 64.0);
    Ok(outcome)
}

/// Sends all values; returns the largest RssAnon after a step.
fn send(side: &Side, series: usize, steps: u64) -> Result<u64> {
    let mut crowd = Crowd::new(series, Stamps::Aligned);
    let mut wire = side.connect()?;
    let mut progress = Progress::of("kymo, values a series");
    let mut peak = 0;
    for step in 1..=steps {
        let gap = if step > steps / 2 { GAP_SECONDS } else { 0 };
        let at = BIRTH + STEP * step + gap;
        round(&mut wire, &mut crowd, 0..series, Form::Batch, at)?;
        peak = procfs::anonymous_bytes(side.pid()?).unwrap_or(0).max(peak);
        side.disk.sync()?;
        progress.at(step, steps);
    }
    Ok(peak)
}

/// Number of segments, and disk space of the whole store.
fn on_disk(side: &Side) -> Result<(usize, u64)> {
    let (mut segments, mut blocks) = (0, 0);
    for path in files_below(&side.journal().join("kymo"))? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        segments += usize::from(name.starts_with("segment-"));
        blocks += fs::metadata(&path).cannot("size up the store")?.blocks();
    }
    Ok((segments, blocks * BLOCK_BYTES))
}
