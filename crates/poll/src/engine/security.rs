//! Wraps PDUs into packets, and decides which packets come from the device. The engine deals in PDUs; this module and `usm` alone
//! know the envelopes of SNMP versions.
//!
//! v1 and v2c prove their origin by a community in plain text and have no state. The state of SNMPv3 is in `usm`.

use kymo_sys::clock::Stamp;
use kymo_wire::mrtg_cfg::{Access, Keyring, Session};
use kymo_wire::snmp::usm::UsmMessage;
use kymo_wire::snmp::{
    Ask, IdWidth, Malformed, Message, Oid, RequestMessage, Version, message_bytes,
};

use super::ids::Ids;
pub(crate) use super::usm::Opened;
use super::usm::Usm;

/// The SNMP version of a session, and its state.
pub(crate) enum Security {
    /// SNMPv1.
    V1,
    /// SNMPv2c.
    V2c,
    /// SNMPv3 with users.
    V3(Box<Usm>),
}

/// A received message in its envelope.
pub(crate) enum Envelope<'p> {
    /// SNMPv1 or v2c.
    Community(Message<'p>),
    /// SNMPv3.
    Usm(UsmMessage<'p>),
}

impl<'p> Envelope<'p> {
    /// Decodes a packet, which has to be an answer if that can be seen.
    pub(crate) fn decode(packet: &'p [u8]) -> Result<Envelope<'p>, Malformed> {
        match Message::decode_response(packet) {
            Err(Malformed::Version) => UsmMessage::decode(packet).map(Envelope::Usm),
            message => message.map(Envelope::Community),
        }
    }

    /// The id of the attempt that the message answers.
    pub(crate) fn id(&self) -> i32 {
        match self {
            Envelope::Community(message) => message.head.id,
            Envelope::Usm(message) => message.id,
        }
    }
}

/// A packet that may be sent, and the id of its answer.
pub(crate) struct Sealed<'r> {
    pub id: i32,
    pub bytes: &'r [u8],
}

impl Security {
    /// The state of a session before its first request.
    pub(crate) fn new(session: &Session) -> Security {
        match &session.access {
            Access::V1 => Security::V1,
            Access::V2c => Security::V2c,
            Access::V3(user) => Security::V3(Box::new(Usm::new(user.clone()))),
        }
    }

    /// The version of messages with a community.
    fn version(&self) -> Option<Version> {
        match self {
            Security::V1 => Some(Version::V1),
            Security::V2c => Some(Version::V2c),
            Security::V3(_) => None,
        }
    }

    /// Encodes the parts that all packets of a request share.
    pub(crate) fn prepare(&self, session: &Session, ask: Ask, names: &[Oid]) -> RequestMessage {
        let (community, width) = (session.community.reveal(), id_width(session));
        match self.version() {
            Some(version) => RequestMessage::new(ask, version, community, names, width),
            None => RequestMessage::new_pdu(ask, names, width),
        }
    }

    /// Makes the packet of one attempt, with an id derived from a random number.
    pub(crate) fn seal<'r>(
        &'r mut self,
        request: &'r mut RequestMessage,
        random: u32,
        ids: &mut Ids,
        now: Stamp,
    ) -> Sealed<'r> {
        let id = request.set_id(random);
        let bytes = match self {
            Security::V1 | Security::V2c => request.bytes(),
            Security::V3(usm) => {
                let salt = u64::from(ids.number()) << 32 | u64::from(ids.number());
                usm.seal(id, request.bytes(), salt, now)
            }
        };
        Sealed { id, bytes }
    }

    /// Unwraps a message that has the id of an attempt and arrived at `came`. `plain` takes a decrypted text.
    pub(crate) fn open<'p>(
        &mut self,
        session: &Session,
        envelope: &Envelope<'p>,
        plain: &'p mut Vec<u8>,
        keyring: &mut Keyring,
        came: Stamp,
    ) -> Opened<'p> {
        match (self, envelope) {
            (Security::V3(usm), Envelope::Usm(message)) => usm.open(message, plain, keyring, came),
            (own, Envelope::Community(message))
                if message.head.community == session.community.reveal()
                    && Some(message.head.version) == own.version() =>
            {
                Opened::Response(message.response())
            }
            _ => Opened::Refused,
        }
    }

    /// True if a walk may use GETBULK.
    pub(crate) fn has_bulk(&self, session: &Session) -> bool {
        match self {
            Security::V1 => false,
            Security::V2c | Security::V3(_) => session.use_getbulk,
        }
    }

    /// Largest size in bytes of a packet whose varbinds have `varbinds_bytes`.
    pub(crate) fn packet_bytes(&self, session: &Session, varbinds_bytes: usize) -> usize {
        match self {
            Security::V1 | Security::V2c => {
                message_bytes(session.community.reveal().len(), varbinds_bytes)
            }
            Security::V3(usm) => message_bytes(0, varbinds_bytes) + usm.overhead_bytes(),
        }
    }
}

/// The length of a session's ids.
pub(crate) fn id_width(session: &Session) -> IdWidth {
    match session.use_16bit_ids {
        true => IdWidth::Bits15,
        false => IdWidth::Bits31,
    }
}
