//! The served ring: 1 GiB of a generated machine, or the named one; and the removal of its files' pages
//! from the page cache.

use crate::bench::Bench;
use crate::child::Running;
use crate::fault::{Cannot, Result};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const DAYS: u32 = 30;
const MIB: u32 = 1024;
const QUICK_DAYS: u32 = 2;
const LIMIT: Duration = Duration::from_secs(3600);

/// The ring, generated once a run.
pub(super) fn ring(bench: &Bench) -> Result<PathBuf> {
    if let Some(ring) = bench.ring.as_ref().or(bench.made_ring.get()) {
        return Ok(ring.clone());
    }
    let dir = bench.new_dir("ring")?;
    let days = bench.pick(DAYS, QUICK_DAYS);
    eprintln!("kymo-bench: a ring of {days} days ...");
    let mut command = Command::new(&bench.own);
    command.arg("world").arg("--dir").arg(&dir);
    command.args(["--days", &days.to_string(), "--mib", &MIB.to_string()]);
    Running::start(bench, command.stdout(Stdio::null()))?.finish(LIMIT)?;
    Ok(bench.made_ring.get_or_init(|| dir).clone())
}

/// Removes the pages of all files below `dir` from the cache, as `drop_caches` does for all files. Names
/// and sizes stay cached. Dirty pages are written before.
pub(crate) fn forget(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in dir
        .read_dir()
        .cannot(format_args!("list {}", dir.display()))?
    {
        let path = entry.cannot("list the ring")?.path();
        if path.is_dir() {
            bytes += forget(&path)?;
        } else if let Ok(file) = File::open(&path) {
            // A file that is gone meanwhile is in no cache.
            bytes += file.metadata().map_or(0, |stat| stat.len());
            let _ = rustix::fs::fdatasync(&file);
            let _ = fadvise(&file, 0, None, Advice::DontNeed);
        }
    }
    Ok(bytes)
}
