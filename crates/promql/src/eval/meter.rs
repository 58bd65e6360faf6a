//! Time and memory that one question has used.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::eval::column::{Column, missing};
use crate::eval::error::EvalError;
use crate::eval::grid::Grid;

/// Values worked on between two looks at the clock.
const WORK_MAX: usize = 1 << 16;

/// How a question is ended before it has an answer.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Set by the one who asked, and looked at regularly.
    pub canceled: &'a AtomicBool,
    /// True once the deadline has passed.
    pub is_late: &'a dyn Fn() -> bool,
}

/// Counts the values that are in memory and those that were worked on.
pub(crate) struct Meter<'a> {
    watch: Watch<'a>,
    /// Values in memory at most.
    most: usize,
    held: Cell<usize>,
    /// Values worked on since the last look at the clock.
    work: Cell<usize>,
}

impl<'a> Meter<'a> {
    /// A meter for `most` values in memory.
    pub(crate) fn new(watch: Watch<'a>, most: usize) -> Meter<'a> {
        Meter {
            watch,
            most,
            held: Cell::new(0),
            work: Cell::new(0),
        }
    }

    /// Looks at the clock and at the flag of the one who asked.
    pub(crate) fn check(&self) -> Result<(), EvalError> {
        self.work.set(0);
        if self.watch.canceled.load(Ordering::Relaxed) {
            return Err(EvalError::Canceled);
        }
        match (self.watch.is_late)() {
            true => Err(EvalError::Timeout),
            false => Ok(()),
        }
    }

    /// Counts values that were worked on; looks at the clock from time to time.
    #[inline]
    pub(crate) fn worked(&self, values: usize) -> Result<(), EvalError> {
        let work = self.work.get().saturating_add(values);
        self.work.set(work);
        match work >= WORK_MAX {
            true => self.check(),
            false => Ok(()),
        }
    }

    /// Room for a value a step, all missing.
    pub(crate) fn values(&self, grid: Grid) -> Result<Vec<f64>, EvalError> {
        self.filled(grid, missing())
    }

    /// Room for a value a step, all the same.
    pub(crate) fn filled(&self, grid: Grid, value: f64) -> Result<Vec<f64>, EvalError> {
        self.hold(grid.count)?;
        self.worked(grid.count)?;
        Ok(vec![value; grid.count])
    }

    /// Takes memory for values.
    pub(crate) fn hold(&self, values: usize) -> Result<(), EvalError> {
        let held = self.held.get().saturating_add(values);
        if held > self.most {
            return Err(EvalError::TooManySamples);
        }
        self.held.set(held);
        Ok(())
    }

    /// Values in memory.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.held.get()
    }

    /// Values that may still be in memory.
    pub(crate) fn left(&self) -> usize {
        self.most.saturating_sub(self.held.get())
    }

    /// Gives memory for values back.
    pub(crate) fn release(&self, values: usize) {
        self.held.set(self.held.get().saturating_sub(values));
    }

    /// Drops columns.
    pub(crate) fn drop_all(&self, columns: Vec<Column>) {
        self.release(columns.iter().map(|column| column.values.len()).sum());
    }
}

#[cfg(test)]
impl Meter<'static> {
    /// A meter that ends nothing.
    pub(crate) fn unlimited() -> Meter<'static> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let watch = Watch {
            canceled: &NEVER,
            is_late: &|| false,
        };
        Meter::new(watch, usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_ends_at_its_limits() {
        let (canceled, late) = (AtomicBool::new(false), Cell::new(false));
        let is_late = || late.get();
        let watch = Watch {
            canceled: &canceled,
            is_late: &is_late,
        };
        let meter = Meter::new(watch, 100);
        let grid = Grid::range(0, 59, 1).unwrap();
        assert_eq!(meter.values(grid).map(|values| values.len()), Ok(60));
        assert_eq!(meter.values(grid), Err(EvalError::TooManySamples));
        meter.release(60);
        assert_eq!(meter.hold(100), Ok(()));
        late.set(true);
        assert_eq!(meter.worked(1), Ok(()));
        assert_eq!(meter.worked(WORK_MAX), Err(EvalError::Timeout));
        canceled.store(true, Ordering::Relaxed);
        assert_eq!(meter.check(), Err(EvalError::Canceled));
    }
}
