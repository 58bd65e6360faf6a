//! Reads slow sources less often, each on its own. A read whose thread waited for a CPU
//! is not slow, however long it took, and one slow read does not make a file slow: the
//! host may have taken the CPU away, or the owner of a lock may have waited for one.

use kymo_sys::clock::Clock;

/// A read that took longer than allowed turn after turn, without the time in which its thread waited for a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowRead {
    /// Path under the root.
    pub path: String,
    /// Time of the read.
    pub cost_ns: u64,
    /// Time of a second read at once.
    pub again_ns: u64,
    /// From now on the sampler reads the file at each n-th turn.
    pub stride: u32,
}

/// Limits of a read's time.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// A read that takes longer is slow, and an event.
    pub slow_ns: u64,
    /// Time from turn to turn; 0 for no pause, and then no source is read less often.
    pub interval_ns: u64,
    /// The longest time from read to read.
    pub longest_ns: u64,
    /// False: slow sources are read as often as others.
    pub backoff: bool,
}

/// The slow reads of a sample, without reads whose thread waited for a CPU. The scheduler's account is read only after a
/// read that is slow by the clock.
#[derive(Default)]
pub struct SlowReads {
    /// The slow reads of this sample.
    pub found: Vec<SlowRead>,
    /// This thread's total wait for a CPU when it was last read.
    looked_ns: u64,
    /// Wait since then that has not been attributed to a read.
    unexplained_ns: u64,
    /// A read of the previous sample was slow by the clock.
    doubted: bool,
}

impl SlowReads {
    /// Begins a sample. With `look`, or after a slow read, waits of earlier samples are discarded.
    pub fn begin(&mut self, clock: &dyn Clock, look: bool) {
        self.unexplained_ns = 0;
        if std::mem::take(&mut self.doubted) || look {
            self.looked_ns = clock.waited_ns();
        }
    }

    /// Measures a slow read without its wait for a CPU, and a second read, by `again`, without its own. The wait of the
    /// first read includes other waits since the last look, so the read may have taken longer; the second time is exact.
    pub fn judge(&mut self, clock: &dyn Clock, cost_ns: u64, again: impl FnOnce()) -> Judged {
        self.doubted = true;
        let waited_ns = clock.waited_ns();
        self.unexplained_ns += waited_ns.saturating_sub(self.looked_ns);
        let explained_ns = self.unexplained_ns.min(cost_ns);
        self.unexplained_ns -= explained_ns;
        let start_ns = clock.mono_ns();
        again();
        let again_ns = clock.mono_ns().saturating_sub(start_ns);
        self.looked_ns = clock.waited_ns();
        let waited_again_ns = self.looked_ns.saturating_sub(waited_ns);
        Judged {
            cost_ns: cost_ns - explained_ns,
            again_ns: again_ns.saturating_sub(waited_again_ns),
        }
    }

    /// Adds a slow read whose new stride is `stride`.
    pub fn note(&mut self, path: String, judged: Judged, stride: u32) {
        self.found.push(SlowRead {
            path,
            cost_ns: judged.cost_ns,
            again_ns: judged.again_ns,
            stride,
        });
    }
}

/// Times of a read and of its repetition, in nanoseconds without waits for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The first time.
    pub cost_ns: u64,
    /// The second time.
    pub again_ns: u64,
}

impl Judged {
    /// The longer of the two times; a driver may cache its text, so that the second read is quick.
    fn longest_ns(self) -> u64 {
        self.cost_ns.max(self.again_ns)
    }
}

/// Number of slow turns in a row after which a file counts as slow.
pub const SLOW_TURNS: u8 = 3;

/// The stride of one source.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    stride: u32,
    wait: u32,
    slow_turns: u8,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff {
            stride: 1,
            wait: 0,
            slow_turns: 0,
        }
    }
}

impl Backoff {
    /// True if the source is read at this turn.
    pub fn is_due(&mut self) -> bool {
        if self.wait > 0 {
            self.wait -= 1;
            return false;
        }
        self.wait = self.stride - 1;
        true
    }

    /// Notes a quick read: the sampler then reads the source twice as often, up to each turn.
    pub fn quick(&mut self) {
        self.slow_turns = 0;
        self.stride = 1.max(self.stride / 2);
        self.wait = self.wait.min(self.stride - 1);
    }

    /// Notes a slow read. Once a file's reads are slow for [`SLOW_TURNS`] turns in a row, by more than 1 % of the interval,
    /// its stride doubles. Returns the new stride if the stride changed or the file became slow.
    pub fn doubt(&mut self, judged: Judged, allowance: &Allowance) -> Option<u32> {
        let Allowance {
            slow_ns,
            interval_ns,
            longest_ns,
            backoff,
        } = *allowance;
        let cost_ns = judged.longest_ns();
        if cost_ns <= slow_ns {
            self.quick();
            return None;
        }
        let (turns, stride) = (self.slow_turns, self.stride);
        self.slow_turns = SLOW_TURNS.min(turns + 1);
        if self.slow_turns < SLOW_TURNS {
            return None;
        }
        if backoff && interval_ns > 0 && cost_ns > interval_ns / 100 {
            let longest = (longest_ns / interval_ns).max(1);
            self.stride = (u64::from(self.stride) * 2).min(longest) as u32;
            self.wait = self.stride - 1;
        }
        (turns < SLOW_TURNS || self.stride != stride).then_some(self.stride)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A thread's total time and its wait for a CPU, both in ms.
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

    /// Time and wait of a read and of its repetition, and the judged times of both, in ms.
    #[test]
    fn waits_for_a_cpu_are_no_slow_reads() {
        for (reads, judged) in [
            // Slow in the kernel, either computing or sleeping there.
            (&[(15, 0, 15, 0)][..], &[(15, 15)][..]),
            (&[(15, 0, 0, 0)], &[(15, 0)]),
            // The thread waited in the first read, or in both.
            (&[(15, 15, 0, 0)], &[(0, 0)]),
            (&[(15, 14, 12, 12)], &[(1, 0)]),
            // Slow reads that waited as well.
            (&[(27, 12, 25, 10)], &[(15, 15)]),
            // Each wait explains one read only.
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
                let judged = slow.judge(&thread, cost_ns, again);
                (judged.cost_ns / MS, judged.again_ns / MS)
            };
            let all: Vec<_> = reads.iter().map(judge).collect();
            assert_eq!(all, judged, "{reads:?}");
        }
    }

    /// Waits of earlier samples may shorten the first time of a read, but
    /// never the second, nor a first time in the sample after a slow read.
    #[test]
    fn a_look_forgets_old_waits() {
        for (look, doubted, first_ms) in [(true, false, 15), (false, true, 15), (false, false, 3)] {
            let thread = Thread::default();
            let mut slow = SlowReads::default();
            slow.begin(&thread, true);
            if doubted {
                let cost_ns = thread.spends(12, 12);
                slow.judge(&thread, cost_ns, || ());
            }
            thread.spends(1000, 12);
            slow.begin(&thread, look);
            let cost_ns = thread.spends(15, 0);
            let again = || assert_eq!(thread.spends(15, 0), 15 * MS);
            let judged = slow.judge(&thread, cost_ns, again);
            let found = (judged.cost_ns / MS, judged.again_ns / MS);
            assert_eq!(found, (first_ms, 15), "{look} {doubted}");
        }
    }

    fn judged(cost_ms: u64, again_ms: u64) -> Judged {
        Judged {
            cost_ns: cost_ms * MS,
            again_ns: again_ms * MS,
        }
    }

    const ALLOWANCE: Allowance = Allowance {
        slow_ns: 10 * MS,
        interval_ns: 1000 * MS,
        longest_ns: 60_000 * MS,
        backoff: true,
    };

    /// Regression test: on a busy machine dozens of files counted as slow after one long read, "took 15.2 ms, again 0.0 ms".
    #[test]
    fn a_file_is_slow_that_is_so_turn_after_turn() {
        for (turns, news) in [
            // The kernel computes; or a driver queries its device and caches the result.
            (&[(15, 15), (15, 15), (15, 15)][..], &[2][..]),
            (&[(15, 0), (15, 0), (15, 0)], &[2]),
            (&[(15, 0), (15, 0), (9, 0), (15, 0), (15, 15)], &[]),
            (&[(15, 0), (0, 0), (15, 0), (0, 0), (15, 0), (0, 0)], &[]),
            (&[(15, 15), (15, 15), (15, 0), (15, 0)], &[2, 4]),
        ] {
            let mut backoff = Backoff::default();
            let doubts = turns.iter();
            let doubts = doubts.filter_map(|&(cost_ms, again_ms)| {
                backoff.doubt(judged(cost_ms, again_ms), &ALLOWANCE)
            });
            assert_eq!(doubts.collect::<Vec<_>>(), news, "{turns:?}");
        }
    }

    #[test]
    fn strides_double_to_the_longest_and_come_back() {
        let mut backoff = Backoff::default();
        let mut strides = Vec::new();
        for turn in 0..400 {
            if backoff.is_due() {
                if turn < 300 {
                    backoff.doubt(judged(15, 15), &ALLOWANCE);
                } else {
                    backoff.quick();
                }
                strides.push(backoff.stride);
            }
        }
        assert_eq!(strides[..9], [1, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(strides.last(), Some(&1));
    }

    #[test]
    fn what_is_allowed_changes_nothing() {
        for (cost_ms, interval_ms, backoff, news) in [
            (15, 1000, false, 1),
            (15, 0, true, 1),
            (9, 1000, true, 0),
            (15, 10_000, true, 1),
        ] {
            let allowance = Allowance {
                interval_ns: interval_ms * MS,
                backoff,
                ..ALLOWANCE
            };
            let mut read = Backoff::default();
            let doubts = (0..9).filter_map(|_| read.doubt(judged(cost_ms, cost_ms), &allowance));
            assert_eq!(
                doubts.count(),
                news,
                "{cost_ms} {interval_ms} {backoff}: said once"
            );
            assert_eq!(read.stride, 1, "{cost_ms} {interval_ms} {backoff}");
        }
    }
}
