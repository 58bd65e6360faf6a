//! A message of SNMPv3: a head, the parameters of its security, and the PDU with its context, which may be encrypted.

use super::super::ber::{self, tag};
use super::super::malformed::Malformed;
use super::super::message::{PduKind, Response, take_number, take_pdu};
use super::cipher::{Nonce, SALT_BYTES};
use super::keys::UsmKeys;

/// The version number of SNMPv3 messages.
const VERSION: i64 = 3;
/// The number of the user-based model.
const MODEL: i32 = 3;
/// The longest message that this side takes: the largest UDP datagram over IPv4.
const MESSAGE_MAX: i64 = 65_507;
/// Bits of msgFlags.
const AUTH: u8 = 1;
const PRIV: u8 = 2;
const REPORTABLE: u8 = 4;

/// The head of a message to an engine. The engine's id is empty in the message that asks for it.
#[derive(Clone, Copy)]
pub struct UsmHead<'a> {
    /// Id of the message, not negative; its answer has the same one.
    pub id: i32,
    /// Id of the engine that the message is for.
    pub engine: &'a [u8],
    /// How many times the engine has started.
    pub boots: u32,
    /// Seconds since the engine has started.
    pub time_s: u32,
    /// Name of the user.
    pub user: &'a [u8],
    /// Engine of the context, which is the engine itself or one behind it.
    pub context_engine: &'a [u8],
    /// Name of the context.
    pub context_name: &'a [u8],
}

/// The PDU of a message with its context, as it was sent.
#[derive(Clone, Copy)]
enum Body<'a> {
    /// The content of the ScopedPDU's sequence.
    Plain(&'a [u8]),
    /// The encrypted ScopedPDU.
    Encrypted(&'a [u8]),
}

/// A decoded message; nothing of it is proven.
#[derive(Clone, Copy)]
pub struct UsmMessage<'a> {
    /// Id of the request that the message answers.
    pub id: i32,
    /// True if the message claims to be signed.
    pub is_signed: bool,
    /// True if the sender wants a report in place of an answer.
    pub is_reportable: bool,
    /// Id of the engine that sent the message: any number of bytes.
    pub engine: &'a [u8],
    /// How many times the engine has started.
    pub boots: u32,
    /// Seconds since the engine has started.
    pub time_s: u32,
    /// Name of the user.
    pub user: &'a [u8],
    body: Body<'a>,
    packet: &'a [u8],
    signature: &'a [u8],
    salt: &'a [u8],
}

impl<'a> UsmMessage<'a> {
    /// Decodes a message of version 3 and the user-based model. No byte may follow the end of any part.
    pub fn decode(packet: &'a [u8]) -> Result<UsmMessage<'a>, Malformed> {
        let message = ber::expect_last(packet, tag::SEQUENCE)?;
        let (version, rest) = take_number(message)?;
        if i64::from(version) != VERSION {
            return Err(Malformed::Version);
        }
        let (head, rest) = ber::expect(rest, tag::SEQUENCE)?;
        let (id, head) = take_number(head)?;
        let (_, head) = take_number(head)?;
        let (flags, head) = ber::expect(head, tag::OCTET_STRING)?;
        let (&[flags], (model, [])) = (flags, take_number(head)?) else {
            return Err(Malformed::Trailing);
        };
        let (parameters, rest) = ber::expect(rest, tag::OCTET_STRING)?;
        // Encryption without a signature is forbidden.
        if model != MODEL || flags & (AUTH | PRIV) == PRIV {
            return Err(Malformed::Version);
        }
        let parameters = ber::expect_last(parameters, tag::SEQUENCE)?;
        let (engine, parameters) = ber::expect(parameters, tag::OCTET_STRING)?;
        let (boots, parameters) = take_count(parameters)?;
        let (time_s, parameters) = take_count(parameters)?;
        let (user, parameters) = ber::expect(parameters, tag::OCTET_STRING)?;
        let (signature, parameters) = ber::expect(parameters, tag::OCTET_STRING)?;
        let salt = ber::expect_last(parameters, tag::OCTET_STRING)?;
        let body = match flags & PRIV {
            0 => Body::Plain(ber::expect_last(rest, tag::SEQUENCE)?),
            _ => Body::Encrypted(ber::expect_last(rest, tag::OCTET_STRING)?),
        };
        Ok(UsmMessage {
            id,
            is_signed: flags & AUTH > 0,
            is_reportable: flags & REPORTABLE > 0,
            engine,
            boots,
            time_s,
            user,
            body,
            packet,
            signature,
            salt,
        })
    }

    /// True if only keys of privacy can read the PDU.
    pub fn is_encrypted(&self) -> bool {
        matches!(self.body, Body::Encrypted(_))
    }

    /// True if the message was signed with these keys and has not been changed since.
    pub fn is_proven_by(&self, keys: &UsmKeys) -> bool {
        let at = self.signature.as_ptr().addr() - self.packet.as_ptr().addr();
        self.is_signed
            && self.signature.len() == keys.signature_bytes
            && keys.verifies(self.packet, at)
    }

    /// The content of the ScopedPDU's sequence. An encrypted one is decrypted into `plain`. `None`: it cannot be decrypted.
    pub fn scoped<'p>(&self, keys: Option<&UsmKeys>, plain: &'p mut Vec<u8>) -> Option<&'p [u8]>
    where
        'a: 'p,
    {
        let text = match self.body {
            Body::Plain(content) => return Some(content),
            Body::Encrypted(text) => text,
        };
        let nonce = Nonce {
            boots: self.boots,
            time_s: self.time_s,
            salt: self.salt.try_into().ok()?,
        };
        plain.clear();
        plain.extend_from_slice(text);
        keys?
            .cipher
            .as_ref()?
            .decrypt(&nonce, plain)
            .then_some(())?;
        // DES leaves bytes behind the end.
        let (content, _) = ber::expect(plain, tag::SEQUENCE).ok()?;
        Some(content)
    }
}

/// A PDU and its context.
#[derive(Clone, Copy, Debug)]
pub struct ScopedPdu<'a> {
    /// Engine of the context.
    pub context_engine: &'a [u8],
    /// Name of the context.
    pub context_name: &'a [u8],
    /// Kind of the PDU.
    pub kind: PduKind,
    /// Id of the request.
    pub id: i32,
    /// The rest of the PDU, as that of a response.
    pub response: Response<'a>,
}

impl<'a> ScopedPdu<'a> {
    /// Decodes the content of the sequence.
    pub fn decode(content: &'a [u8]) -> Result<ScopedPdu<'a>, Malformed> {
        let (context_engine, rest) = ber::expect(content, tag::OCTET_STRING)?;
        let (context_name, rest) = ber::expect(rest, tag::OCTET_STRING)?;
        let (kind, id, response) = take_pdu(rest)?;
        Ok(ScopedPdu {
            context_engine,
            context_name,
            kind,
            id,
            response,
        })
    }
}

/// A number of 0 to 2^31 - 1.
fn take_count(input: &[u8]) -> Result<(u32, &[u8]), Malformed> {
    let (number, rest) = take_number(input)?;
    let number = u32::try_from(number).map_err(|_| Malformed::Number)?;
    Ok((number, rest))
}

/// True for a PDU that is answered: a sender of any other one hears nothing of it.
fn wants_answer(pdu: &[u8]) -> bool {
    let kind = pdu.first().and_then(|tag| PduKind::of_tag(*tag));
    !matches!(
        kind,
        Some(PduKind::Response | PduKind::Report | PduKind::Trap)
    )
}

/// Appends a message with a PDU from [`super::super::RequestMessage::new_pdu`] or [`super::super::put_pdu`], signed and encrypted as the keys allow. `salt`: a number
/// that no other message has.
pub fn put_usm_message(
    out: &mut Vec<u8>,
    head: &UsmHead,
    keys: Option<&UsmKeys>,
    salt: u64,
    pdu: &[u8],
) {
    let cipher = keys.and_then(|keys| keys.cipher.as_ref());
    let mut flags = if wants_answer(pdu) { REPORTABLE } else { 0 };
    flags |= if keys.is_some() { AUTH } else { 0 };
    flags |= if cipher.is_some() { PRIV } else { 0 };
    let nonce = Nonce {
        boots: head.boots,
        time_s: head.time_s,
        salt: salt.to_be_bytes(),
    };
    let salt = cipher.map_or(&[][..], |_| &nonce.salt);
    let sizes = Sizes::new(head, keys, pdu.len());

    let start = out.len();
    out.reserve(ber::element_bytes(sizes.whole));
    ber::put_head(out, tag::SEQUENCE, sizes.whole);
    ber::put_signed(out, tag::INTEGER, VERSION);
    ber::put_head(out, tag::SEQUENCE, sizes.head);
    ber::put_signed(out, tag::INTEGER, head.id.into());
    ber::put_signed(out, tag::INTEGER, MESSAGE_MAX);
    ber::put(out, tag::OCTET_STRING, &[flags]);
    ber::put_signed(out, tag::INTEGER, MODEL.into());
    let parameters_bytes = ber::element_bytes(sizes.parameters);
    ber::put_head(out, tag::OCTET_STRING, parameters_bytes);
    ber::put_head(out, tag::SEQUENCE, sizes.parameters);
    ber::put(out, tag::OCTET_STRING, head.engine);
    ber::put_signed(out, tag::INTEGER, head.boots.into());
    ber::put_signed(out, tag::INTEGER, head.time_s.into());
    ber::put(out, tag::OCTET_STRING, head.user);
    ber::put_head(out, tag::OCTET_STRING, sizes.signature);
    let signature_at = out.len() - start;
    out.resize(out.len() + sizes.signature, 0);
    ber::put(out, tag::OCTET_STRING, salt);
    if cipher.is_some() {
        ber::put_head(out, tag::OCTET_STRING, sizes.text);
    }
    let text_at = out.len();
    ber::put_head(out, tag::SEQUENCE, sizes.scope);
    ber::put(out, tag::OCTET_STRING, head.context_engine);
    ber::put(out, tag::OCTET_STRING, head.context_name);
    out.extend_from_slice(pdu);
    out.resize(text_at + sizes.text, 0);
    if let Some(cipher) = cipher {
        cipher.encrypt(&nonce, &mut out[text_at..]);
    }
    if let Some(keys) = keys {
        keys.sign(&mut out[start..], signature_at);
    }
}

/// Bytes of the contents of a message's parts.
struct Sizes {
    whole: usize,
    head: usize,
    parameters: usize,
    signature: usize,
    /// PDU and context.
    scope: usize,
    /// The ScopedPDU with its head, and with what a cipher adds.
    text: usize,
}

impl Sizes {
    fn new(head: &UsmHead, keys: Option<&UsmKeys>, pdu_bytes: usize) -> Sizes {
        let octets = ber::element_bytes;
        let number = |number: i64| octets(ber::signed_bytes(number));
        let cipher = keys.and_then(|keys| keys.cipher.as_ref());
        let signature = keys.map_or(0, |keys| keys.signature_bytes);
        let salt = cipher.map_or(0, |_| SALT_BYTES);
        let parameters = octets(head.engine.len())
            + number(head.boots.into())
            + number(head.time_s.into())
            + octets(head.user.len())
            + octets(signature)
            + octets(salt);
        let of_head = number(head.id.into()) + number(MESSAGE_MAX) + 3 + number(MODEL.into());
        let scope = octets(head.context_engine.len()) + octets(head.context_name.len()) + pdu_bytes;
        let scoped = octets(scope);
        let text = cipher.map_or(scoped, |cipher| cipher.padded_bytes(scoped));
        let body = cipher.map_or(text, |_| octets(text));
        Sizes {
            whole: number(VERSION) + octets(of_head) + octets(octets(parameters)) + body,
            head: of_head,
            parameters,
            signature,
            scope,
            text,
        }
    }
}

/// Upper bound for the bytes of a message whose varbinds have `varbinds_bytes`, besides those of a message with a community.
pub fn usm_message_bytes(user_bytes: usize, context_bytes: usize) -> usize {
    const ENGINE_MAX: usize = 32;
    const NUMBERS: usize = 4 * 6 + 3 + 3;
    const HEADS: usize = 10 * 4;
    let names = user_bytes + 2 * ENGINE_MAX + context_bytes;
    NUMBERS + HEADS + names + super::keys::SIGNATURE_MAX + 2 * SALT_BYTES
}
