//! Works that are done at most so often.

use std::time::Duration;

use kymo_sys::clock::{Clock as _, RealClock};

/// A work that is not done more often than that; the first time at once.
pub(crate) struct Rhythm {
    every: Duration,
    /// Not before.
    from_ns: u64,
}

impl Rhythm {
    /// At once, and then not more often than that.
    pub(crate) fn of(every: Duration) -> Rhythm {
        Rhythm { every, from_ns: 0 }
    }

    /// The time until it is due.
    pub(crate) fn wait(&self) -> Duration {
        Duration::from_nanos(self.from_ns.saturating_sub(RealClock.mono_ns()))
    }

    /// True if it may be done now.
    pub(crate) fn is_due(&self) -> bool {
        RealClock.mono_ns() >= self.from_ns
    }

    /// Notes that it was done now.
    pub(crate) fn begin_again(&mut self) {
        let every_ns = u64::try_from(self.every.as_nanos()).unwrap_or(u64::MAX);
        self.from_ns = RealClock.mono_ns().saturating_add(every_ns);
    }
}
