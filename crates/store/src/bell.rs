//! Bells: idle threads of the store sleep until another thread makes
//! work for them and rings. All calls are made under the store's lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::time::Duration;

/// A bell, which all its clones share.
#[derive(Clone, Default)]
pub(crate) struct Bell(Arc<Hearers>);

#[derive(Default)]
struct Hearers {
    condvar: Condvar,
    /// True if a thread sleeps; otherwise ringing needs no system call.
    is_awaited: AtomicBool,
}

impl Bell {
    /// Wakes all threads that sleep.
    pub(crate) fn ring(&self) {
        if self.0.is_awaited.load(Ordering::Relaxed) {
            self.0.is_awaited.store(false, Ordering::Relaxed);
            self.0.condvar.notify_all();
        }
    }

    /// Releases the lock and sleeps until the bell rings or the time is over; the second value is true for the latter.
    pub(crate) fn wait<'a, T>(
        &self,
        locked: MutexGuard<'a, T>,
        at_most: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        self.0.is_awaited.store(true, Ordering::Relaxed);
        let waited = self.0.condvar.wait_timeout(locked, at_most);
        let (locked, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (locked, waited.timed_out())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_bell_wakes_each_thread_that_sleeps() {
        let (bell, work) = (Bell::default(), Mutex::new(0));
        let locked = || work.lock().expect("the lock");
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut state = locked();
                    *state += 1;
                    while *state < 4 {
                        state = bell.wait(state, Duration::from_secs(600)).0;
                    }
                });
            }
            while *locked() < 3 {
                std::thread::yield_now();
            }
            *locked() = 4;
            let _held = locked();
            bell.ring();
        });
    }
}
