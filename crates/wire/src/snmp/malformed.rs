//! Reasons to refuse a packet.

use std::fmt;

/// Why a packet, or the rest of one, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// The packet ends within a tag or a length.
    Head,
    /// A length exceeds the enclosing element.
    Cut,
    /// A length in the indefinite form, which SNMP forbids, or of more than 4 bytes.
    Length,
    /// An unexpected tag.
    Tag,
    /// Bytes behind the end of a message, a PDU, its list or a varbind.
    Trailing,
    /// An integer without bytes, or too large for its place.
    Number,
    /// The version is none of 1, 2c and 3, or version 3 has another security than that of users.
    Version,
    /// The PDU has an unexpected kind.
    Kind,
    /// A trap or an inform does not say what happened: it lacks snmpTrapOID.0.
    NoName,
}

impl Malformed {
    /// All reasons, in the order of their numbers: `malformed as usize` is an index of a counter.
    pub const ALL: [Malformed; 9] = [
        Malformed::Head,
        Malformed::Cut,
        Malformed::Length,
        Malformed::Tag,
        Malformed::Trailing,
        Malformed::Number,
        Malformed::Version,
        Malformed::Kind,
        Malformed::NoName,
    ];

    /// The reason as text for a message.
    pub fn why(self) -> &'static str {
        match self {
            Malformed::Head => "an end within a tag or a length",
            Malformed::Cut => "a length beyond the end of what is around it",
            Malformed::Length => "a length of indefinite form or of more than 4 bytes",
            Malformed::Tag => "a tag that does not belong there",
            Malformed::Trailing => "bytes behind the end",
            Malformed::Number => "a number that is empty or too large",
            Malformed::Version => "another version than 1, 2c and 3 with users",
            Malformed::Kind => "a PDU of another kind",
            Malformed::NoName => "a trap without snmpTrapOID.0",
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}
