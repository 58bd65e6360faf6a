//! Requests that are encoded once; only the bytes of the id change before each sending.

use super::ber::element_bytes;
use super::message::{
    MessageHead, PduKind, Varbinds, Version, put_message_with_id, put_pdu_with_id, put_varbind,
};
use super::object_value::ObjectValue;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Values of the named objects.
    Get,
    /// Values of their successors.
    GetNext,
    /// Values of several successors. v1 has no such operation and sends `GetNext`.
    GetBulk {
        /// How many of the first names are requested once.
        non_repeaters: u16,
        /// How many successors the other names get.
        max_repetitions: u16,
    },
}

/// Size of an id. Ids are positive and have the same length in each sending, because they are made for their shortest form:
/// an agent that re-encodes an id sends back the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdWidth {
    /// 31 bits in 4 bytes.
    Bits31,
    /// 15 bits in 2 bytes, for agents that support no longer ids (`use_16bit_request_ids`).
    Bits15,
}

impl IdWidth {
    fn bytes(self) -> usize {
        match self {
            IdWidth::Bits31 => 4,
            IdWidth::Bits15 => 2,
        }
    }

    /// Makes an id from the lowest bits of any number. One more bit is set if the shortest form had fewer bytes otherwise.
    pub fn id(self, random: u32) -> i32 {
        let (mask, lowest) = match self {
            IdWidth::Bits31 => (0x7fff_ffff, 0x0080_0000),
            IdWidth::Bits15 => (0x7fff, 0x80),
        };
        match random & mask {
            short if short < lowest => (short | lowest).cast_signed(),
            id => id.cast_signed(),
        }
    }
}

/// An encoded request.
#[derive(Clone)]
pub struct RequestMessage {
    bytes: Box<[u8]>,
    id_at: usize,
    varbinds_at: usize,
    width: IdWidth,
}

impl RequestMessage {
    /// Encodes the request with an id of 0. `names` are contents of BER, such as [`super::Oid`].
    pub fn new<N: AsRef<[u8]>>(
        ask: Ask,
        version: Version,
        community: &[u8],
        names: impl IntoIterator<Item = N>,
        width: IdWidth,
    ) -> RequestMessage {
        let mut head = head(ask, version == Version::V2c);
        (head.version, head.community) = (version, community);
        RequestMessage::encoded(names, width, |out, varbinds| {
            put_message_with_id(out, &head, width.bytes(), varbinds)
        })
    }

    /// Encodes the PDU alone, for a message of SNMPv3 around it.
    pub fn new_pdu<N: AsRef<[u8]>>(
        ask: Ask,
        names: impl IntoIterator<Item = N>,
        width: IdWidth,
    ) -> RequestMessage {
        let head = head(ask, true);
        RequestMessage::encoded(names, width, |out, varbinds| {
            put_pdu_with_id(out, &head, width.bytes(), varbinds)
        })
    }

    fn encoded<N: AsRef<[u8]>>(
        names: impl IntoIterator<Item = N>,
        width: IdWidth,
        put: impl FnOnce(&mut Vec<u8>, &[u8]) -> usize,
    ) -> RequestMessage {
        let mut varbinds = Vec::new();
        for name in names {
            put_varbind(&mut varbinds, name.as_ref(), ObjectValue::Null);
        }
        let mut bytes = Vec::new();
        let id_at = put(&mut bytes, &varbinds);
        RequestMessage {
            varbinds_at: bytes.len() - varbinds.len(),
            bytes: bytes.into(),
            id_at,
            width,
        }
    }

    /// Sets an id made from any number, and returns it for comparison with the reply.
    pub fn set_id(&mut self, random: u32) -> i32 {
        let id = self.width.id(random);
        let size = self.width.bytes();
        self.bytes[self.id_at..self.id_at + size].copy_from_slice(&id.to_be_bytes()[4 - size..]);
        id
    }

    /// The requested names, each with Null.
    pub fn varbinds(&self) -> Varbinds<'_> {
        Varbinds(&self.bytes[self.varbinds_at..])
    }

    /// The bytes to send.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The head of a request, without a community.
fn head(ask: Ask, has_bulk: bool) -> MessageHead<'static> {
    let (kind, status, index) = match ask {
        Ask::Get => (PduKind::Get, 0, 0),
        Ask::GetBulk {
            non_repeaters,
            max_repetitions,
        } if has_bulk => (
            PduKind::GetBulk,
            i32::from(non_repeaters),
            i32::from(max_repetitions),
        ),
        Ask::GetNext | Ask::GetBulk { .. } => (PduKind::GetNext, 0, 0),
    };
    MessageHead {
        version: Version::V2c,
        community: b"",
        kind,
        id: 0,
        status,
        index,
    }
}

/// Bytes of a varbind whose name has `name_bytes` of content, and its value `value_bytes`: 0 in a request, up to 9 for a
/// counter.
pub fn varbind_bytes(name_bytes: usize, value_bytes: usize) -> usize {
    element_bytes(element_bytes(name_bytes) + element_bytes(value_bytes))
}

/// Upper bound for the bytes of a message with `varbinds_bytes` of varbinds, an id of 4 bytes, and status and index of 2.
pub fn message_bytes(community_bytes: usize, varbinds_bytes: usize) -> usize {
    let numbers = element_bytes(4) + 2 * element_bytes(2);
    let pdu = element_bytes(numbers + element_bytes(varbinds_bytes));
    element_bytes(element_bytes(1) + element_bytes(community_bytes) + pdu)
}
