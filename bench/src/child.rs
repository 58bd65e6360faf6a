//! A measured child: bounded in time, in its own process group. Its CPU comes from
//! `wait4` (with the children it waited for, so start-up forks count), its end from
//! a pidfd, its peak memory and reads from /proc before it is reaped.

use crate::bench::Bench;
use crate::fault::{Cannot, Fault, Result};
use crate::guard::{self, Guard};
use crate::procfs;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use rustix::time::Timespec;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, ExitStatus, Output, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};
use wait4::try_wait4_pid;

/// Time between two looks at peak memory.
const PEAK_EVERY: Duration = Duration::from_millis(2);

/// The output of a command that must succeed.
pub(crate) fn output_of(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = guard::mark(command).output();
    let output = output.cannot(format_args!("start {name}"))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(Fault::new(format!(
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

/// Use of resources by a child, from its start to its end.
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    pub wall: Duration,
    pub cpu: Duration,
    pub peak_bytes: u64,
    pub read_bytes: u64,
}

/// A running child; dropping it early kills its whole group.
pub(crate) struct Running {
    name: String,
    pid: Pid,
    pidfd: OwnedFd,
    stdout: Option<ChildStdout>,
    stderr: PathBuf,
    guard: Rc<Guard>,
    started: Instant,
    ended: bool,
}

impl Running {
    /// Starts `command`; its stderr goes to a file, which a fault quotes.
    pub(crate) fn start(bench: &Bench, command: &mut Command) -> Result<Running> {
        let name = name(command);
        let stderr = bench.new_path("stderr");
        let complaints = File::create(&stderr).cannot("create a file for complaints")?;
        guard::mark(command)
            .stdin(Stdio::null())
            .stderr(complaints)
            .process_group(0);
        let started = Instant::now();
        let mut child = command.spawn().cannot(format_args!("start {name}"))?;
        bench.guard.group(child.id())?;
        let stdout = child.stdout.take();
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).cannot(format_args!("watch {name}"))?;
        Ok(Running {
            name,
            pid,
            pidfd,
            stdout,
            stderr,
            guard: Rc::clone(&bench.guard),
            started,
            ended: false,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// The file of its stderr.
    pub(crate) fn stderr(&self) -> &Path {
        &self.stderr
    }

    pub(crate) fn stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    pub(crate) fn is_running(&self) -> Result<bool> {
        Ok(!self.ends_within(Duration::ZERO)?)
    }

    /// Waits for the end; a child that runs longer than `limit` is killed, and that is a fault.
    pub(crate) fn finish(self, limit: Duration) -> Result<Usage> {
        if !self.ends_within(limit)? {
            return Err(Fault::new(format!("{} ran over {limit:?}", self.name)));
        }
        self.reap(0)
    }

    /// Like [`Running::finish`], with peak memory watched until the end.
    pub(crate) fn finish_watching_memory(self, limit: Duration) -> Result<Usage> {
        let until = Instant::now() + limit;
        let mut peak_bytes = 0;
        while !self.ends_within(PEAK_EVERY)? {
            if Instant::now() > until {
                return Err(Fault::new(format!("{} ran over {limit:?}", self.name)));
            }
            peak_bytes = procfs::peak_bytes(self.pid()).unwrap_or(0).max(peak_bytes);
        }
        self.reap(peak_bytes)
    }

    /// Sends SIGTERM, and after `limit` SIGKILL. Any exit status is fine. Returns the CPU time.
    pub(crate) fn terminate(self, limit: Duration) -> Result<Duration> {
        Ok(self.terminate_telling(limit)?.0)
    }

    /// Like [`Running::terminate`]; returns the bytes written towards a disk, too.
    pub(crate) fn terminate_telling(mut self, limit: Duration) -> Result<(Duration, u64)> {
        // ESRCH is impossible: the child is not reaped yet.
        let _ = kill_process(self.pid, Signal::TERM);
        self.ends_within(limit)?;
        let written_bytes = procfs::written_bytes(self.pid()).unwrap_or(0);
        let end = self.end()?;
        Ok((end.rusage.utime + end.rusage.stime, written_bytes))
    }

    fn ends_within(&self, limit: Duration) -> Result<bool> {
        let limit = Timespec::try_from(limit).cannot("wait so long")?;
        let mut ended = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let ready = poll(&mut ended, Some(&limit));
        Ok(ready.cannot(format_args!("wait for {}", self.name))? > 0)
    }

    fn reap(mut self, peak_bytes: u64) -> Result<Usage> {
        let wall = self.started.elapsed();
        let read_bytes = procfs::read_bytes(self.pid()).unwrap_or(0);
        let end = self.end()?;
        judge(&self.name, end.status, &self.stderr)?;
        Ok(Usage {
            wall,
            cpu: end.rusage.utime + end.rusage.stime,
            peak_bytes: true_peak(peak_bytes, end.rusage.maxrss),
            read_bytes,
        })
    }

    /// Kills the rest of the group while its number is still the child's, then reaps.
    fn end(&mut self) -> Result<wait4::ResUse> {
        self.ended = true;
        // ESRCH is impossible: the leader is not reaped. EPERM would be from a setuid child.
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.ends_within(Duration::from_secs(10))?;
        let end = try_wait4_pid(self.pid()).cannot(format_args!("wait for {}", self.name))?;
        self.guard.group_ended(self.pid())?;
        end.ok_or_else(|| Fault::new(format!("{} cannot be killed", self.name)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            // A failure here can no longer be reported; the guard still has the group.
            let _ = self.end();
        }
    }
}

/// The kernel counts pages by CPU and adds them up now and then: two reads of one peak may differ by this much.
const COUNTED_LATE_BYTES: u64 = 1 << 20;

/// `ru_maxrss` lasts to the very end but begins with the bench's own memory (the child before its exec). Only a value
/// clearly above that is the child's; otherwise the watched value is used.
fn true_peak(watched_bytes: u64, maxrss_bytes: u64) -> u64 {
    let own_bytes = procfs::peak_bytes(std::process::id()).unwrap_or(0);
    if maxrss_bytes > own_bytes + COUNTED_LATE_BYTES {
        maxrss_bytes.max(watched_bytes)
    } else {
        watched_bytes
    }
}

fn judge(name: &str, status: ExitStatus, stderr: &Path) -> Result<()> {
    // collectl at 10 ms is now and then killed by its own timer while it ends; its
    // file is whole by then, and the rows that read it count the samples.
    if status.success() || status.signal() == Some(Signal::ALARM.as_raw()) {
        return Ok(());
    }
    let complaints = fs::read_to_string(stderr).unwrap_or_default();
    let first = complaints.lines().next().unwrap_or("no complaint");
    Err(Fault::new(format!("{name} ended with {status}: {first}")))
}

fn name(command: &Command) -> String {
    let path = PathBuf::from(command.get_program());
    let mut name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    if let Some(verb) = command.get_args().next() {
        name.push(' ');
        name.push_str(&verb.to_string_lossy());
    }
    name
}
