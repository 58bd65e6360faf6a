//! A child whose descendants have their own process groups (servers, browsers): their total cost, and
//! the end of them all, however the child ends.

use crate::bench::Bench;
use crate::child::Running;
use crate::fault::{Cannot, Result};
use crate::guard::Guard;
use crate::procfs;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::fs;
use std::process::{ChildStdout, Command};
use std::rc::Rc;
use std::time::Duration;

pub(crate) struct Family {
    running: Option<Running>,
    root: u32,
    groups: BTreeSet<u32>,
    guard: Rc<Guard>,
}

impl Family {
    pub(crate) fn start(bench: &Bench, command: &mut Command) -> Result<Family> {
        let running = Running::start(bench, command)?;
        Ok(Family {
            root: running.pid(),
            running: Some(running),
            groups: BTreeSet::new(),
            guard: Rc::clone(&bench.guard),
        })
    }

    pub(crate) fn root(&self) -> u32 {
        self.root
    }

    pub(crate) fn stdout(&mut self) -> Option<ChildStdout> {
        self.running.as_mut().and_then(Running::stdout)
    }

    pub(crate) fn is_running(&self) -> Result<bool> {
        self.running.as_ref().map_or(Ok(false), Running::is_running)
    }

    /// Text on stderr so far.
    pub(crate) fn stderr_text(&self) -> String {
        let path = self.running.as_ref().map(Running::stderr);
        let text = path.and_then(|path| fs::read_to_string(path).ok());
        text.unwrap_or_default()
    }

    /// The first line on stderr, for a fault.
    pub(crate) fn complaint(&self) -> String {
        let text = self.stderr_text();
        text.lines().next().unwrap_or("no complaint").to_string()
    }

    /// Notes the present groups, so that they end with this value, or with the bench.
    pub(crate) fn note_groups(&mut self) -> Result<()> {
        for process in procfs::descendants(self.root)? {
            if process.group != self.root && self.groups.insert(process.group) {
                self.guard.group(process.group)?;
            }
        }
        Ok(())
    }

    /// Sends SIGTERM to the root, then kills the remaining descendants.
    pub(crate) fn end(self) -> Result<()> {
        self.end_within(Duration::from_secs(20)).map(drop)
    }

    /// Like [`Family::end`], for a slow root; returns its
    /// CPU time, and the bytes written towards a disk.
    pub(crate) fn end_within(mut self, limit: Duration) -> Result<(Duration, u64)> {
        self.note_groups()?;
        match self.running.take() {
            Some(running) => running.terminate_telling(limit),
            None => Ok((Duration::ZERO, 0)),
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // The guard ends descendants that can no longer be listed.
        let _ = self.note_groups();
        drop(self.running.take());
        for &group in &self.groups {
            if let Some(pid) = Pid::from_raw(group as i32) {
                // ESRCH: the group has ended by itself.
                let _ = kill_process_group(pid, Signal::KILL);
            }
            let _ = self.guard.group_ended(group);
        }
    }
}

/// Use of resources by a process and its descendants so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// CPU seconds, to 10 ms, including those of ended processes.
    pub cpu_s: f64,
    /// RssAnon + RssShmem.
    pub memory_bytes: f64,
    /// Bytes written towards a disk, by the kernel's count.
    pub written_bytes: f64,
    pub processes: usize,
}

impl Cost {
    /// The cost of these processes and all below them.
    pub(crate) fn of(roots: &[u32]) -> Result<Cost> {
        let mut sum = Cost::default();
        for &root in roots {
            for process in procfs::descendants(root)? {
                sum.cpu_s += process.ticks as f64 / procfs::TICKS_A_SECOND;
                // Zero if the process ends meanwhile.
                sum.memory_bytes += procfs::private_bytes(process.pid).unwrap_or(0) as f64;
                sum.written_bytes += procfs::written_bytes(process.pid).unwrap_or(0) as f64;
                sum.processes += 1;
            }
        }
        Ok(sum)
    }
}

/// CPU time of a process and all below it, to the nanosecond; that of ended ones to 10 ms.
pub(crate) fn cpu_ns(root: u32) -> Result<u64> {
    let mut sum_ns = 0;
    for process in procfs::descendants(root)? {
        // The time of a process that ends meanwhile is in its parent's account at the next call.
        sum_ns += procfs::cpu_ns(process.pid).unwrap_or(0);
        sum_ns += process.ended_ticks * 10_000_000;
    }
    Ok(sum_ns)
}

/// Disk space of the files below `dir`, in bytes.
pub(crate) fn disk_bytes(dir: &std::path::Path) -> Result<u64> {
    let end = Command::new("du").args(["-s", "-B1"]).arg(dir).output();
    let text = String::from_utf8_lossy(&end.cannot("run du")?.stdout).into_owned();
    let bytes = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    Ok(bytes.unwrap_or(0))
}
