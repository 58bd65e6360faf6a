//! Series that become one, and series that are left out.

use std::collections::HashMap;

use crate::eval::column::{Column, is_missing, is_there};
use crate::eval::error::EvalError;
use crate::eval::label_set::LabelSet;
use crate::eval::meter::Meter;

/// Series that differed in a label that was dropped become one. Two values at one step are an error.
pub(crate) fn merged(meter: &Meter, columns: Vec<Column>) -> Result<Vec<Column>, EvalError> {
    let mut places: HashMap<LabelSet, usize> = HashMap::with_capacity(columns.len());
    let mut kept: Vec<Column> = Vec::with_capacity(columns.len());
    for column in columns {
        let place = *places.entry(column.labels.clone()).or_insert(kept.len());
        match kept.get_mut(place) {
            None => kept.push(column),
            Some(first) => {
                add(first, &column)?;
                meter.release(column.values.len());
            }
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

/// The series that have a value.
pub(crate) fn without_void(meter: &Meter, columns: Vec<Column>) -> Vec<Column> {
    let (kept, void): (Vec<Column>, Vec<Column>) =
        columns.into_iter().partition(|column| !column.is_void());
    meter.drop_all(void);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::column::missing;

    fn column(value: &str, values: &[f64]) -> Column {
        Column {
            labels: LabelSet::new(&[("a", value)]),
            values: values.to_vec(),
        }
    }

    #[test]
    fn series_of_one_set_are_joined_where_they_do_not_overlap() {
        let (no, meter) = (missing(), Meter::unlimited());
        let columns = vec![
            column("x", &[1.0, no, no]),
            column("y", &[5.0, no, 5.0]),
            column("x", &[no, 2.0, no]),
            column("z", &[no, no, no]),
        ];
        let kept = without_void(&meter, merged(&meter, columns.clone()).unwrap());
        assert_eq!(kept.len(), 2);
        assert_eq!(kept[0].values[..2], [1.0, 2.0]);
        assert!(is_missing(kept[0].values[2]));
        let mut twice = columns;
        twice.push(column("x", &[0.0, no, no]));
        assert!(merged(&meter, twice).is_err());
    }
}
