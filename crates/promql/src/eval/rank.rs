//! Aggregations that pick series or count values: `topk`, `bottomk`, `count_values`.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::ast::Grouping;
use crate::eval::aggregate::{Group, group_labels, groups};
use crate::eval::column::{Column, is_there, missing};
use crate::eval::error::EvalError;
use crate::eval::grid::Grid;
use crate::eval::label_set::LabelSet;
use crate::eval::merge::without_void;
use crate::eval::meter::Meter;
use crate::eval::number::whole_part;
use crate::number_text::plain;

/// Which values are picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    Largest,
    Smallest,
}

impl Pick {
    /// Order of values, the first one picked first; NaN last.
    pub(crate) fn order(self, a: f64, b: f64) -> Ordering {
        let ordered = match self {
            Pick::Largest => b.partial_cmp(&a),
            Pick::Smallest => a.partial_cmp(&b),
        };
        ordered.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    }
}

/// The series with the largest or smallest values of each group at each step. Of one step they are in that order.
pub(crate) fn picked(
    meter: &Meter,
    grid: Grid,
    columns: Vec<Column>,
    grouping: &Grouping,
    pick: Pick,
    counts: &[f64],
) -> Result<Vec<Column>, EvalError> {
    check_counts(counts)?;
    let mut results = Vec::new();
    for Group { mut members, .. } in groups(columns, grouping) {
        let mut ranked: Vec<(usize, f64)> = Vec::with_capacity(members.len());
        for (step, &most) in counts.iter().enumerate() {
            meter.worked(members.len())?;
            ranked.clear();
            let values = members.iter().map(|member| member.values.get(step));
            let values = values
                .enumerate()
                .filter_map(|(at, value)| Some((at, *value?)));
            ranked.extend(values.filter(|&(_, value)| is_there(value)));
            ranked.sort_by(|a, b| pick.order(a.1, b.1));
            let most = whole_part(most).and_then(|most| usize::try_from(most).ok());
            for &(at, _) in ranked.iter().skip(most.unwrap_or(0)) {
                if let Some(value) = members.get_mut(at).and_then(|of| of.values.get_mut(step)) {
                    *value = missing();
                }
            }
            ranked.truncate(most.unwrap_or(0));
        }
        match grid.count {
            1 => {
                results.extend(in_order(&members, &ranked));
                meter.release(members.len() - ranked.len());
            }
            _ => results.append(&mut members),
        }
    }
    Ok(without_void(meter, results))
}

fn in_order(members: &[Column], ranked: &[(usize, f64)]) -> Vec<Column> {
    let ranked = ranked.iter().filter_map(|&(at, value)| {
        Some(Column {
            labels: members.get(at)?.labels.clone(),
            values: vec![value],
        })
    });
    ranked.collect()
}

/// Prometheus refuses numbers that are no i64, unless no step picks a series.
fn check_counts(counts: &[f64]) -> Result<(), EvalError> {
    const I64_MAX: f64 = 9_223_372_036_854_775_807.0;
    let none = counts.iter().all(|&count| count < 1.0);
    let wrong = counts.iter().find_map(|&count| match () {
        () if none => None,
        () if count.is_nan() => Some("Parameter value is NaN".to_string()),
        () if count <= -I64_MAX => Some(format!("Scalar value {count} underflows int64")),
        () if count >= I64_MAX => Some(format!("Scalar value {count} overflows int64")),
        () => None,
    });
    wrong.map_or(Ok(()), |why| Err(EvalError::Execution(why)))
}

/// How often each value comes in a group, as series whose label `label` is the value.
pub(crate) fn count_values(
    meter: &Meter,
    grid: Grid,
    columns: Vec<Column>,
    grouping: &Grouping,
    label: &str,
) -> Result<Vec<Column>, EvalError> {
    if label.is_empty() {
        return Err(EvalError::Execution(format!(
            "invalid label name {label:?}"
        )));
    }
    let kept_label = match grouping {
        Grouping::By(_) => Some(label),
        // `without` may leave it out at once.
        Grouping::Without(_) => {
            let alone = group_labels(&LabelSet::new(&[(label, "x")]), grouping);
            Some(label).filter(|_| !alone.is_empty())
        }
    };
    let mut counted = Counted {
        meter,
        grid,
        label: kept_label,
        places: HashMap::new(),
        columns: Vec::new(),
    };
    for column in &columns {
        // The label that says the value takes the place of one with its name.
        let others = column.labels.filtered(|name| name != label);
        let labels = group_labels(&others, grouping);
        for (step, &value) in column.values.iter().enumerate() {
            if is_there(value) {
                counted.add(&labels, step, value)?;
            }
        }
    }
    meter.drop_all(columns);
    Ok(counted.columns)
}

struct Counted<'a> {
    meter: &'a Meter<'a>,
    grid: Grid,
    label: Option<&'a str>,
    /// By group and value.
    places: HashMap<(LabelSet, u64), usize>,
    columns: Vec<Column>,
}

impl Counted<'_> {
    fn add(&mut self, group: &LabelSet, step: usize, value: f64) -> Result<(), EvalError> {
        let bits = if value.is_nan() {
            f64::NAN.to_bits()
        } else {
            value.to_bits()
        };
        let key = (group.clone(), if self.label.is_some() { bits } else { 0 });
        let place = match self.places.get(&key) {
            Some(&place) => place,
            None => {
                let labels = match self.label {
                    Some(label) => group.with(label, &plain(value))?,
                    None => group.clone(),
                };
                let values = self.meter.values(self.grid)?;
                self.columns.push(Column { labels, values });
                self.places.insert(key, self.columns.len() - 1);
                self.columns.len() - 1
            }
        };
        let column = self.columns.get_mut(place);
        if let Some(count) = column.and_then(|column| column.values.get_mut(step)) {
            *count = if is_there(*count) { *count + 1.0 } else { 1.0 };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(values: &[&[f64]]) -> Vec<Column> {
        let column = |(at, values): (usize, &&[f64])| Column {
            labels: LabelSet::new(&[("a", &at.to_string())]),
            values: values.to_vec(),
        };
        values.iter().enumerate().map(column).collect()
    }

    fn texts(columns: &[Column]) -> Vec<String> {
        let text = |column: &Column| {
            let values = column.values.iter().map(|&value| match is_there(value) {
                true => value.to_string(),
                false => "_".into(),
            });
            format!("{} {}", column.labels, values.collect::<Vec<_>>().join(" "))
        };
        columns.iter().map(text).collect()
    }

    #[test]
    fn series_are_picked_step_by_step() {
        let (meter, all) = (Meter::unlimited(), Grouping::By(Vec::new()));
        let nan = f64::NAN;
        let instant = columns(&[&[1.0], &[3.0], &[nan], &[2.0]]);
        let of = |pick, count: f64| {
            let found = picked(
                &meter,
                Grid::instant(0),
                instant.clone(),
                &all,
                pick,
                &[count],
            );
            found.map(|found| texts(&found))
        };
        assert_eq!(
            of(Pick::Largest, 2.0).unwrap(),
            [r#"{a="1"} 3"#, r#"{a="3"} 2"#]
        );
        assert_eq!(of(Pick::Smallest, 1.9).unwrap(), [r#"{a="0"} 1"#]);
        assert_eq!(of(Pick::Largest, 9.0).unwrap()[3], r#"{a="2"} NaN"#);
        assert_eq!(of(Pick::Largest, 0.5).unwrap().len(), 0);
        assert!(of(Pick::Largest, nan).is_err() && of(Pick::Largest, 1e30).is_err());
        let grid = Grid::range(0, 1, 1).unwrap();
        let found = picked(
            &meter,
            grid,
            columns(&[&[1.0, 5.0], &[2.0, 4.0]]),
            &all,
            Pick::Largest,
            &[1.0, 1.0],
        );
        assert_eq!(texts(&found.unwrap()), [r#"{a="0"} _ 5"#, r#"{a="1"} 2 _"#]);
    }

    #[test]
    fn values_are_counted() {
        let (meter, grid) = (Meter::unlimited(), Grid::range(0, 1, 1).unwrap());
        let all = Grouping::By(Vec::new());
        let found = count_values(
            &meter,
            grid,
            columns(&[&[1.0, 1.0], &[1.0, 2.0]]),
            &all,
            "v",
        );
        assert_eq!(texts(&found.unwrap()), [r#"{v="1"} 2 1"#, r#"{v="2"} _ 1"#]);
        assert!(count_values(&meter, grid, Vec::new(), &all, "").is_err());
    }
}
