//! Samples of one series in a block: a column of stamps and a column of values.
//! Layout: docs/formats/store.md, "Samples".

use crate::segment::value_column::{Span, put_codes};
use crate::wal::point::{Decimal, Point};
use kymo_base::varint::{put_count, put_signed, take, take_signed};

/// Largest number of samples of an entry; longer runs are split.
pub(crate) const SAMPLES_MAX: usize = 4096;
/// Bits of an entry's first byte: the stamps are those of the previous entry; the values are doubles.
const SAME_STAMPS: u8 = 1;
const DOUBLES: u8 = 2;
/// If more than one value in this many is no decimal, all values are stored as doubles.
const EXCEPTIONS: usize = 4;

/// Encodes entries one after the other, reusing its memory.
#[derive(Default)]
pub(crate) struct PointEncoder {
    stamps: Vec<i64>,
    last_stamps: Vec<i64>,
    numbers: Vec<i64>,
    exceptions: Vec<(usize, u64)>,
    codes: Vec<u64>,
    planes: Vec<u8>,
}

impl PointEncoder {
    /// Begins a frame, in which the next entry has no previous one.
    pub(crate) fn begin(&mut self) {
        self.last_stamps.clear();
    }

    /// Appends an entry without its head. The samples are sorted, and at most [`SAMPLES_MAX`].
    pub(crate) fn put(&mut self, out: &mut Vec<u8>, points: &[Point]) {
        self.stamps.clear();
        self.stamps.extend(points.iter().map(|point| point.t_ms));
        let at = out.len();
        out.push(0);
        match self.stamps == self.last_stamps {
            true => out[at] |= SAME_STAMPS,
            false => put_integers(out, &self.stamps, &mut self.codes),
        }
        std::mem::swap(&mut self.stamps, &mut self.last_stamps);
        if !self.put_decimals(out, points) {
            out[at] |= DOUBLES;
            self.put_doubles(out, points);
        }
    }

    /// Encodes values as decimals with a common number of digits, and exceptions; returns `false` if there
    /// are too many exceptions.
    fn put_decimals(&mut self, out: &mut Vec<u8>, points: &[Point]) -> bool {
        let mut digits = 0;
        for point in points {
            digits = Decimal::of(point.v, digits).map_or(digits, |it| it.digits.max(digits));
        }
        self.numbers.clear();
        self.exceptions.clear();
        for (at, point) in points.iter().enumerate() {
            let decimal = Decimal::of(point.v, digits).filter(|it| it.digits == digits);
            if decimal.is_none() {
                self.exceptions.push((at, point.v.to_bits()));
            }
            let before = self.numbers.last().copied().unwrap_or(0);
            self.numbers.push(decimal.map_or(before, |it| it.number));
        }
        if self.exceptions.len() * EXCEPTIONS > points.len() {
            return false;
        }
        // Exceptions before the first number are filled with that number.
        let first = self.exceptions.iter().enumerate();
        let first = first.take_while(|(place, (at, _))| place == at).count();
        if first < self.numbers.len() {
            let number = self.numbers[first];
            self.numbers[..first].fill(number);
        }
        out.push(digits);
        put_count(out, self.exceptions.len());
        let mut next = 0;
        for &(at, bits) in &self.exceptions {
            put_count(out, at - next);
            out.extend_from_slice(&bits.to_le_bytes());
            next = at + 1;
        }
        put_integers(out, &self.numbers, &mut self.codes);
        true
    }

    /// Encodes values as the bits that differ from the previous
    /// value, byte by byte, since the high bytes are mostly zeros.
    fn put_doubles(&mut self, out: &mut Vec<u8>, points: &[Point]) {
        self.planes.clear();
        self.planes.resize(points.len() * 8, 0);
        let mut last = 0;
        for (at, point) in points.iter().enumerate() {
            let bits = point.v.to_bits();
            for (plane, byte) in (bits ^ last).to_be_bytes().into_iter().enumerate() {
                self.planes[plane * points.len() + at] = byte;
            }
            last = bits;
        }
        out.extend_from_slice(&self.planes);
    }
}

/// Largest number of samples that are read from a frame, so
/// that few bytes cannot keep a reader busy for minutes.
const FRAME_SAMPLES_MAX: usize = 1 << 24;

/// Decodes the entries of a frame, one after the other.
pub(crate) struct PointDecoder {
    stamps: Vec<i64>,
    numbers: Vec<i64>,
    /// Number of samples that may still be read.
    left: usize,
}

impl Default for PointDecoder {
    fn default() -> PointDecoder {
        PointDecoder {
            stamps: Vec::new(),
            numbers: Vec::new(),
            left: FRAME_SAMPLES_MAX,
        }
    }
}

impl PointDecoder {
    /// Appends the samples of an entry; `None` if it is damaged.
    pub(crate) fn read(
        &mut self,
        mut entry: &[u8],
        count: usize,
        out: &mut Vec<Point>,
    ) -> Option<()> {
        let input = &mut entry;
        let flags = self.read_stamps(input, count)?;
        let first = out.len();
        let stamps = self.stamps.iter();
        out.extend(stamps.map(|&t_ms| Point { t_ms, v: 0.0 }));
        let read = match flags & DOUBLES != 0 {
            true => take_doubles(input, &mut out[first..]),
            false => take_decimals(input, &mut self.numbers, &mut out[first..]),
        };
        if read.is_none() || !input.is_empty() {
            out.truncate(first);
            return None;
        }
        Some(())
    }

    /// Skips an entry, but decodes its stamps, which the next entry may share.
    pub(crate) fn skip(&mut self, mut entry: &[u8], count: usize) -> Option<()> {
        self.read_stamps(&mut entry, count).map(drop)
    }

    fn read_stamps(&mut self, input: &mut &[u8], count: usize) -> Option<u8> {
        let (&flags, rest) = input.split_first()?;
        *input = rest;
        if count == 0 || count > SAMPLES_MAX || flags & !(SAME_STAMPS | DOUBLES) != 0 {
            return None;
        }
        self.left = self.left.checked_sub(count)?;
        match flags & SAME_STAMPS != 0 {
            true => (self.stamps.len() == count).then_some(flags),
            false => {
                take_integers(input, count, &mut self.stamps)?;
                Some(flags)
            }
        }
    }
}

fn take_doubles(input: &mut &[u8], out: &mut [Point]) -> Option<()> {
    let (planes, rest) = input.split_at_checked(out.len() * 8)?;
    *input = rest;
    let (count, mut last) = (out.len(), 0);
    for (at, point) in out.iter_mut().enumerate() {
        let bytes = std::array::from_fn(|plane| planes[plane * count + at]);
        last ^= u64::from_be_bytes(bytes);
        point.v = f64::from_bits(last);
    }
    Some(())
}

fn take_decimals(input: &mut &[u8], numbers: &mut Vec<i64>, out: &mut [Point]) -> Option<()> {
    let (&digits, rest) = input.split_first()?;
    *input = rest;
    if digits > crate::wal::point::DIGITS_MAX {
        return None;
    }
    let count = usize::try_from(take(input)?).ok()?;
    if count > out.len() {
        return None;
    }
    let (mut exceptions, mut next) = (Vec::with_capacity(count), 0usize);
    for _ in 0..count {
        let at = next.checked_add(usize::try_from(take(input)?).ok()?)?;
        let (bytes, rest) = input.split_first_chunk()?;
        *input = rest;
        exceptions.push((at, u64::from_le_bytes(*bytes)));
        next = at.checked_add(1)?;
    }
    take_integers(input, out.len(), numbers)?;
    for (point, &number) in out.iter_mut().zip(&*numbers) {
        point.v = Decimal { number, digits }.value();
    }
    for (at, bits) in exceptions {
        out.get_mut(at)?.v = f64::from_bits(bits);
    }
    Some(())
}

/// Encodes whole numbers as they are, as differences, or as
/// second differences, whichever has the smallest range.
fn put_integers(out: &mut Vec<u8>, numbers: &[i64], codes: &mut Vec<u64>) {
    let step = |two: &[i64]| two[1].wrapping_sub(two[0]);
    let change = |three: &[i64]| {
        let (one, other) = (step(&three[..2]), step(&three[1..]));
        other.wrapping_sub(one)
    };
    let plain = Span::of(numbers.iter().copied());
    let steps = Span::of(numbers.windows(2).map(step));
    let changes = Span::of(numbers.windows(3).map(change));
    let mut order = 0u8;
    let mut span = plain;
    for (other, of_other) in [(1, steps), (2, changes)] {
        if numbers.len() > usize::from(other) && bits(of_other) < bits(span) {
            (order, span) = (other, of_other);
        }
    }
    let code = |number: i64| number.wrapping_sub(span.low).cast_unsigned();
    codes.clear();
    match order {
        0 => codes.extend(numbers.iter().copied().map(code)),
        1 => codes.extend(numbers.windows(2).map(step).map(code)),
        _ => codes.extend(numbers.windows(3).map(change).map(code)),
    }
    out.push(order);
    if order > 0 {
        put_signed(out, numbers[0]);
    }
    if order > 1 {
        put_signed(out, step(&numbers[..2]));
    }
    put_signed(out, span.low);
    put_codes(out, codes, span.width);
}

fn take_integers(input: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Option<()> {
    let (&order, rest) = input.split_first()?;
    *input = rest;
    if order > 2 || usize::from(order) >= count.max(1) {
        return None;
    }
    let mut signed = |has: bool| match has {
        true => take_signed(input),
        false => Some(0),
    };
    let (mut number, mut step) = (signed(order > 0)?, signed(order > 1)?);
    let low = signed(true)?;
    let unit = take(input)?;
    let mut codes = Codes::take(input, count - usize::from(order), unit)?;
    let mut next = || low.wrapping_add(codes.next().cast_signed());
    out.clear();
    if order > 0 {
        out.push(number);
    }
    if order > 1 {
        number = number.wrapping_add(step);
        out.push(number);
    }
    let left = out.len()..count;
    match order {
        0 => out.extend(left.map(|_| next())),
        1 => out.extend(left.map(|_| {
            number = number.wrapping_add(next());
            number
        })),
        _ => out.extend(left.map(|_| {
            step = step.wrapping_add(next());
            number = number.wrapping_add(step);
            number
        })),
    }
    Some(())
}

/// Widest code that lies in eight bytes wherever it begins, in bits.
const NARROW: u32 = 57;

/// The code of any width that begins in the first byte; bits behind it are undefined.
fn wide_code(rest: &[u8], shift: usize) -> u64 {
    let mut bytes = [0; 16];
    let len = rest.len().min(9);
    bytes[..len].copy_from_slice(&rest[..len]);
    (u128::from_le_bytes(bytes) >> shift) as u64
}

/// Codes of a column being read.
struct Codes<'a> {
    bytes: &'a [u8],
    at: usize,
    width: u32,
    unit: u64,
}

impl<'a> Codes<'a> {
    fn take(input: &mut &'a [u8], count: usize, unit: u64) -> Option<Codes<'a>> {
        let mut codes = Codes {
            bytes: &[],
            at: 0,
            width: 0,
            unit,
        };
        if unit > 0 {
            let (&width, rest) = input.split_first()?;
            codes.width = u32::from(width);
            if codes.width > u64::BITS {
                return None;
            }
            let len = (count * usize::from(width)).div_ceil(8);
            (codes.bytes, *input) = rest.split_at_checked(len)?;
        }
        Some(codes)
    }

    fn next(&mut self) -> u64 {
        if self.width == 0 {
            return 0;
        }
        let (from, shift) = (self.at / 8, self.at % 8);
        self.at += self.width as usize;
        let mask = u64::MAX >> (u64::BITS - self.width);
        let rest = self.bytes.get(from..).unwrap_or_default();
        let code = match rest.first_chunk() {
            Some(word) if self.width <= NARROW => u64::from_le_bytes(*word) >> shift,
            _ => wide_code(rest, shift),
        };
        (code & mask).wrapping_mul(self.unit)
    }
}

/// Bits needed for the widest code of a span.
fn bits(span: Span) -> u32 {
    u64::BITS - span.width.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(entries: &[Vec<Point>]) -> Vec<Vec<u8>> {
        let mut encoder = PointEncoder::default();
        encoder.begin();
        let entries = entries.iter().map(|points| {
            let mut out = Vec::new();
            encoder.put(&mut out, points);
            out
        });
        entries.collect()
    }

    fn bits(points: &[Point]) -> Vec<(i64, u64)> {
        let points = points.iter();
        points
            .map(|point| (point.t_ms, point.v.to_bits()))
            .collect()
    }

    fn series(value: impl Fn(i64) -> f64) -> Vec<Point> {
        let at = |n: i64| Point {
            t_ms: 1_700_000_000_000 + n * 10_000,
            v: value(n),
        };
        (0..120).map(at).collect()
    }

    /// Bytes per sample, if the entry before has the same stamps.
    #[test]
    fn usual_series_take_few_bytes() {
        for (most, points) in [
            (0.1, series(|_| 7.0)),
            (0.2, series(|n| (n * 40) as f64)),
            (1.1, series(|n| (n * 4000 + n * n % 97) as f64)),
            (1.6, series(|n| (n * n % 997) as f64 / 100.0)),
            (8.2, series(|n| (n as f64).sqrt())),
        ] {
            let entries = encoded(&[points.clone(), points]);
            let bytes = entries[1].len() as f64 / 120.0;
            assert!(bytes <= most, "{bytes} > {most}");
        }
    }

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<u64>().prop_map(f64::from_bits),
            (-100_000i64..100_000).prop_map(|n| n as f64 / 100.0),
            (0i64..1 << 60).prop_map(|n| n as f64),
            Just(f64::from_bits(0x7ff0_0000_0000_0002)),
            Just(-0.0),
        ]
    }

    proptest! {
        #[test]
        fn samples_come_back(
            entries in proptest::collection::vec(
                (any::<bool>(), proptest::collection::vec((0i64..1 << 20, value()), 1..40), any::<i32>(), any::<bool>()),
                1..5,
            ),
        ) {
            let mut stamps: Vec<i64> = Vec::new();
            let entries: Vec<Vec<Point>> = entries
                .into_iter()
                .map(|(same, samples, start, plain)| {
                    if !same || stamps.len() < samples.len() {
                        let mut t = i64::from(start);
                        stamps = samples.iter().map(|(step, _)| { t += step; t }).collect();
                    }
                    let samples = samples.iter().zip(&stamps).enumerate();
                    samples
                        .map(|(n, ((_, v), &t_ms))| Point { t_ms, v: if plain { n as f64 / 10.0 } else { *v } })
                        .collect()
                })
                .collect();
            let (all, mut decoder) = (encoded(&entries), PointDecoder::default());
            for (at, (entry, points)) in all.iter().zip(&entries).enumerate() {
                let mut out = Vec::new();
                if at % 2 == 1 {
                    prop_assert!(decoder.skip(entry, points.len()).is_some());
                    continue;
                }
                prop_assert!(decoder.read(entry, points.len(), &mut out).is_some());
                prop_assert_eq!(bits(&out), bits(points));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, count in 0usize..300) {
            let mut out = Vec::new();
            let read = PointDecoder::default().read(&bytes, count, &mut out);
            prop_assert_eq!(out.len(), if read.is_some() { count } else { 0 });
        }
    }
}
