//! The number that a target takes from a value. MRTG takes whole numbers, and texts that are a number; here also TimeTicks, net-snmp's
//! floating point numbers, and the first number in a text.

use super::object_value::ObjectValue;
use std::io::Write as _;

/// Begin of an Opaque that has a float or a double in it: a tag of net-snmp's, and the length.
const FLOAT: [u8; 3] = [0x9f, 0x78, 4];
const DOUBLE: [u8; 3] = [0x9f, 0x79, 8];

impl ObjectValue<'_> {
    /// Appends the number as decimal text; TimeTicks in hundredths of a second. False: it has none, and nothing is appended.
    pub fn put_reading(self, out: &mut Vec<u8>) -> bool {
        if self.number().is_some() {
            return self.put_text(out);
        }
        let start = out.len();
        match self {
            // Writing to memory does not fail.
            ObjectValue::TimeTicks(ticks) => drop(write!(out, "{ticks}")),
            ObjectValue::Opaque(content) => put_real(out, content),
            ObjectValue::OctetString(text) => {
                let flat = flat(text);
                out.extend_from_slice(whole(&flat).or_else(|| first(&flat)).unwrap_or_default());
            }
            _ => {}
        }
        out.len() > start
    }

    /// True if the reading is the first number of a text that has more in it.
    pub fn is_part_of_text(self) -> bool {
        match self {
            ObjectValue::OctetString(text) => {
                let flat = flat(text);
                whole(&flat).is_none() && first(&flat).is_some()
            }
            _ => false,
        }
    }
}

fn put_real(out: &mut Vec<u8>, content: &[u8]) {
    // The shortest text that is this number and no other one, without an exponent.
    let _ = match content.split_first_chunk() {
        Some((&FLOAT, rest)) => match rest.try_into().map(f32::from_be_bytes) {
            Ok(number) if number.is_finite() => write!(out, "{number}"),
            _ => Ok(()),
        },
        Some((&DOUBLE, rest)) => match rest.try_into().map(f64::from_be_bytes) {
            Ok(number) if number.is_finite() => write!(out, "{number}"),
            _ => Ok(()),
        },
        _ => Ok(()),
    };
}

/// The text without line ends, and without the NULs that some agents end it with.
fn flat(text: &[u8]) -> Vec<u8> {
    let end = text.iter().rposition(|&byte| byte != 0);
    let text = &text[..end.map_or(0, |last| last + 1)];
    let kept = text.iter().filter(|byte| !matches!(byte, b'\n' | b'\r'));
    kept.copied().collect()
}

/// The text without blanks around it, if it is a number.
fn whole(text: &[u8]) -> Option<&[u8]> {
    Some(text.trim_ascii()).filter(|text| is_decimal(text))
}

/// The first word that is a number, alone or with a unit such as `23C` or `99%` behind it. `1,234`, `1:30`, `0x1A` and `1.5e3`
/// are other numbers than the digits they begin with.
fn first(text: &[u8]) -> Option<&[u8]> {
    let mut words = text.split(u8::is_ascii_whitespace);
    words.find_map(|word| {
        let is_part = |byte: &&u8| byte.is_ascii_digit() || b"+-.".contains(byte);
        let length = word.iter().take_while(is_part).count();
        let (number, unit) = word.split_at(length);
        let has_more = |byte: &u8| byte.is_ascii_digit() || b",:/.".contains(byte);
        (is_decimal(number) && !unit.iter().any(has_more)).then_some(number)
    })
}

/// True for an optional sign and digits, with or without a point and more digits.
fn is_decimal(text: &[u8]) -> bool {
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let unsigned = text
        .strip_prefix(b"-")
        .or_else(|| text.strip_prefix(b"+"))
        .unwrap_or(text);
    match unsigned.iter().position(|&byte| byte == b'.') {
        Some(point) => digits(&unsigned[..point]) && digits(&unsigned[point + 1..]),
        None => digits(unsigned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_of_a_text_counts() {
        for (text, number, is_part) in [
            (&b"45 C"[..], Some("45"), true),
            (b"23 C / 73 F", Some("23"), true),
            (b"23C", Some("23"), true),
            (b"Temp1: -3.5 C", Some("-3.5"), true),
            (b"99%", Some("99"), true),
            (b"12 45", Some("12"), true),
            (b"42\0", Some("42"), false),
            (b" 17\r\n", Some("17"), false),
            (b"1,234", None, false),
            (b"1:30", None, false),
            (b"0x1A", None, false),
            (b"1.5e3", None, false),
            (b"10.0.0.1", None, false),
            (b"2026-11-28", None, false),
            (b".5", None, false),
            (b"N/A", None, false),
            (b"\0\0", None, false),
            (b"", None, false),
        ] {
            let (value, mut out) = (ObjectValue::OctetString(text), Vec::new());
            assert_eq!(value.put_reading(&mut out), number.is_some(), "{text:?}");
            assert_eq!(out, number.unwrap_or_default().as_bytes(), "{text:?}");
            assert_eq!(value.is_part_of_text(), is_part, "{text:?}");
        }
    }

    #[test]
    fn floating_point_numbers_are_read() {
        for (content, number) in [
            (&[0x9f, 0x78, 4, 0x41, 0x19, 0x99, 0x9a][..], Some("9.6")),
            (
                &[
                    0x9f, 0x79, 8, 0x40, 0x2b, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                ],
                Some("13.7"),
            ),
            (&[0x9f, 0x78, 4, 0xbf, 0x80, 0, 0], Some("-1")),
            (&[0x9f, 0x78, 4, 0x7f, 0x80, 0, 0], None),
            (&[0x9f, 0x78, 4, 0x7f, 0xc0, 0, 0], None),
            (&[0x9f, 0x78, 4, 0x41, 0x19, 0x99], None),
            (&[0x9f, 0x79, 8, 0x41, 0x19, 0x99, 0x9a], None),
            (&[0x9f, 0x78], None),
            (&[], None),
        ] {
            let mut out = Vec::new();
            let is_number = ObjectValue::Opaque(content).put_reading(&mut out);
            assert_eq!(is_number, number.is_some(), "{content:x?}");
            assert_eq!(out, number.unwrap_or_default().as_bytes(), "{content:x?}");
        }
    }
}
