//! Values of objects: as bytes of the packet, as a number, and as the text that MRTG's library makes of them.

use super::ber::{self, Element, tag};
use super::oid::{put_decimal, put_oid_text};

/// The value of a varbind. Unsigned kinds accept all numbers of 64 bits: some agents encode a Counter32 whose first bit is
/// set in 4 bytes, others extend it to 8, and MRTG accepts both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectValue<'a> {
    /// INTEGER.
    Integer(i64),
    /// Counter32.
    Counter32(u64),
    /// Gauge32, Unsigned32.
    Gauge32(u64),
    /// TimeTicks: hundredths of a second.
    TimeTicks(u64),
    /// Counter64.
    Counter64(u64),
    /// UInteger32 of RFC 1442, which some agents still send.
    UInteger32(u64),
    /// OCTET STRING: any bytes.
    OctetString(&'a [u8]),
    /// OBJECT IDENTIFIER, the content of its BER.
    Oid(&'a [u8]),
    /// IpAddress.
    IpAddress([u8; 4]),
    /// Opaque, for example a floating point number of net-snmp.
    Opaque(&'a [u8]),
    /// NULL.
    Null,
    /// v2c: the device has no such object.
    NoSuchObject,
    /// v2c: the device has the object, but not this instance.
    NoSuchInstance,
    /// v2c: the object has no successor.
    EndOfMibView,
    /// An unknown kind, a number without bytes or beyond 64 bits, or an address of other than 4 bytes.
    Other {
        /// Tag of the value.
        tag: u8,
        /// Content of the value.
        content: &'a [u8],
    },
}

impl<'a> ObjectValue<'a> {
    #[inline]
    pub(super) fn of(element: Element<'a>) -> ObjectValue<'a> {
        let Element { tag, content } = element;
        let unsigned = |kind: fn(u64) -> ObjectValue<'a>| ber::unsigned(content).map(kind);
        let value = match tag {
            tag::COUNTER64 => unsigned(ObjectValue::Counter64),
            tag::COUNTER32 => unsigned(ObjectValue::Counter32),
            tag::GAUGE32 => unsigned(ObjectValue::Gauge32),
            tag::TIME_TICKS => unsigned(ObjectValue::TimeTicks),
            tag::UINTEGER32 => unsigned(ObjectValue::UInteger32),
            tag::INTEGER => ber::signed(content).map(ObjectValue::Integer),
            tag::OCTET_STRING => Some(ObjectValue::OctetString(content)),
            tag::OID => Some(ObjectValue::Oid(content)),
            tag::IP_ADDRESS => content.try_into().ok().map(ObjectValue::IpAddress),
            tag::OPAQUE => Some(ObjectValue::Opaque(content)),
            tag::NULL => Some(ObjectValue::Null),
            tag::NO_SUCH_OBJECT => Some(ObjectValue::NoSuchObject),
            tag::NO_SUCH_INSTANCE => Some(ObjectValue::NoSuchInstance),
            tag::END_OF_MIB_VIEW => Some(ObjectValue::EndOfMibView),
            _ => None,
        };
        value.unwrap_or(ObjectValue::Other { tag, content })
    }

    /// The value as an integer, if its kind is one. For TimeTicks, floating point numbers and numbers in texts
    /// see [`ObjectValue::put_reading`].
    #[inline]
    pub fn number(self) -> Option<i128> {
        match self {
            ObjectValue::Counter64(number)
            | ObjectValue::Counter32(number)
            | ObjectValue::Gauge32(number)
            | ObjectValue::UInteger32(number) => Some(i128::from(number)),
            ObjectValue::Integer(number) => Some(i128::from(number)),
            _ => None,
        }
    }

    /// True if the value says that there is no such object; MRTG treats it as undefined.
    pub fn is_exception(self) -> bool {
        matches!(
            self,
            ObjectValue::NoSuchObject | ObjectValue::NoSuchInstance | ObjectValue::EndOfMibView
        )
    }

    /// Appends the text that MRTG's SNMP library makes of the value. False: undefined there, and nothing is appended.
    pub fn put_text(self, out: &mut Vec<u8>) -> bool {
        match self {
            ObjectValue::Integer(number) => {
                if number < 0 {
                    out.push(b'-');
                }
                put_decimal(out, number.unsigned_abs());
            }
            ObjectValue::Counter32(number)
            | ObjectValue::Gauge32(number)
            | ObjectValue::Counter64(number)
            | ObjectValue::UInteger32(number) => put_decimal(out, number),
            ObjectValue::TimeTicks(ticks) => put_uptime(out, ticks / 100),
            ObjectValue::OctetString(text) => out.extend_from_slice(text),
            ObjectValue::Oid(content) => put_oid_text(out, content),
            ObjectValue::IpAddress(parts) => put_dotted(out, parts),
            ObjectValue::Null => out.extend_from_slice(b"(null)"),
            ObjectValue::Opaque(_) => put_unprintable(out, tag::OPAQUE),
            ObjectValue::Other { tag, .. } if !is_number_or_address(tag) => {
                put_unprintable(out, tag);
            }
            ObjectValue::Other { .. }
            | ObjectValue::NoSuchObject
            | ObjectValue::NoSuchInstance
            | ObjectValue::EndOfMibView => return false,
        }
        true
    }

    /// Appends the value in BER.
    #[inline]
    pub(super) fn put(self, out: &mut Vec<u8>) {
        match self {
            ObjectValue::Counter64(number) => ber::put_unsigned(out, tag::COUNTER64, number),
            ObjectValue::Counter32(number) => ber::put_unsigned(out, tag::COUNTER32, number),
            ObjectValue::Gauge32(number) => ber::put_unsigned(out, tag::GAUGE32, number),
            ObjectValue::TimeTicks(number) => ber::put_unsigned(out, tag::TIME_TICKS, number),
            ObjectValue::UInteger32(number) => ber::put_unsigned(out, tag::UINTEGER32, number),
            ObjectValue::Integer(number) => ber::put_signed(out, tag::INTEGER, number),
            ObjectValue::OctetString(text) => ber::put(out, tag::OCTET_STRING, text),
            ObjectValue::Oid(content) => ber::put(out, tag::OID, content),
            ObjectValue::IpAddress(parts) => ber::put(out, tag::IP_ADDRESS, &parts),
            ObjectValue::Opaque(content) => ber::put(out, tag::OPAQUE, content),
            ObjectValue::Null => ber::put_head(out, tag::NULL, 0),
            ObjectValue::NoSuchObject => ber::put_head(out, tag::NO_SUCH_OBJECT, 0),
            ObjectValue::NoSuchInstance => ber::put_head(out, tag::NO_SUCH_INSTANCE, 0),
            ObjectValue::EndOfMibView => ber::put_head(out, tag::END_OF_MIB_VIEW, 0),
            ObjectValue::Other { tag, content } => ber::put(out, tag, content),
        }
    }
}

/// Kinds for which [`ObjectValue::Other`] means undecodable content, not an unknown kind.
fn is_number_or_address(kind: u8) -> bool {
    matches!(
        kind,
        tag::INTEGER
            | tag::COUNTER32
            | tag::GAUGE32
            | tag::TIME_TICKS
            | tag::COUNTER64
            | tag::UINTEGER32
            | tag::IP_ADDRESS
    )
}

fn put_unprintable(out: &mut Vec<u8>, kind: u8) {
    out.extend_from_slice(format!("#<unprintable BER type 0x{kind:x}>").as_bytes());
}

fn put_dotted(out: &mut Vec<u8>, parts: [u8; 4]) {
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        put_decimal(out, u64::from(part));
    }
}

/// Appends `H:MM:SS`, preceded by days if there are any.
fn put_uptime(out: &mut Vec<u8>, seconds: u64) {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    match days {
        0 => {}
        1 => out.extend_from_slice(b"1 day, "),
        _ => {
            put_decimal(out, days);
            out.extend_from_slice(b" days, ");
        }
    }
    let (minutes, seconds) = (of_day / 60 % 60, of_day % 60);
    put_decimal(out, of_day / 3600);
    for two_digits in [minutes, seconds] {
        out.push(b':');
        put_decimal(out, two_digits / 10);
        put_decimal(out, two_digits % 10);
    }
}
