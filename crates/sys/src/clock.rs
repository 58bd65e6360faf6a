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

    /// Time that the calling thread has been ready to run without a CPU since it began. Where the kernel does not say, all time
    /// without a CPU: only differences count.
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
        let waited = SCHEDULED.with(|file| file.as_ref().and_then(waited));
        waited.unwrap_or_else(|| self.mono_ns().saturating_sub(thread_cpu_ns()))
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
    /// The scheduler's account of this thread: time on a CPU, time waited for one, turns.
    static SCHEDULED: Option<File> = File::open("/proc/thread-self/schedstat").ok();
}

/// CPU time of this thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(libc::CLOCK_THREAD_CPUTIME_ID).max(0) as u64
}

/// A kernel that does not count has no turns of a thread that runs.
fn waited(file: &File) -> Option<u64> {
    let mut text = [0; 64];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let mut numbers = text.trim_end().split(' ').skip(1);
    let waited_ns = numbers.next()?.parse().ok()?;
    let is_counted = numbers.next() != Some("0");
    is_counted.then_some(waited_ns)
}

/// Reads a clock. Not by rustix, which looks for the vDSO itself: valgrind hides the vDSO, and ends the program.
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

/// The CPU time of a process and all its threads, those that ended included. It needs no right over the process and no open file. `None`:
/// there is no such process.
#[allow(unsafe_code)]
pub(crate) fn process_cpu_ns(pid: u32) -> Option<u64> {
    /// CPUCLOCK_SCHED of the kernel: what the scheduler counted, in nanoseconds.
    const SCHEDULER: libc::clockid_t = 2;
    let clock = !libc::pid_t::try_from(pid).ok()? << 3 | SCHEDULER;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it fills the struct it is given, or fails and leaves it alone.
    let is_read = unsafe { libc::clock_gettime(clock, &raw mut time) } == 0;
    let seconds = u64::try_from(time.tv_sec).ok().filter(|_| is_read)?;
    Some(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_of_schedstat_is_the_time_waited() {
        let path = std::env::temp_dir().join(format!("kymo-schedstat-{}", std::process::id()));
        for (text, expect) in [
            ("11 22 33\n", Some(22)),
            ("11 22 ", Some(22)),
            ("0 0 0\n", None),
            ("11", None),
            ("11 - 33\n", None),
            ("", None),
        ] {
            std::fs::write(&path, text).expect("a file");
            let file = File::open(&path).expect("a file");
            assert_eq!(waited(&file), expect, "{text:?}");
        }
        std::fs::remove_file(&path).expect("the file");
    }

    /// More threads than CPUs: one of them waits. The thread's own CPU time ends the test where the clock stands still.
    #[test]
    fn a_thread_that_had_no_cpu_waited() {
        if File::open("/proc/thread-self/schedstat").is_err() {
            return crate::skipped::skipped("/proc/thread-self/schedstat is not there");
        }
        const ENOUGH_NS: u64 = 20_000_000_000;
        let before = RealClock.waited_ns();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let stops = || stop.load(std::sync::atomic::Ordering::Relaxed);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..2 * cpus {
                scope.spawn(|| while !stops() {});
            }
            let used = thread_cpu_ns;
            let until = used() + ENOUGH_NS;
            while RealClock.waited_ns() == before && used() < until {}
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(
            RealClock.waited_ns() > before,
            "no wait in 20 s of CPU time beside {} threads",
            2 * cpus
        );
    }

    #[test]
    fn monotonic_does_not_go_back() {
        let (first, second) = (RealClock.now(), RealClock.now());
        assert!(second.mono_ns >= first.mono_ns);
        assert!(second.boot_ns >= first.mono_ns);
        assert!(first.real_ns > 1_600_000_000_000_000_000);
    }
}
