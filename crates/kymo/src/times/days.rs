//! `TODAY` and `YESTERDAY` in paths for playback: days of this machine, as in collectl.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kymo_kernel::facts;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::kernel_file::Root;
use kymo_view::time::Zone;

use crate::times;

const DAY_NS: i64 = 86_400_000_000_000;
/// Words with their distance from today in days. No word is the end of an earlier one.
const WORDS: &[(&str, i64)] = &[("YESTERDAY", 1), ("TODAY", 0)];

/// Paths with days in place of the words. An existing path stays as it is.
pub(crate) fn named(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let has_word = |path: &&PathBuf| {
        let text = path.to_string_lossy();
        WORDS.iter().any(|(word, _)| text.contains(word)) && path.symlink_metadata().is_err()
    };
    if !paths.iter().any(|path| has_word(&path)) {
        return Ok(paths.to_vec());
    }
    let mut zone = zone()?;
    let now_ns = RealClock.now().real_ns;
    let mut day = |ago: i64| format!("{:08}", zone.local(now_ns - ago * DAY_NS).day);
    let days: Vec<(&str, String)> = WORDS.iter().map(|(word, ago)| (*word, day(*ago))).collect();
    let named = paths.iter().map(|path| match has_word(&path) {
        true => replaced(path, &days),
        false => path.clone(),
    });
    Ok(named.collect())
}

/// Time zone of this machine.
pub(crate) fn zone() -> Result<Zone> {
    let root = Root::open(Path::new("/")).context("cannot open /")?;
    Ok(times::zone_of(&facts::gather(&root)))
}

/// This month as `YYYYMM`.
pub(crate) fn month() -> Result<String> {
    let day = zone()?.local(RealClock.now().real_ns).day;
    Ok(format!("{:06}", day / 100))
}

fn replaced(path: &Path, days: &[(&str, String)]) -> PathBuf {
    let mut text = path.to_string_lossy().into_owned();
    for (word, day) in days {
        text = text.replace(word, day);
    }
    text.into()
}
