//! Records of samples: samples of many series at one time, or of one
//! series at many times. Layout: docs/formats/journal.md, "Points".

use crate::wal::point::{Decimal, Point, put_double, take_double};
use crate::wal::value::Stamps;
use kymo_base::varint::{put, put_count, take};

/// Kind of a record with samples of one time; each has the step from the previous series' number.
const MOMENT: u8 = 16;
/// Kind of a record with samples of one series.
const RUN: u8 = 17;

/// The previous decimal of a series in the same journal file.
pub(crate) type Before = Option<Decimal>;

/// Appends samples of one time.
pub(crate) struct Moment<'a> {
    out: &'a mut Vec<u8>,
    stamps: &'a mut Stamps,
}

impl<'a> Moment<'a> {
    pub(crate) fn begin(out: &'a mut Vec<u8>, stamps: &'a mut Stamps, t_ms: i64) -> Moment<'a> {
        out.push(MOMENT);
        put(out, stamps.milli_step(t_ms));
        Moment { out, stamps }
    }

    pub(crate) fn put(&mut self, id: u32, before: &mut Before, value: f64) {
        let step = id.wrapping_sub(self.stamps.id);
        self.stamps.id = id;
        put(self.out, u64::from(step) + 1);
        put_double(self.out, before, value);
    }

    pub(crate) fn end(self) {
        self.out.push(0);
    }
}

/// Appends samples of one series.
pub(crate) fn put_run(
    out: &mut Vec<u8>,
    stamps: &mut Stamps,
    id: u32,
    before: &mut Before,
    points: impl ExactSizeIterator<Item = Point>,
) {
    out.push(RUN);
    stamps.id = id;
    put(out, u64::from(id));
    put_count(out, points.len());
    for point in points {
        put(out, stamps.milli_step(point.t_ms));
        put_double(out, before, point.v);
    }
}

/// Removes a record of samples from the front. `each` gets series and time of each sample and decodes its value. Returns `false`
/// for another kind of record, `None` for a damaged one.
pub(crate) fn take_points(
    input: &mut &[u8],
    stamps: &mut Stamps,
    mut each: impl FnMut(u32, i64, &mut &[u8]) -> Option<()>,
) -> Option<bool> {
    let Some((&kind, rest)) = input.split_first() else {
        return Some(false);
    };
    match kind {
        MOMENT => {
            *input = rest;
            let t_ms = stamps.milli(take(input)?);
            loop {
                let Some(step) = take(input)?.checked_sub(1) else {
                    return Some(true);
                };
                stamps.id = stamps.id.wrapping_add(u32::try_from(step).ok()?);
                each(stamps.id, t_ms, input)?;
            }
        }
        RUN => {
            *input = rest;
            let id = u32::try_from(take(input)?).ok()?;
            stamps.id = id;
            let count = take(input)?;
            for _ in 0..count {
                let t_ms = stamps.milli(take(input)?);
                each(id, t_ms, input)?;
            }
            Some(true)
        }
        _ => Some(false),
    }
}

/// Removes a record of samples without decoding the values, as [`take_points`] does.
pub(crate) fn skip_points(input: &mut &[u8], stamps: &mut Stamps) -> Option<bool> {
    take_points(input, stamps, |_, _, input| {
        take_double(input, &mut None).map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::point::Double;
    use std::collections::HashMap;

    fn taken(bytes: &[u8]) -> Option<Vec<(u32, i64, f64)>> {
        let (mut input, mut stamps, mut found) = (bytes, Stamps::at(1_000_000_000), Vec::new());
        let mut before: HashMap<u32, Before> = HashMap::new();
        while !input.is_empty() {
            let is_one = take_points(&mut input, &mut stamps, |id, t_ms, input| {
                let before = before.entry(id).or_default();
                let Double::Known(value) = take_double(input, before)? else {
                    return None;
                };
                found.push((id, t_ms, value));
                Some(())
            })?;
            assert!(is_one);
        }
        Some(found)
    }

    #[test]
    fn samples_come_back_and_short_ones_are_refused() {
        let (mut out, mut stamps) = (Vec::new(), Stamps::at(1_000_000_000));
        let (mut one, mut other) = (None, None);
        let at = 1_000_000_010_250;
        let mut moment = Moment::begin(&mut out, &mut stamps, at);
        moment.put(7, &mut one, 1.5);
        moment.put(8, &mut other, f64::INFINITY);
        moment.put(3, &mut None, -2.0);
        moment.end();
        let first = out.len();
        let points = [(at + 10_000, 1.75), (at - 5, 4.0)];
        let points = points.map(|(t_ms, v)| Point { t_ms, v });
        put_run(&mut out, &mut stamps, 7, &mut one, points.into_iter());
        let all = [
            (7, at, 1.5),
            (8, at, f64::INFINITY),
            (3, at, -2.0),
            (7, at + 10_000, 1.75),
            (7, at - 5, 4.0),
        ];
        assert_eq!(taken(&out).unwrap(), all);
        for len in (1..out.len()).filter(|&len| len != first) {
            assert_eq!(taken(&out[..len]), None, "{len}");
        }
        assert_eq!(skip_points(&mut &b"\x01"[..], &mut stamps), Some(false));
    }
}
