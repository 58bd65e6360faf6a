//! Stock's daemon and kymo's, each with files and journal on its
//! own ext4, so that all writes of the device are the daemon's.

use super::files;
use super::wire::Wire;
use crate::bench::{Bench, on_path};
use crate::child::Running;
use crate::disk::LoopDisk;
use crate::fault::{Cannot, Fault, Result};
use crate::procfs;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Stock,
    /// An earlier build of kymo.
    Before,
    Ours,
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Who::Stock => "stock",
            Who::Before => "before",
            Who::Ours => "kymo",
        }
    }
}

/// The programs that are here, and the earlier build, if given.
pub(crate) fn present_with_before(bench: &Bench) -> Vec<Who> {
    let mut here = present(bench);
    if bench.before.is_some() {
        here.insert(here.len().saturating_sub(1), Who::Before);
    }
    here
}

/// Stock's daemon and kymo's, if they are here.
pub(crate) fn present(bench: &Bench) -> Vec<Who> {
    let stock = on_path("rrdcached").and(on_path("rrdtool"));
    let ours = bench.kymo.as_ref();
    let here = [(Who::Stock, stock.is_some()), (Who::Ours, ours.is_some())];
    here.iter()
        .filter(|(_, here)| *here)
        .map(|(who, _)| *who)
        .collect()
}

/// For journals, and for the file system's own use.
const ROOM_MB: u32 = 600;
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest time for a daemon's end: stock's needs minutes if it has all values yet to write.
const END_PATIENCE: Duration = Duration::from_secs(1800);
/// Longest time for a FLUSHALL.
const FLUSH_PATIENCE: Duration = Duration::from_secs(300);
const AGAIN: Duration = Duration::from_millis(5);

pub(crate) struct Side {
    pub who: Who,
    // Ended before its disk is unmounted.
    daemon: Option<Running>,
    socket: PathBuf,
    pub disk: LoopDisk,
}

impl Side {
    /// A disk with `count` files in `db`, and no daemon yet.
    pub(crate) fn prepare(bench: &Bench, who: Who, count: usize) -> Result<Side> {
        let side = Side::with_room(bench, who, files::mb(count))?;
        files::fill(&side.base(), count)?;
        side.disk.sync()?;
        Ok(side)
    }

    /// A disk of [`ROOM_MB`] and `more_mb`, without files or daemon.
    pub(crate) fn with_room(bench: &Bench, who: Who, more_mb: u32) -> Result<Side> {
        let size_mb = ROOM_MB + more_mb;
        let disk = LoopDisk::mount_sized(bench, who.name(), size_mb)?;
        let side = Side {
            who,
            daemon: None,
            socket: bench.new_path("sock"),
            disk,
        };
        fs::create_dir(side.base()).cannot("make the base")?;
        fs::create_dir(side.journal()).cannot("make the journal's folder")?;
        Ok(side)
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.disk.dir().join("db")
    }

    /// Folder for `-j`.
    pub(crate) fn journal(&self) -> PathBuf {
        self.disk.dir().join("journal")
    }

    /// Starts the daemon with a journal; it writes files at FLUSHALL only.
    pub(crate) fn start(&mut self, bench: &Bench, options: &[&str]) -> Result<()> {
        self.start_until(bench, options, "PING", PATIENCE)
    }

    /// Starts the daemon and waits until it answers `question`.
    pub(crate) fn start_until(
        &mut self,
        bench: &Bench,
        options: &[&str],
        question: &str,
        patience: Duration,
    ) -> Result<()> {
        self.stop()?;
        let mut command = self.command(bench)?;
        command.arg("-g").arg("-p").arg(bench.new_path("pid"));
        command
            .arg("-l")
            .arg(format!("unix:{}", self.socket.display()));
        command.arg("-b").arg(self.base()).arg("-B");
        command.arg("-j").arg(self.journal());
        command.args(["-w", "86400", "-f", "172800"]).args(options);
        command.stdout(Stdio::null());
        let daemon = Running::start(bench, &mut command)?;
        let until = Instant::now() + patience;
        while Wire::connect(&self.socket)
            .and_then(|mut wire| wire.ask(question))
            .is_err()
        {
            if Instant::now() > until || !daemon.is_running()? {
                let message = fs::read_to_string(daemon.stderr()).unwrap_or_default();
                return Err(Fault::because("start the daemon", message.trim()));
            }
            std::thread::sleep(AGAIN);
        }
        self.daemon = Some(daemon);
        Ok(())
    }

    fn command(&self, bench: &Bench) -> Result<Command> {
        let kymo = match self.who {
            Who::Stock => return Ok(Command::new("rrdcached")),
            Who::Before => bench.before.as_ref(),
            Who::Ours => bench.kymo.as_ref(),
        };
        let kymo = kymo.ok_or_else(|| Fault::new("kymo is not here"))?;
        let mut command = Command::new(kymo);
        command.arg("rrdcached");
        Ok(command)
    }

    pub(crate) fn connect(&self) -> Result<Wire> {
        Wire::connect(&self.socket)
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(crate) fn pid(&self) -> Result<u32> {
        let daemon = self.daemon.as_ref();
        Ok(daemon.ok_or_else(|| Fault::new("no daemon runs"))?.pid())
    }

    /// CPU seconds so far, including those of ended threads.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let all = procfs::descendants(self.pid()?)?;
        let ticks: u64 = all.iter().map(|process| process.ticks).sum();
        Ok(ticks as f64 / procfs::TICKS_A_SECOND)
    }

    /// Sends FLUSHALL and waits until all values are in the files.
    pub(crate) fn flush_all(&self, written_at_least: u64) -> Result<()> {
        let mut wire = self.connect()?;
        wire.ask("FLUSHALL")?;
        let until = Instant::now() + FLUSH_PATIENCE;
        while self.values_written()? < written_at_least {
            if Instant::now() > until {
                return Err(Fault::new(format!(
                    "{} does not write all",
                    self.who.name()
                )));
            }
            std::thread::sleep(AGAIN);
        }
        Ok(())
    }

    /// Values written to files since the daemon's start.
    pub(crate) fn values_written(&self) -> Result<u64> {
        self.statistic("DataSetsWritten")
    }

    /// A number from STATS.
    pub(crate) fn statistic(&self, name: &str) -> Result<u64> {
        let reply = self.connect()?.lines("STATS")?;
        let mut pairs = reply.lines().filter_map(|line| line.split_once(": "));
        let pair = pairs.find(|(each, _)| *each == name);
        let number = pair.and_then(|(_, number)| number.trim().parse().ok());
        number.ok_or_else(|| Fault::new(format!("STATS tells no {name}")))
    }

    /// Sends SIGTERM and waits for the end; returns the CPU seconds of the daemon's life.
    pub(crate) fn stop(&mut self) -> Result<f64> {
        match self.daemon.take() {
            Some(daemon) => Ok(daemon.terminate(END_PATIENCE)?.as_secs_f64()),
            None => Ok(0.0),
        }
    }

    /// Ends the daemon as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        drop(self.daemon.take());
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // The daemon must release its disk; if it does not end, the guard kills it.
        let _ = self.stop();
    }
}

/// Runs `once` by each side in turns, with another side first in each round; returns the results by side.
pub(crate) fn in_turns<T>(
    rounds: usize,
    sides: &mut [Side],
    mut once: impl FnMut(&mut Side, usize) -> Result<T>,
) -> Result<Vec<(Who, Vec<T>)>> {
    let mut found: Vec<(Who, Vec<T>)> = sides.iter().map(|side| (side.who, Vec::new())).collect();
    for round in 0..rounds {
        for turn in 0..sides.len() {
            let index = (round + turn) % sides.len();
            found[index].1.push(once(&mut sides[index], round)?);
        }
    }
    Ok(found)
}

/// Runs `work`, and all processes that it starts, on one CPU.
pub(crate) fn on_one_cpu<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let all = sched_getaffinity(None)
        .map_err(io::Error::from)
        .cannot("ask for the CPUs")?;
    let mut one = CpuSet::new();
    one.set(
        (0..CpuSet::MAX_CPU)
            .find(|&cpu| all.is_set(cpu))
            .unwrap_or(0),
    );
    let stay = |cpus: &CpuSet| sched_setaffinity(None, cpus).map_err(io::Error::from);
    stay(&one).cannot("stay on one CPU")?;
    let done = work();
    stay(&all).cannot("go back to all CPUs")?;
    done
}

/// One side's part of the results of [`in_turns`].
pub(crate) fn of<T>(found: &[(Who, Vec<T>)], who: Who) -> Option<&[T]> {
    let side = found.iter().find(|(each, _)| *each == who);
    side.map(|(_, values)| values.as_slice())
}
