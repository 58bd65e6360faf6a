//! The files of the rows: in collectd's default form (one source, 15 archives, step 10), many copies of one, a
//! hundred in each folder; and updates for them with stamps like collectd's.

use crate::fault::{Cannot, Fault, Result};
use crate::progress::Progress;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

/// Size of one file, rounded up.
const FILE_KB: usize = 152;
const JOURNAL_BYTES_A_VALUE: u64 = 64;
/// rrd_format.h: after `stat_head_t`, a `ds_def_t` and fifteen `rra_def_t`, on a 64-bit machine.
const LAST_STAMP_OFFSET: u64 = 128 + 120 + 15 * 120;
/// Begin of the files, before the first value.
pub(crate) const BIRTH: u64 = 1_700_000_000;
pub(crate) const STEP: u64 = 10;
/// Steps and rows of collectd's archives, for each of MIN, AVERAGE, MAX.
const ARCHIVES: [(u32, u32); 5] = [(1, 1200), (7, 1235), (50, 1210), (223, 1202), (2635, 1201)];

/// Words of `create` and CREATE after the name.
pub(crate) fn collectd_default() -> String {
    let mut words = format!("-b {BIRTH} -s {STEP} DS:value:GAUGE:20:U:U");
    for (steps, rows) in ARCHIVES {
        for cf in ["MIN", "AVERAGE", "MAX"] {
            // Writing to a String cannot fail.
            let _ = write!(words, " RRA:{cf}:0.1:{steps}:{rows}");
        }
    }
    words
}

pub(crate) fn name(index: usize) -> String {
    format!("h{:03}/f{:02}.rrd", index / 100, index % 100)
}

/// Megabytes of disk for this many files.
pub(crate) fn mb(count: usize) -> u32 {
    (count * FILE_KB / 1000 * 5 / 4) as u32
}

/// Megabytes of the largest journal for this many values: stock's, with a line of text for each.
pub(crate) fn journal_mb(values: u64) -> u32 {
    (values * JOURNAL_BYTES_A_VALUE / 1_000_000) as u32
}

/// Makes `count` files below `base`.
pub(crate) fn fill(base: &Path, count: usize) -> Result<()> {
    let first = base.join("first.rrd");
    let mut create = Command::new("rrdtool");
    create.arg("create").arg(&first);
    let made = create.args(collectd_default().split(' ')).output();
    let made = made.cannot("run rrdtool")?;
    if !made.status.success() {
        let message = String::from_utf8_lossy(&made.stderr).into_owned();
        return Err(Fault::because("create a file", message.trim()));
    }
    let bytes = fs::read(&first).cannot("read the first file")?;
    let mut progress = Progress::of("files");
    for index in 0..count {
        progress.at(index as u64, count as u64);
        let path = base.join(name(index));
        if index % 100 == 0 {
            let folder = path.parent().unwrap_or(base);
            fs::create_dir(folder).cannot("make a folder")?;
        }
        fs::write(&path, &bytes).cannot(format_args!("write {}", path.display()))?;
    }
    Ok(())
}

/// The stamp of a file's last value, in seconds, from its header.
pub(crate) fn last_stamp(base: &Path, index: usize) -> Result<u64> {
    let path = base.join(name(index));
    let file = File::open(&path).cannot(format_args!("open {}", path.display()))?;
    let mut bytes = [0; 8];
    let read = file.read_exact_at(&mut bytes, LAST_STAMP_OFFSET);
    read.cannot(format_args!("read {}", path.display()))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The `turn`th value of a file: a tenth of a second off the step, with six decimals, like collectd's.
pub(crate) fn value(turn: u64, index: usize) -> String {
    let stamp = BIRTH + STEP * (turn + 1);
    let off = (index * 7919 + turn as usize * 104_729) % 100_000;
    let value = (index * 31 + turn as usize * 17) % 100_000;
    format!(
        "{stamp}.{off:06}:{}.{:06}",
        value / 100,
        value % 100 * 10_007
    )
}

/// `UPDATE` lines of one value for each of `count` files.
pub(crate) fn round(turn: u64, count: usize, into: &mut Vec<u8>) {
    for index in 0..count {
        let line = format!("UPDATE {} {}\n", name(index), value(turn, index));
        into.extend_from_slice(line.as_bytes());
    }
}
