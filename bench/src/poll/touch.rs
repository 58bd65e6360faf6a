//! `kymo-bench touch`: the floor of files. Opens each .rrd file of a folder, takes librrd's lock, reads its size, writes
//! three pieces where an update writes (header, a row of each of two archives), and closes it.

use crate::args::Args;
use crate::bench::Bench;
use crate::child::Running;
use crate::fault::{Cannot, Fault, Result};
use rustix::fs::{FlockOperation, Mode, OFlags, fcntl_lock, fstat, open};
use rustix::io::pwrite;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// Measured rounds, without and with a pause between them.
const ROUNDS: (u32, u32) = (20, 6);
/// Changing bytes of a header: the last update, and the part after the definitions.
const HEADER_BYTES: usize = 1_000;
/// A row of two data sources.
const ROW_BYTES: usize = 16;

/// CPU seconds of a round.
pub(super) struct Floor {
    /// Rounds without a pause.
    pub in_a_row: f64,
    /// A round in each interval, like a daemon's: its memory is no longer in the CPU's caches.
    pub paced: f64,
}

/// Runs the floor as a child, on copies of a folder's files.
pub(super) fn floor(bench: &Bench, folder: &Path, interval_s: u64) -> Result<Floor> {
    Ok(Floor {
        in_a_row: measured(bench, folder, bench.pick(ROUNDS.0, 5), 0)?,
        paced: measured(bench, folder, bench.pick(ROUNDS.1, 2), interval_s)?,
    })
}

fn measured(bench: &Bench, folder: &Path, rounds: u32, pause_s: u64) -> Result<f64> {
    let copies = bench.new_path("copies");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(folder)
        .arg(&copies)
        .status();
    copied.cannot("copy the files")?;
    let mut command = Command::new(&bench.own);
    command
        .arg("touch")
        .arg("--dir")
        .arg(&copies)
        .args(["--rounds", &rounds.to_string()])
        .args(["--pause", &pause_s.to_string()]);
    let usage = Running::start(bench, &mut command)?.finish(Duration::from_secs(300))?;
    fs::remove_dir_all(&copies).cannot("remove the copies")?;
    Ok(usage.cpu.as_secs_f64() / f64::from(rounds))
}

/// The child's work.
pub(crate) fn run(mut args: Args) -> Result<()> {
    let dir: PathBuf = args
        .value("--dir")?
        .ok_or_else(|| Fault::new("touch needs --dir"))?;
    let rounds: u32 = args.value("--rounds")?.unwrap_or(1);
    let pause_s: u64 = args.value("--pause")?.unwrap_or(0);
    args.done()?;
    let entries = fs::read_dir(&dir).cannot(format_args!("list {}", dir.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "rrd"))
        .collect();
    if paths.is_empty() {
        return Err(Fault::new(format!("{} has no .rrd file", dir.display())));
    }
    for round in 0..rounds {
        sleep(Duration::from_secs(pause_s));
        for path in &paths {
            touch(path, round).cannot(format_args!("write {}", path.display()))?;
        }
    }
    Ok(())
}

fn touch(path: &Path, round: u32) -> rustix::io::Result<()> {
    let file = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let size = fstat(&file)?.st_size.unsigned_abs();
    let row = u64::from(round) * 16 % 10_000;
    pwrite(&file, &[0; HEADER_BYTES], 1_900)?;
    pwrite(&file, &[0; ROW_BYTES], 3_000 + row)?;
    pwrite(&file, &[0; ROW_BYTES], size / 2 + row)?;
    Ok(())
}
