//! Between PDUs and packets: how a request of a session becomes a packet, and which packets are believed to be the device's. The
//! engine deals in PDUs; only this module knows what versions of SNMP put around them.
//!
//! v1 and v2c prove their origin by the community in plain text, and have no state. [`Security`] is kept with the device, so that
//! a version with a state for each SNMP engine is one more variant: it finds its state in `seal` and `open`, and what it has to
//! ask of the device first is one more variant of their results.

use kymo_wire::mrtg_cfg::Session;
use kymo_wire::snmp::{
    Ask, IdWidth, Message, Oid, RequestMessage, Response, Version, message_bytes,
};

/// The version that a session speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// SNMPv1.
    V1,
    /// SNMPv2c.
    V2c,
}

/// A request as a packet.
pub(crate) enum Sealed<'r> {
    /// It may be sent, and its answer has this id.
    Packet { id: i32, bytes: &'r [u8] },
}

/// A message without its envelope.
pub(crate) enum Opened<'p> {
    /// The device's answer.
    Response(Response<'p>),
    /// It has another version or community than the session.
    Refused,
}

impl Security {
    /// Of a session that has asked nothing yet.
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

    /// Encodes what all packets of a request have in common.
    pub(crate) fn prepare(&self, session: &Session, ask: Ask, names: &[Oid]) -> RequestMessage {
        let community = session.community.reveal();
        RequestMessage::new(ask, self.version(), community, names, id_width(session))
    }

    /// Makes the packet of one attempt, with an id of any number.
    pub(crate) fn seal<'r>(&mut self, request: &'r mut RequestMessage, random: u32) -> Sealed<'r> {
        match self {
            Security::V1 | Security::V2c => Sealed::Packet {
                id: request.set_id(random),
                bytes: request.bytes(),
            },
        }
    }

    /// Takes the PDU out of a message that has the id of an attempt.
    pub(crate) fn open<'p>(&mut self, session: &Session, message: &Message<'p>) -> Opened<'p> {
        let head = &message.head;
        let is_ours =
            head.community == session.community.reveal() && head.version == self.version();
        match is_ours {
            true => Opened::Response(message.response()),
            false => Opened::Refused,
        }
    }

    /// True if a walk may ask for several rows at a time.
    pub(crate) fn has_bulk(&self, session: &Session) -> bool {
        match self {
            Security::V1 => false,
            Security::V2c => session.use_getbulk,
        }
    }

    /// Bytes of a packet, at most, whose varbinds have `varbinds_bytes` together.
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
