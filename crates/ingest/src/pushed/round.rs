//! A request while it is taken: bounds of its stamps, and counts of its samples.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use kymo_store::Store;
use kymo_sys::clock::Stamp;

/// A sample whose time is further ahead is refused, as Prometheus does: it would make all true samples late until
/// that time.
const AHEAD_MAX_MS: i64 = 600_000;
/// Reasons that an answer lists.
const REASONS_MAX: usize = 8;

/// One request.
pub(super) struct PushRound<'a> {
    pub(super) store: &'a Store,
    pub(super) sender: &'a str,
    pub(super) now: Stamp,
    /// Times that samples may have, in milliseconds since 1970.
    times_ms: RangeInclusive<i64>,
    /// True: descriptions of known series are compared with the kept ones.
    pub(super) describes: bool,
    /// Samples in the store.
    pub(super) stored: u64,
    /// Series that began.
    pub(super) begun: u64,
    /// Counts of samples, points and series that were refused.
    pub(super) refused: Vec<(&'static str, u64)>,
    /// The reason why nothing can be written now; the sender has to try again.
    pub(super) failed: Option<String>,
}

impl<'a> PushRound<'a> {
    /// A request that arrives now.
    pub(super) fn begin(store: &'a Store, sender: &'a str, now: Stamp) -> PushRound<'a> {
        let now_ms = now.real_ns / 1_000_000;
        let kept_ms = i64::from(store.samples_kept_s()).saturating_mul(1000);
        PushRound {
            store,
            sender,
            now,
            times_ms: now_ms.saturating_sub(kept_ms)..=now_ms.saturating_add(AHEAD_MAX_MS),
            describes: false,
            stored: 0,
            begun: 0,
            refused: Vec::new(),
            failed: None,
        }
    }

    /// The current time in seconds, for budgets.
    pub(super) fn now_s(&self) -> f64 {
        std::time::Duration::from_nanos(self.now.mono_ns).as_secs_f64()
    }

    /// True if a sample of this time can be stored; otherwise the sample is counted as refused.
    pub(super) fn admits(&mut self, t_ms: i64) -> bool {
        if self.times_ms.contains(&t_ms) {
            return true;
        }
        let why = match t_ms > *self.times_ms.end() {
            true => "a sample of more than 10 minutes ahead",
            false => "a sample that is older than samples are kept",
        };
        self.refuse(why, 1);
        false
    }

    /// Counts samples that are refused.
    pub(super) fn refuse(&mut self, why: &'static str, count: u64) {
        if count == 0 {
            return;
        }
        let mut known = self.refused.iter_mut();
        match known.find(|(known, _)| *known == why) {
            Some((_, all)) => *all += count,
            None => self.refused.push((why, count)),
        }
    }

    /// Number of refused samples.
    pub(super) fn refused_count(&self) -> u64 {
        self.refused.iter().map(|(_, count)| count).sum()
    }

    /// The counts of refused samples in words; empty: there are none.
    pub(super) fn words(&self) -> String {
        let mut words = String::new();
        for (why, count) in self.refused.iter().take(REASONS_MAX) {
            let mark = if words.is_empty() { "" } else { "; " };
            // Writing to a string cannot fail.
            let _ = write!(words, "{mark}{count} x {why}");
        }
        words
    }
}
