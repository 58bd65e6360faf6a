//! Aggregations that make one series of each group.

use std::collections::HashMap;

use crate::ast::Grouping;
use crate::eval::column::{Column, is_missing, is_there, missing};
use crate::eval::error::EvalError;
use crate::eval::grid::Grid;
use crate::eval::label_set::{LabelSet, is_of_metric};
use crate::eval::meter::Meter;
use crate::eval::quantile::quantile;
use crate::eval::sums::{Mean, Sum};

/// Series of one group.
pub(crate) struct Group {
    pub(crate) labels: LabelSet,
    pub(crate) members: Vec<Column>,
}

/// The labels by which a series is grouped.
pub(crate) fn group_labels(labels: &LabelSet, grouping: &Grouping) -> LabelSet {
    match grouping {
        Grouping::By(names) if names.is_empty() => LabelSet::empty(),
        Grouping::By(names) => labels.filtered(|name| names.iter().any(|by| by == name)),
        Grouping::Without(names) => {
            labels.filtered(|name| !is_of_metric(name) && !names.iter().any(|by| by == name))
        }
    }
}

/// Series by their groups, in the order in which groups are met.
pub(crate) fn groups(columns: Vec<Column>, grouping: &Grouping) -> Vec<Group> {
    let mut places: HashMap<LabelSet, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for column in columns {
        let labels = group_labels(&column.labels, grouping);
        let place = *places.entry(labels.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group {
                labels,
                members: Vec::new(),
            });
        }
        if let Some(group) = groups.get_mut(place) {
            group.members.push(column);
        }
    }
    groups
}

/// How the values of a group become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    Sum,
    Avg,
    Min,
    Max,
    Count,
    Group,
    Stddev,
    Stdvar,
}

/// Values that the state of a fold takes a step, at most.
const STATE_VALUES: usize = 5;

/// One series of each group.
pub(crate) fn folded(
    meter: &Meter,
    grid: Grid,
    columns: Vec<Column>,
    grouping: &Grouping,
    fold: Fold,
) -> Result<Vec<Column>, EvalError> {
    let mut results = Vec::new();
    for Group { labels, members } in groups(columns, grouping) {
        let mut values = meter.values(grid)?;
        meter.worked(members.len().saturating_mul(grid.count))?;
        meter.hold(grid.count.saturating_mul(STATE_VALUES))?;
        match fold {
            Fold::Sum => sum(&members, &mut values),
            Fold::Avg => mean(&members, &mut values),
            Fold::Min => best(&members, &mut values, |new, old| new < old || old.is_nan()),
            Fold::Max => best(&members, &mut values, |new, old| new > old || old.is_nan()),
            Fold::Count => each(&members, &mut values, |old, _| match is_missing(old) {
                true => 1.0,
                false => old + 1.0,
            }),
            Fold::Group => each(&members, &mut values, |_, _| 1.0),
            Fold::Stdvar => variance(&members, &mut values),
            Fold::Stddev => {
                variance(&members, &mut values);
                let present = values.iter_mut().filter(|value| is_there(**value));
                present.for_each(|value| *value = value.sqrt());
            }
        }
        meter.release(grid.count.saturating_mul(STATE_VALUES));
        meter.drop_all(members);
        results.push(Column { labels, values });
    }
    Ok(results)
}

/// Puts every value that is there into the one before.
fn each(members: &[Column], values: &mut [f64], mut put: impl FnMut(f64, f64) -> f64) {
    for member in members {
        for (value, &new) in values.iter_mut().zip(&member.values) {
            if is_there(new) {
                *value = put(*value, new);
            }
        }
    }
}

fn best(members: &[Column], values: &mut [f64], replaces: fn(f64, f64) -> bool) {
    each(members, values, |old, new| {
        match is_missing(old) || replaces(new, old) {
            true => new,
            false => old,
        }
    });
}

fn sum(members: &[Column], values: &mut [f64]) {
    let mut sums = vec![None::<Sum>; values.len()];
    for member in members {
        for (sum, &new) in sums.iter_mut().zip(&member.values) {
            if is_there(new) {
                sum.get_or_insert_default().add(new);
            }
        }
    }
    for (value, sum) in values.iter_mut().zip(sums) {
        *value = sum.map_or(missing(), Sum::value);
    }
}

fn mean(members: &[Column], values: &mut [f64]) {
    let mut means = vec![None::<Mean>; values.len()];
    for member in members {
        for (mean, &new) in means.iter_mut().zip(&member.values) {
            match mean {
                _ if is_missing(new) => {}
                Some(mean) => mean.add(new),
                None => *mean = Some(Mean::new(new)),
            }
        }
    }
    for (value, mean) in values.iter_mut().zip(means) {
        *value = mean.map_or(missing(), Mean::value);
    }
}

/// Count, mean and squared distances from it, updated value by value (Welford).
#[derive(Clone, Copy)]
struct Spread {
    count: f64,
    mean: f64,
    squares: f64,
}

fn variance(members: &[Column], values: &mut [f64]) {
    let mut spreads = vec![None::<Spread>; values.len()];
    for member in members {
        for (spread, &new) in spreads.iter_mut().zip(&member.values) {
            match spread {
                _ if is_missing(new) => {}
                Some(Spread {
                    count,
                    mean,
                    squares,
                }) => {
                    *count += 1.0;
                    let before = new - *mean;
                    *mean += before / *count;
                    *squares += before * (new - *mean);
                }
                None => {
                    *spread = Some(Spread {
                        count: 1.0,
                        mean: new,
                        squares: if new.is_finite() { 0.0 } else { f64::NAN },
                    });
                }
            }
        }
    }
    for (value, spread) in values.iter_mut().zip(spreads) {
        *value = spread.map_or(missing(), |spread| spread.squares / spread.count);
    }
}

/// A quantile of each group, at each step that of its own share.
pub(crate) fn quantiles(
    meter: &Meter,
    grid: Grid,
    columns: Vec<Column>,
    grouping: &Grouping,
    shares: &[f64],
) -> Result<Vec<Column>, EvalError> {
    let mut results = Vec::new();
    let mut found = Vec::new();
    for Group { labels, members } in groups(columns, grouping) {
        let mut values = meter.values(grid)?;
        for (step, (value, &share)) in values.iter_mut().zip(shares).enumerate() {
            found.clear();
            let present = members.iter().filter_map(|member| member.values.get(step));
            found.extend(present.copied().filter(|&value| is_there(value)));
            meter.worked(members.len())?;
            if !found.is_empty() {
                *value = quantile(share, &mut found);
            }
        }
        meter.drop_all(members);
        results.push(Column { labels, values });
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        let column = |a: &str, b: &str, values: [f64; 2]| Column {
            labels: LabelSet::new(&[("a", a), ("b", b), ("__name__", "x")]),
            values: values.to_vec(),
        };
        vec![
            column("1", "1", [1.0, missing()]),
            column("2", "1", [10.0, 20.0]),
            column("1", "2", [3.0, missing()]),
        ]
    }

    #[test]
    fn groups_are_folded_step_by_step() {
        let (meter, grid) = (Meter::unlimited(), Grid::range(0, 1, 1).unwrap());
        let by = |names: &[&str]| Grouping::By(names.iter().map(|&name| name.into()).collect());
        for (fold, grouping, expected) in [
            (Fold::Sum, by(&["a"]), [Some(4.0), None]),
            (Fold::Avg, by(&["a"]), [Some(2.0), None]),
            (Fold::Max, by(&["a"]), [Some(3.0), None]),
            (Fold::Min, by(&[]), [Some(1.0), Some(20.0)]),
            (Fold::Count, by(&[]), [Some(3.0), Some(1.0)]),
            (Fold::Group, by(&[]), [Some(1.0), Some(1.0)]),
            (Fold::Stdvar, by(&["a"]), [Some(1.0), None]),
            (
                Fold::Stddev,
                Grouping::Without(vec!["b".into()]),
                [Some(1.0), None],
            ),
        ] {
            let results = folded(&meter, grid, columns(), &grouping, fold).unwrap();
            let first = results[0].values.iter().map(|&v| is_there(v).then_some(v));
            assert_eq!(first.collect::<Vec<_>>(), expected, "{fold:?}");
        }
        let shares = [0.5, 0.5];
        let results = quantiles(&meter, grid, columns(), &by(&[]), &shares).unwrap();
        assert_eq!(results[0].values, [3.0, 20.0]);
        let grouping = Grouping::Without(vec!["b".into()]);
        assert_eq!(
            groups(columns(), &grouping)[0].labels.to_string(),
            r#"{a="1"}"#
        );
    }
}
