//! Limits of the series that a listener holds and begins. Its senders are unknown and can make up names without effort, so
//! these limits bound the cost of a flood of names.

use super::refill::{Refill, SeriesAllowance};

/// Series that a listener holds at a time: some 30 MB of memory, and ten times what one machine's programs send.
pub(crate) const HELD_MAX: usize = 100_000;
/// New series at once, and then a minute: a service that starts brings some thousands.
const MINUTE: Refill = Refill {
    at_once: 10_000.0,
    a_second: 10_000.0 / 60.0,
};
/// New series at once, and then a day: the store keeps each for two years.
const DAY: Refill = Refill {
    at_once: 100_000.0,
    a_second: 100_000.0 / 86_400.0,
};
/// Names at once, and then a second, that are looked up in the store. After a start the listener finds all its series there
/// again, and a flood of names hardly occupies the store's lock.
const LOOKS: Refill = Refill {
    at_once: 100_000.0,
    a_second: 10_000.0,
};

/// The rests of a listener's budgets.
#[derive(Debug)]
pub(crate) struct SeriesLimit {
    minute: SeriesAllowance,
    day: SeriesAllowance,
    looks: SeriesAllowance,
}

impl SeriesLimit {
    /// Full budgets.
    pub(crate) fn new(now_s: f64) -> SeriesLimit {
        SeriesLimit {
            minute: MINUTE.full(now_s),
            day: DAY.full(now_s),
            looks: LOOKS.full(now_s),
        }
    }

    /// Pays for a look into the store. False: the budget has none left.
    pub(crate) fn may_look(&mut self, now_s: f64) -> bool {
        LOOKS.take(&mut self.looks, now_s)
    }

    /// Pays for `count` new series, all or none. False: a budget has too few left.
    pub(crate) fn may_begin(&mut self, count: u32, now_s: f64) -> bool {
        MINUTE.fill(&mut self.minute, now_s);
        DAY.fill(&mut self.day, now_s);
        let count = f64::from(count);
        let may = self.minute.count >= count && self.day.count >= count;
        if may {
            self.minute.count -= count;
            self.day.count -= count;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_begin_as_long_as_both_budgets_last() {
        let mut limit = SeriesLimit::new(0.0);
        let mut begun = |now_s: f64| (0..30_000).filter(|_| limit.may_begin(1, now_s)).count();
        assert_eq!([begun(0.0), begun(0.0), begun(30.0)], [10_000, 0, 5_000]);
        let all: usize = (1..=9)
            .map(|minute| begun(30.0 + 60.0 * f64::from(minute)))
            .sum();
        // A day's budget grows by one in a second.
        assert_eq!(all, 85_000 + 659);
        assert!(!limit.may_begin(5, 570.0));
    }
}
