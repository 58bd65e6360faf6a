//! Limits of the series that a listener holds and begins. Its senders are unknown and can make up names without effort, so
//! these limits bound the cost of a flood of names. A sender waits when its use reaches the rest of a limit: one sender takes
//! half of it at most, the next one a quarter.

use super::refill::{Refill, SeriesAllowance};
use super::sender_lots::{ByLot, SenderLot};

/// Series that a listener holds at a time: some 60 MB of memory. One sender holds half of them, ten times the series of one
/// machine's programs.
pub(crate) const HELD_MAX: usize = 200_000;
/// Reason for refusing a sample whose sender holds its share of [`HELD_MAX`] series.
pub(crate) const SHARE_IS_FULL: &str =
    "a sample of a new name, as its sender has its share of 200000 series";
/// New series at once, and then a minute: a service that starts brings some thousands.
const MINUTE: Refill = Refill {
    at_once: 20_000.0,
    a_second: 20_000.0 / 60.0,
};
/// New series at once, and then a day: the store keeps each for two years.
const DAY: Refill = Refill {
    at_once: 200_000.0,
    a_second: 200_000.0 / 86_400.0,
};
/// Names at once, and then a second, that are looked up in the store. After a start the listener finds all its series there
/// again, and a flood of names hardly occupies the store's lock.
const LOOKS: Refill = Refill {
    at_once: 200_000.0,
    a_second: 20_000.0,
};

/// The rests of a listener's limits.
#[derive(Debug)]
pub(crate) struct SeriesLimit {
    minute: SharedBudget,
    day: SharedBudget,
    looks: SharedBudget,
    held: usize,
    held_by: ByLot<usize>,
}

impl Default for SeriesLimit {
    fn default() -> Self {
        SeriesLimit {
            minute: SharedBudget::of(&MINUTE),
            day: SharedBudget::of(&DAY),
            looks: SharedBudget::of(&LOOKS),
            held: 0,
            held_by: ByLot::default(),
        }
    }
}

impl SeriesLimit {
    /// Number of further series that the sender's lot may hold.
    pub(crate) fn room(&mut self, sender: SenderLot) -> usize {
        let own = self.held_by.of(sender).map_or(0, |held| *held);
        HELD_MAX.saturating_sub(self.held).saturating_sub(own)
    }

    /// Counts series that are held from now on.
    pub(crate) fn hold(&mut self, sender: SenderLot, count: usize) {
        self.held += count;
        if let Some(held) = self.held_by.of(sender) {
            *held += count;
        }
    }

    /// Counts series that are no longer held.
    pub(crate) fn release(&mut self, sender: SenderLot, count: usize) {
        self.held = self.held.saturating_sub(count);
        if let Some(held) = self.held_by.of(sender) {
            *held = held.saturating_sub(count);
        }
    }

    /// Pays for a look into the store. False: the budget has none left.
    pub(crate) fn may_look(&mut self, sender: SenderLot, now_s: f64) -> bool {
        let may = self.looks.has(sender, 1.0, now_s);
        if may {
            self.looks.spend(sender, 1.0);
        }
        may
    }

    /// Pays for `count` new series, all or none. False: a budget has too few left.
    pub(crate) fn may_begin(&mut self, sender: SenderLot, count: u32, now_s: f64) -> bool {
        let count = f64::from(count);
        let may = self.minute.has(sender, count, now_s) && self.day.has(sender, count, now_s);
        if may {
            self.minute.spend(sender, count);
            self.day.spend(sender, count);
        }
        may
    }
}

/// A budget for all senders, and the use of each lot.
#[derive(Debug)]
struct SharedBudget {
    refill: &'static Refill,
    all: Option<SeriesAllowance>,
    lots: ByLot<Option<SeriesAllowance>>,
}

impl SharedBudget {
    fn of(refill: &'static Refill) -> SharedBudget {
        SharedBudget {
            refill,
            all: None,
            lots: ByLot::default(),
        }
    }

    /// Returns true if the sender may spend `count`.
    fn has(&mut self, sender: SenderLot, count: f64, now_s: f64) -> bool {
        let refill = self.refill;
        let left = |allowance: &mut Option<SeriesAllowance>| {
            let allowance = allowance.get_or_insert_with(|| refill.full(now_s));
            refill.fill(allowance, now_s);
            allowance.count
        };
        let all = left(&mut self.all);
        let own = self.lots.of(sender).map_or(0.0, left);
        refill.at_once - own + count <= all
    }

    fn spend(&mut self, sender: SenderLot, count: f64) {
        let lot = self.lots.of(sender).and_then(Option::as_mut);
        for allowance in self.all.iter_mut().chain(lot) {
            allowance.count -= count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_series(limit: &mut SeriesLimit, sender: u8, now_s: f64) -> usize {
        let may = |_: &usize| limit.may_begin(SenderLot(sender), 1, now_s);
        (0..60_000).filter(may).count()
    }

    #[test]
    fn series_begin_as_long_as_both_budgets_last() {
        let mut limit = SeriesLimit::default();
        let mut begun_at = |now_s: f64| new_series(&mut limit, 1, now_s);
        assert_eq!(
            [begun_at(0.0), begun_at(0.0), begun_at(30.0)],
            [10_000, 0, 10_000]
        );
        // In the long run one sender alone is limited by the minute and the day.
        let all: usize = (1..=9)
            .map(|minute| begun_at(30.0 + 60.0 * f64::from(minute)))
            .sum();
        assert!((80_000..83_000).contains(&all), "{all}");
        assert!(!limit.may_begin(SenderLot(1), 3000, 570.0));
    }

    #[test]
    fn a_flood_leaves_series_to_others() {
        let mut limit = SeriesLimit::default();
        let shares: Vec<usize> = (0..4)
            .map(|sender| new_series(&mut limit, sender, 0.0))
            .collect();
        assert_eq!(shares, [10_000, 5_000, 2_500, 1_250]);
        // Many senders together never take all.
        let all: usize = (0..=255)
            .map(|sender| new_series(&mut limit, sender, 0.0))
            .sum();
        assert!(all <= 1_250, "{all}");
        let looks = |limit: &mut SeriesLimit, sender| {
            let may = |_: &u32| limit.may_look(SenderLot(sender), 0.0);
            (0..300_000).filter(may).count()
        };
        assert_eq!(
            [looks(&mut limit, 1), looks(&mut limit, 2)],
            [100_000, 50_000]
        );
        assert_eq!(limit.room(SenderLot(1)), HELD_MAX);
        limit.hold(SenderLot(1), HELD_MAX / 2);
        assert_eq!(
            [limit.room(SenderLot(1)), limit.room(SenderLot(2))],
            [0, HELD_MAX / 2]
        );
        limit.release(SenderLot(1), 10);
        assert_eq!(limit.room(SenderLot(1)), 20);
    }
}
