//! The values of a frame of the journal, as numbers.

use std::collections::HashMap;

use kymo_rrd::number::decimal;

use crate::wal::point::{Double, take_double};
use crate::wal::point_records::{Before, take_points};
use crate::wal::record::{self, Record};
use crate::wal::value::{Field, Stamps, stamp_of, take_fields};

/// Takes the values of frames.
pub(super) trait FrameSink {
    /// A value of a column of a series.
    fn value(&mut self, series: u32, column: u16, t_ms: i64, v: f64);

    /// A sample whose value is unknown, since it is a difference to one that is damaged.
    fn lost(&mut self);

    /// A series is gone, or has another name.
    fn changed(&mut self, series: u32);
}

/// Gives the values of a frame. `None`: an entry is not understood.
pub(super) fn decode(
    mut input: &[u8],
    is_short: bool,
    mut stamps: Stamps,
    decimals: &mut HashMap<u32, Before>,
    sink: &mut dyn FrameSink,
) -> Option<()> {
    if is_short {
        let id = record::take_short(&mut input, &mut stamps)?;
        value(id, &mut input, &mut stamps, sink)?;
    }
    while !input.is_empty() {
        if let Some(id) = record::take_next(&mut input, &mut stamps) {
            value(id, &mut input, &mut stamps, sink)?;
            continue;
        }
        let mut sample = |id, t_ms, input: &mut &[u8]| {
            match take_double(input, decimals.entry(id).or_default())? {
                Double::Known(v) => sink.value(id, 0, t_ms, v),
                Double::Lost => sink.lost(),
            }
            Some(())
        };
        if take_points(&mut input, &mut stamps, &mut sample)? {
            continue;
        }
        match Record::take(&mut input)? {
            Record::Values { id, count } => {
                stamps.id = id;
                for _ in 0..count {
                    value(id, &mut input, &mut stamps, sink)?;
                }
            }
            Record::Gone { id } | Record::Renamed { id, .. } => sink.changed(id),
            Record::Schema { .. }
            | Record::Series { .. }
            | Record::Published { .. }
            | Record::Newest { .. }
            | Record::Start { .. }
            | Record::End { .. }
            | Record::Live { .. }
            | Record::NotStarted { .. }
            | Record::Forget { .. }
            | Record::Checkpoint { .. }
            | Record::Saved { .. } => {}
        }
    }
    Some(())
}

/// A value of a series with archives: a stamp, and a number for each column. Unknown ones are left out.
fn value(id: u32, input: &mut &[u8], stamps: &mut Stamps, sink: &mut dyn FrameSink) -> Option<()> {
    let (mut stamp, mut column) = (None, 0_u16);
    take_fields(input, stamps, &mut |field| {
        let mut number = |v: Option<f64>| match stamp {
            None => stamp = Some(v.and_then(milliseconds)),
            Some(t_ms) => {
                if let (Some(t_ms), Some(v)) = (t_ms, v) {
                    sink.value(id, column, t_ms, v);
                }
                column = column.saturating_add(1);
            }
        };
        match field {
            Field::Number(digits, fraction) => number(decimal_of(digits, fraction)),
            Field::Text(text) => text
                .split(|byte| *byte == b':')
                .for_each(|part| number(stamp_of(part))),
        }
    })
}

fn decimal_of(digits: i64, fraction: u8) -> Option<f64> {
    let number = decimal(digits.unsigned_abs(), fraction)?;
    Some(if digits < 0 { -number } else { number })
}

fn milliseconds(seconds: f64) -> Option<i64> {
    let is_time = seconds.is_finite() && seconds.abs() < 1e15;
    is_time.then_some((seconds * 1000.0).round() as i64)
}
