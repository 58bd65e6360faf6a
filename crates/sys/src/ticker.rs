//! The beat of the sampler: a timer that fires at absolute multiples of the interval on the
//! wall clock, says how many beats were missed, and notices when the clock is set.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

/// A periodic timer on CLOCK_REALTIME.
pub struct Ticker {
    fd: OwnedFd,
    interval: Duration,
    phase: Duration,
}

/// Why [`Ticker::wait`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beat {
    /// The timer fired.
    Tick {
        /// Beats missed.
        missed: u64,
    },
    /// The wall clock was set; the timer has been set again.
    ClockSet,
}

impl Ticker {
    /// A ticker at multiples of `interval`, which is not zero.
    pub fn new(interval: Duration) -> io::Result<Ticker> {
        Ticker::behind(interval, Duration::ZERO)
    }

    /// A ticker that fires `phase` after multiples of `interval`.
    pub fn behind(interval: Duration, phase: Duration) -> io::Result<Ticker> {
        let fd = rustix::time::timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC)?;
        let ticker = Ticker {
            fd,
            interval,
            phase,
        };
        ticker.arm()?;
        Ok(ticker)
    }

    /// Sets the timer to the phase of the next multiple of the interval.
    fn arm(&self) -> io::Result<()> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let now_ns = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
        let interval_ns = self.interval.as_nanos() as i128;
        let phase_ns = i128::try_from(self.phase.as_nanos()).unwrap_or(0);
        let next_ns = ((now_ns - phase_ns).div_euclid(interval_ns) + 1) * interval_ns + phase_ns;
        self.set(timespec(next_ns), timespec(interval_ns))
    }

    /// Makes [`Ticker::wait`] return at once, from any thread.
    pub fn ring(&self) -> io::Result<()> {
        self.set(
            Timespec {
                tv_sec: 0,
                tv_nsec: 1,
            },
            timespec(self.interval.as_nanos() as i128),
        )
    }

    fn set(&self, first: Timespec, interval: Timespec) -> io::Result<()> {
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        let spec = Itimerspec {
            it_interval: interval,
            it_value: first,
        };
        rustix::time::timerfd_settime(&self.fd, flags, &spec)?;
        Ok(())
    }

    /// Sleeps until the next beat.
    pub fn wait(&self) -> io::Result<Beat> {
        let mut count = [0u8; 8];
        loop {
            match rustix::io::read(&self.fd, &mut count) {
                Ok(_) => {
                    return Ok(Beat::Tick {
                        missed: u64::from_ne_bytes(count).saturating_sub(1),
                    });
                }
                Err(Errno::INTR) => {}
                Err(Errno::CANCELED) => {
                    self.arm()?;
                    return Ok(Beat::ClockSet);
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

fn timespec(ns: i128) -> Timespec {
    Timespec {
        tv_sec: ns.div_euclid(1_000_000_000) as i64,
        tv_nsec: ns.rem_euclid(1_000_000_000) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    const INTERVAL: Duration = Duration::from_millis(20);
    const PHASE: Duration = Duration::from_millis(7);

    /// Number of the interval in which this moment is.
    fn number() -> u128 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        (now.expect("after 1970") - PHASE).as_nanos() / INTERVAL.as_nanos()
    }

    #[test]
    fn beats_are_at_the_phase_of_each_multiple() {
        let ticker = Ticker::behind(INTERVAL, PHASE).expect("a ticker");
        let mut beats = 0;
        let first = number();
        for _ in 0..5 {
            let before = number();
            let Beat::Tick { missed } = ticker.wait().expect("a beat") else {
                panic!("nobody sets the clock");
            };
            beats += u128::from(missed) + 1;
            assert!(number() > before || missed > 0);
        }
        let passed = number() - first;
        assert!(
            (passed - 1..=passed + 1).contains(&beats),
            "{beats} in {passed}"
        );
    }

    #[test]
    fn beats_that_went_by_are_counted() {
        let ticker = Ticker::new(INTERVAL).expect("a ticker");
        std::thread::sleep(5 * INTERVAL);
        let Ok(Beat::Tick { missed }) = ticker.wait() else {
            panic!("nobody sets the clock");
        };
        assert!(missed >= 4, "{missed}");
    }

    #[test]
    fn a_ring_ends_the_wait_at_once() {
        let ticker = Ticker::new(Duration::from_secs(100_000)).expect("a ticker");
        ticker.ring().expect("a ring");
        assert!(matches!(ticker.wait(), Ok(Beat::Tick { .. })));
    }

    #[test]
    fn times_before_1970_have_nanoseconds_from_0() {
        for (ns, seconds, rest) in [(-1, -1, 999_999_999), (1_500_000_000, 1, 500_000_000)] {
            let time = timespec(ns);
            assert_eq!((time.tv_sec, time.tv_nsec), (seconds, rest));
        }
    }
}
