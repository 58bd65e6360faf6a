//! Values of a series at each step: a column. One that is missing is a NaN of its own.

use std::collections::HashMap;

use kymo_series::{is_stale, stale};

use crate::eval::error::EvalError;
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

/// Series that differed in what was dropped become one. Two values at one step are an error.
pub(crate) fn merged(columns: Vec<Column>) -> Result<Vec<Column>, EvalError> {
    let mut places: HashMap<LabelSet, usize> = HashMap::with_capacity(columns.len());
    let mut kept: Vec<Column> = Vec::with_capacity(columns.len());
    for column in columns {
        let place = *places.entry(column.labels.clone()).or_insert(kept.len());
        match kept.get_mut(place) {
            None => kept.push(column),
            Some(first) => add(first, &column)?,
        }
    }
    Ok(kept)
}

fn add(into: &mut Column, other: &Column) -> Result<(), EvalError> {
    for (old, &new) in into.values.iter_mut().zip(&other.values) {
        if is_missing(new) {
            continue;
        }
        if is_there(*old) {
            return Err(EvalError::Execution(
                "vector cannot contain metrics with the same labelset".into(),
            ));
        }
        *old = new;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(value: &str, values: &[f64]) -> Column {
        Column {
            labels: LabelSet::new(&[("a", value)]),
            values: values.to_vec(),
        }
    }

    #[test]
    fn series_of_one_set_are_joined_where_they_do_not_overlap() {
        let no = missing();
        let columns = vec![
            column("x", &[1.0, no, no]),
            column("y", &[5.0, no, 5.0]),
            column("x", &[no, 2.0, no]),
        ];
        let kept = merged(columns.clone()).unwrap();
        assert_eq!(kept.len(), 2);
        assert_eq!(kept[0].values[..2], [1.0, 2.0]);
        assert!(is_missing(kept[0].values[2]));
        let mut twice = columns;
        twice.push(column("x", &[0.0, no, no]));
        assert!(merged(twice).is_err());
    }

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
