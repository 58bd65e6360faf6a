//! What a journal says, entry by entry: appended to a buffer, read from a slice. Knows no file and no checksum.
//! Layout: docs/formats/journal.md, "Entries".

use crate::edits::Live;
use std::borrow::Cow;
use std::sync::Arc;

use kymo_base::varint::{put, put_bytes, take, take_bytes, unzigzag, zigzag};

const SHAPE: u8 = 1;
const VALUES: u8 = 2;
const GROUP: u8 = 3;
const START: u8 = 4;
const END: u8 = 5;
const FORGET: u8 = 6;
const CHECKPOINT: u8 = 7;
const GONE: u8 = 8;
const NOT_STARTED: u8 = 9;
const SHOWN: u8 = 10;
const LIVE: u8 = 11;
const RENAMED: u8 = 12;
/// One value of the group that is so many numbers behind the one before: the lowest seven bits.
const NEXT: u8 = 0x80;
/// A count of values is one byte.
const VALUES_MAX: usize = 127;

/// Longest path or text that is believed.
const TEXT_MAX: usize = 64 << 20;
/// Longest header or archive that is believed.
const PACKED_MAX: usize = 128 << 20;
/// Numbers of so many digits are kept as numbers; two more bits fit beside the zigzag of them.
const DIGITS_MAX: usize = 18;

/// Which file it was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size_bytes: u64,
    pub(crate) mtime_ns: i64,
}

/// How a group begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Birth {
    /// Where it is saved.
    pub(crate) chunk: u32,
    pub(crate) slot: u8,
    /// Its file has rows from before, up to this stamp; else nothing was known of it before.
    pub(crate) base: Option<i64>,
    /// Its state, as its shape packs it.
    pub(crate) state: Vec<u64>,
}

/// A group's state without its zeros, of which it has many: for as long as no block has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packed(Arc<[u8]>);

impl Packed {
    pub(crate) fn of(words: &[u64]) -> Packed {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut packed = Vec::new();
        put_packed(&mut packed, &bytes);
        Packed(packed.into())
    }

    pub(crate) fn words(&self) -> Vec<u64> {
        let bytes = take_packed(&mut &self.0[..]).unwrap_or_default();
        let words = bytes.as_chunks().0.iter();
        words.map(|word| u64::from_le_bytes(*word)).collect()
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry<'a> {
    /// In this journal file, groups of this chunk have these definitions.
    Shape { chunk: u32, front: Cow<'a, [u8]> },
    /// There is a group of this number, for ever.
    Group {
        id: u32,
        path: &'a [u8],
        birth: Birth,
    },
    /// Values were accepted; call [`take_value`] for each.
    Values { id: u32, count: u64 },
    /// Values up to this stamp count as written.
    Shown { id: u32, upto: f64 },
    /// The group's file is about to be brought up to this stamp.
    Start { id: u32, upto: f64 },
    /// Its file has everything up to this stamp, and this is how it was left.
    End {
        id: u32,
        upto: f64,
        identity: Identity,
    },
    /// Checksums of the header that the END before tells of.
    Live { id: u32, live: Live },
    /// Its file has this path from now on.
    Renamed { id: u32, path: &'a [u8] },
    /// The write that was announced did not begin.
    NotStarted { id: u32 },
    /// Its pending values were dropped.
    Forget { id: u32 },
    /// There is no such group any more.
    Gone { id: u32 },
    /// Files written before this position are on the disk.
    Checkpoint { position: u64 },
}

impl Entry<'_> {
    /// Appends the entry (not [`Entry::Values`]: see [`put_values_head`]).
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Entry::Shape { chunk, front } => {
                put_head(out, SHAPE, *chunk);
                put_packed(out, front);
            }
            Entry::Group { id, path, birth } => {
                put_head(out, GROUP, *id);
                put_bytes(out, path);
                put(out, u64::from(birth.chunk));
                out.push(birth.slot);
                out.push(u8::from(birth.base.is_some()));
                out.extend_from_slice(&birth.base.unwrap_or(0).to_le_bytes());
                let words = birth.state.iter().flat_map(|word| word.to_le_bytes());
                put_packed(out, &words.collect::<Vec<u8>>());
            }
            Entry::Values { id, count } => put_values_head(out, *id, *count),
            Entry::Shown { id, upto } => {
                put_head(out, SHOWN, *id);
                out.extend_from_slice(&upto.to_le_bytes());
            }
            Entry::Start { id, upto } => {
                put_head(out, START, *id);
                out.extend_from_slice(&upto.to_le_bytes());
            }
            Entry::End { id, upto, identity } => {
                put_head(out, END, *id);
                out.extend_from_slice(&upto.to_le_bytes());
                put(out, identity.device);
                put(out, identity.inode);
                put(out, identity.size_bytes);
                out.extend_from_slice(&identity.mtime_ns.to_le_bytes());
            }
            Entry::Live { id, live } => {
                put_head(out, LIVE, *id);
                out.extend_from_slice(&live.updated.to_le_bytes());
                out.extend_from_slice(&live.tuned.to_le_bytes());
            }
            Entry::Renamed { id, path } => {
                put_head(out, RENAMED, *id);
                put_bytes(out, path);
            }
            Entry::Forget { id } => put_head(out, FORGET, *id),
            Entry::Checkpoint { position } => {
                out.push(CHECKPOINT);
                put(out, *position);
            }
            Entry::Gone { id } => put_head(out, GONE, *id),
            Entry::NotStarted { id } => put_head(out, NOT_STARTED, *id),
        }
    }

    /// Takes an entry off the front. After [`Entry::Values`] its values follow.
    pub(crate) fn take<'a>(input: &mut &'a [u8]) -> Option<Entry<'a>> {
        let (&kind, rest) = input.split_first()?;
        *input = rest;
        if kind == CHECKPOINT {
            let position = take(input)?;
            return Some(Entry::Checkpoint { position });
        }
        let id = u32::try_from(take(input)?).ok()?;
        Some(match kind {
            SHAPE => Entry::Shape {
                chunk: id,
                front: Cow::Owned(take_packed(input)?),
            },
            GROUP => take_group(id, input)?,
            SHOWN => Entry::Shown {
                id,
                upto: f64::from_le_bytes(take_array(input)?),
            },
            VALUES => Entry::Values {
                id,
                count: take(input)?,
            },
            START => Entry::Start {
                id,
                upto: f64::from_le_bytes(take_array(input)?),
            },
            END => Entry::End {
                id,
                upto: f64::from_le_bytes(take_array(input)?),
                identity: Identity {
                    device: take(input)?,
                    inode: take(input)?,
                    size_bytes: take(input)?,
                    mtime_ns: i64::from_le_bytes(take_array(input)?),
                },
            },
            LIVE => Entry::Live {
                id,
                live: Live {
                    updated: u32::from_le_bytes(take_array(input)?),
                    tuned: u32::from_le_bytes(take_array(input)?),
                },
            },
            RENAMED => Entry::Renamed {
                id,
                path: take_bytes(input, TEXT_MAX)?,
            },
            FORGET => Entry::Forget { id },
            GONE => Entry::Gone { id },
            NOT_STARTED => Entry::NotStarted { id },
            _ => return None,
        })
    }
}

fn put_head(out: &mut Vec<u8>, kind: u8, id: u32) {
    out.push(kind);
    put(out, u64::from(id));
}

fn take_group<'a>(id: u32, input: &mut &'a [u8]) -> Option<Entry<'a>> {
    let path = take_bytes(input, TEXT_MAX)?;
    let chunk = u32::try_from(take(input)?).ok()?;
    let [slot, has_base] = take_array(input)?;
    let base = i64::from_le_bytes(take_array(input)?);
    let bytes = take_packed(input)?;
    let words = bytes.as_chunks().0.iter();
    Some(Entry::Group {
        id,
        path,
        birth: Birth {
            chunk,
            slot,
            base: (has_base != 0).then_some(base),
            state: words.map(|word| u64::from_le_bytes(*word)).collect(),
        },
    })
}

/// Bytes by words of eight; a bit of a mask says which of eight words are there, the others are zeros.
/// More than half of a header's words are.
fn put_packed(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    for eight in bytes.chunks(64) {
        let at = out.len();
        out.push(0);
        for (i, word) in eight.chunks(8).enumerate() {
            if word.iter().any(|&byte| byte != 0) {
                out[at] |= 1 << i;
                out.extend_from_slice(word);
            }
        }
    }
}

fn take_packed(input: &mut &[u8]) -> Option<Vec<u8>> {
    let len = usize::try_from(take(input)?).ok()?;
    // A mask byte stands for 64 bytes at most: little is allocated for what is not there.
    if len > PACKED_MAX || len.div_ceil(64) > input.len() {
        return None;
    }
    let mut bytes = Vec::with_capacity(len.min(input.len() * 8));
    while bytes.len() < len {
        let [mask] = take_array(input)?;
        for i in 0..8 {
            let word = (len - bytes.len()).min(8);
            if mask & (1 << i) == 0 {
                bytes.resize(bytes.len() + word, 0);
            } else {
                let (front, rest) = input.split_at_checked(word)?;
                bytes.extend_from_slice(front);
                *input = rest;
            }
        }
    }
    Some(bytes)
}

fn take_array<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(*front)
}

/// Begins a [`Entry::Values`]; `count` calls of [`Value::put`] must follow.
pub(crate) fn put_values_head(out: &mut Vec<u8>, id: u32, count: u64) {
    put_head(out, VALUES, id);
    put(out, count);
}

/// The stamps before this one in a frame, and whose values were the last: they are written as differences.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamps {
    seconds: u64,
    micros: u64,
    pub(crate) id: u32,
}

/// The values of one group while they are appended. A single one needs no more than a byte before it, mostly: clients
/// send the same series in the same order.
pub(crate) struct ValuesHead {
    id: u32,
    at: usize,
    /// Where the count is; none as long as one byte is the whole head.
    count_at: Option<usize>,
    count: usize,
}

impl ValuesHead {
    /// Begins with the first value's head.
    pub(crate) fn begin(out: &mut Vec<u8>, stamps: &mut Stamps, id: u32) -> ValuesHead {
        let (at, step) = (out.len(), id.wrapping_sub(stamps.id));
        stamps.id = id;
        let mut head = ValuesHead {
            id,
            at,
            count_at: None,
            count: 1,
        };
        match step < u32::from(NEXT) {
            true => out.push(NEXT | step as u8),
            false => head.put_long(out),
        }
        head
    }

    fn put_long(&mut self, out: &mut Vec<u8>) {
        put_values_head(out, self.id, 1);
        self.count_at = Some(out.len() - 1);
    }

    /// Another value follows; `false`: it needs a head of its own.
    pub(crate) fn another(&mut self, out: &mut Vec<u8>) -> bool {
        if self.count == VALUES_MAX {
            return false;
        }
        if self.count_at.is_none() {
            let first = out.split_off(self.at + 1);
            out.truncate(self.at);
            self.put_long(out);
            out.extend_from_slice(&first);
        }
        self.count += 1;
        if let Some(at) = self.count_at {
            out[at] = self.count as u8;
        }
        true
    }
}

/// Takes the head of a single value that follows another group's; its group.
pub(crate) fn take_next(input: &mut &[u8], stamps: &mut Stamps) -> Option<u32> {
    let (&kind, rest) = input.split_first().filter(|(kind, _)| **kind & NEXT != 0)?;
    *input = rest;
    stamps.id = stamps.id.wrapping_add(u32::from(kind & !NEXT));
    Some(stamps.id)
}

/// What a value's text is, read once for all who keep it: the journal and memory, with stamps before it of their own.
#[derive(Default)]
pub(crate) struct Value {
    /// `None`: printing numbers would not give the same text.
    stamp: Option<Number>,
    /// What follows the stamp; else the text.
    rest: Vec<u8>,
}

impl Value {
    /// Takes in another text; memory is kept.
    pub(crate) fn read(&mut self, text: &[u8]) {
        self.rest.clear();
        self.stamp = read_numbers(text, &mut self.rest);
        if self.stamp.is_none() {
            self.rest.clear();
            self.rest.extend_from_slice(text);
        }
    }

    /// Its stamp, if that is an integer which is a double without rounding.
    pub(crate) fn seconds(&self) -> Option<f64> {
        match self.stamp {
            Some(Number::Integer(seconds)) if seconds < EXACT_END => Some(seconds as f64),
            _ => None,
        }
    }

    /// Appends it: as numbers if printing them gives the same text, else the text.
    pub(crate) fn put(&self, out: &mut Vec<u8>, stamps: &mut Stamps) {
        match self.stamp {
            Some(Number::Integer(seconds)) => {
                put(out, zigzag(seconds, stamps.seconds) << 2);
                stamps.seconds = seconds;
            }
            Some(Number::Micros(micros)) => {
                put(out, zigzag(micros as u64, stamps.micros) << 2 | 2);
                stamps.micros = micros as u64;
            }
            _ => put(out, (self.rest.len() as u64) << 2 | 1),
        }
        out.extend_from_slice(&self.rest);
    }
}

/// Appends a value.
pub(crate) fn put_value(out: &mut Vec<u8>, stamps: &mut Stamps, text: &[u8]) {
    let mut value = Value::default();
    value.read(text);
    value.put(out, stamps);
}

/// The stamp; the fields behind it, and before them how many there are, go to `rest`.
fn read_numbers(text: &[u8], rest: &mut Vec<u8>) -> Option<Number> {
    let colon = text.iter().position(|&byte| byte == b':')?;
    let (stamp, mut left) = text.split_at(colon);
    let stamp = number_of(stamp).filter(|stamp| !matches!(stamp, Number::Unknown))?;
    rest.push(0);
    let mut count = 0u8;
    while let Some((_, behind)) = left.split_first() {
        let end = behind
            .iter()
            .position(|&byte| byte == b':')
            .unwrap_or(behind.len());
        let (field, behind) = behind.split_at(end);
        match number_of(field) {
            Some(Number::Integer(value)) => put(rest, value << 2),
            Some(Number::Micros(value)) => put(rest, zigzag(value as u64, 0) << 2 | 2),
            Some(Number::Unknown) => rest.push(3),
            None => {
                put(rest, (field.len() as u64) << 2 | 1);
                rest.extend_from_slice(field);
            }
        }
        count = count.checked_add(1).filter(|&count| count < 128)?;
        left = behind;
    }
    rest[0] = count;
    Some(stamp)
}

/// Integers below are doubles without rounding.
pub(crate) const EXACT_END: u64 = 1 << 53;

#[derive(Clone, Copy)]
enum Number {
    Integer(u64),
    /// Six digits after the point.
    Micros(i64),
    /// `U`.
    Unknown,
}

/// The number a text stands for, if the text is how that number is printed.
fn number_of(text: &[u8]) -> Option<Number> {
    if text == b"U" {
        return Some(Number::Unknown);
    }
    let (negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, text),
    };
    let whole = digits.len().checked_sub(7).filter(|&at| digits[at] == b'.');
    let (integer, fraction) = match whole {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &digits[..0]),
    };
    if integer.is_empty() || integer.len() + fraction.len() > DIGITS_MAX {
        return None;
    }
    if integer[0] == b'0' && integer.len() > 1 {
        return None;
    }
    let mut value = 0u64;
    for &byte in integer.iter().chain(fraction) {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u64::from(byte - b'0');
    }
    match (whole, negative) {
        (None, false) => Some(Number::Integer(value)),
        (Some(_), false) => Some(Number::Micros(value as i64)),
        (Some(_), true) if value != 0 => Some(Number::Micros(-(value as i64))),
        _ => None,
    }
}

/// Takes a value off the front and appends its text to `text`.
pub(crate) fn take_value(input: &mut &[u8], stamps: &mut Stamps, text: &mut Vec<u8>) -> Option<()> {
    let head = take(input)?;
    match head & 3 {
        0 => {
            stamps.seconds = unzigzag(head >> 2, stamps.seconds);
            print_integer(text, stamps.seconds);
        }
        2 => {
            stamps.micros = unzigzag(head >> 2, stamps.micros);
            print_micros(text, stamps.micros as i64);
        }
        1 => return take_text(input, head >> 2, text),
        _ => return None,
    }
    let [count] = take_array(input)?;
    for _ in 0..count {
        text.push(b':');
        let field = take(input)?;
        match field & 3 {
            0 => print_integer(text, field >> 2),
            1 => take_text(input, field >> 2, text)?,
            2 => print_micros(text, unzigzag(field >> 2, 0) as i64),
            _ => text.push(b'U'),
        }
    }
    Some(())
}

/// Takes a value off the front without its text; its stamp, if that is an integer.
pub(crate) fn skip_value(input: &mut &[u8], stamps: &mut Stamps) -> Option<Option<u64>> {
    let head = take(input)?;
    let stamp = match head & 3 {
        0 => {
            stamps.seconds = unzigzag(head >> 2, stamps.seconds);
            Some(stamps.seconds)
        }
        2 => {
            stamps.micros = unzigzag(head >> 2, stamps.micros);
            None
        }
        1 => return skip_text(input, head >> 2).map(|()| None),
        _ => return None,
    };
    let [count] = take_array(input)?;
    for _ in 0..count {
        let field = take(input)?;
        if field & 3 == 1 {
            skip_text(input, field >> 2)?;
        }
    }
    Some(stamp)
}

fn skip_text(input: &mut &[u8], len: u64) -> Option<()> {
    *input = input.get(usize::try_from(len).ok()?..)?;
    Some(())
}

fn take_text(input: &mut &[u8], len: u64, text: &mut Vec<u8>) -> Option<()> {
    text.extend_from_slice(take_slice(input, len)?);
    Some(())
}

fn take_slice<'a>(input: &mut &'a [u8], len: u64) -> Option<&'a [u8]> {
    let (front, rest) = input.split_at_checked(usize::try_from(len).ok()?)?;
    *input = rest;
    Some(front)
}

/// A field of a value, its stamp among them.
#[derive(Clone, Copy)]
pub(crate) enum Field<'a> {
    /// What is printed with so many digits after the point.
    Number(i64, u8),
    /// A text, or several fields with a colon between them.
    Text(&'a [u8]),
}

/// Takes a value off the front, field after field; printing them with a colon between them gives the text.
pub(crate) fn take_fields<'a>(
    input: &mut &'a [u8],
    stamps: &mut Stamps,
    each: &mut impl FnMut(Field<'a>),
) -> Option<()> {
    let head = take(input)?;
    match head & 3 {
        0 => {
            stamps.seconds = unzigzag(head >> 2, stamps.seconds);
            each(Field::Number(stamps.seconds as i64, 0));
        }
        2 => {
            stamps.micros = unzigzag(head >> 2, stamps.micros);
            each(Field::Number(stamps.micros as i64, 6));
        }
        1 => {
            each(Field::Text(take_slice(input, head >> 2)?));
            return Some(());
        }
        _ => return None,
    }
    let [count] = take_array(input)?;
    for _ in 0..count {
        let field = take(input)?;
        each(match field & 3 {
            0 => Field::Number((field >> 2) as i64, 0),
            1 => Field::Text(take_slice(input, field >> 2)?),
            2 => Field::Number(unzigzag(field >> 2, 0) as i64, 6),
            _ => Field::Text(b"U"),
        });
    }
    Some(())
}

fn print_integer(text: &mut Vec<u8>, value: u64) {
    let mut digits = [0; 20];
    let (mut at, mut left) = (digits.len(), value);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

fn print_micros(text: &mut Vec<u8>, value: i64) {
    if value < 0 {
        text.push(b'-');
    }
    print_integer(text, value.unsigned_abs() / 1_000_000);
    text.push(b'.');
    let fraction = value.unsigned_abs() % 1_000_000;
    text.extend_from_slice(format!("{fraction:06}").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(texts: &[&[u8]]) -> Vec<u8> {
        let (mut out, mut stamps) = (Vec::new(), Stamps::default());
        for text in texts {
            put_value(&mut out, &mut stamps, text);
        }
        let (mut input, mut stamps) = (&out[..], Stamps::default());
        for text in texts {
            let (mut skipped, mut skipped_stamps) = (input, stamps);
            let stamp = skip_value(&mut skipped, &mut skipped_stamps).unwrap();
            let mut back = Vec::new();
            take_value(&mut input, &mut stamps, &mut back).unwrap();
            assert_eq!(&back, text, "{}", String::from_utf8_lossy(text));
            assert_eq!(skipped, input);
            if let Some(stamp) = stamp {
                assert_eq!(crate::turn::stamp_of(text), Some(stamp as f64));
            }
        }
        assert!(input.is_empty());
        out
    }

    #[test]
    fn values_come_back_as_they_were_sent() {
        for (text, bytes) in [
            (&b"1000000010:1"[..], 7),
            (b"1000000010.123456:0.500000", 13),
            (b"1000000010:U:1", 8),
            (b"1000000010:-0.000000", 16),
            (b"1000000010:-1.500000", 10),
            (b"1000000010:01", 9),
            (b"1000000010:", 7),
            (b"1000000010::", 8),
            (b"01000000010:1", 14),
            (b"1000000010:1e5:nan", 14),
            (b"99999999999999999999:1", 23),
            (b"1000000010:999999999999999", 14),
            (b"1000000010:18446744073709551615", 27),
            (b"", 1),
            (b":", 2),
            (b"-5:1", 5),
            (b"U:1", 4),
        ] {
            let got = round_trip(&[text]).len();
            assert_eq!(got, bytes, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(round_trip(&[b"1000000010:1", b"1000000020:2"]).len(), 7 + 3);
        let many = [b"1000000010".to_vec(), b":1".repeat(300)].concat();
        round_trip(&[&many, b"1000000011:1"]);
    }

    proptest! {
        #[test]
        fn any_text_comes_back(texts in proptest::collection::vec("[-0-9.:UeN]{0,24}", 0..9)) {
            let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
            round_trip(&texts);
        }
    }

    #[test]
    fn entries_come_back_and_short_ones_are_refused() {
        let identity = Identity {
            device: 1,
            inode: 2,
            size_bytes: 3,
            mtime_ns: -4,
        };
        for entry in [
            Entry::Shape {
                chunk: 1,
                front: Cow::Borrowed(b"RRD and more than eight bytes"),
            },
            Entry::Group {
                id: 1,
                path: b"/a",
                birth: Birth {
                    chunk: 7,
                    slot: 255,
                    base: Some(-1),
                    state: vec![1, 0, u64::MAX],
                },
            },
            Entry::Shown { id: 9, upto: 0.5 },
            Entry::Values { id: 2, count: 3 },
            Entry::Start { id: 3, upto: 2.5 },
            Entry::End {
                id: 4,
                upto: 1.5,
                identity,
            },
            Entry::Live {
                id: 4,
                live: Live {
                    updated: 7,
                    tuned: u32::MAX,
                },
            },
            Entry::Renamed { id: 8, path: b"/b" },
            Entry::Forget { id: 5 },
            Entry::Checkpoint { position: 1 << 40 },
            Entry::Gone { id: 6 },
            Entry::NotStarted { id: 7 },
        ] {
            let mut out = Vec::new();
            entry.put(&mut out);
            for len in 0..out.len() {
                assert_eq!(Entry::take(&mut &out[..len]), None, "{entry:?}");
            }
            assert_eq!(Entry::take(&mut &out[..]), Some(entry));
        }
    }
}
