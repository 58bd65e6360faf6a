//! Set operators: `and`, `or`, `unless`.

use std::collections::HashMap;

use crate::ast::VectorMatching;
use crate::eval::column::{Column, is_there, missing};
use crate::eval::error::EvalError;
use crate::eval::grid::Grid;
use crate::eval::label_set::LabelSet;
use crate::eval::matching::signature;
use crate::eval::merge::{merged, without_void};
use crate::eval::meter::Meter;

/// Which series a set operator keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetOp {
    And,
    Or,
    Unless,
}

/// Bytes of flags that take the memory of a value.
const FLAGS_PER_VALUE: usize = 8;

/// Steps at which any series of a signature has a value.
type Presence = HashMap<LabelSet, Vec<bool>>;

/// The series that an operator keeps of two vectors.
pub(crate) fn combined(
    meter: &Meter,
    grid: Grid,
    op: SetOp,
    matching: &VectorMatching,
    mut left: Vec<Column>,
    mut right: Vec<Column>,
) -> Result<Vec<Column>, EvalError> {
    let (filter, filtered) = match op {
        SetOp::And | SetOp::Unless => (&right, &mut left),
        SetOp::Or => (&left, &mut right),
    };
    let present = presence(meter, grid, matching, filter)?;
    for column in filtered.iter_mut() {
        meter.worked(grid.count)?;
        let present = present.get(&signature(&column.labels, matching));
        match (op, present) {
            (SetOp::And, Some(present)) => keep(column, present, true),
            (SetOp::Or | SetOp::Unless, Some(present)) => keep(column, present, false),
            (SetOp::And, None) => column.values.fill(missing()),
            (SetOp::Or | SetOp::Unless, None) => {}
        }
    }
    meter.release((grid.count / FLAGS_PER_VALUE).saturating_mul(present.len()));
    let mut kept = left;
    match op {
        SetOp::And | SetOp::Unless => meter.drop_all(right),
        SetOp::Or => kept.append(&mut right),
    }
    let kept = without_void(meter, kept);
    merged(meter, kept)
}

fn presence(
    meter: &Meter,
    grid: Grid,
    matching: &VectorMatching,
    columns: &[Column],
) -> Result<Presence, EvalError> {
    let mut presence = Presence::new();
    for column in columns {
        meter.worked(grid.count)?;
        let signature = signature(&column.labels, matching);
        if !presence.contains_key(&signature) {
            meter.hold(grid.count / FLAGS_PER_VALUE)?;
        }
        let flags = presence.entry(signature);
        let flags = flags.or_insert_with(|| vec![false; grid.count]);
        for (flag, &value) in flags.iter_mut().zip(&column.values) {
            *flag |= is_there(value);
        }
    }
    Ok(presence)
}

fn keep(column: &mut Column, present: &[bool], kept: bool) {
    for (value, &is_present) in column.values.iter_mut().zip(present) {
        if is_present != kept {
            *value = missing();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::Cardinality;

    #[test]
    fn series_are_kept_step_by_step() {
        let no = missing();
        let column = |name: &str, a: &str, values: [f64; 2]| Column {
            labels: LabelSet::new(&[("__name__", name), ("a", a)]),
            values: values.to_vec(),
        };
        let left = || vec![column("x", "1", [1.0, 2.0]), column("x", "2", [3.0, 4.0])];
        let right = || vec![column("y", "1", [no, 8.0]), column("y", "3", [9.0, no])];
        let matching = VectorMatching {
            cardinality: Cardinality::ManyToMany,
            is_on: false,
            labels: Vec::new(),
            include: Vec::new(),
        };
        for (op, expected) in [
            (SetOp::And, &[("x1", [no, 2.0])][..]),
            (SetOp::Unless, &[("x1", [1.0, no]), ("x2", [3.0, 4.0])]),
            (
                SetOp::Or,
                &[("x1", [1.0, 2.0]), ("x2", [3.0, 4.0]), ("y3", [9.0, no])],
            ),
        ] {
            let grid = Grid::range(0, 1, 1).unwrap();
            let kept = combined(&Meter::unlimited(), grid, op, &matching, left(), right()).unwrap();
            let shown = |column: &Column| {
                let name = format!("{}{}", column.labels.metric(), column.labels.get("a"));
                (
                    name,
                    column
                        .values
                        .iter()
                        .map(|value| value.to_bits())
                        .collect::<Vec<_>>(),
                )
            };
            let expected = expected
                .iter()
                .map(|(name, values)| (name.to_string(), values.map(f64::to_bits).to_vec()));
            let kept: Vec<_> = kept.iter().map(shown).collect();
            assert_eq!(kept, expected.collect::<Vec<_>>(), "{op:?}");
        }
    }
}
