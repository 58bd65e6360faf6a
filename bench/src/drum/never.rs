//! Series without files: `--files never`, and a CREATE for each.

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
/// Requests in flight at once.
const WINDOW: usize = 50;
/// Most records in the journal before they are saved, with a margin.
const JOURNAL_RECORDS: u64 = 40_000_000;
/// Disk space: twice the rows and state of some hours, with a margin.
const STORE_BYTES_A_SERIES: usize = 16_000;

/// True if kymo is here and knows `--files`.
pub(super) fn is_known(bench: &Bench) -> Result<bool> {
    help_has(bench, "rrdcached", "--files")
}

/// True if the output of `kymo VERB --help` has this word.
pub(super) fn help_has(bench: &Bench, verb: &str, word: &str) -> Result<bool> {
    let Some(kymo) = &bench.kymo else {
        return Ok(false);
    };
    let output = Command::new(kymo).args([verb, "--help"]).output();
    let output = output.cannot("ask kymo for help")?;
    let text = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&text).contains(word))
}

/// Outcome of a row that needs the switch.
pub(super) fn skipped() -> Outcome {
    Outcome::new(vec!["skipped: this kymo has no `--files never`".into()])
}

/// A running kymo with disk space for `series` and `values`, and without series.
pub(super) fn side(bench: &Bench, series: usize, values: u64) -> Result<Side> {
    let store_mb = (series * STORE_BYTES_A_SERIES / 1_000_000) as u32;
    let room_mb = store_mb + files::journal_mb(values.min(JOURNAL_RECORDS));
    start(bench, room_mb)
}

/// A running kymo with disk space for few values
/// of `series`, their files and a copy of these.
pub(super) fn side_for_files(bench: &Bench, series: usize) -> Result<Side> {
    start(bench, 2 * files::mb(series))
}

fn start(bench: &Bench, room_mb: u32) -> Result<Side> {
    let mut side = Side::with_room(bench, Who::Ours, room_mb)?;
    side.start(bench, &OPTIONS)?;
    Ok(side)
}

/// Sends a CREATE for each of some series.
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
