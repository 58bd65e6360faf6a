//! A message: version, community, and a PDU with its varbinds. Requests and responses have the same form.

use std::fmt;

use super::ber::{self, tag};
use super::malformed::Malformed;
use super::object_value::ObjectValue;

/// Supported versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// SNMPv1: no GETBULK and no Counter64, and a single unknown object fails the whole request.
    V1,
    /// SNMPv2c.
    V2c,
}

impl Version {
    fn code(self) -> i64 {
        match self {
            Version::V1 => 0,
            Version::V2c => 1,
        }
    }
}

/// Kinds of PDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PduKind {
    /// Requests the named objects.
    Get,
    /// Requests the successors of the named objects.
    GetNext,
    /// Answers a request.
    Response,
    /// Requests several successors of the named objects.
    GetBulk,
    /// Reports an event, and wants a response.
    Inform,
    /// Reports an event; v2c and v3.
    Trap,
    /// Says why an engine of SNMPv3 does not answer.
    Report,
}

impl PduKind {
    fn tag(self) -> u8 {
        match self {
            PduKind::Get => 0xa0,
            PduKind::GetNext => 0xa1,
            PduKind::Response => 0xa2,
            PduKind::GetBulk => 0xa5,
            PduKind::Inform => 0xa6,
            PduKind::Trap => 0xa7,
            PduKind::Report => 0xa8,
        }
    }

    pub(super) fn of_tag(tag: u8) -> Option<PduKind> {
        match tag {
            0xa0 => Some(PduKind::Get),
            0xa1 => Some(PduKind::GetNext),
            0xa2 => Some(PduKind::Response),
            0xa5 => Some(PduKind::GetBulk),
            0xa6 => Some(PduKind::Inform),
            0xa7 => Some(PduKind::Trap),
            0xa8 => Some(PduKind::Report),
            _ => None,
        }
    }
}

/// Error status of a response; it concerns the whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorStatus(pub i32);

impl ErrorStatus {
    /// No error.
    pub const NO_ERROR: ErrorStatus = ErrorStatus(0);
    /// The answer would exceed the device's limit; the client may request less.
    pub const TOO_BIG: ErrorStatus = ErrorStatus(1);
    /// v1: the device lacks the object at the error index.
    pub const NO_SUCH_NAME: ErrorStatus = ErrorStatus(2);
    /// Any other error; the error index may tell the object.
    pub const GEN_ERR: ErrorStatus = ErrorStatus(5);

    /// The name in RFC 3416.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 19] = [
            "noError",
            "tooBig",
            "noSuchName",
            "badValue",
            "readOnly",
            "genErr",
            "noAccess",
            "wrongType",
            "wrongLength",
            "wrongEncoding",
            "wrongValue",
            "noCreation",
            "inconsistentValue",
            "resourceUnavailable",
            "commitFailed",
            "undoFailed",
            "authorizationError",
            "notWritable",
            "inconsistentName",
        ];
        let at = usize::try_from(self.0).ok()?;
        NAMES.get(at).copied()
    }
}

/// A message without its varbinds. Its `Debug` form hides the community.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MessageHead<'a> {
    /// v1 or v2c.
    pub version: Version,
    /// The community, which v1 and v2c use as a password in plain text.
    pub community: &'a [u8],
    /// Kind of the PDU.
    pub kind: PduKind,
    /// Id of the request; a response repeats it.
    pub id: i32,
    /// A response's error-status, GETBULK's non-repeaters, otherwise 0.
    pub status: i32,
    /// A response's error-index (the first varbind is 1, 0 is none of them), GETBULK's max-repetitions, otherwise 0.
    pub index: i32,
}

impl fmt::Debug for MessageHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageHead")
            .field("version", &self.version)
            .field("kind", &self.kind)
            .field("id", &self.id)
            .field("status", &self.status)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

/// A decoded message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Everything but the varbinds.
    pub head: MessageHead<'a>,
    /// The varbinds, not decoded yet: each may still be malformed.
    pub varbinds: Varbinds<'a>,
}

impl<'a> Message<'a> {
    /// Decodes a request or a response. As in MRTG, no byte may follow the end of the message, the PDU or the list.
    pub fn decode(packet: &'a [u8]) -> Result<Message<'a>, Malformed> {
        let (version, community, rest) = take_head(packet)?;
        let (kind, id, pdu) = take_pdu(rest)?;
        let head = MessageHead {
            version,
            community,
            kind,
            id,
            status: pdu.status.0,
            index: pdu.index,
        };
        Ok(Message {
            head,
            varbinds: pdu.varbinds,
        })
    }

    /// Decodes a response; any other PDU is malformed.
    pub fn decode_response(packet: &'a [u8]) -> Result<Message<'a>, Malformed> {
        let message = Message::decode(packet)?;
        match message.head.kind {
            PduKind::Response => Ok(message),
            _ => Err(Malformed::Kind),
        }
    }

    /// The error status of a response.
    pub fn error_status(&self) -> ErrorStatus {
        ErrorStatus(self.head.status)
    }

    /// The PDU of a response, without version and community.
    #[inline]
    pub fn response(&self) -> Response<'a> {
        Response {
            status: self.error_status(),
            index: self.head.index,
            varbinds: self.varbinds,
        }
    }
}

/// The PDU of a response; versions differ only in the message around it.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// Error status of the whole request.
    pub status: ErrorStatus,
    /// Index of the varbind with the error, from 1 on; 0 for none.
    pub index: i32,
    /// The varbinds, not decoded yet: each may still be malformed.
    pub varbinds: Varbinds<'a>,
}

/// Decodes version and community of a message; the rest is its PDU.
#[inline]
pub(super) fn take_head(packet: &[u8]) -> Result<(Version, &[u8], &[u8]), Malformed> {
    let message = ber::expect_last(packet, tag::SEQUENCE)?;
    let (version, rest) = take_number(message)?;
    let version = match version {
        0 => Version::V1,
        1 => Version::V2c,
        _ => return Err(Malformed::Version),
    };
    let (community, rest) = ber::expect(rest, tag::OCTET_STRING)?;
    Ok((version, community, rest))
}

/// Decodes a PDU, behind which no byte may follow: its kind, its id, and the rest as that of a response.
#[inline]
pub(super) fn take_pdu(input: &[u8]) -> Result<(PduKind, i32, Response<'_>), Malformed> {
    let (pdu, behind) = ber::take(input)?;
    if !behind.is_empty() {
        return Err(Malformed::Trailing);
    }
    let kind = PduKind::of_tag(pdu.tag).ok_or(Malformed::Kind)?;
    let (id, rest) = take_number(pdu.content)?;
    let (status, rest) = take_number(rest)?;
    let (index, rest) = take_number(rest)?;
    let response = Response {
        status: ErrorStatus(status),
        index,
        varbinds: Varbinds(ber::expect_last(rest, tag::SEQUENCE)?),
    };
    Ok((kind, id, response))
}

/// Decodes an integer of 32 bits, such as an id or an error status.
#[inline]
pub(super) fn take_number(input: &[u8]) -> Result<(i32, &[u8]), Malformed> {
    let (content, rest) = ber::expect(input, tag::INTEGER)?;
    let number = ber::signed(content).ok_or(Malformed::Number)?;
    let number = i32::try_from(number).map_err(|_| Malformed::Number)?;
    Ok((number, rest))
}

/// The varbinds of a message, in order: the content of each name's BER, and the value. After an error there are none.
#[derive(Clone, Copy, Debug)]
pub struct Varbinds<'a>(pub(super) &'a [u8]);

impl<'a> Varbinds<'a> {
    /// True if no varbind is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The varbinds as they were sent.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Varbinds<'a> {
    type Item = Result<(&'a [u8], ObjectValue<'a>), Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let taken = take_varbind(self.0);
        self.0 = taken.as_ref().map_or(&[], |&(_, rest)| rest);
        Some(taken.map(|(varbind, _)| varbind))
    }
}

type Varbind<'a> = (&'a [u8], ObjectValue<'a>);

#[inline]
fn take_varbind(input: &[u8]) -> Result<(Varbind<'_>, &[u8]), Malformed> {
    let (varbind, rest) = ber::expect(input, tag::SEQUENCE)?;
    let (name, value) = ber::expect(varbind, tag::OID)?;
    let (value, behind) = ber::take(value)?;
    match behind.is_empty() {
        true => Ok(((name, ObjectValue::of(value)), rest)),
        false => Err(Malformed::Trailing),
    }
}

/// Appends a varbind; `name` is the content of the identifier's BER.
#[inline]
pub fn put_varbind(out: &mut Vec<u8>, name: &[u8], value: ObjectValue) {
    // The head follows once the length is known. The length nearly always has one byte, which is reserved here.
    let start = out.len();
    out.extend_from_slice(&[tag::SEQUENCE, 0]);
    ber::put(out, tag::OID, name);
    value.put(out);
    let size = out.len() - start - 2;
    match u8::try_from(size) {
        Ok(short @ 0..0x80) => out[start + 1] = short,
        _ => {
            let mut head = Vec::with_capacity(5);
            ber::put_head(&mut head, tag::SEQUENCE, size);
            out.splice(start..start + 2, head);
        }
    }
}

/// Appends a message with varbinds from [`put_varbind`].
pub fn put_message(out: &mut Vec<u8>, head: &MessageHead, varbinds: &[u8]) {
    let id_bytes = ber::signed_bytes(head.id.into());
    put_message_with_id(out, head, id_bytes, varbinds);
}

/// Appends the PDU of a message alone, for a message of SNMPv3 around it. Version and community of the head do not count.
pub fn put_pdu(out: &mut Vec<u8>, head: &MessageHead, varbinds: &[u8]) {
    let id_bytes = ber::signed_bytes(head.id.into());
    put_pdu_with_id(out, head, id_bytes, varbinds);
}

/// As [`put_message`], with the lowest `id_bytes` (1 to 4) bytes of the id in place of its shortest form. Returns the
/// offset of the id.
pub(super) fn put_message_with_id(
    out: &mut Vec<u8>,
    head: &MessageHead,
    id_bytes: usize,
    varbinds: &[u8],
) -> usize {
    let pdu_bytes = ber::element_bytes(pdu_bytes(head, id_bytes, varbinds));
    let message_bytes = 3 + ber::element_bytes(head.community.len()) + pdu_bytes;
    out.reserve(ber::element_bytes(message_bytes));
    ber::put_head(out, tag::SEQUENCE, message_bytes);
    ber::put_signed(out, tag::INTEGER, head.version.code());
    ber::put(out, tag::OCTET_STRING, head.community);
    put_pdu_with_id(out, head, id_bytes, varbinds)
}

/// Appends the PDU of a message alone, otherwise as [`put_message_with_id`].
pub(super) fn put_pdu_with_id(
    out: &mut Vec<u8>,
    head: &MessageHead,
    id_bytes: usize,
    varbinds: &[u8],
) -> usize {
    ber::put_head(out, head.kind.tag(), pdu_bytes(head, id_bytes, varbinds));
    let digits = head.id.to_be_bytes();
    ber::put(out, tag::INTEGER, &digits[4 - id_bytes..]);
    let id_at = out.len() - id_bytes;
    ber::put_signed(out, tag::INTEGER, head.status.into());
    ber::put_signed(out, tag::INTEGER, head.index.into());
    ber::put(out, tag::SEQUENCE, varbinds);
    id_at
}

fn pdu_bytes(head: &MessageHead, id_bytes: usize, varbinds: &[u8]) -> usize {
    let number_bytes = |number: i32| ber::element_bytes(ber::signed_bytes(number.into()));
    ber::element_bytes(id_bytes)
        + number_bytes(head.status)
        + number_bytes(head.index)
        + ber::element_bytes(varbinds.len())
}
