//! A bare timerfd loop: absolute multiples of the interval on CLOCK_REALTIME,
//! plus a phase. It paces the floor, and `kymo-bench tick` prints the time at
//! which each tick was seen: the lateness of any recorder on this machine.

use crate::args::Args;
use crate::fault::{Cannot, Result};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::fmt::Write;
use std::os::fd::OwnedFd;
use std::time::{SystemTime, UNIX_EPOCH};

const SECOND_NS: f64 = 1e9;

/// A running timer.
pub(crate) struct Ticks {
    timer: OwnedFd,
}

impl Ticks {
    /// Starts at the next multiple of `interval_ns`, plus `phase_ns`.
    pub(crate) fn start(interval_ns: u64, phase_ns: u64) -> Result<Ticks> {
        let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC)
            .cannot("create a timer")?;
        let first_ns = (wall_ns() / interval_ns + 1) * interval_ns + phase_ns;
        let spec = Itimerspec {
            it_interval: timespec(interval_ns),
            it_value: timespec(first_ns),
        };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &spec).cannot("set the timer")?;
        Ok(Ticks { timer })
    }

    /// Sleeps until the next tick.
    pub(crate) fn wait(&self) -> Result<()> {
        let mut expirations = [0u8; 8];
        rustix::io::read(&self.timer, &mut expirations).cannot("read the timer")?;
        Ok(())
    }
}

/// `kymo-bench tick`: one wall-clock stamp in ns a line, printed at the end.
pub(crate) fn run(mut args: Args) -> Result<()> {
    let interval_ns = nanos(args.value("-i")?.unwrap_or(0.1));
    let count: usize = args.value("-c")?.unwrap_or(100);
    let phase_ns = nanos(args.value("--phase")?.unwrap_or(0.0));
    args.done()?;
    let ticks = Ticks::start(interval_ns, phase_ns)?;
    let mut stamps = Vec::with_capacity(count);
    for _ in 0..count {
        ticks.wait()?;
        stamps.push(wall_ns());
    }
    let mut text = String::new();
    for stamp in stamps {
        writeln!(text, "{stamp}").cannot("print a stamp")?;
    }
    crate::say(&text)
}

/// Nanoseconds since the epoch.
pub(crate) fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_nanos() as u64)
}

/// Seconds, as typed on a command line, in nanoseconds.
pub(crate) fn nanos(seconds: f64) -> u64 {
    (seconds * SECOND_NS).round() as u64
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    }
}
