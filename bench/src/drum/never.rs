//! Series of which there are no files: `--files never`, and a CREATE each.

use crate::bench::Bench;
use crate::daemon::files;
use crate::daemon::side::{Side, Who};
use crate::daemon::wire::Wire;
use crate::fault::{Cannot, Result};
use crate::progress::Progress;
use crate::report::Outcome;
use std::ops::Range;
use std::process::Command;

pub(super) const OPTIONS: [&str; 3] = ["--files", "never", "-R"];
/// Requests under way at once.
const WINDOW: usize = 50;
/// Of its journal, before what is in it has been saved; and a margin.
const JOURNAL_RECORDS: u64 = 40_000_000;
/// On the disk: twice its rows and state of some hours, and a margin.
const STORE_BYTES_A_SERIES: usize = 16_000;

/// Whether kymo is here and knows `--files`.
pub(super) fn is_known(bench: &Bench) -> Result<bool> {
    help_has(bench, "rrdcached", "--files")
}

/// Whether `kymo VERB --help` speaks of something.
pub(super) fn help_has(bench: &Bench, verb: &str, word: &str) -> Result<bool> {
    let Some(kymo) = &bench.kymo else {
        return Ok(false);
    };
    let said = Command::new(kymo).args([verb, "--help"]).output();
    let said = said.cannot("ask kymo for help")?;
    let text = [said.stdout, said.stderr].concat();
    Ok(String::from_utf8_lossy(&text).contains(word))
}

/// Of a row that is nothing without it.
pub(super) fn skipped() -> Outcome {
    Outcome::new(vec!["skipped: this kymo has no `--files never`".into()])
}

/// Ours, running, with a disk for so many series and values, and no series yet.
pub(super) fn side(bench: &Bench, series: usize, values: u64) -> Result<Side> {
    let store_mb = (series * STORE_BYTES_A_SERIES / 1_000_000) as u32;
    let room_mb = store_mb + files::journal_mb(values.min(JOURNAL_RECORDS));
    start(bench, room_mb)
}

/// With a disk for few values of so many series, for their files and a copy of them.
pub(super) fn side_for_files(bench: &Bench, series: usize) -> Result<Side> {
    start(bench, 2 * files::mb(series))
}

fn start(bench: &Bench, room_mb: u32) -> Result<Side> {
    let mut side = Side::with_room(bench, Who::Ours, room_mb)?;
    side.start(bench, &OPTIONS)?;
    Ok(side)
}

/// CREATEs some of the series.
pub(super) fn create(wire: &mut Wire, some: Range<usize>) -> Result<()> {
    let definition = files::collectd_default();
    let mut progress = Progress::of("kymo, CREATEd");
    let end = some.end;
    for from in some.step_by(WINDOW) {
        let window = from..end.min(from + WINDOW);
        let line = |index| format!("CREATE {} {definition}\n", files::name(index));
        let lines: String = window.clone().map(line).collect();
        wire.at_once(lines.as_bytes())?;
        progress.at(window.end as u64, end as u64);
    }
    Ok(())
}
