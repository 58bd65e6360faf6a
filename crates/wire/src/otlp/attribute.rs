//! Attributes: keys and values of any kind, the latter as texts.

use std::fmt::Write;

use super::refusal::{BadDataPoint, Unread};
use crate::protobuf::{MessageFields, Wire};

/// Deepest nesting of lists and maps in a value.
const DEPTH_MAX: usize = 8;

/// An attribute's key, and the bytes of its value.
pub(super) fn read(message: &[u8]) -> Result<(&str, &[u8]), Unread> {
    let (mut key, mut value) = (&b""[..], &b""[..]);
    for field in MessageFields::of(message) {
        match field? {
            (1, Wire::Bytes(text)) => key = text,
            (2, Wire::Bytes(any)) => value = any,
            _ => {}
        }
    }
    Ok((utf8(key)?, value))
}

/// A text that has to be UTF-8.
pub(super) fn utf8(text: &[u8]) -> Result<&str, BadDataPoint> {
    std::str::from_utf8(text).map_err(|_| BadDataPoint::NotUtf8)
}

/// Appends a value as a label has it: a text as it is, lists and maps as JSON, bytes in base64.
pub(super) fn put_value(out: &mut String, any: &[u8]) -> Result<(), Unread> {
    match any_value(any)? {
        AnyValue::Text(text) => out.push_str(text),
        AnyValue::Bytes(bytes) => put_base64(out, bytes),
        AnyValue::None => {}
        value => put_json(out, value, 1)?,
    }
    Ok(())
}

enum AnyValue<'a> {
    None,
    Text(&'a str),
    Bool(bool),
    Int(i64),
    Double(f64),
    List(&'a [u8]),
    Map(&'a [u8]),
    Bytes(&'a [u8]),
}

/// The last one counts of several kinds.
fn any_value(message: &[u8]) -> Result<AnyValue<'_>, Unread> {
    let mut value = AnyValue::None;
    for field in MessageFields::of(message) {
        value = match field? {
            (1, Wire::Bytes(text)) => AnyValue::Text(utf8(text)?),
            (2, Wire::Varint(number)) => AnyValue::Bool(number != 0),
            (3, Wire::Varint(number)) => AnyValue::Int(number.cast_signed()),
            (4, Wire::Fixed64(bits)) => AnyValue::Double(f64::from_bits(bits)),
            (5, Wire::Bytes(list)) => AnyValue::List(list),
            (6, Wire::Bytes(map)) => AnyValue::Map(map),
            (7, Wire::Bytes(bytes)) => AnyValue::Bytes(bytes),
            _ => value,
        };
    }
    Ok(value)
}

fn put_json(out: &mut String, value: AnyValue, depth: usize) -> Result<(), Unread> {
    match value {
        // Prometheus writes no bytes like no value.
        AnyValue::None | AnyValue::Bytes([]) => out.push_str("null"),
        AnyValue::Text(text) => put_json_text(out, text),
        AnyValue::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        AnyValue::Int(number) => put(out, format_args!("{number}")),
        AnyValue::Double(number) => put_double(out, number),
        AnyValue::Bytes(bytes) => {
            out.push('"');
            put_base64(out, bytes);
            out.push('"');
        }
        AnyValue::List(_) | AnyValue::Map(_) if depth > DEPTH_MAX => {
            return Err(BadDataPoint::AttributeDepth.into());
        }
        AnyValue::List(list) => {
            out.push('[');
            for (at, item) in items(list).enumerate() {
                put_comma(out, at);
                put_json(out, any_value(item?)?, depth + 1)?;
            }
            out.push(']');
        }
        AnyValue::Map(map) => {
            out.push('{');
            for (at, item) in items(map).enumerate() {
                put_comma(out, at);
                let (key, value) = read(item?)?;
                put_json_text(out, key);
                out.push(':');
                put_json(out, any_value(value)?, depth + 1)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// Messages of a list or of a map, whose only field is number 1.
fn items(message: &[u8]) -> impl Iterator<Item = Result<&[u8], Unread>> {
    MessageFields::of(message).filter_map(|field| match field {
        Ok((1, Wire::Bytes(item))) => Some(Ok(item)),
        Ok(_) => None,
        Err(bad) => Some(Err(bad.into())),
    })
}

fn put_comma(out: &mut String, at: usize) {
    if at > 0 {
        out.push(',');
    }
}

/// A `String` takes all that is written to it.
fn put(out: &mut String, text: std::fmt::Arguments) {
    let _ = out.write_fmt(text);
}

fn put_json_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => put(out, format_args!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// As JavaScript writes numbers: with an exponent from 10^21 on, and below 10^-6.
fn put_double(out: &mut String, number: f64) {
    let size = number.abs();
    match () {
        () if number.is_nan() => out.push_str("NaN"),
        () if number.is_infinite() => out.push_str(if number > 0.0 { "+Inf" } else { "-Inf" }),
        () if size != 0.0 && !(1e-6..1e21).contains(&size) => {
            let text = format!("{number:e}");
            match text.split_once('e') {
                Some((digits, exponent)) if !exponent.starts_with('-') => {
                    put(out, format_args!("{digits}e+{exponent}"));
                }
                _ => out.push_str(&text),
            }
        }
        () => put(out, format_args!("{number}")),
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn put_base64(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = usize::try_from(bits >> shift & 63).unwrap_or_default();
            let is_padding = at > chunk.len();
            out.push(match (is_padding, BASE64.get(digit)) {
                (false, Some(&digit)) => char::from(digit),
                _ => '=',
            });
        }
    }
}
