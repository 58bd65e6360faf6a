//! The value of a row in a column, as it is kept until the table is complete.

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
