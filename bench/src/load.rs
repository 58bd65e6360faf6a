//! The busy machine around a row: gcc compiles generated C files one after the
//! other, and on request a writer fsyncs without pause.
//!
//! One job at a time, so that on two CPUs the recorders still get theirs. A child
//! process (`kymo-bench load`), bounded in time and killed by its group.

use crate::args::Args;
use crate::bench::Bench;
use crate::child::Running;
use crate::fault::{Cannot, Fault, Result};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Functions of each file; from a short to a long compilation.
const FILES: [usize; 4] = [10, 25, 50, 100];
const STORM_BYTES: usize = 256 << 10;
const STORM_FILE_BYTES: u64 = 64 << 20;
/// Time until gcc and its files are in the page cache.
const WARM_UP: Duration = Duration::from_millis(700);

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Compile,
    CompileAndFsync,
}

/// Starts the load and waits a moment; it ends at drop, or after `limit`.
pub(crate) fn start(bench: &Bench, kind: Kind, limit: Duration) -> Result<Running> {
    let mut command = Command::new(&bench.own);
    command
        .args(["load", "--seconds", &limit.as_secs().to_string(), "--dir"])
        .arg(bench.new_dir("load")?)
        .stdout(Stdio::null());
    if kind == Kind::CompileAndFsync {
        command.arg("--fsync");
    }
    let load = Running::start(bench, &mut command)?;
    std::thread::sleep(WARM_UP);
    match load.is_running()? {
        true => Ok(load),
        false => Err(match load.finish(Duration::ZERO) {
            Err(fault) => fault,
            Ok(_) => Fault::new("the load has ended at once"),
        }),
    }
}

/// `kymo-bench load`.
pub(crate) fn run(mut args: Args) -> Result<()> {
    let seconds = args.value("--seconds")?.unwrap_or(60);
    let dir: PathBuf = args
        .value("--dir")?
        .ok_or_else(|| Fault::new("--dir is needed"))?;
    let fsync = args.flag("--fsync");
    args.done()?;
    let until = Instant::now() + Duration::from_secs(seconds);
    let storm_file = dir.join("storm");
    let storm = fsync.then(|| std::thread::spawn(move || storm(&storm_file, until)));
    compile(&dir, until)?;
    match storm.map(|thread| thread.join()) {
        Some(Err(_)) => Err(Fault::new("the fsync storm panicked")),
        Some(Ok(result)) => result,
        None => Ok(()),
    }
}

fn compile(dir: &Path, until: Instant) -> Result<()> {
    for (number, functions) in FILES.iter().enumerate() {
        let path = dir.join(format!("unit{number}.c"));
        fs::write(&path, source(*functions)).cannot("write a C file")?;
    }
    while Instant::now() < until {
        for number in 0..FILES.len() {
            gcc(dir, number)?;
        }
    }
    Ok(())
}

fn gcc(dir: &Path, number: usize) -> Result<()> {
    let status = Command::new("gcc")
        .args(["-O2", "-c", &format!("unit{number}.c"), "-o"])
        .arg(format!("unit{number}.o"))
        .current_dir(dir)
        // If it is killed, gcc leaves its temporary files: here, not in /tmp.
        .env("TMPDIR", dir)
        .status()
        .cannot("start gcc")?;
    match status.success() {
        true => Ok(()),
        false => Err(Fault::new(format!("gcc ended with {status}"))),
    }
}

fn storm(path: &Path, until: Instant) -> Result<()> {
    let file = File::create(path).cannot("create the storm's file")?;
    let bytes = vec![0x5a; STORM_BYTES];
    let mut at = 0;
    while Instant::now() < until {
        file.write_all_at(&bytes, at)
            .cannot("write the storm's file")?;
        file.sync_all().cannot("sync the storm's file")?;
        at = (at + STORM_BYTES as u64) % STORM_FILE_BYTES;
    }
    Ok(())
}

/// A C file with work for the optimiser.
fn source(functions: usize) -> String {
    let mut text = String::from("extern int sink(int);\n");
    for f in 0..functions {
        let seed = f * 7 + 3;
        // Writing into a String cannot fail.
        let _ = write!(
            text,
            "int work{f}(const int *v, int n) {{\n  int s = {seed};\n  \
             for (int i = 0; i < n; i++) {{\n    switch (v[i] & 7) {{\n    \
             case 0: s += v[i] * {seed}; break;\n    case 1: s ^= v[i] << (i & 7); break;\n    \
             case 2: for (int j = 0; j < 8; j++) s += v[j] * (i + j); break;\n    \
             case 3: s = sink(s); break;\n    default: s -= v[i] / (i + 1);\n    }}\n  }}\n  \
             return s;\n}}\n"
        );
    }
    text
}
