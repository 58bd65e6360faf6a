//! One field of all values of an entry. Decimals are stored as their distances from a straight line, in as many bits as the
//! largest distance needs; other fields stay text. Layout: docs/formats/store.md, "Points".

use crate::wal::value::Field;
use kymo_base::varint::{put, put_bytes, take, take_bytes, unzigzag, zigzag};

/// Largest number of digits of a number.
const DIGITS_MAX: usize = 18;
const POWERS: [u64; DIGITS_MAX + 1] = {
    let mut powers = [1; DIGITS_MAX + 1];
    let mut at = 1;
    while at <= DIGITS_MAX {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};
/// Parts of a column's first byte: the digits after the point, and three flags.
const DIGITS: u8 = 31;
const STRIPPED: u8 = 32;
const STEPS: u8 = 64;
const TEXTS: u8 = 128;

/// A column being encoded.
#[derive(Default)]
pub(super) struct ValueColumn {
    /// The numbers; in place of a text, the number before it.
    numbers: Vec<i64>,
    digits: Vec<u8>,
    /// The texts, joined; index of the value and end of each.
    texts: Vec<u8>,
    ends: Vec<(usize, usize)>,
    codes: Vec<u64>,
}

/// A column being decoded.
pub(super) struct ReadColumn<'a> {
    digits: usize,
    stripped: bool,
    steps: bool,
    /// The texts, each with the index of its value.
    texts: Vec<(u64, &'a [u8])>,
    /// The slope; with steps, the first number.
    first: u64,
    low: u64,
    unit: u64,
    width: u32,
    bits: &'a [u8],
}

impl ValueColumn {
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.digits.clear();
        self.texts.clear();
        self.ends.clear();
    }

    pub(super) fn push(&mut self, field: Field<'_>) {
        match field {
            Field::Number(number, digits) => {
                self.numbers.push(number);
                self.digits.push(digits);
            }
            Field::Text(text) => {
                let at = self.numbers.len();
                self.texts.extend_from_slice(text);
                self.ends.push((at, self.texts.len()));
                self.numbers.push(self.numbers.last().copied().unwrap_or(0));
                self.digits.push(self.digits.last().copied().unwrap_or(0));
            }
        }
    }

    pub(super) fn put(&mut self, out: &mut Vec<u8>, are_stamps: bool) {
        self.begin_with_a_number();
        let (at, digits) = (out.len(), self.digits.iter().copied().max().unwrap_or(0));
        out.push(digits);
        if self.digits.iter().any(|&fewer| fewer < digits) {
            out[at] |= STRIPPED;
            self.widen(digits);
        }
        if !self.ends.is_empty() {
            out[at] |= TEXTS;
            self.put_texts(out);
        }
        if self.put_numbers(out, are_stamps) {
            out[at] |= STEPS;
        }
    }

    /// Texts before the first number are filled with that number.
    fn begin_with_a_number(&mut self) {
        let texts = self.ends.iter().enumerate();
        let texts = texts.take_while(|(place, (at, _))| place == at).count();
        if texts > 0 && texts < self.numbers.len() {
            let (number, digits) = (self.numbers[texts], self.digits[texts]);
            self.numbers[..texts].fill(number);
            self.digits[..texts].fill(digits);
        }
    }

    /// Gives all numbers this many digits after the point; a number that then
    /// has too many digits, or trailing zeros of its own, becomes a text.
    fn widen(&mut self, digits: u8) {
        let (texts, ends) = (
            std::mem::take(&mut self.texts),
            std::mem::take(&mut self.ends),
        );
        let (mut ends, mut from, mut last) = (ends.into_iter().peekable(), 0, 0);
        for at in 0..self.numbers.len() {
            let wide = widened((self.numbers[at], self.digits[at]), digits);
            match ends.next_if(|(place, _)| *place == at) {
                Some((_, end)) => {
                    self.texts.extend_from_slice(&texts[from..end]);
                    self.ends.push((at, self.texts.len()));
                    from = end;
                }
                None if wide.is_none() => {
                    print(
                        self.numbers[at],
                        self.digits[at].into(),
                        false,
                        &mut self.texts,
                    );
                    self.ends.push((at, self.texts.len()));
                }
                None => {}
            }
            last = wide.unwrap_or(last);
            self.numbers[at] = last;
        }
    }

    fn put_texts(&self, out: &mut Vec<u8>) {
        put(out, self.ends.len() as u64);
        let (mut next, mut from) = (0, 0);
        for &(at, end) in &self.ends {
            put(out, (at - next) as u64);
            put_bytes(out, &self.texts[from..end]);
            (next, from) = (at + 1, end);
        }
    }

    /// Encodes the numbers, less a line if they are stamps, or the steps between them, whichever has the smaller range.
    /// Returns true for steps.
    fn put_numbers(&mut self, out: &mut Vec<u8>, are_stamps: bool) -> bool {
        let numbers = &self.numbers[..];
        let slope = if are_stamps { slope_of(numbers) } else { 0 };
        let steps = numbers.windows(2).map(|two| two[1].wrapping_sub(two[0]));
        let line = (0i64..).zip(numbers);
        let line = line.map(|(at, number)| number.wrapping_sub(slope.wrapping_mul(at)));
        let mut span = Span::of(line.clone());
        let of_steps = (span.width > 0).then(|| Span::of(steps.clone()));
        let of_steps = of_steps.filter(|steps| steps.width < span.width);
        let first = of_steps.as_ref().map_or(slope, |_| numbers[0]);
        put(out, zigzag(first as u64, 0));
        span = of_steps.unwrap_or(span);
        put(out, zigzag(span.low as u64, 0));
        let code = |number: i64| number.wrapping_sub(span.low) as u64;
        self.codes.clear();
        match (span.width, of_steps.is_some()) {
            (0, _) => {}
            (_, true) => self.codes.extend(steps.map(code)),
            (_, false) => self.codes.extend(line.map(code)),
        }
        put_codes(out, &mut self.codes, span.width);
        of_steps.is_some()
    }
}

/// A number with this many digits after the point; `None` if it then has too many digits, or has trailing zeros of its own.
fn widened((number, has): (i64, u8), digits: u8) -> Option<i64> {
    if has > 0 && number % 10 == 0 {
        return None;
    }
    let power = POWERS[usize::from(digits - has)];
    let wide = number.checked_mul(power as i64)?;
    (wide.unsigned_abs() < POWERS[DIGITS_MAX]).then_some(wide)
}

/// The average distance of stamps, rounded, as differences below a thousandth of it are chance.
fn slope_of(stamps: &[i64]) -> i64 {
    let (Some(&first), Some(&last)) = (stamps.first(), stamps.last()) else {
        return 0;
    };
    let mean = last.wrapping_sub(first) / (stamps.len() as i64 - 1).max(1);
    let coarse = POWERS[mean
        .unsigned_abs()
        .checked_ilog10()
        .unwrap_or(0)
        .saturating_sub(3) as usize];
    let half = coarse as i64 / 2;
    (mean + half).div_euclid(coarse as i64) * coarse as i64
}

/// The lowest of some numbers, and the distance to the highest.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) low: i64,
    pub(super) width: u64,
}

impl Span {
    pub(super) fn of(numbers: impl Iterator<Item = i64>) -> Span {
        let ends = numbers.fold((i64::MAX, i64::MIN), |(low, high), number| {
            (low.min(number), high.max(number))
        });
        match ends {
            (low, high) if low <= high => Span {
                low,
                width: (high as u64).wrapping_sub(low as u64),
            },
            _ => Span { low: 0, width: 0 },
        }
    }
}

/// Appends the greatest common divisor of the codes, and the quotients; `most` is the largest code.
pub(super) fn put_codes(out: &mut Vec<u8>, codes: &mut [u64], most: u64) {
    let mut unit = most;
    for &code in &*codes {
        if unit == 1 {
            break;
        }
        unit = divisor(unit, code);
    }
    put(out, unit);
    if unit == 0 {
        return;
    }
    if unit > 1 {
        codes.iter_mut().for_each(|code| *code /= unit);
    }
    let width = u64::BITS - (most / unit).leading_zeros();
    out.push(width as u8);
    let (mut bits, mut len) = (0u128, 0);
    for &code in &*codes {
        bits |= u128::from(code) << len;
        len += width;
        if len >= u64::BITS {
            out.extend_from_slice(&(bits as u64).to_le_bytes());
            bits >>= u64::BITS;
            len -= u64::BITS;
        }
    }
    let left = len.div_ceil(8) as usize;
    out.extend_from_slice(&bits.to_le_bytes()[..left]);
}

/// The greatest common divisor.
fn divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

impl<'a> ReadColumn<'a> {
    pub(super) fn take(count: u64, input: &mut &'a [u8]) -> Option<ReadColumn<'a>> {
        let (&kind, rest) = input.split_first()?;
        *input = rest;
        let mut texts = Vec::new();
        let mut next = 0u64;
        for _ in 0..if kind & TEXTS != 0 { take(input)? } else { 0 } {
            let at = take(input)?.checked_add(next).filter(|&at| at < count)?;
            texts.push((at, take_bytes(input, usize::MAX)?));
            next = at + 1;
        }
        let mut column = ReadColumn {
            digits: usize::from(kind & DIGITS),
            stripped: kind & STRIPPED != 0,
            steps: kind & STEPS != 0,
            texts,
            first: unzigzag(take(input)?, 0),
            low: unzigzag(take(input)?, 0),
            unit: take(input)?,
            width: 0,
            bits: &[],
        };
        if column.unit != 0 {
            let (&width, rest) = input.split_first()?;
            column.width = u32::from(width);
            let codes = count - u64::from(column.steps);
            let len = (codes * u64::from(width)).div_ceil(8) as usize;
            (column.bits, *input) = rest.split_at_checked(len)?;
        }
        let known = column.digits <= DIGITS_MAX && column.width <= u64::BITS;
        known.then_some(column)
    }

    /// Returns a function that appends one field after the other.
    pub(super) fn fields(&self) -> impl FnMut(&mut Vec<u8>) {
        let (mut at, mut number) = (0u64, self.first);
        let mut texts = self.texts.iter().peekable();
        move |out| {
            number = match self.steps {
                true if at == 0 => number,
                true => number.wrapping_add(self.code(at - 1)),
                false => self.code(at).wrapping_add(self.first.wrapping_mul(at)),
            };
            match texts.next_if(|(place, _)| *place == at) {
                Some((_, text)) => out.extend_from_slice(text),
                None => print(number as i64, self.digits, self.stripped, out),
            }
            at += 1;
        }
    }

    fn code(&self, at: u64) -> u64 {
        let bit = at * u64::from(self.width);
        let (from, shift) = ((bit / 8) as usize, bit % 8);
        // A code has up to 64 bits and may begin inside a byte.
        let bytes = self.bits.get(from..).unwrap_or_default();
        let bits = bytes.iter().take(9).rev();
        let bits = bits.fold(0u128, |bits, &byte| bits << 8 | u128::from(byte)) >> shift;
        let code = bits & ((1 << self.width) - 1);
        self.low.wrapping_add(self.unit.wrapping_mul(code as u64))
    }
}

/// A text as a number, if printing that gives the same text.
pub(super) fn of_text(text: &[u8]) -> Field<'_> {
    decimal(text).map_or(Field::Text(text), |(number, digits)| {
        Field::Number(number, digits)
    })
}

/// The digits of a decimal as one number, and the number of digits after the point.
fn decimal(text: &[u8]) -> Option<(i64, u8)> {
    let (negative, text) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, text),
    };
    let point = text.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &text[..0]),
    };
    let is_plain = whole.len() == 1 || whole.first().is_some_and(|&byte| byte != b'0');
    let ends_well = point.is_none() || !fraction.is_empty();
    if !is_plain || !ends_well || whole.len() + fraction.len() > DIGITS_MAX {
        return None;
    }
    let mut number = 0;
    for &byte in whole.iter().chain(fraction) {
        if !byte.is_ascii_digit() {
            return None;
        }
        number = number * 10 + i64::from(byte - b'0');
    }
    match negative {
        true if number == 0 => None,
        true => Some((-number, fraction.len() as u8)),
        false => Some((number, fraction.len() as u8)),
    }
}

fn print(number: i64, digits: usize, stripped: bool, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    let power = POWERS[digits];
    let number = number.unsigned_abs();
    let whole = (number / power).to_string();
    out.extend_from_slice(whole.as_bytes());
    if digits == 0 || stripped && number.is_multiple_of(power) {
        return;
    }
    let fraction = format!(".{:0digits$}", number % power);
    let fraction = match stripped {
        true => fraction.trim_end_matches('0'),
        false => &fraction,
    };
    out.extend_from_slice(fraction.as_bytes());
}
