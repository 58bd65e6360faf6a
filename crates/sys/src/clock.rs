//! Time as a parameter: three clocks read at one moment.
//! Only durations of `mono_ns` or `boot_ns` may be trusted; `real_ns` is for people and may step.

use rustix::time::{ClockId, Timespec, clock_gettime};

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
}

/// The kernel's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

impl Clock for RealClock {
    fn mono_ns(&self) -> u64 {
        nanoseconds(clock_gettime(ClockId::Monotonic)).max(0) as u64
    }

    fn now(&self) -> Stamp {
        Stamp {
            real_ns: nanoseconds(clock_gettime(ClockId::Realtime)),
            mono_ns: nanoseconds(clock_gettime(ClockId::Monotonic)).max(0) as u64,
            boot_ns: nanoseconds(clock_gettime(ClockId::Boottime)).max(0) as u64,
        }
    }
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_does_not_go_back() {
        let (first, second) = (RealClock.now(), RealClock.now());
        assert!(second.mono_ns >= first.mono_ns);
        assert!(second.boot_ns >= first.mono_ns);
        assert!(first.real_ns > 1_600_000_000_000_000_000);
    }
}
