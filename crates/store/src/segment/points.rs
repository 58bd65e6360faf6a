//! Points: values as they were sent, column by column, one entry for each series. Layout:
//! docs/formats/store.md, "Points".

use crate::layout::STRIPE;
use crate::memtable::buffer::{Pending, Texts, Values};
use crate::segment::value_column::{ReadColumn, ValueColumn, of_text};
use crate::wal::value::Field;
use kymo_base::varint::{put, put_bytes, take, take_bytes};

/// Largest number of values of an entry; a series with more has several entries.
const VALUES_MAX: usize = 1024;
/// Largest number of fields of an entry, so that few bytes never expand to much memory.
const NUMBERS_MAX: usize = 1 << 16;
/// Offset of the member in an entry's first byte.
const COLUMNS: u8 = 16;

/// Encodes values into entries, reusing its memory.
#[derive(Default)]
pub(crate) struct PointsWriter {
    columns: Vec<ValueColumn>,
    entry: Vec<u8>,
}

impl PointsWriter {
    /// Appends the points of a series, which is a member of its stripe.
    pub(crate) fn put(&mut self, out: &mut Vec<u8>, member: u8, values: &Pending) {
        let mut values = values.values();
        while values.left > 0 {
            self.entry.clear();
            let rest = values.clone();
            let mut count = self.fill(&mut values);
            if count > 0 {
                put(&mut self.entry, self.columns.len() as u64);
                let columns = self.columns.iter_mut().enumerate();
                columns.for_each(|(at, column)| column.put(&mut self.entry, at == 0));
            } else {
                values = rest;
                count = values.left.min(VALUES_MAX);
                put_texts(&mut self.entry, &mut values, count);
            }
            put_entry(out, member, count as u64, &self.entry);
        }
    }

    /// Splits the next values into columns; returns how many. 0 means that their numbers of fields
    /// differ or are too high.
    fn fill(&mut self, values: &mut Values<'_>) -> usize {
        let (mut fields, mut first) = (0, values.clone());
        first.fields(&mut |field| each_field(field, &mut |_| fields += 1));
        if fields > NUMBERS_MAX {
            return 0;
        }
        let columns = &mut self.columns;
        columns.resize_with(fields, ValueColumn::default);
        columns.iter_mut().for_each(ValueColumn::clear);
        let count = (NUMBERS_MAX / fields.max(1))
            .min(VALUES_MAX)
            .min(values.left);
        for _ in 0..count {
            let mut at = 0;
            values.fields(&mut |field| {
                each_field(field, &mut |field| {
                    if let Some(column) = columns.get_mut(at) {
                        column.push(field);
                    }
                    at += 1;
                });
            });
            if at != fields {
                return 0;
            }
        }
        count
    }
}

/// Appends values without columns.
fn put_texts(out: &mut Vec<u8>, values: &mut Values<'_>, count: usize) {
    put(out, 0);
    let mut text = Vec::new();
    for _ in 0..count {
        text.clear();
        values.text(&mut text);
        put_bytes(out, &text);
    }
}

/// Splits a text into the fields that it contains.
fn each_field<'a>(field: Field<'a>, each: &mut impl FnMut(Field<'a>)) {
    match field {
        Field::Number(..) => each(field),
        Field::Text(text) => text
            .split(|&byte| byte == b':')
            .for_each(|text| each(of_text(text))),
    }
}

/// Appends an encoded entry.
pub(crate) fn put_entry(out: &mut Vec<u8>, member: u8, count: u64, entry: &[u8]) {
    out.push(COLUMNS | member);
    put(out, count);
    put_bytes(out, entry);
}

/// The entries of a frame, up to the first invalid one: member, number of values, and their bytes.
pub(crate) fn each_entry(mut raw: &[u8]) -> impl Iterator<Item = (u8, u64, &[u8])> {
    std::iter::from_fn(move || take_entry(&mut raw))
}

fn take_entry<'a>(raw: &mut &'a [u8]) -> Option<(u8, u64, &'a [u8])> {
    let (&kind, rest) = raw.split_first()?;
    *raw = rest;
    let member = kind.checked_sub(COLUMNS)?;
    let count = take(raw)?;
    let entry = take_bytes(raw, usize::MAX)?;
    (usize::from(member) < STRIPE).then_some((member, count, entry))
}

/// Returns true if the whole frame can be decoded.
pub(crate) fn are_points(mut raw: &[u8]) -> bool {
    while !raw.is_empty() {
        let entry = take_entry(&mut raw);
        if entry
            .and_then(|(_, count, entry)| ReadPoints::parse(count, entry))
            .is_none()
        {
            return false;
        }
    }
    true
}

/// The decoded values of an entry.
pub(crate) fn texts(count: u64, entry: &[u8]) -> Option<Texts> {
    Some(ReadPoints::parse(count, entry)?.texts())
}

/// A decoded entry.
enum ReadPoints<'a> {
    Texts(Vec<&'a [u8]>),
    Columns(u64, Vec<ReadColumn<'a>>),
}

impl<'a> ReadPoints<'a> {
    fn parse(count: u64, mut entry: &'a [u8]) -> Option<ReadPoints<'a>> {
        let input = &mut entry;
        let fields = take(input)?;
        let numbers = fields.checked_mul(count);
        if !(1..=VALUES_MAX as u64).contains(&count) || numbers? > NUMBERS_MAX as u64 {
            return None;
        }
        let read = match fields {
            0 => ReadPoints::Texts(
                (0..count)
                    .map(|_| take_bytes(input, usize::MAX))
                    .collect::<Option<_>>()?,
            ),
            _ => {
                let columns = (0..fields).map(|_| ReadColumn::take(count, input));
                ReadPoints::Columns(count, columns.collect::<Option<_>>()?)
            }
        };
        input.is_empty().then_some(read)
    }

    fn texts(&self) -> Texts {
        let mut texts = Texts::default();
        match self {
            ReadPoints::Texts(all) => all.iter().for_each(|text| texts.push(text)),
            ReadPoints::Columns(count, columns) => {
                let mut columns: Vec<_> = columns.iter().map(ReadColumn::fields).collect();
                let mut text = Vec::new();
                for _ in 0..*count {
                    text.clear();
                    for (at, column) in columns.iter_mut().enumerate() {
                        if at > 0 {
                            text.push(b':');
                        }
                        column(&mut text);
                    }
                    texts.push(&text);
                }
            }
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put_points(out: &mut Vec<u8>, member: u8, values: &[&[u8]]) {
        let mut pending = Pending::default();
        values.iter().for_each(|text| pending.push(text));
        PointsWriter::default().put(out, member, &pending);
    }

    /// Checks that all values come back; returns the length of the entry.
    fn round_trip(values: &[&[u8]]) -> usize {
        let mut raw = Vec::new();
        put_points(&mut raw, 3, values);
        assert!(are_points(&raw));
        let mut back: Vec<Vec<u8>> = Vec::new();
        for (member, count, entry) in each_entry(&raw) {
            assert_eq!(member, 3);
            let texts = texts(count, entry).unwrap();
            back.extend(texts.iter().map(<[u8]>::to_vec));
        }
        let same = back.iter().map(|text| &text[..]).eq(values.iter().copied());
        assert!(same, "{back:?}");
        raw.len()
    }

    fn series(count: usize, each: impl Fn(usize) -> String) -> usize {
        let texts: Vec<String> = (0..count).map(each).collect();
        round_trip(&texts.iter().map(|text| text.as_bytes()).collect::<Vec<_>>())
    }

    #[test]
    fn a_column_takes_the_bits_its_numbers_need() {
        let stamp = |at: usize| 1_000_000_000 + 10 * at;
        let idle = series(64, |at| format!("{}:42.000000", stamp(at)));
        assert_eq!(idle, 4 + 8 + 7);
        let counter = |at: usize| 5_000_000 + 1000 * at + at * at % 30;
        let counted = series(64, |at| format!("{}:{}", stamp(at), counter(at)));
        assert!(counted < idle + 64 * 6 / 8 + 8, "{counted}");
        // Hundredths, in any format.
        let walk = |at: usize| format!("{}:{}.{:02}0000", stamp(at), 100, at * 7 % 60);
        assert!(series(64, walk) < idle + 64 * 6 / 8 + 5);
        let jitter = |at: usize| format!("{}.{:06}:1", stamp(at), 123_456 + at * 31 % 400);
        assert!(series(64, jitter) < idle + 64 * 9 / 8 + 8);
        let unknown = |at: usize| match at {
            7 => format!("{}:U", stamp(at)),
            _ => format!("{}:42.000000", stamp(at)),
        };
        assert_eq!(series(64, unknown), idle + 4);
    }

    #[test]
    fn texts_that_are_no_numbers_come_back() {
        for text in [
            "",
            ":",
            "::",
            "U:1",
            "-0:-0.0",
            "00:01",
            "1.:.5",
            "+1:1e5",
            "-5:-0.000001",
            "x",
            "999999999999999999:-999999999999999999",
            "9999999999999999999:18446744073709551615",
            "0.000000000000000001:0.00000000000000000:1.10",
        ] {
            round_trip(&[text.as_bytes()]);
            round_trip(&[
                b"1000000010:1.5",
                text.as_bytes(),
                b"1000000020:-1000000000000",
            ]);
            round_trip(&[text.as_bytes(), b"1000000010:1:2", text.as_bytes()]);
        }
        round_trip(&[b"\xff\0:\n", b"1:2"]);
        series(3000, |at| format!("{at}:{}", at * at));
        series(3, |at| format!("{at}{}", ":1.5".repeat(300)));
        series(300, |at| format!("{at}{}", ":1.5".repeat(300)));
        series(2, |at| format!("{at}{}", ":1".repeat(NUMBERS_MAX)));
    }

    #[test]
    fn a_frame_is_taken_apart_to_the_last_byte() {
        let mut raw = Vec::new();
        put_points(&mut raw, 3, &[b"1000000010:1", b"1000000020.5:x"]);
        let one = raw.len();
        put_points(&mut raw, 15, &[b"1000000010:1", b"x"]);
        for len in 0..=raw.len() {
            let whole = [0, one, raw.len()].contains(&len);
            assert_eq!(are_points(&raw[..len]), whole, "{len}");
        }
        // The format from before there were columns.
        raw[0] -= COLUMNS;
        assert!(!are_points(&raw));
        assert_eq!(each_entry(&raw).count(), 0);
    }

    proptest! {
        #[test]
        fn any_texts_come_back(texts in proptest::collection::vec("[-0-9.:Ue]{0,24}", 0..9)) {
            round_trip(&texts.iter().map(|text| text.as_bytes()).collect::<Vec<_>>());
        }

        #[test]
        fn any_decimals_come_back(texts in proptest::collection::vec(
            "1[0-9]{9}(\\.[0-9]{6})?(:-?[0-9]{1,12}(\\.[0-9]{1,7})?){2}", 0..70)) {
            round_trip(&texts.iter().map(|text| text.as_bytes()).collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_read_or_refused(count in 0u64..2000, entry: Vec<u8>) {
            if let Some(texts) = texts(count, &entry) {
                prop_assert_eq!(texts.iter().count() as u64, count);
            }
        }
    }
}
