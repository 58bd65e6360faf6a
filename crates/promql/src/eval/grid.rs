//! The moments at which an expression is evaluated.

use crate::ast::At;
use crate::duration::QueryTimes;

/// Equally spaced moments, one at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// The first, in milliseconds since 1970.
    pub(crate) from_ms: i64,
    /// Between two; above 0.
    pub(crate) step_ms: i64,
    /// How many.
    pub(crate) count: usize,
}

impl Grid {
    /// One moment.
    pub(crate) fn instant(t_ms: i64) -> Grid {
        Grid {
            from_ms: t_ms,
            step_ms: 1,
            count: 1,
        }
    }

    /// From the first to the last moment that is not after `thru_ms`; `None`: there is none, or there are too many.
    pub(crate) fn range(from_ms: i64, thru_ms: i64, step_ms: i64) -> Option<Grid> {
        let steps = thru_ms.checked_sub(from_ms)?.checked_div(step_ms)?;
        let count = usize::try_from(steps).ok()?.checked_add(1)?;
        (thru_ms >= from_ms && step_ms > 0).then_some(Grid {
            from_ms,
            step_ms,
            count,
        })
    }

    /// The first moment alone.
    pub(crate) fn first(self) -> Grid {
        Grid { count: 1, ..self }
    }

    /// The moment of a step.
    pub(crate) fn at(self, step: usize) -> i64 {
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        self.from_ms
            .saturating_add(self.step_ms.saturating_mul(step))
    }

    /// The last moment.
    pub(crate) fn thru_ms(self) -> i64 {
        self.at(self.count.saturating_sub(1))
    }

    /// The moments of a subquery that all windows of `length_ms` before these need: multiples of its step.
    pub(crate) fn of_subquery(self, length_ms: i64, step_ms: i64) -> Option<Grid> {
        let before_ms = self.from_ms.checked_sub(length_ms)?;
        let first = before_ms.checked_div_euclid(step_ms)?.checked_add(1)?;
        Grid::range(first.checked_mul(step_ms)?, self.thru_ms(), step_ms)
    }
}

/// The first and the last moment of the whole query, to which `@ start()` and `step()` refer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuerySpan {
    pub(crate) from_ms: i64,
    pub(crate) thru_ms: i64,
    pub(crate) times: QueryTimes,
}

impl QuerySpan {
    /// The moment that `@` names.
    pub(crate) fn moment(self, at: At) -> i64 {
        match at {
            At::Time(t_ms) => t_ms,
            At::Start => self.from_ms,
            At::End => self.thru_ms,
        }
    }
}

/// When the windows of a selector end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// The steps, or the one moment of `@`, each earlier by the offset.
    pub(crate) grid: Grid,
    /// True if one end serves all steps.
    pub(crate) is_fixed: bool,
}

impl Ends {
    /// Ends for a selector with `@` and an offset.
    pub(crate) fn new(grid: Grid, fixed_ms: Option<i64>, offset_ms: i64) -> Ends {
        let base = match fixed_ms {
            Some(t_ms) => Grid::instant(t_ms),
            None => grid,
        };
        Ends {
            grid: Grid {
                from_ms: base.from_ms.saturating_sub(offset_ms),
                ..base
            },
            is_fixed: fixed_ms.is_some(),
        }
    }

    /// The end for a step.
    pub(crate) fn at(self, step: usize) -> i64 {
        match self.is_fixed {
            true => self.grid.from_ms,
            false => self.grid.at(step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_at_its_last_step() {
        let grid = Grid::range(0, 99, 10).unwrap();
        assert_eq!((grid.count, grid.thru_ms()), (10, 90));
        assert_eq!(Grid::range(5, 5, 10).unwrap().count, 1);
        assert_eq!(Grid::range(5, 4, 10), None);
        assert_eq!(Grid::range(0, 4, 0), None);
        assert_eq!(Grid::range(i64::MIN, i64::MAX, 1), None);
    }

    #[test]
    fn subqueries_are_aligned_to_their_step() {
        for (from, length, step, first) in [
            (100, 50, 10, 60),
            (100, 51, 10, 50),
            (101, 50, 10, 60),
            (-30, 40, 60, -60),
            (0, 30, 60, 0),
        ] {
            let grid = Grid::instant(from).of_subquery(length, step).unwrap();
            assert_eq!(grid.from_ms, first, "{from} {length} {step}");
        }
        // No multiple lies in the window.
        assert_eq!(Grid::instant(59).of_subquery(10, 60), None);
    }
}
