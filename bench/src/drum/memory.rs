//! Memory of one more series: the slope of RssAnon between few and many series, 40 values each.

use super::intake::{Form, round};
use super::never;
use super::series::{Crowd, Stamps};
use crate::bench::Bench;
use crate::daemon::files::{BIRTH, STEP};
use crate::daemon::side::{Side, Who, present};
use crate::fault::{Fault, Result};
use crate::figures::{ratio, significant};
use crate::procfs;
use crate::progress::Progress;
use crate::report::Outcome;
use crate::row::Row;
use std::thread::sleep;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "drum-memory",
    work: "RssAnon a series, 40 values each by BATCH: the slope from 20,500 to 200,000 series (to 60,000 with files)",
    bar: "≤ 1.5 kB",
    aim: "1.1 kB",
    run,
};

const VALUES: u64 = 40;
const BAR_BYTES: f64 = 1_500.0;
const AIM_BYTES: f64 = 1_100.0;
/// Time for threads that still process sent values.
const SETTLED: Duration = Duration::from_secs(2);

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut slopes = [None; 2];
    for who in present(bench) {
        let bare = who == Who::Ours && never::is_known(bench)?;
        let most = if bare { 200_000 } else { 60_000 };
        let many = bench.series(most, 2_000).max(2);
        let few = bench.pick(20_500, 500).min(many / 2);
        let slope = slope(bench, who, bare, (few, many))?;
        let files = if bare { ", no files" } else { "" };
        outcome.figure(format!(
            "{}, {few} to {many} series{files}: {} bytes a series",
            who.name(),
            significant(slope)
        ));
        slopes[usize::from(who == Who::Ours)] = Some(slope);
    }
    if let [Some(stock), Some(ours)] = slopes {
        outcome.figure(format!("{} of stock", ratio(ours, stock)));
        outcome.check(Some(ours), BAR_BYTES, AIM_BYTES);
    }
    Ok(outcome)
}

/// Bytes of RssAnon a series.
fn slope(bench: &Bench, who: Who, bare: bool, (few, many): (usize, usize)) -> Result<f64> {
    let side = match bare {
        true => never::side(bench, many, many as u64 * VALUES)?,
        false => {
            let mut side = Side::prepare(bench, who, many)?;
            side.start(bench, &[])?;
            side
        }
    };
    let mut crowd = Crowd::new(0, Stamps::Aligned);
    let mut bytes = [0.0; 2];
    for (count, bytes) in [few, many].into_iter().zip(&mut bytes) {
        grow(&side, &mut crowd, count, bare)?;
        sleep(SETTLED);
        let found = procfs::anonymous_bytes(side.pid()?);
        *bytes = found.ok_or_else(|| Fault::new("the daemon has ended"))? as f64;
    }
    Ok((bytes[1] - bytes[0]) / (many - few) as f64)
}

/// Adds series, each with its values; existing series get none.
fn grow(side: &Side, crowd: &mut Crowd, count: usize, bare: bool) -> Result<()> {
    let new = crowd.len()..count;
    let mut wire = side.connect()?;
    if bare {
        never::create(&mut wire, new.clone())?;
    }
    crowd.grow(count);
    let mut progress = Progress::of(format!("{}, {count} series, values", side.who.name()));
    for step in 1..=VALUES {
        let at = BIRTH + STEP * step;
        round(&mut wire, crowd, new.clone(), Form::Batch, at)?;
        progress.at(step, VALUES);
    }
    side.disk.sync()
}
