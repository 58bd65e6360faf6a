//! Slow reads: what is dear is read less often, each source for itself. A read whose thread had no CPU
//! is not slow, however long it took.

use kymo_sys::clock::Clock;

/// A read that took longer than allowed, without the time for which its thread had no CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowRead {
    /// Path under the root.
    pub path: String,
    /// How long it took.
    pub cost_ns: u64,
    /// How long it took when read again at once.
    pub again_ns: u64,
    /// It is read at each n-th turn from now on.
    pub stride: u32,
}

/// When a read is too dear.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// A read this slow is an event.
    pub slow_ns: u64,
    /// Time from turn to turn; 0: without pause, and nothing is read less often.
    pub interval_ns: u64,
    /// The longest time from read to read.
    pub longest_ns: u64,
    /// Whether slow sources are read less often at all.
    pub backoff: bool,
}

/// The slow reads of a sample, and what tells them from reads that waited for a CPU. Nothing is asked of
/// the scheduler before a read was slow by the clock.
#[derive(Default)]
pub struct SlowReads {
    /// Those that were slow.
    pub found: Vec<SlowRead>,
    /// What this thread had waited when that was looked at last.
    looked_ns: u64,
    /// Time waited since then that explains no read yet.
    unexplained_ns: u64,
}

impl SlowReads {
    /// A sample begins. Now and then (`look`) the waits of the samples before are forgotten.
    pub fn begin(&mut self, clock: &dyn Clock, look: bool) {
        self.unexplained_ns = 0;
        if look {
            self.looked_ns = clock.waited_ns();
        }
    }

    /// What a read took and takes when it is read `again`, without waits for a CPU. The waits of the first
    /// one are known only together with those since the last look, so it may have taken longer; the second is exact.
    pub fn judge(&mut self, clock: &dyn Clock, cost_ns: u64, again: impl FnOnce()) -> (u64, u64) {
        let waited_ns = clock.waited_ns();
        self.unexplained_ns += waited_ns.saturating_sub(self.looked_ns);
        let explained_ns = self.unexplained_ns.min(cost_ns);
        self.unexplained_ns -= explained_ns;
        let start_ns = clock.mono_ns();
        again();
        let again_ns = clock.mono_ns().saturating_sub(start_ns);
        self.looked_ns = clock.waited_ns();
        let waited_again_ns = self.looked_ns.saturating_sub(waited_ns);
        (
            cost_ns - explained_ns,
            again_ns.saturating_sub(waited_again_ns),
        )
    }
}

/// How often one source is read.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    stride: u32,
    wait: u32,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { stride: 1, wait: 0 }
    }
}

impl Backoff {
    /// Whether it is read at this turn.
    pub fn is_due(&mut self) -> bool {
        if self.wait > 0 {
            self.wait -= 1;
            return false;
        }
        self.wait = self.stride - 1;
        true
    }

    /// It was quick: twice as often, if it was read less.
    pub fn quick(&mut self) {
        self.stride = 1.max(self.stride / 2);
        self.wait = self.wait.min(self.stride - 1);
    }

    /// It was slow, so much at the least: half as often while that is over both the allowance and
    /// 1 % of the interval. The stride from now on.
    pub fn slow(&mut self, cost_ns: u64, allowance: &Allowance) -> u32 {
        let Allowance {
            slow_ns,
            interval_ns,
            longest_ns,
            backoff,
        } = *allowance;
        if backoff && interval_ns > 0 && cost_ns > slow_ns.max(interval_ns / 100) {
            let longest = (longest_ns / interval_ns).max(1);
            self.stride = (u64::from(self.stride) * 2).min(longest) as u32;
            self.wait = self.stride - 1;
        }
        self.stride
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A thread's time, and how much of it it waited for a CPU: both in ms.
    #[derive(Default)]
    struct Thread(std::sync::Mutex<(u64, u64)>);

    impl Thread {
        fn spends(&self, ms: u64, waiting_ms: u64) -> u64 {
            let mut thread = self.0.lock().expect("no panic");
            *thread = (thread.0 + ms, thread.1 + waiting_ms);
            ms * MS
        }
    }

    impl Clock for Thread {
        fn now(&self) -> kymo_sys::clock::Stamp {
            kymo_sys::clock::Stamp {
                mono_ns: self.0.lock().expect("no panic").0 * MS,
                ..Default::default()
            }
        }

        fn waited_ns(&self) -> u64 {
            self.0.lock().expect("no panic").1 * MS
        }
    }

    /// What a read took and waited, what that of the second one is, and what is said of both, in ms.
    #[test]
    fn waits_for_a_cpu_are_no_slow_reads() {
        for (reads, judged) in [
            // Slow in the kernel, whether it computes or sleeps there.
            (&[(15, 0, 15, 0)][..], &[(15, 15)][..]),
            (&[(15, 0, 0, 0)], &[(15, 0)]),
            // The thread waited, once or both times.
            (&[(15, 15, 0, 0)], &[(0, 0)]),
            (&[(15, 14, 12, 12)], &[(1, 0)]),
            // Both: slow, and waited.
            (&[(27, 12, 25, 10)], &[(15, 15)]),
            // Each wait explains one read.
            (&[(12, 12, 0, 0), (15, 0, 15, 0)], &[(0, 0), (15, 15)]),
            (&[(12, 12, 20, 20), (15, 0, 0, 0)], &[(0, 0), (15, 0)]),
        ] {
            let thread = Thread::default();
            thread.spends(1000, 900);
            let mut slow = SlowReads::default();
            slow.begin(&thread, true);
            let judge = |&(ms, waited, again_ms, again_waited): &(u64, u64, u64, u64)| {
                let cost_ns = thread.spends(ms, waited);
                let again = || assert_eq!(thread.spends(again_ms, again_waited), again_ms * MS);
                let (first, second) = slow.judge(&thread, cost_ns, again);
                (first / MS, second / MS)
            };
            let all: Vec<_> = reads.iter().map(judge).collect();
            assert_eq!(all, judged, "{reads:?}");
        }
    }

    /// What was waited in samples before may explain a first reading too well; never a second one.
    #[test]
    fn a_look_forgets_old_waits() {
        for (look, first_ms) in [(true, 15), (false, 3)] {
            let thread = Thread::default();
            let mut slow = SlowReads::default();
            slow.begin(&thread, true);
            thread.spends(1000, 12);
            slow.begin(&thread, look);
            let cost_ns = thread.spends(15, 0);
            let again = || assert_eq!(thread.spends(15, 0), 15 * MS);
            let (first, second) = slow.judge(&thread, cost_ns, again);
            assert_eq!((first / MS, second / MS), (first_ms, 15));
        }
    }

    #[test]
    fn strides_double_to_the_longest_and_come_back() {
        let allowance = Allowance {
            slow_ns: 10 * MS,
            interval_ns: 1000 * MS,
            longest_ns: 60_000 * MS,
            backoff: true,
        };
        let mut backoff = Backoff::default();
        let mut strides = Vec::new();
        for turn in 0..400 {
            if backoff.is_due() {
                strides.push(if turn < 300 {
                    backoff.slow(15 * MS, &allowance)
                } else {
                    backoff.quick();
                    backoff.stride
                });
            }
        }
        assert_eq!(strides[..7], [2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(strides.last(), Some(&1));
    }

    #[test]
    fn what_is_allowed_changes_nothing() {
        for (cost_ms, interval_ms, backoff) in [
            (15, 1000, false),
            (15, 0, true),
            (9, 1000, true),
            (15, 10_000, true),
        ] {
            let allowance = Allowance {
                slow_ns: 10 * MS,
                interval_ns: interval_ms * MS,
                longest_ns: 60_000 * MS,
                backoff,
            };
            assert_eq!(
                Backoff::default().slow(cost_ms * MS, &allowance),
                1,
                "{cost_ms} {interval_ms} {backoff}"
            );
        }
    }
}
