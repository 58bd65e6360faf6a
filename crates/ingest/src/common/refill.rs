//! Budgets that are full at the start and fill again with time.

/// Size of a budget, and how fast it fills again.
#[derive(Debug)]
pub(crate) struct Refill {
    /// A full budget.
    pub(crate) at_once: f64,
    /// Growth a second while the budget is not full.
    pub(crate) a_second: f64,
}

/// The rest of a budget at a time in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeriesAllowance {
    pub(crate) count: f64,
    at_s: f64,
}

impl Refill {
    /// A full budget.
    pub(crate) fn full(&self, now_s: f64) -> SeriesAllowance {
        SeriesAllowance {
            count: self.at_once,
            at_s: now_s,
        }
    }

    /// Adds the growth since the last call. A clock that goes back adds nothing.
    pub(crate) fn fill(&self, left: &mut SeriesAllowance, now_s: f64) {
        let grown = (now_s - left.at_s).max(0.0) * self.a_second;
        *left = SeriesAllowance {
            count: (left.count + grown).min(self.at_once),
            at_s: now_s,
        };
    }

    /// Spends one, if there is one left.
    pub(crate) fn take(&self, left: &mut SeriesAllowance, now_s: f64) -> bool {
        self.fill(left, now_s);
        let may = left.count >= 1.0;
        left.count -= f64::from(u8::from(may));
        may
    }
}
