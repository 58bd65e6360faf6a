//! Values as they are kept in the journal and in memory: as numbers if printing these gives the original text, else
//! as text. Layout: docs/formats/journal.md, "Values".

use kymo_base::varint::{put, take, unzigzag, zigzag};
use kymo_rrd::number::decimal;
use kymo_rrd::number::{Parsed, strtodbl};

/// Largest number of digits of a field kept as a number; its zigzag code leaves two bits free.
const DIGITS_MAX: usize = 18;
/// Largest number of digits with other than six of them after the point; three bits and a code for `U` are needed.
const DIGITS_MAX_OTHERS: usize = 17;
/// Largest number of digits after the point that is stored with a number.
const FRACTION_MAX: usize = 7;
/// The most frequent number of digits after the point.
const MICRO_DIGITS: u8 = 6;
/// Largest length of a value before its fields or its text.
const HEAD_MAX: usize = 11;

/// The previous stamps and the previous series, to which the next ones are stored as differences.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamps {
    seconds: u64,
    micros: u64,
    pub(crate) id: u32,
}

impl Stamps {
    /// Returns the initial state with a previous stamp of this many seconds since 1970.
    pub(crate) fn at(seconds: u32) -> Stamps {
        Stamps {
            seconds: u64::from(seconds),
            micros: u64::from(seconds) * 1_000_000,
            id: 0,
        }
    }

    /// Decodes the step of a sample's stamp; returns the stamp in milliseconds.
    pub(crate) fn milli(&mut self, step: u64) -> i64 {
        let before = self.seconds.wrapping_mul(1000);
        let t_ms = unzigzag(step, before).cast_signed();
        self.seconds = (t_ms / 1000).max(0).cast_unsigned();
        t_ms
    }

    /// Encodes a sample's stamp, in milliseconds, as a step from the previous second.
    pub(crate) fn milli_step(&mut self, t_ms: i64) -> u64 {
        let before = self.seconds.wrapping_mul(1000);
        self.seconds = (t_ms / 1000).max(0).cast_unsigned();
        zigzag(t_ms.cast_unsigned(), before)
    }

    fn second(&mut self, step: u64) -> u64 {
        self.seconds = unzigzag(step, self.seconds);
        self.seconds
    }

    fn micro(&mut self, step: u64) -> u64 {
        self.micros = unzigzag(step, self.micros);
        self.micros
    }

    /// The newest stamp since [`Stamps::at`], in seconds since 1970; `None` if there was none.
    pub(crate) fn newest_s(&self, at: u32) -> Option<u32> {
        let came = [self.seconds, self.micros / 1_000_000];
        let came = came.into_iter().filter(|&seconds| seconds != at.into());
        u32::try_from(came.max()?).ok()
    }
}

/// A parsed value, to be appended to both the journal and memory, each with its own previous stamps.
#[derive(Default)]
pub(crate) struct Value {
    /// The stamp; `None` if printing numbers would not give the original text.
    stamp: Option<Number>,
    /// Number of fields after the stamp; 0 without one.
    fields: u8,
    /// The encoded fields; without a stamp the text.
    rest: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Number {
    Integer(u64),
    /// A decimal with this many digits after the point.
    Decimal(i64, u8),
    /// The field `U`.
    Unknown,
}

impl Value {
    /// Parses another text and reuses the memory.
    pub(crate) fn read(&mut self, text: &[u8]) {
        self.rest.clear();
        self.stamp = self.read_numbers(text);
        if self.stamp.is_none() {
            self.rest.clear();
            self.rest.extend_from_slice(text);
        }
    }

    /// Parses the stamp, and encodes the fields after it into `rest`.
    fn read_numbers(&mut self, text: &[u8]) -> Option<Number> {
        let colon = text.iter().position(|&byte| byte == b':')?;
        let (stamp, mut left) = text.split_at(colon);
        let stamp = number_of(stamp)?;
        // The differences of other stamps would not fit.
        if !matches!(
            stamp,
            Number::Integer(_) | Number::Decimal(0.., MICRO_DIGITS)
        ) {
            return None;
        }
        self.fields = 0;
        while let Some((_, behind)) = left.split_first() {
            let end = behind.iter().position(|&byte| byte == b':');
            let (field, behind) = behind.split_at(end.unwrap_or(behind.len()));
            put_field(&mut self.rest, field);
            self.fields = self.fields.checked_add(1).filter(|&count| count < 128)?;
            left = behind;
        }
        Some(stamp)
    }

    /// The stamp in seconds; `None` for a value kept as text.
    pub(crate) fn seconds(&self) -> Option<f64> {
        match self.stamp? {
            Number::Integer(seconds) => decimal(seconds, 0),
            Number::Decimal(digits, fraction) => decimal(digits.try_into().ok()?, fraction),
            Number::Unknown => None,
        }
    }

    /// Upper bound of the encoded length.
    pub(crate) fn len_max(&self) -> usize {
        self.rest.len() + HEAD_MAX
    }

    /// Appends the encoded value.
    pub(crate) fn put(&self, out: &mut Vec<u8>, stamps: &mut Stamps) {
        let (step, is_micros) = match self.stamp {
            Some(Number::Integer(seconds)) => {
                let step = zigzag(seconds, stamps.seconds);
                stamps.seconds = seconds;
                (step, 0)
            }
            Some(Number::Decimal(micros, _)) => {
                let step = zigzag(micros.cast_unsigned(), stamps.micros);
                stamps.micros = micros.cast_unsigned();
                (step, 1)
            }
            _ => {
                put(out, (self.rest.len() as u64) << 2 | 1);
                out.extend_from_slice(&self.rest);
                return;
            }
        };
        match self.fields {
            1 => put(out, step << 2 | is_micros << 1),
            count => {
                put(out, (step << 1 | is_micros) << 2 | 3);
                out.push(count);
            }
        }
        out.extend_from_slice(&self.rest);
    }
}

impl Value {
    /// Removes an encoded value from the front without decoding its fields.
    pub(crate) fn take(&mut self, input: &mut &[u8], stamps: &mut Stamps) -> Option<()> {
        let head = take_head(input)?;
        self.rest.clear();
        let ValueHead::Stamp {
            step,
            is_micros,
            count,
        } = head
        else {
            self.stamp = None;
            let ValueHead::Text(len) = head else {
                return None;
            };
            self.rest.extend_from_slice(take_slice(input, len)?);
            return Some(());
        };
        self.fields = count;
        self.stamp = Some(match is_micros {
            false => Number::Integer(stamps.second(step)),
            true => Number::Decimal(stamps.micro(step).cast_signed(), MICRO_DIGITS),
        });
        let fields = *input;
        for _ in 0..count {
            take_field(input)?;
        }
        self.rest
            .extend_from_slice(&fields[..fields.len() - input.len()]);
        Some(())
    }

    /// The stamp as text, with the colon after it; for a value kept as text, the whole text.
    pub(crate) fn stamp_text<'a>(&'a self, text: &'a mut Vec<u8>) -> &'a [u8] {
        text.clear();
        match self.stamp {
            Some(Number::Integer(value)) => put_number(text, value.cast_signed(), 0),
            Some(Number::Decimal(value, digits)) => put_number(text, value, digits),
            _ => return &self.rest,
        }
        if self.fields > 0 {
            text.push(b':');
        }
        text
    }
}

/// Encodes and appends a value.
pub(crate) fn put_value(out: &mut Vec<u8>, stamps: &mut Stamps, text: &[u8]) {
    let mut value = Value::default();
    value.read(text);
    value.put(out, stamps);
}

fn put_field(out: &mut Vec<u8>, text: &[u8]) {
    match number_of(text) {
        Some(Number::Integer(value)) => put(out, value << 2),
        Some(Number::Decimal(value, MICRO_DIGITS)) => {
            put(out, zigzag(value.cast_unsigned(), 0) << 2 | 2)
        }
        Some(Number::Decimal(value, digits)) => {
            let code = zigzag(value.cast_unsigned(), 0) << 3 | u64::from(digits);
            put(out, (code + 1) << 2 | 3);
        }
        Some(Number::Unknown) => out.push(3),
        None => {
            put(out, (text.len() as u64) << 2 | 1);
            out.extend_from_slice(text);
        }
    }
}

/// Parses a number, if printing it gives the same text.
fn number_of(text: &[u8]) -> Option<Number> {
    if text == b"U" {
        return Some(Number::Unknown);
    }
    let (negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, text),
    };
    if digits.len() > DIGITS_MAX + 1 {
        return None;
    }
    let (mut value, mut point) = (0u64, None);
    for (at, &byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let whole = point.unwrap_or(digits.len());
    let fraction = digits.len() - point.map_or(digits.len(), |at| at + 1);
    let is_plain = whole == 1 || (whole > 1 && digits[0] != b'0');
    let ends_well = point.is_none() || (1..=FRACTION_MAX).contains(&fraction);
    if !is_plain || !ends_well || (negative && value == 0) {
        return None;
    }
    if point.is_none() && !negative {
        return (whole <= DIGITS_MAX).then_some(Number::Integer(value));
    }
    let most = match fraction == usize::from(MICRO_DIGITS) {
        true => DIGITS_MAX,
        false => DIGITS_MAX_OTHERS,
    };
    let value = if negative {
        -value.cast_signed()
    } else {
        value.cast_signed()
    };
    (whole + fraction <= most).then_some(Number::Decimal(value, fraction as u8))
}

/// A field of a value; the first one is the stamp.
#[derive(Clone, Copy)]
pub(crate) enum Field<'a> {
    /// A decimal with this many digits after the point.
    Number(i64, u8),
    /// A text, which may be several fields with colons between them.
    Text(&'a [u8]),
}

/// Removes a value from the front, field by field; the printed fields, joined by colons, are the original text.
pub(crate) fn take_fields<'a>(
    input: &mut &'a [u8],
    stamps: &mut Stamps,
    each: &mut impl FnMut(Field<'a>),
) -> Option<()> {
    let (step, is_micros, count) = match take_head(input)? {
        ValueHead::Stamp {
            step,
            is_micros,
            count,
        } => (step, is_micros, count),
        ValueHead::Text(len) => {
            each(Field::Text(take_slice(input, len)?));
            return Some(());
        }
    };
    each(match is_micros {
        false => Field::Number(stamps.second(step).cast_signed(), 0),
        true => Field::Number(stamps.micro(step).cast_signed(), MICRO_DIGITS),
    });
    for _ in 0..count {
        each(take_field(input)?);
    }
    Some(())
}

/// The decoded head of a value.
enum ValueHead {
    /// Step from the previous stamp, and number of the fields that follow.
    Stamp {
        step: u64,
        is_micros: bool,
        count: u8,
    },
    /// Length of the value's text.
    Text(u64),
}

fn take_head(input: &mut &[u8]) -> Option<ValueHead> {
    let head = take(input)?;
    let rest = head >> 2;
    let (step, is_micros, count) = match head & 3 {
        0 => (rest, false, 1),
        2 => (rest, true, 1),
        1 => return Some(ValueHead::Text(rest)),
        _ => {
            let (&count, left) = input.split_first()?;
            *input = left;
            (rest >> 1, rest & 1 == 1, count)
        }
    };
    Some(ValueHead::Stamp {
        step,
        is_micros,
        count,
    })
}

fn take_field<'a>(input: &mut &'a [u8]) -> Option<Field<'a>> {
    let head = take(input)?;
    let rest = head >> 2;
    Some(match head & 3 {
        0 => Field::Number(rest.cast_signed(), 0),
        1 => Field::Text(take_slice(input, rest)?),
        2 => Field::Number(unzigzag(rest, 0).cast_signed(), MICRO_DIGITS),
        _ => match rest.checked_sub(1) {
            None => Field::Text(b"U"),
            Some(code) => Field::Number(unzigzag(code >> 3, 0).cast_signed(), (code & 7) as u8),
        },
    })
}

fn take_slice<'a>(input: &mut &'a [u8], len: u64) -> Option<&'a [u8]> {
    let (front, rest) = input.split_at_checked(usize::try_from(len).ok()?)?;
    *input = rest;
    Some(front)
}

/// Removes a value from the front and appends its text to `text`.
pub(crate) fn take_value(input: &mut &[u8], stamps: &mut Stamps, text: &mut Vec<u8>) -> Option<()> {
    let mut first = true;
    take_fields(input, stamps, &mut |field| {
        if !std::mem::take(&mut first) {
            text.push(b':');
        }
        match field {
            Field::Number(value, digits) => put_number(text, value, digits),
            Field::Text(bytes) => text.extend_from_slice(bytes),
        }
    })
}

/// Removes a value from the front without building its text; returns its stamp unless the value is kept as text.
pub(crate) fn skip_value(input: &mut &[u8], stamps: &mut Stamps) -> Option<Option<f64>> {
    let (mut first, mut stamp) = (true, None);
    take_fields(input, stamps, &mut |field| {
        if let (true, Field::Number(digits, fraction)) = (std::mem::take(&mut first), field) {
            stamp = u64::try_from(digits)
                .ok()
                .and_then(|digits| decimal(digits, fraction));
        }
    })?;
    Some(stamp)
}

/// Appends a number with so many digits after the point.
pub(crate) fn put_number(text: &mut Vec<u8>, value: i64, digits: u8) {
    if value < 0 {
        text.push(b'-');
    }
    let mut bytes = [b'0'; 32];
    let (mut at, mut left, digits) = (bytes.len(), value.unsigned_abs(), usize::from(digits));
    loop {
        at -= 1;
        if digits > 0 && bytes.len() - at == digits + 1 {
            bytes[at] = b'.';
            at -= 1;
        }
        bytes[at] = b'0' + (left % 10) as u8;
        left /= 10;
        // At least one digit precedes a point.
        let behind = digits + 1 + usize::from(digits > 0);
        if left == 0 && bytes.len() - at >= behind {
            break;
        }
    }
    text.extend_from_slice(&bytes[at..]);
}

/// Number of digits up to which every integer is exact as a double.
const EXACT_DIGITS: usize = 15;

/// The number before the first `:`, parsed as rrdtool does.
pub(crate) fn stamp_of(text: &[u8]) -> Option<f64> {
    let mut seconds = 0u64;
    for (i, &byte) in text.iter().enumerate().take(EXACT_DIGITS + 1) {
        match byte {
            b'0'..=b'9' if i < EXACT_DIGITS => seconds = seconds * 10 + u64::from(byte - b'0'),
            b':' if i > 0 => return Some(seconds as f64),
            _ => break,
        }
    }
    match strtodbl(text) {
        Parsed::Trailing(stamp, used) if text.get(used) == Some(&b':') => Some(stamp),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_rrd::number::strtod;
    use proptest::prelude::*;

    fn round_trip(texts: &[&[u8]]) -> Vec<u8> {
        let (mut out, mut stamps) = (Vec::new(), Stamps::default());
        for text in texts {
            put_value(&mut out, &mut stamps, text);
        }
        let (mut input, mut stamps) = (&out[..], Stamps::default());
        for text in texts {
            let before = (input, stamps);
            let (mut skipped, mut skipped_stamps) = before;
            let stamp = skip_value(&mut skipped, &mut skipped_stamps).unwrap();
            let mut back = Vec::new();
            take_value(&mut input, &mut stamps, &mut back).unwrap();
            assert_eq!(&back, text, "{}", String::from_utf8_lossy(text));
            assert_eq!(skipped, input);
            let (mut whole, mut whole_stamps, mut value) = (before.0, before.1, Value::default());
            value.take(&mut whole, &mut whole_stamps).unwrap();
            let (mut again, mut again_stamps) = (Vec::new(), before.1);
            value.put(&mut again, &mut again_stamps);
            assert_eq!(again, before.0[..before.0.len() - input.len()]);
            assert_eq!(stamp_of(value.stamp_text(&mut Vec::new())), stamp_of(text));
            if let Some(stamp) = stamp {
                assert_eq!(stamp_of(text), Some(stamp));
            }
            value.read(text);
            if let Some(stamp) = value.seconds() {
                assert_eq!(stamp_of(text), Some(stamp));
            }
        }
        assert!(input.is_empty());
        out
    }

    #[test]
    fn values_come_back_as_they_were_sent() {
        for (text, bytes) in [
            (&b"1000000010:1"[..], 6),
            (b"1000000010.123456:0.500000", 12),
            (b"1000000010:U:1", 8),
            (b"1000000010:-0.000000", 15),
            (b"1000000010:-1.500000", 9),
            (b"1000000010:123.45", 8),
            (b"1000000010:-5", 7),
            (b"1000000010:0.1234567", 9),
            (b"1000000010:0.12345678", 16),
            (b"1000000010:1.", 8),
            (b"1000000010:.5", 8),
            (b"1000000010:01", 8),
            (b"1000000010:", 6),
            (b"1000000010::", 8),
            (b"01000000010:1", 14),
            (b"1000000010:1e5:nan", 14),
            (b"99999999999999999999:1", 23),
            (b"1000000010:999999999999999", 13),
            (b"1000000010:-12345678901234567", 14),
            (b"1000000010:-123456789012345678", 25),
            (b"1000000010:18446744073709551615", 26),
            (b"", 1),
            (b":", 2),
            (b"-5:1", 5),
            (b"U:1", 4),
        ] {
            let got = round_trip(&[text]).len();
            assert_eq!(got, bytes, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(round_trip(&[b"1000000010:1", b"1000000020:2"]).len(), 6 + 2);
        let many = [b"1000000010".to_vec(), b":1".repeat(300)].concat();
        round_trip(&[&many, b"1000000011:1"]);
    }

    proptest! {
        #[test]
        fn any_text_comes_back(texts in proptest::collection::vec("[-0-9.:UeN]{0,24}", 0..9)) {
            let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
            round_trip(&texts);
        }

        #[test]
        fn stamps_are_those_of_the_texts(seconds in 0..4_000_000_000u64, micros in 0..1_000_000u32) {
            let text = format!("{seconds}.{micros:06}:1");
            let mut value = Value::default();
            value.read(text.as_bytes());
            let stamp = value.seconds().map(f64::to_bits);
            prop_assert!(stamp.is_some());
            prop_assert_eq!(stamp, stamp_of(text.as_bytes()).map(f64::to_bits));
            round_trip(&[text.as_bytes()]);
        }
    }

    #[test]
    fn stamps_are_read_as_rrdtool_does() {
        for (text, stamp) in [
            (&b"1000000010:1"[..], Some(1000000010.0)),
            (b"1000000010.5:1", Some(1000000010.5)),
            (b"1000000010:", Some(1000000010.0)),
            (b"-5:1", Some(-5.0)),
            (b" 7:1", Some(7.0)),
            (b"1e3:1", Some(1000.0)),
            (b"N:1", None),
            (b"", None),
            (b":", None),
            (b"1000000010", None),
            (b"1000000010@1", None),
            (b"nan:1", None),
            (b"10x:1", None),
        ] {
            assert_eq!(stamp_of(text), stamp, "{}", String::from_utf8_lossy(text));
        }
        for text in [&b"123456789012345:1"[..], b"1234567890123456:1", b"0010:2"] {
            assert_eq!(stamp_of(text), Some(strtod(text).0));
        }
    }
}
