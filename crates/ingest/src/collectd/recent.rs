//! Rate, least value and usual gap of the last one or two minutes, in a few numbers.

/// Buckets of a [`Rate`]: the full ones, and the current one.
const BUCKETS: usize = 7;
const BUCKET_S: u64 = 10;
const WHOLE: u64 = 6;
const WINDOW_S: u64 = 60;
/// Shortest gap that is noted: datagrams of one burst come closer together.
const GAP_MIN_S: f64 = 1.0;

/// Mean rate a second over the last minute. Seconds are of a clock that does not go back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    first: u64,
    last: u64,
    counts: [u32; BUCKETS],
}

impl Rate {
    /// A rate that begins in this second.
    pub(super) fn begin(seconds: u64) -> Rate {
        let bucket = seconds / BUCKET_S;
        Rate {
            first: bucket,
            last: bucket,
            counts: [0; BUCKETS],
        }
    }

    pub(super) fn add(&mut self, seconds: u64, more: u64) {
        let bucket = seconds / BUCKET_S;
        for passed in (self.last + 1..=bucket).take(BUCKETS) {
            *self.at(passed) = 0;
        }
        self.last = self.last.max(bucket);
        let count = self.at(bucket);
        *count = count.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
    }

    /// The rate over full buckets; NaN: there is no full bucket yet.
    pub(super) fn get(&self, seconds: u64) -> f64 {
        let now = seconds / BUCKET_S;
        let from = (self.first + 1).max(now.saturating_sub(WHOLE));
        if from >= now {
            return f64::NAN;
        }
        let known = from..now.min(self.last + 1);
        let sum: u64 = known
            .map(|bucket| u64::from(*self.clone().at(bucket)))
            .sum();
        sum as f64 / ((now - from) * BUCKET_S) as f64
    }

    fn at(&mut self, bucket: u64) -> &mut u32 {
        let place = bucket % (WHOLE + 1);
        &mut self.counts[usize::try_from(place).unwrap_or(0)]
    }
}

/// The least value of this minute and the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    window: u64,
    now: f64,
    before: f64,
}

impl Default for Least {
    fn default() -> Least {
        Least {
            window: 0,
            now: f64::NAN,
            before: f64::NAN,
        }
    }
}

impl Least {
    pub(super) fn note(&mut self, seconds: u64, value: f64) {
        let window = seconds / WINDOW_S;
        if window != self.window {
            let follows = window == self.window + 1;
            self.before = if follows { self.now } else { f64::NAN };
            (self.window, self.now) = (window, f64::NAN);
        }
        // An unknown value (NaN) is never the least.
        self.now = self.now.min(value);
    }

    /// The least value; NaN: there is none.
    pub(super) fn get(&self) -> f64 {
        self.now.min(self.before)
    }
}

/// Usual time between two bursts of datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap(f64);

impl Default for Gap {
    fn default() -> Gap {
        Gap(f64::NAN)
    }
}

impl Gap {
    /// Notes a gap. One pause makes the usual gap at most a quarter longer.
    pub(super) fn note(&mut self, seconds: f64) {
        if seconds < GAP_MIN_S {
            return;
        }
        self.0 = match self.0.is_nan() {
            true => seconds,
            false => self.0 + (seconds.min(3.0 * self.0) - self.0) / 8.0,
        };
    }

    /// Usual gap in seconds; NaN: unknown.
    pub(super) fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_whole_minute() {
        let mut rate = Rate::begin(1003);
        rate.add(1003, 70);
        assert!(rate.get(1003).is_nan() && rate.get(1019).is_nan());
        for second in (1013..1100).step_by(10) {
            rate.add(second, 70);
            // Neither the current bucket nor the incomplete first one counts.
            assert_eq!(rate.get(second + 7), 7.0, "{second}");
        }
        // No more values come.
        assert_eq!(rate.get(1120), 7.0 * 4.0 / 6.0);
        assert_eq!(rate.get(1159), 7.0 / 6.0);
        assert_eq!(rate.get(1160), 0.0);
        assert_eq!(rate.get(99_999), 0.0);
        rate.add(5000, 60);
        assert_eq!(rate.get(5005), 0.0);
        assert_eq!(rate.get(5010), 1.0);
    }

    #[test]
    fn the_least_of_two_minutes() {
        let mut least = Least::default();
        assert!(least.get().is_nan());
        for (second, value, want) in [
            (60, 5.0, 5.0),
            (61, 9.0, 5.0),
            (119, 6.0, 5.0),
            (120, 8.0, 5.0),
            (180, 7.0, 7.0),
            (600, -3600.0, -3600.0),
            (900, 1.0, 1.0),
        ] {
            least.note(second, value);
            assert_eq!(least.get(), want, "at {second}");
        }
    }

    #[test]
    fn one_pause_does_not_change_the_rule() {
        let mut gap = Gap::default();
        for _ in 0..5 {
            gap.note(0.01);
        }
        assert!(gap.get().is_nan());
        for _ in 0..5 {
            gap.note(10.0);
            gap.note(0.01);
        }
        assert_eq!(gap.get(), 10.0);
        gap.note(86_400.0);
        assert_eq!(gap.get(), 12.5);
    }
}
