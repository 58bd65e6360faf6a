//! Decodes frames of the journal for a tail: values of both kinds, removed series, and series with other names. Values that
//! the journal only repeats for a series that takes another's place are passed over.

use super::by_series::BySeries;
use crate::hole;
use crate::wal::frame::{FileHead, Frame};
use crate::wal::point::{Double, milliseconds_of, take_double};
use crate::wal::point_records::{Before, take_points};
use crate::wal::record::{self, Record};
use crate::wal::value::{Field, Stamps, put_number, stamp_of, take_fields};
use kymo_rrd::number::{Parsed, strtodbl};
use std::collections::HashSet;

/// Most columns of a value.
const COLUMNS_MAX: u16 = 4096;
/// Whole numbers below this are exact as doubles, and so are powers of ten up to the seventh.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
const POWERS: [f64; 8] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];

/// A value of one column of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailSample {
    /// Number of the series.
    pub series: u32,
    /// Number of the column, from 0.
    pub column: u16,
    /// Moment, milliseconds since 1970.
    pub t_ms: i64,
    /// The value as it was sent: no rate. NaN: unknown, or a stale marker.
    pub v: f64,
}

/// Receives the contents of frames.
pub(super) trait FrameSink {
    fn sample(&mut self, sample: TailSample);
    /// A sample whose value is a difference to a lost one, or whose series cannot exist.
    fn lost(&mut self);
    /// The series does not exist any more.
    fn gone(&mut self, id: u32);
    /// The series has another name, or is a new one.
    fn named(&mut self, id: u32);
}

/// Counts values.
#[derive(Default)]
pub(super) struct Count {
    pub(super) values: u64,
}

impl FrameSink for Count {
    fn sample(&mut self, _sample: TailSample) {
        self.values += 1;
    }

    fn lost(&mut self) {
        self.values += 1;
    }

    fn gone(&mut self, _id: u32) {}

    fn named(&mut self, _id: u32) {}
}

/// Decodes frames in their order.
#[derive(Default)]
pub(super) struct Decoder {
    /// The last decimals of each series of points in this journal file, if the file was read from its beginning.
    decimals: BySeries<Before>,
    /// Series that began in this frame.
    began: HashSet<u32>,
    /// All numbers of series are below this.
    pub(super) next_id: u32,
    text: Vec<u8>,
}

impl Decoder {
    /// A decoder for a store whose series have numbers below `next_id`.
    pub(super) fn below(next_id: u32) -> Decoder {
        Decoder {
            next_id,
            ..Decoder::default()
        }
    }

    /// Forgets the values before: another file begins, or a part was not read.
    pub(super) fn forget(&mut self) {
        self.decimals.clear();
    }

    /// Decodes the entries of a frame, with which `bytes` begin; `None`: an entry is not understood.
    pub(super) fn frame(
        &mut self,
        bytes: &[u8],
        frame: &Frame,
        head: &FileHead,
        heard: &mut impl FrameSink,
    ) -> Option<()> {
        let (mut input, mut stamps) = (bytes.get(frame.entries.clone())?, Stamps::at(head.stamp_s));
        self.began.clear();
        if frame.short {
            let id = record::take_short(&mut input, &mut stamps)?;
            self.values((id, 1), &mut input, &mut stamps, heard)?;
        }
        while !input.is_empty() {
            if let Some(id) = record::take_next(&mut input, &mut stamps) {
                self.values((id, 1), &mut input, &mut stamps, heard)?;
                continue;
            }
            let mut each =
                |series, t_ms, input: &mut &[u8]| self.point((series, t_ms), head, input, heard);
            if take_points(&mut input, &mut stamps, &mut each)? {
                continue;
            }
            match Record::take(&mut input)? {
                Record::Values { id, count } => {
                    stamps.id = id;
                    self.values((id, count), &mut input, &mut stamps, heard)?;
                }
                Record::Series { id, .. } => {
                    if !head.carries_over {
                        self.began.insert(id);
                    }
                    heard.named(id);
                }
                Record::Renamed { id, .. } => heard.named(id),
                Record::Gone { id } => heard.gone(id),
                Record::Schema { .. }
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

    fn point(
        &mut self,
        (series, t_ms): (u32, i64),
        head: &FileHead,
        input: &mut &[u8],
        heard: &mut impl FrameSink,
    ) -> Option<()> {
        if series >= self.next_id {
            take_double(input, &mut None)?;
            heard.lost();
            return Some(());
        }
        match take_double(input, self.decimals.entry(series))? {
            Double::Known(v) if head.carries_over || !self.has_begun(series) => {
                heard.sample(TailSample {
                    series,
                    column: 0,
                    t_ms,
                    v,
                });
            }
            Double::Known(_) => {}
            Double::Lost => heard.lost(),
        }
        Some(())
    }

    fn has_begun(&self, series: u32) -> bool {
        !self.began.is_empty() && self.began.contains(&series)
    }

    /// Values of a series of archives, as they were sent.
    fn values(
        &mut self,
        (series, count): (u32, u64),
        input: &mut &[u8],
        stamps: &mut Stamps,
        heard: &mut impl FrameSink,
    ) -> Option<()> {
        let is_there = series < self.next_id;
        let is_repeated = self.has_begun(series);
        for _ in 0..count {
            let (mut t_ms, mut column, mut whole) = (None, 0, None);
            take_fields(input, stamps, &mut |field| match (t_ms, field) {
                (None, Field::Number(number, digits)) => t_ms = Some(milliseconds(number, digits)),
                (None, Field::Text(text)) => whole = Some(text),
                (Some(t_ms), field) if is_there && !is_repeated && column < COLUMNS_MAX => {
                    let v = cell(field, &mut self.text);
                    heard.sample(TailSample {
                        series,
                        column,
                        t_ms,
                        v,
                    });
                    column += 1;
                }
                (Some(_), _) => {}
            })?;
            if let Some(text) = whole.filter(|_| is_there && !is_repeated) {
                text_value(series, text, heard);
            }
            if !is_there {
                heard.lost();
            }
        }
        Some(())
    }
}

/// A value that the journal has as the text that was sent.
fn text_value(series: u32, text: &[u8], heard: &mut impl FrameSink) {
    let Some(stamp) = stamp_of(text).filter(|_| !hole::is_one(text)) else {
        return;
    };
    let t_ms = milliseconds_of(stamp);
    let cells = text.split(|&byte| byte == b':').skip(1);
    for (column, cell) in (0..COLUMNS_MAX).zip(cells) {
        heard.sample(TailSample {
            series,
            column,
            t_ms,
            v: cell_of_text(cell),
        });
    }
}

/// Milliseconds of a stamp in seconds, a number with digits behind the point.
fn milliseconds(number: i64, digits: u8) -> i64 {
    match digits {
        0 => number.saturating_mul(1000),
        // Microseconds: only those digits are kept as a number.
        _ => number.saturating_add(500).div_euclid(1000),
    }
}

/// The double that is nearest to a field.
fn cell(field: Field<'_>, text: &mut Vec<u8>) -> f64 {
    match field {
        Field::Number(number, digits) => {
            let power = POWERS.get(usize::from(digits));
            match power.filter(|_| number.unsigned_abs() < EXACT || digits == 0) {
                // A single rounding: both operands are exact as doubles, or the power is 1.
                Some(power) => number as f64 / power,
                None => {
                    text.clear();
                    put_number(text, number, digits);
                    cell_of_text(text)
                }
            }
        }
        Field::Text(text) => cell_of_text(text),
    }
}

fn cell_of_text(text: &[u8]) -> f64 {
    let parsed = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    parsed.unwrap_or_else(|| match strtodbl(text) {
        Parsed::All(number) | Parsed::Trailing(number, _) => number,
        Parsed::Nothing => f64::NAN,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::value::put_value;

    #[derive(Default)]
    struct All(Vec<TailSample>);

    impl FrameSink for All {
        fn sample(&mut self, sample: TailSample) {
            self.0.push(sample);
        }

        fn lost(&mut self) {}

        fn gone(&mut self, _id: u32) {}

        fn named(&mut self, _id: u32) {}
    }

    /// Texts become the nearest doubles and the nearest millisecond.
    #[test]
    fn values_that_were_sent_as_texts() {
        for (text, t_ms, cells) in [
            (
                "1000000010:1:U:-2.5",
                1_000_000_010_000,
                &["1", "NaN", "-2.5"][..],
            ),
            (
                "1000000010.499600:0.1234567",
                1_000_000_010_500,
                &["0.1234567"],
            ),
            (
                "1000000010:123456789012.123456",
                1_000_000_010_000,
                &["123456789012.123456"],
            ),
            (
                "1000000010:18446744073709551615",
                1_000_000_010_000,
                &["18446744073709551615"],
            ),
            (
                "1000000010:999999999999999999",
                1_000_000_010_000,
                &["999999999999999999"],
            ),
            (
                "1000000010:1e5:bad:",
                1_000_000_010_000,
                &["1e5", "NaN", "NaN"],
            ),
            ("01000000010:7", 1_000_000_010_000, &["7"]),
            ("?1000000010.0", 0, &[]),
        ] {
            let (mut bytes, mut all) = (Vec::new(), All::default());
            put_value(&mut bytes, &mut Stamps::default(), text.as_bytes());
            let mut decoder = Decoder::below(8);
            let taken = decoder.values((7, 1), &mut &bytes[..], &mut Stamps::default(), &mut all);
            assert_eq!(taken, Some(()), "{text}");
            let expected: Vec<f64> = cells.iter().map(|cell| cell.parse().unwrap()).collect();
            let bits = |cells: &[f64]| cells.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            let found: Vec<f64> = all.0.iter().map(|sample| sample.v).collect();
            assert_eq!(bits(&found), bits(&expected), "{text}: {found:?}");
            assert!(all.0.iter().all(|sample| sample.t_ms == t_ms), "{text}");
            let columns = all.0.iter().map(|sample| usize::from(sample.column));
            assert!(columns.eq(0..cells.len()), "{text}");
        }
    }
}
