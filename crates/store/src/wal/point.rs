//! Samples as they are kept in the journal and in memory: a time in milliseconds and a double, each as the difference to
//! the previous one. Layout: docs/formats/journal.md, "Points".

use kymo_base::varint::{put, take, unzigzag, zigzag};

/// A sample of a series of points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Milliseconds since 1970.
    pub t_ms: i64,
    /// The value, bit for bit, since a stale marker is a NaN.
    pub v: f64,
}

impl Point {
    /// The time in seconds.
    pub(crate) fn seconds(self) -> f64 {
        self.t_ms as f64 / 1000.0
    }
}

/// The nearest millisecond to a stamp in seconds.
pub(crate) fn milliseconds_of(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

/// Digits behind the point that a decimal may have.
pub(crate) const DIGITS_MAX: u8 = 15;
/// A decimal is a whole number below this, divided by a power of ten.
const NUMBER_MAX: f64 = 9_007_199_254_740_992.0;
const POWERS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];
/// Tags of a value: a step from the number before, another number of digits, the bits of a double.
const STEP: u64 = 0;
const DECIMAL: u64 = 1;
const BITS: u64 = 2;

/// A whole number over a power of ten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) number: i64,
    pub(crate) digits: u8,
}

impl Decimal {
    /// The decimal that is this double, bit for bit; with `hint` digits behind the point if that is possible.
    pub(crate) fn of(value: f64, hint: u8) -> Option<Decimal> {
        if !value.is_finite() || (value == 0.0 && value.is_sign_negative()) {
            return None;
        }
        let with = |digits: u8| {
            let power = POWERS[usize::from(digits)];
            let scaled = (value * power).round();
            let fits = scaled.abs() < NUMBER_MAX && (scaled / power).to_bits() == value.to_bits();
            fits.then_some(Decimal {
                number: scaled as i64,
                digits,
            })
        };
        with(hint).or_else(|| (0..=DIGITS_MAX).find_map(with))
    }

    /// The nearest double.
    pub(crate) fn value(self) -> f64 {
        self.number as f64 / POWERS[usize::from(self.digits.min(DIGITS_MAX))]
    }
}

/// Appends a value as a step from the previous decimal `last`.
pub(crate) fn put_double(out: &mut Vec<u8>, last: &mut Option<Decimal>, value: f64) {
    let hint = last.map_or(0, |last| last.digits);
    let Some(decimal) = Decimal::of(value, hint) else {
        put(out, BITS);
        out.extend_from_slice(&value.to_bits().to_le_bytes());
        return;
    };
    match last {
        Some(last) if last.digits == decimal.digits => {
            let step = decimal.number.wrapping_sub(last.number);
            put(out, zigzag(step.cast_unsigned(), 0) << 2 | STEP);
        }
        _ => {
            let code = zigzag(decimal.number.cast_unsigned(), 0) << 4 | u64::from(decimal.digits);
            put(out, code << 2 | DECIMAL);
        }
    }
    *last = Some(decimal);
}

/// A decoded value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Double {
    Known(f64),
    /// A step from a decimal that is unknown.
    Lost,
}

/// Decodes a value and removes it from the front.
pub(crate) fn take_double(input: &mut &[u8], last: &mut Option<Decimal>) -> Option<Double> {
    let code = take(input)?;
    let rest = code >> 2;
    let decimal = match code & 3 {
        STEP => {
            let Some(before) = *last else {
                return Some(Double::Lost);
            };
            Decimal {
                number: before.number.wrapping_add(unzigzag(rest, 0).cast_signed()),
                digits: before.digits,
            }
        }
        DECIMAL => Decimal {
            number: unzigzag(rest >> 4, 0).cast_signed(),
            digits: u8::try_from(rest & 15).ok()?,
        },
        BITS if rest == 0 => {
            let (bytes, left) = input.split_first_chunk()?;
            *input = left;
            let bits = u64::from_le_bytes(*bytes);
            return Some(Double::Known(f64::from_bits(bits)));
        }
        _ => return None,
    };
    *last = Some(decimal);
    Some(Double::Known(decimal.value()))
}

/// Samples of one series in the order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointBuffer {
    bytes: Vec<u8>,
    count: usize,
    context: PointContext,
}

/// The base of the next sample's differences.
#[derive(Clone, Copy, Debug, Default)]
struct PointContext {
    t_ms: i64,
    step_ms: i64,
    decimal: Option<Decimal>,
}

/// A length to which a buffer can be cut back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointMark {
    len: usize,
    count: usize,
    context: PointContext,
}

impl PointBuffer {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn push(&mut self, point: Point) {
        let context = &mut self.context;
        let step_ms = point.t_ms.wrapping_sub(context.t_ms);
        if self.bytes.capacity() - self.bytes.len() < 20 {
            // Grows by a quarter: doubling would leave most of the many buffers half empty.
            self.bytes.reserve_exact(20 + self.bytes.len() / 4);
        }
        put(
            &mut self.bytes,
            zigzag(step_ms.cast_unsigned(), context.step_ms.cast_unsigned()),
        );
        put_double(&mut self.bytes, &mut context.decimal, point.v);
        (context.t_ms, context.step_ms) = (point.t_ms, step_ms);
        self.count += 1;
    }

    pub(crate) fn mark(&self) -> PointMark {
        PointMark {
            len: self.bytes.len(),
            count: self.count,
            context: self.context,
        }
    }

    pub(crate) fn truncate(&mut self, mark: PointMark) {
        self.bytes.truncate(mark.len);
        self.count = mark.count;
        self.context = mark.context;
    }

    /// The decoded samples.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Point> + '_ {
        let (mut input, mut context) = (&self.bytes[..], PointContext::default());
        std::iter::from_fn(move || {
            let step = take(&mut input)?;
            let step_ms = unzigzag(step, context.step_ms.cast_unsigned()).cast_signed();
            context.t_ms = context.t_ms.wrapping_add(step_ms);
            context.step_ms = step_ms;
            match take_double(&mut input, &mut context.decimal)? {
                Double::Known(v) => Some(Point {
                    t_ms: context.t_ms,
                    v,
                }),
                Double::Lost => None,
            }
        })
    }

    /// Inserts older samples before the present ones.
    pub(crate) fn prepend(&mut self, older: &PointBuffer) {
        let newer = std::mem::replace(self, older.clone());
        newer.iter().for_each(|point| self.push(point));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn doubles_that_are_decimals() {
        for (value, hint, number, digits) in [
            (0.0, 0, 0, 0),
            (12.5, 0, 125, 1),
            (12.5, 3, 12500, 3),
            (0.1, 0, 1, 1),
            (-3.75, 2, -375, 2),
            (1e15, 0, 1_000_000_000_000_000, 0),
            (1_700_000_000.123, 0, 1_700_000_000_123, 3),
        ] {
            let decimal = Decimal { number, digits };
            assert_eq!(Decimal::of(value, hint), Some(decimal), "{value}");
            assert_eq!(decimal.value().to_bits(), value.to_bits());
        }
        for value in [-0.0, f64::NAN, f64::INFINITY, 1e300, 1.0 / 3.0, 9.1e15] {
            assert_eq!(Decimal::of(value, 0), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn samples_come_back(
            samples in proptest::collection::vec((any::<i32>(), prop_oneof![
                any::<u64>().prop_map(f64::from_bits),
                (-1_000_000i64..1_000_000).prop_map(|n| n as f64 / 100.0),
                Just(f64::from_bits(0x7ff0_0000_0000_0002)),
            ]), 0..60),
            cut in 0usize..60,
        ) {
            let samples: Vec<Point> = samples
                .iter()
                .map(|&(t, v)| Point { t_ms: i64::from(t) * 17, v })
                .collect();
            let bits = |points: &[Point]| -> Vec<(i64, u64)> {
                points.iter().map(|point| (point.t_ms, point.v.to_bits())).collect()
            };
            let cut = cut.min(samples.len());
            let mut buffer = PointBuffer::default();
            samples[..cut].iter().for_each(|&point| buffer.push(point));
            let mark = buffer.mark();
            samples[cut..].iter().for_each(|&point| buffer.push(point));
            prop_assert_eq!(bits(&buffer.iter().collect::<Vec<_>>()), bits(&samples));
            buffer.truncate(mark);
            let mut rest = PointBuffer::default();
            samples[cut..].iter().for_each(|&point| rest.push(point));
            rest.prepend(&buffer);
            prop_assert_eq!(bits(&rest.iter().collect::<Vec<_>>()), bits(&samples));
            prop_assert_eq!(rest.len(), samples.len());
        }
    }
}
