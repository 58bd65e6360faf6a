//! The value of a row in a column, as it is kept until the table is complete.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use kymo_wire::snmp::ObjectValue;

/// Bytes of a text that are kept: DisplayString has no more.
const TEXT_MAX: usize = 255;
/// A Counter64 is counted up to here and then from 0, as snmp_exporter does: a double is exact so far, and a counter
/// that begins again is one that PromQL knows.
const EXACT: u64 = 1 << 53;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    /// A number.
    Number(f64),
    /// A text, any bytes.
    Text(Box<[u8]>),
    /// A value of a kind that is neither.
    Other,
}

impl Cell {
    pub(super) fn of(value: ObjectValue<'_>) -> Cell {
        match value {
            ObjectValue::Integer(number) => Cell::Number(signed(number)),
            ObjectValue::Counter64(number) => Cell::Number(whole(number % EXACT)),
            ObjectValue::Counter32(number)
            | ObjectValue::Gauge32(number)
            | ObjectValue::TimeTicks(number)
            | ObjectValue::UInteger32(number) => Cell::Number(whole(number)),
            ObjectValue::OctetString(text) => Cell::Text(text[..text.len().min(TEXT_MAX)].into()),
            ObjectValue::Opaque(_) => reading(value).map_or(Cell::Other, Cell::Number),
            ObjectValue::Oid(_) | ObjectValue::IpAddress(_) => {
                let mut text = Vec::new();
                value.put_text(&mut text);
                text.truncate(TEXT_MAX);
                Cell::Text(text.into())
            }
            ObjectValue::Null
            | ObjectValue::NoSuchObject
            | ObjectValue::NoSuchInstance
            | ObjectValue::EndOfMibView
            | ObjectValue::Other { .. } => Cell::Other,
        }
    }

    /// The number, or the number in a text.
    pub(super) fn gauge(&self) -> Option<f64> {
        match self {
            Cell::Number(number) => Some(*number),
            Cell::Text(text) => reading(ObjectValue::OctetString(text)),
            Cell::Other => None,
        }
    }

    /// The number, which no text has.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Cell::Number(number) => Some(*number),
            Cell::Text(_) | Cell::Other => None,
        }
    }

    /// The text, without what some agents end it with.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Cell::Number(number) => Some(number.to_string()),
            Cell::Text(text) => {
                let text = String::from_utf8_lossy(text);
                let ended = text.trim_end_matches(['\0', '\r', '\n', ' ']);
                Some(ended.into())
            }
            Cell::Other => None,
        }
    }

    /// A bit of BITS: bit 0 is the highest one of the first byte, and those behind the last byte are 0.
    pub(super) fn bit(&self, number: usize) -> Option<bool> {
        match self {
            Cell::Text(bytes) => {
                let byte = bytes.get(number / 8).copied().unwrap_or(0);
                Some(byte & (128 >> (number % 8)) != 0)
            }
            Cell::Number(_) | Cell::Other => None,
        }
    }

    /// A DateAndTime (RFC 2579) in whole seconds since 1970; one without a zone is in UTC.
    pub(super) fn time(&self) -> Option<f64> {
        let Cell::Text(bytes) = self else {
            return None;
        };
        let (moment, zone) = bytes.split_at_checked(8)?;
        let &[high, low, month, day, hour, minute, second, _] = moment else {
            return None;
        };
        let behind_s = match *zone {
            [] => 0,
            [b'+', hours, minutes] => zone_s(hours, minutes)?,
            [b'-', hours, minutes] => -zone_s(hours, minutes)?,
            _ => return None,
        };
        let year = i16::from_be_bytes([high, low]);
        let date = Date::new(year, month.try_into().ok()?, day.try_into().ok()?).ok()?;
        // 60 is a leap second.
        let [hour, minute, second] = [hour, minute, second.min(59)].map(i8::try_from);
        let time = Time::new(hour.ok()?, minute.ok()?, second.ok()?, 0).ok()?;
        let there = date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?;
        Some(signed(there.timestamp().as_second() - behind_s))
    }

    /// The text of a hardware address.
    pub(super) fn mac(&self) -> Option<String> {
        match self {
            Cell::Text(bytes) => {
                let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
                Some(pairs.join(":"))
            }
            Cell::Number(_) | Cell::Other => None,
        }
    }
}

fn zone_s(hours: u8, minutes: u8) -> Option<i64> {
    let is_zone = hours <= 14 && minutes < 60;
    is_zone.then(|| i64::from(hours) * 3600 + i64::from(minutes) * 60)
}

fn reading(value: ObjectValue<'_>) -> Option<f64> {
    let mut digits = Vec::new();
    if !value.put_reading(&mut digits) {
        return None;
    }
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

/// Exact up to 2^53, as all numbers of 32 bits are.
fn whole(number: u64) -> f64 {
    number as f64
}

fn signed(number: i64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_and_time_is_a_moment() {
        // 2026-11-29 04:30:05 UTC.
        let moment = Some(1_795_926_605.0);
        let at = |month, hour, minute, second| vec![0x07, 0xea, month, 29, hour, minute, second, 9];
        for (bytes, zone, expected) in [
            (at(11, 4, 30, 5), &b""[..], moment),
            (at(11, 4, 30, 5), b"+\0\0", moment),
            (at(11, 5, 30, 5), b"+\x01\0", moment),
            (at(11, 0, 0, 5), b"-\x04\x1e", moment),
            (at(13, 4, 30, 5), b"", None),
            (at(11, 24, 30, 5), b"", None),
            (at(2, 4, 30, 5), b"", None),
            (at(11, 4, 30, 5), b"+\x01", None),
            (at(11, 4, 30, 5), b"*\x01\0", None),
            (at(11, 4, 30, 5), b"+\xff\xff", None),
            (at(11, 4, 29, 65), b"", Some(1_795_926_605.0 - 6.0)),
            (vec![0x07, 0xea, 11], b"", None),
        ] {
            let cell = Cell::Text([&bytes, zone].concat().into());
            assert_eq!(cell.time(), expected, "{bytes:?} {zone:?}");
        }
        assert_eq!(Cell::Number(1.0).time(), None);
    }

    #[test]
    fn bits_begin_at_the_highest_of_the_first_byte() {
        let cell = Cell::Text([0b1000_0001, 0b0100_0000].into());
        let set: Vec<usize> = (0..40).filter(|bit| cell.bit(*bit) == Some(true)).collect();
        assert_eq!(set, [0, 7, 9]);
        assert_eq!(Cell::Other.bit(0), None);
    }

    #[test]
    fn values_are_numbers_or_texts() {
        let float = [0x9f, 0x78, 4, 0x41, 0x19, 0x99, 0x9a];
        for (value, gauge, number, text) in [
            (ObjectValue::Integer(-3), Some(-3.0), Some(-3.0), Some("-3")),
            (
                ObjectValue::Counter64((1 << 53) + 7),
                Some(7.0),
                Some(7.0),
                Some("7"),
            ),
            (
                ObjectValue::Counter32(4_294_967_295),
                Some(4_294_967_295.0),
                Some(4_294_967_295.0),
                Some("4294967295"),
            ),
            (
                ObjectValue::OctetString(b"0.12"),
                Some(0.12),
                None,
                Some("0.12"),
            ),
            (
                ObjectValue::OctetString(b"eth0\0"),
                None,
                None,
                Some("eth0"),
            ),
            (
                ObjectValue::OctetString(b"\xff\n"),
                None,
                None,
                Some("\u{fffd}"),
            ),
            (
                ObjectValue::Opaque(&float),
                Some(9.6),
                Some(9.6),
                Some("9.6"),
            ),
            (
                ObjectValue::IpAddress([10, 0, 0, 1]),
                None,
                None,
                Some("10.0.0.1"),
            ),
            (ObjectValue::Oid(&[43, 6]), None, None, Some("1.3.6")),
            (ObjectValue::NoSuchInstance, None, None, None),
        ] {
            let cell = Cell::of(value);
            assert_eq!(cell.gauge(), gauge, "{value:?}");
            assert_eq!(cell.number(), number, "{value:?}");
            assert_eq!(cell.text().as_deref(), text, "{value:?}");
        }
        let mac = Cell::of(ObjectValue::OctetString(&[0, 0x1b, 0xff]));
        assert_eq!(mac.mac().as_deref(), Some("00:1B:FF"));
    }
}
