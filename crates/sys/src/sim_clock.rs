//! A clock that a test drives: it moves only when the test moves it.

use crate::clock::{Clock, Stamp};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The simulated twin of [`crate::clock::RealClock`].
#[derive(Debug)]
pub struct SimClock(Mutex<Stamp>);

impl SimClock {
    /// A clock that stands at `start`.
    pub fn new(start: Stamp) -> Self {
        SimClock(Mutex::new(start))
    }

    /// All three clocks go on by `ns`.
    pub fn advance_ns(&self, ns: u64) {
        let mut stamp = self.lock();
        stamp.real_ns = stamp.real_ns.saturating_add_unsigned(ns);
        stamp.mono_ns = stamp.mono_ns.saturating_add(ns);
        stamp.boot_ns = stamp.boot_ns.saturating_add(ns);
    }

    /// Somebody sets the wall clock: only it moves.
    pub fn step_wall_ns(&self, ns: i64) {
        let mut stamp = self.lock();
        stamp.real_ns = stamp.real_ns.saturating_add(ns);
    }

    /// The machine sleeps for `ns`: the monotonic clock stands still.
    pub fn suspend_ns(&self, ns: u64) {
        let mut stamp = self.lock();
        stamp.real_ns = stamp.real_ns.saturating_add_unsigned(ns);
        stamp.boot_ns = stamp.boot_ns.saturating_add(ns);
    }

    fn lock(&self) -> MutexGuard<'_, Stamp> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for SimClock {
    fn now(&self) -> Stamp {
        *self.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_motion_moves_its_own_clocks() {
        let clock = SimClock::new(Stamp::default());
        clock.advance_ns(10);
        clock.step_wall_ns(-3);
        clock.suspend_ns(100);
        let expected = Stamp {
            real_ns: 107,
            mono_ns: 10,
            boot_ns: 110,
        };
        assert_eq!(clock.now(), expected);
    }
}
