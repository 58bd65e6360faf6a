//! Budgets for new series and for names that are looked up, one of each for every sender. Senders show a token, so each
//! has as much as a user of collectd's who signs.

use std::collections::HashMap;

use crate::common::refill::{Refill, SeriesAllowance};

/// New series at once, and then a minute: a Prometheus that begins to send brings all its series at once.
const NEW: Refill = Refill {
    at_once: 50_000.0,
    a_second: 10_000.0 / 60.0,
};
/// Names at once, and then a second, that are looked up in the store: a flood of names hardly occupies its lock.
const LOOKS: Refill = Refill {
    at_once: 200_000.0,
    a_second: 20_000.0,
};
/// Senders with budgets of their own; all others share one.
const SENDERS_MAX: usize = 4096;

/// The rests of a sender's budgets.
#[derive(Debug)]
struct Rest {
    new: SeriesAllowance,
    looks: SeriesAllowance,
}

/// All budgets.
#[derive(Debug, Default)]
pub(super) struct PushBudgets {
    senders: HashMap<Box<str>, Rest>,
}

impl PushBudgets {
    fn rest(&mut self, sender: &str, now_s: f64) -> &mut Rest {
        let is_known = self.senders.contains_key(sender);
        let payer = match is_known || self.senders.len() < SENDERS_MAX {
            true => sender,
            false => "",
        };
        self.senders.entry(payer.into()).or_insert_with(|| Rest {
            new: NEW.full(now_s),
            looks: LOOKS.full(now_s),
        })
    }

    /// Pays for a look into the store. False: the budget has none left.
    pub(super) fn may_look(&mut self, sender: &str, now_s: f64) -> bool {
        LOOKS.take(&mut self.rest(sender, now_s).looks, now_s)
    }

    /// Pays for a new series. False: the budget has none left.
    pub(super) fn may_begin(&mut self, sender: &str, now_s: f64) -> bool {
        NEW.take(&mut self.rest(sender, now_s).new, now_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_uses_up_its_own_budget_alone() {
        let mut budgets = PushBudgets::default();
        let begun = |budgets: &mut PushBudgets, sender: &str, now_s: f64| {
            (0..60_000)
                .filter(|_| budgets.may_begin(sender, now_s))
                .count()
        };
        assert_eq!(begun(&mut budgets, "a", 0.0), 50_000);
        assert_eq!(begun(&mut budgets, "a", 60.0), 10_000);
        assert_eq!(begun(&mut budgets, "b", 60.0), 50_000);
        for number in 0..2 * SENDERS_MAX {
            budgets.may_look(&number.to_string(), 60.0);
        }
        assert_eq!(budgets.senders.len(), SENDERS_MAX + 1);
    }
}
