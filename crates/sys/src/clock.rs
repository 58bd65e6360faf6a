//! Time as a parameter: three clocks read at one moment.
//! Only durations of `mono_ns` or `boot_ns` may be trusted; `real_ns` is for people and may step.
//! And the time that passed because a thread had no CPU.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The three clocks at (nearly) one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// CLOCK_REALTIME, nanoseconds since 1970; may step either way.
    pub real_ns: i64,
    /// CLOCK_MONOTONIC, nanoseconds; stands still while the machine is suspended.
    pub mono_ns: u64,
    /// CLOCK_BOOTTIME, nanoseconds; goes on while the machine is suspended.
    pub boot_ns: u64,
}

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// Reads the three clocks.
    fn now(&self) -> Stamp;

    /// CLOCK_MONOTONIC alone, for the price of a read.
    fn mono_ns(&self) -> u64 {
        self.now().mono_ns
    }

    /// How long the calling thread has been ready to run without a CPU, ever; 0 where nobody knows.
    fn waited_ns(&self) -> u64 {
        0
    }
}

/// The kernel's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

impl Clock for RealClock {
    fn mono_ns(&self) -> u64 {
        nanoseconds(libc::CLOCK_MONOTONIC).max(0) as u64
    }

    fn now(&self) -> Stamp {
        Stamp {
            real_ns: nanoseconds(libc::CLOCK_REALTIME),
            mono_ns: nanoseconds(libc::CLOCK_MONOTONIC).max(0) as u64,
            boot_ns: nanoseconds(libc::CLOCK_BOOTTIME).max(0) as u64,
        }
    }

    fn waited_ns(&self) -> u64 {
        SCHEDULED.with(|file| file.as_ref().and_then(waited).unwrap_or(0))
    }
}

/// The kernel's clocks, the wall clock behind by a phase: who acts this long after each beat sees the beats.
#[derive(Clone, Copy, Debug, Default)]
pub struct Behind {
    /// Nanoseconds.
    pub phase_ns: i64,
}

impl Clock for Behind {
    fn mono_ns(&self) -> u64 {
        RealClock.mono_ns()
    }

    fn now(&self) -> Stamp {
        let now = RealClock.now();
        Stamp {
            real_ns: now.real_ns.saturating_sub(self.phase_ns),
            ..now
        }
    }

    fn waited_ns(&self) -> u64 {
        RealClock.waited_ns()
    }
}

thread_local! {
    /// What the scheduler says of this thread: time on a CPU, time waited for one, turns.
    static SCHEDULED: Option<File> = File::open("/proc/thread-self/schedstat").ok();
}

fn waited(file: &File) -> Option<u64> {
    let mut text = [0; 64];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    text.split(' ').nth(1)?.parse().ok()
}

/// What a clock says. Not by rustix, which looks for the vDSO itself: valgrind hides that, and ends the program.
#[allow(unsafe_code)]
pub(crate) fn nanoseconds(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it fills the struct it is given; of a clock that there is not, it stays zero.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads on one CPU: one of them waits.
    #[test]
    fn a_thread_that_had_no_cpu_waited() {
        if std::fs::read("/proc/thread-self/schedstat").is_err() {
            return;
        }
        let before = RealClock.waited_ns();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let stops = || stop.load(std::sync::atomic::Ordering::Relaxed);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..2 * cpus {
                scope.spawn(|| while !stops() {});
            }
            while RealClock.waited_ns() == before {}
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn monotonic_does_not_go_back() {
        let (first, second) = (RealClock.now(), RealClock.now());
        assert!(second.mono_ns >= first.mono_ns);
        assert!(second.boot_ns >= first.mono_ns);
        assert!(first.real_ns > 1_600_000_000_000_000_000);
    }
}
