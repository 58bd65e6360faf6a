//! Notices series whose values have changed their interval or kinds for good: for three values in a row.

use std::borrow::Borrow;
use std::collections::HashMap;

/// Values in a row that make a change.
const IN_A_ROW: u8 = 3;
/// Shortest time between two changes of a series.
const REST_MS: u64 = 3_600_000;
/// Time after which a failed change is tried again.
const RETRY_MS: u64 = 60_000;

/// Series whose values differ from their definition, or that changed lately. `T`: the form of the values.
#[derive(Debug, Default)]
pub(super) struct Streaks<T> {
    changes: HashMap<u32, Streak<T>>,
}

#[derive(Debug, Default)]
struct Streak<T> {
    /// Form of the newest values. `in_a_row`: their number.
    how: T,
    in_a_row: u8,
    /// Time of the first of these values, in seconds.
    since_s: u64,
    /// No change before this time, by a clock that does not go back.
    not_before_ms: u64,
}

impl<T: Default> Streaks<T> {
    /// Notes a value of a series whose definition is for the form `known`. `Some`: the form has changed, since the value with
    /// this time.
    pub(super) fn take<H>(
        &mut self,
        series: u32,
        known: &H,
        (how, stamp_s): (&H, u64),
        now_ms: u64,
    ) -> Option<u64>
    where
        T: Borrow<H>,
        H: PartialEq + ToOwned<Owned = T> + ?Sized,
    {
        if how == known {
            self.stay(series, now_ms);
            return None;
        }
        let change = self.changes.entry(series).or_default();
        if change.in_a_row == 0 || change.how.borrow() != how {
            change.how = how.to_owned();
            change.in_a_row = 0;
            change.since_s = stamp_s;
        }
        change.in_a_row = change.in_a_row.saturating_add(1);
        let is_due = change.in_a_row >= IN_A_ROW && now_ms >= change.not_before_ms;
        is_due.then_some(change.since_s)
    }

    /// Notes a value in the form of the definition.
    pub(super) fn stay(&mut self, series: u32, now_ms: u64) {
        if self.changes.is_empty() {
            return;
        }
        if let Some(change) = self.changes.get_mut(&series) {
            change.in_a_row = 0;
            if now_ms >= change.not_before_ms {
                self.changes.remove(&series);
            }
        }
    }

    /// Forgets a series that needs no change.
    pub(super) fn settle(&mut self, series: u32) {
        self.changes.remove(&series);
    }

    /// Notes that a change of the series has begun.
    pub(super) fn begin(&mut self, series: u32, now_ms: u64) {
        self.rest(series, now_ms + REST_MS);
    }

    /// Notes that the change failed.
    pub(super) fn fail(&mut self, series: u32, now_ms: u64) {
        self.rest(series, now_ms + RETRY_MS);
    }

    /// Allows no change of the series before this time.
    pub(super) fn rest(&mut self, series: u32, not_before_ms: u64) {
        let change = Streak {
            not_before_ms,
            ..Streak::default()
        };
        self.changes.insert(series, change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_wire::collectd::Cdtime;

    const HOUR_MS: u64 = 3_600_000;

    /// Changes of series 7: index of the value, new interval, and time of the first value with it. Each change begins at once.
    fn changes(first: u64, seconds: &[(u64, u64)]) -> Vec<(usize, u64, u64)> {
        let (mut intervals, mut known) = (Streaks::default(), Cdtime::from_seconds(first));
        let mut found = Vec::new();
        for (at, &(interval_s, now_s)) in seconds.iter().enumerate() {
            let interval = Cdtime::from_seconds(interval_s);
            let now_ms = now_s * 1000;
            if let Some(since) = intervals.take(7, &known, (&interval, now_s), now_ms) {
                intervals.begin(7, now_ms);
                known = interval;
                found.push((at, interval_s, since));
            }
        }
        found
    }

    fn each(intervals: &[u64]) -> Vec<(u64, u64)> {
        let mut now_s = 0;
        let value = |&interval: &u64| {
            now_s += interval;
            (interval, now_s)
        };
        intervals.iter().map(value).collect()
    }

    #[test]
    fn three_in_a_row_are_a_change() {
        for (values, expected) in [
            (&[10, 10, 60, 60, 60, 60][..], &[(4, 60, 80)][..]),
            (&[10, 60, 60, 10, 60, 60, 10, 10], &[]),
            (&[10, 60, 10, 60, 10, 60, 10, 60, 10, 60], &[]),
            (&[60, 30, 60, 30, 60, 30, 20, 30, 60], &[]),
            (&[60, 60, 30, 30, 30, 10], &[(4, 30, 150)]),
            (&[10, 20, 20], &[]),
        ] {
            assert_eq!(changes(10, &each(values)), expected, "{values:?}");
        }
        // The interval before the change is unknown.
        let first = changes(0, &each(&[10, 10, 10, 10]));
        assert_eq!(first, [(2, 10, 10)]);
    }

    #[test]
    fn one_an_hour() {
        let hour_s = HOUR_MS / 1000;
        let mut values = each(&[60, 60, 60, 10, 10, 10, 10]);
        assert_eq!(changes(10, &values), [(2, 60, 60)]);
        // Values that came during the rest count.
        values.push((10, 180 + hour_s));
        assert_eq!(changes(10, &values), [(2, 60, 60), (7, 10, 190)]);
        // A return to the old interval within the hour is no change.
        values[7] = (60, 180 + hour_s);
        assert_eq!(changes(10, &values), [(2, 60, 60)]);
    }

    #[test]
    fn what_is_not_needed_is_forgotten() {
        let mut intervals = Streaks::default();
        let [ten, other] = [10, 60].map(Cdtime::from_seconds);
        assert_eq!(intervals.take(1, &ten, (&other, 60), 0), None);
        intervals.take(1, &ten, (&ten, 70), 0);
        assert!(intervals.changes.is_empty());
        intervals.begin(1, 0);
        intervals.take(1, &other, (&other, 70), HOUR_MS - 1);
        assert_eq!(intervals.changes.len(), 1);
        intervals.take(1, &other, (&other, 70), HOUR_MS);
        assert!(intervals.changes.is_empty());
        // A failed change is tried again after a minute.
        intervals.fail(1, 0);
        for (now_ms, expected) in [(1, None), (2, None), (59_999, None), (60_000, Some(9))] {
            let taken = intervals.take(1, &ten, (&other, 9), now_ms);
            assert_eq!(taken, expected, "{now_ms}");
        }
        intervals.settle(1);
        assert!(intervals.changes.is_empty());
    }
}
