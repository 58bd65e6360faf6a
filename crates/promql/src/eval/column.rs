//! Values of a series at each step: a column. One that is missing is a NaN of its own.

use kymo_series::{is_stale, stale};

use crate::eval::label_set::LabelSet;

/// A missing value. Selectors leave stale markers out and arithmetic makes none, so that these bits are free.
pub(crate) fn missing() -> f64 {
    stale()
}

/// True for a value that is missing.
pub(crate) fn is_missing(value: f64) -> bool {
    is_stale(value)
}

/// True for a value that is there.
pub(crate) fn is_there(value: f64) -> bool {
    !is_stale(value)
}

/// A series of an instant vector, at every step of a grid.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Labels of the series.
    pub(crate) labels: LabelSet,
    /// A value a step.
    pub(crate) values: Vec<f64>,
}

impl Column {
    /// True if it has no value at all.
    pub(crate) fn is_void(&self) -> bool {
        self.values.iter().copied().all(is_missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_makes_no_missing_value() {
        for value in [
            missing() + 1.0,
            -missing() * 1.0,
            f64::NAN,
            f64::INFINITY * 0.0,
        ] {
            assert!(is_there(value));
        }
    }
}
