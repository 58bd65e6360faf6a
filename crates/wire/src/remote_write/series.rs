//! One series of either message, field by field.

use kymo_base::varint;

use super::decoded::Decoded;
use super::model::{FamilyMetadata, SeriesMetadata, WriteSample};
use super::refusal::{BadSeries, BadWrite};
use crate::metric_type::MetricType;
use crate::protobuf::{BadProtobuf, MessageFields, Wire};

/// Texts of a message of 2.0; `None`: not UTF-8.
pub(super) type Symbols<'a> = [Option<&'a str>];

/// Reads a series of 1.0.
pub(super) fn read_v1<'a>(message: &'a [u8], series: &mut Decoded<'a>) -> Result<(), BadWrite> {
    let rest = read_short_labels(message, series)?;
    for field in MessageFields::of(rest) {
        match field? {
            (1, Wire::Bytes(label)) => read_label(label, series)?,
            (2, Wire::Bytes(sample)) => series.push_sample(read_sample(sample)?)?,
            (3, Wire::Bytes(_)) => series.exemplars += 1,
            (4, Wire::Bytes(_)) => series.histograms += 1,
            _ => {}
        }
    }
    Ok(())
}

/// Reads the labels in front of a series and returns the rest, or all of it where this is not the usual case. Heads of
/// fields shorter than 128 bytes are ASCII, so that labels in a row are one text, and one look for UTF-8 does for all
/// of them.
fn read_short_labels<'a>(
    message: &'a [u8],
    series: &mut Decoded<'a>,
) -> Result<&'a [u8], BadWrite> {
    let mut end = 0;
    while let Some(&[FIELD_1, size @ 0..0x80]) = message.get(end..end + 2) {
        end += 2 + usize::from(size);
    }
    let Some((labels, rest)) = message.split_at_checked(end) else {
        return Ok(message);
    };
    let Ok(mut text) = std::str::from_utf8(labels) else {
        return Ok(message);
    };
    while let Some((label, behind)) = take_short(text, FIELD_1) {
        match take_short(label, FIELD_1) {
            Some((name, rest)) => match take_short(rest, FIELD_2) {
                Some((value, "")) => series.push_label(name, value),
                _ => read_label(label.as_bytes(), series)?,
            },
            None => read_label(label.as_bytes(), series)?,
        }
        text = behind;
    }
    Ok(rest)
}

/// Heads of the fields 1 and 2 where they are texts or messages.
const FIELD_1: u8 = 0x0a;
const FIELD_2: u8 = 0x12;

/// Takes a field of that head and of less than 128 bytes off the front.
#[inline]
fn take_short(text: &str, head: u8) -> Option<(&str, &str)> {
    match text.as_bytes() {
        [found, size @ 0..0x80, ..] if *found == head => {
            let (field, behind) = text.split_at_checked(2 + usize::from(*size))?;
            Some((field.get(2..)?, behind))
        }
        _ => None,
    }
}

#[inline]
fn read_label<'a>(message: &'a [u8], series: &mut Decoded<'a>) -> Result<(), BadWrite> {
    let (mut name, mut value) = (&b""[..], &b""[..]);
    for field in MessageFields::of(message) {
        match field? {
            (1, Wire::Bytes(text)) => name = text,
            (2, Wire::Bytes(text)) => value = text,
            _ => {}
        }
    }
    match (std::str::from_utf8(name), std::str::from_utf8(value)) {
        (Ok(name), Ok(value)) => series.push_label(name, value),
        _ => series.refuse(BadSeries::NotUtf8),
    }
    Ok(())
}

/// Samples of 1.0 have no third field.
#[inline]
fn read_sample(message: &[u8]) -> Result<WriteSample, BadWrite> {
    match read_plain_sample(message) {
        Some(sample) => Ok(sample),
        None => read_any_sample(message),
    }
}

/// A sample as senders write it: a value, a time and nothing else.
#[inline]
fn read_plain_sample(message: &[u8]) -> Option<WriteSample> {
    let (&[0x09, value @ .., 0x10], mut rest) = message.split_first_chunk::<10>()? else {
        return None;
    };
    let t_ms = varint::take(&mut rest)?.cast_signed();
    rest.is_empty().then_some(WriteSample {
        t_ms,
        value: f64::from_le_bytes(value),
        created_ms: None,
    })
}

fn read_any_sample(message: &[u8]) -> Result<WriteSample, BadWrite> {
    let (mut value, mut t_ms, mut created) = (0.0, 0, 0);
    for field in MessageFields::of(message) {
        match field? {
            (1, Wire::Fixed64(bits)) => value = f64::from_bits(bits),
            (2, Wire::Varint(number)) => t_ms = number.cast_signed(),
            (3, Wire::Varint(number)) => created = number.cast_signed(),
            _ => {}
        }
    }
    Ok(WriteSample {
        t_ms,
        value,
        created_ms: (created != 0).then_some(created),
    })
}

/// Reads a series of 2.0.
pub(super) fn read_v2<'a>(
    message: &'a [u8],
    symbols: &Symbols<'a>,
    series: &mut Decoded<'a>,
) -> Result<(), BadWrite> {
    // References may lie in several fields, and a name in another one than its value.
    let mut name = None;
    for field in MessageFields::of(message) {
        match field? {
            (1, wire) => read_references(wire, symbols, &mut name, series)?,
            (2, Wire::Bytes(sample)) => series.push_sample(read_sample(sample)?)?,
            (3, Wire::Bytes(_)) => series.histograms += 1,
            (4, Wire::Bytes(_)) => series.exemplars += 1,
            (5, Wire::Bytes(metadata)) => match read_metadata_v2(metadata, symbols)? {
                Ok(metadata) => series.metadata = Some(metadata),
                Err(why) => series.refuse(why),
            },
            _ => {}
        }
    }
    if name.is_some() {
        series.refuse(BadSeries::OddReferences);
    }
    if series.samples.is_empty() && series.histograms == 0 && series.exemplars == 0 {
        series.refuse(BadSeries::Empty);
    }
    Ok(())
}

/// `name`: a name whose value has not come yet.
#[inline]
fn read_references<'a>(
    wire: Wire<'a>,
    symbols: &Symbols<'a>,
    name: &mut Option<&'a str>,
    series: &mut Decoded<'a>,
) -> Result<(), BadProtobuf> {
    match wire {
        Wire::Varint(reference) => push_reference(reference, symbols, name, series),
        Wire::Bytes(mut packed) => {
            while !packed.is_empty() {
                let reference = take_reference(&mut packed).ok_or(BadProtobuf)?;
                // Most often a name and its value lie in one field.
                if name.is_none() && !packed.is_empty() {
                    let value = take_reference(&mut packed).ok_or(BadProtobuf)?;
                    push_pair(reference, value, symbols, series);
                } else {
                    push_reference(reference, symbols, name, series);
                }
            }
        }
        Wire::Fixed64(_) | Wire::Other => {}
    }
    Ok(())
}

/// Takes a varint off the front; nearly all have one or two bytes.
#[inline]
fn take_reference(packed: &mut &[u8]) -> Option<u64> {
    match *packed {
        [low @ 0..0x80, rest @ ..] => {
            *packed = rest;
            Some(u64::from(*low))
        }
        [low, high @ 0..0x80, rest @ ..] => {
            *packed = rest;
            Some(u64::from(low & 0x7f) | u64::from(*high) << 7)
        }
        _ => varint::take(packed),
    }
}

#[inline]
fn push_pair<'a>(name: u64, value: u64, symbols: &Symbols<'a>, series: &mut Decoded<'a>) {
    match (symbol(symbols, name), symbol(symbols, value)) {
        (Ok(name), Ok(value)) => series.push_label(name, value),
        (Err(why), _) | (Ok(_), Err(why)) => series.refuse(why),
    }
}

fn push_reference<'a>(
    reference: u64,
    symbols: &Symbols<'a>,
    name: &mut Option<&'a str>,
    series: &mut Decoded<'a>,
) {
    match (name.take(), symbol(symbols, reference)) {
        (None, Ok(text)) => *name = Some(text),
        (Some(name), Ok(text)) => series.push_label(name, text),
        // The series is refused, and only the number of references counts further on.
        (before, Err(why)) => {
            *name = before.is_none().then_some("");
            series.refuse(why);
        }
    }
}

#[inline]
fn symbol<'a>(symbols: &Symbols<'a>, reference: u64) -> Result<&'a str, BadSeries> {
    let at = usize::try_from(reference).map_err(|_| BadSeries::NoSymbol)?;
    let text = symbols.get(at).ok_or(BadSeries::NoSymbol)?;
    text.ok_or(BadSeries::NotUtf8)
}

/// A reference of 0 means an empty text, whatever the first symbol is.
fn read_metadata_v2<'a>(
    message: &'a [u8],
    symbols: &Symbols<'a>,
) -> Result<Result<SeriesMetadata<'a>, BadSeries>, BadProtobuf> {
    let mut metadata = SeriesMetadata::default();
    let mut bad = None;
    let mut text = |reference| match reference {
        0 => "",
        _ => symbol(symbols, reference).unwrap_or_else(|why| {
            bad = Some(why);
            ""
        }),
    };
    for field in MessageFields::of(message) {
        match field? {
            (1, Wire::Varint(number)) => metadata.metric_type = MetricType::of_number(number),
            (3, Wire::Varint(reference)) => metadata.help = text(reference),
            (4, Wire::Varint(reference)) => metadata.unit = text(reference),
            _ => {}
        }
    }
    Ok(bad.map_or(Ok(metadata), Err))
}

/// Reads metadata of 1.0; `None`: a text is not UTF-8, or there is no name.
pub(super) fn read_metadata_v1(message: &[u8]) -> Result<Option<FamilyMetadata<'_>>, BadProtobuf> {
    let mut metric_type = MetricType::Unknown;
    let (mut family, mut help, mut unit) = (&b""[..], &b""[..], &b""[..]);
    for field in MessageFields::of(message) {
        match field? {
            (1, Wire::Varint(number)) => metric_type = MetricType::of_number(number),
            (2, Wire::Bytes(text)) => family = text,
            (4, Wire::Bytes(text)) => help = text,
            (5, Wire::Bytes(text)) => unit = text,
            _ => {}
        }
    }
    let texts = [family, help, unit].map(|text| std::str::from_utf8(text).ok());
    let [Some(family), Some(help), Some(unit)] = texts else {
        return Ok(None);
    };
    let metadata = SeriesMetadata {
        metric_type,
        help,
        unit,
    };
    Ok((!family.is_empty()).then_some(FamilyMetadata { family, metadata }))
}
