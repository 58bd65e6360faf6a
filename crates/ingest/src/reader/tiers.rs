//! Rows of tiers as samples.

use kymo_series::{RowValue, Sample};
use kymo_store::TierRow;

/// Calls `each` for the rows of each tier, each row as a sample at its end, and the length of its rows in seconds.
pub(super) fn each_tier(
    rows: &[(u32, TierRow)],
    value: RowValue,
    scale: f64,
    each: &mut dyn FnMut(&[Sample], u32),
) {
    let values = match value {
        RowValue::Growth => growth(rows),
        RowValue::Mean | RowValue::Min | RowValue::Max | RowValue::Last => {
            rows.iter().map(|(_, row)| plain(row, value)).collect()
        }
    };
    let samples: Vec<Sample> = rows
        .iter()
        .zip(values)
        .map(|((_, row), v)| Sample {
            t_ms: row.end_s.saturating_mul(1000),
            v: v * scale,
        })
        .collect();
    let mut left = &samples[..];
    for tier in rows.chunk_by(|(one, _), (next, _)| one == next) {
        let Some(((step_s, _), (of_tier, rest))) =
            tier.first().zip(left.split_at_checked(tier.len()))
        else {
            return;
        };
        each(of_tier, *step_s);
        left = rest;
    }
}

fn plain(row: &TierRow, value: RowValue) -> f64 {
    match value {
        RowValue::Min => row.tier.min,
        RowValue::Max => row.tier.max,
        RowValue::Last if !row.tier.last.is_nan() => row.tier.last,
        RowValue::Last | RowValue::Mean | RowValue::Growth => row.tier.mean(),
    }
}

/// A counter without resets whose last value is the last value of the samples, so that it goes on in the samples after the rows.
fn growth(rows: &[(u32, TierRow)]) -> Vec<f64> {
    let last = rows.last().map(|(_, row)| row.tier.last);
    let mut value = last.filter(|last| !last.is_nan()).unwrap_or(0.0);
    let values = rows.iter().rev().map(|(_, row)| {
        let at_end = value;
        value -= row.tier.increase;
        at_end
    });
    let mut values: Vec<f64> = values.collect();
    values.reverse();
    values
}
