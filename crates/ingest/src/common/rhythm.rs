//! Tasks with a limited frequency.

use std::time::Duration;

use kymo_sys::clock::{Clock as _, RealClock};

/// A task with a shortest time between two runs; the first run is due at
/// once.
pub(crate) struct Rhythm {
    every: Duration,
    /// Time of the next run.
    from_ns: u64,
}

impl Rhythm {
    /// A rhythm whose first run is due at once.
    pub(crate) fn of(every: Duration) -> Rhythm {
        Rhythm { every, from_ns: 0 }
    }

    /// Time until the next run is due.
    pub(crate) fn wait(&self) -> Duration {
        Duration::from_nanos(self.from_ns.saturating_sub(RealClock.mono_ns()))
    }

    /// True if a run is due.
    pub(crate) fn is_due(&self) -> bool {
        RealClock.mono_ns() >= self.from_ns
    }

    /// Notes that the work was done now.
    pub(crate) fn begin_again(&mut self) {
        let every_ns = u64::try_from(self.every.as_nanos()).unwrap_or(u64::MAX);
        self.from_ns = RealClock.mono_ns().saturating_add(every_ns);
    }
}
