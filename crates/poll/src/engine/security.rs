//! Wraps PDUs into packets, and decides which packets come from the device. The engine deals in PDUs; this module alone knows the
//! envelopes of SNMP versions.
//!
//! v1 and v2c prove their origin by a community in plain text and have no state. A version with state for each SNMP engine would
//! be another variant of [`Security`], which is part of the device: `seal` and `open` get its state, and requests that it has to
//! send first would be further variants of their results.

use kymo_wire::mrtg_cfg::Session;
use kymo_wire::snmp::{
    Ask, IdWidth, Message, Oid, RequestMessage, Response, Version, message_bytes,
};

/// The SNMP version of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// SNMPv1.
    V1,
    /// SNMPv2c.
    V2c,
}

/// A request made into a packet.
pub(crate) enum Sealed<'r> {
    /// A packet that may be sent, and the id of its answer.
    Packet { id: i32, bytes: &'r [u8] },
}

/// A message without its envelope.
pub(crate) enum Opened<'p> {
    /// The device's answer.
    Response(Response<'p>),
    /// The message has another version or community than the session.
    Refused,
}

impl Security {
    /// The state of a session before its first request.
    pub(crate) fn new(session: &Session) -> Security {
        match session.version {
            Version::V1 => Security::V1,
            Version::V2c => Security::V2c,
        }
    }

    fn version(self) -> Version {
        match self {
            Security::V1 => Version::V1,
            Security::V2c => Version::V2c,
        }
    }

    /// Encodes the parts that all packets of a request share.
    pub(crate) fn prepare(&self, session: &Session, ask: Ask, names: &[Oid]) -> RequestMessage {
        let community = session.community.reveal();
        RequestMessage::new(ask, self.version(), community, names, id_width(session))
    }

    /// Makes the packet of one attempt, with an id derived from a random number.
    pub(crate) fn seal<'r>(&mut self, request: &'r mut RequestMessage, random: u32) -> Sealed<'r> {
        match self {
            Security::V1 | Security::V2c => Sealed::Packet {
                id: request.set_id(random),
                bytes: request.bytes(),
            },
        }
    }

    /// Unwraps a message that has the id of an attempt.
    pub(crate) fn open<'p>(&mut self, session: &Session, message: &Message<'p>) -> Opened<'p> {
        let head = &message.head;
        let is_ours =
            head.community == session.community.reveal() && head.version == self.version();
        match is_ours {
            true => Opened::Response(message.response()),
            false => Opened::Refused,
        }
    }

    /// True if a walk may use GETBULK.
    pub(crate) fn has_bulk(&self, session: &Session) -> bool {
        match self {
            Security::V1 => false,
            Security::V2c => session.use_getbulk,
        }
    }

    /// Largest size in bytes of a packet whose varbinds have `varbinds_bytes`.
    pub(crate) fn packet_bytes(&self, session: &Session, varbinds_bytes: usize) -> usize {
        message_bytes(session.community.reveal().len(), varbinds_bytes)
    }
}

/// The length of a session's ids.
pub(crate) fn id_width(session: &Session) -> IdWidth {
    match session.use_16bit_ids {
        true => IdWidth::Bits15,
        false => IdWidth::Bits31,
    }
}
