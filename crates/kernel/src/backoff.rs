//! Slow reads: what is dear is read less often, each source for itself.

/// A read that took longer than allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowRead {
    /// Path under the root.
    pub path: String,
    /// How long it took.
    pub cost_ns: u64,
    /// How long it took when read again at once: a sampler that was only kept from the CPU
    /// gets a small number here.
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
