//! SNMPv3: the poller's knowledge of the SNMP engine of a device, and the rules by which a message is the engine's. RFC 3414, 3.1, 3.2
//! and 4.
//!
//! Only signed messages change this knowledge. A report without a signature, which anybody may have made, at most leads to one
//! question for the engine's id. Each message has a random id of its own, which its answer repeats under the signature: a replayed
//! one answers nothing.

use std::sync::Arc;

use kymo_sys::clock::Stamp;
use kymo_wire::mrtg_cfg::{Keyring, User};
use kymo_wire::snmp::usm::{
    BOOTS_MAX, EngineClock, ScopedPdu, UsmHead, UsmKeys, UsmMessage, UsmReport, put_usm_message,
};
use kymo_wire::snmp::{Ask, IdWidth, Oid, PduKind, RequestMessage, Response};

/// Length of an engine's id, bytes.
const ID_BYTES: std::ops::RangeInclusive<usize> = 5..=32;

/// A message without its envelope.
pub(crate) enum Opened<'p> {
    /// The device's answer.
    Response(Response<'p>),
    /// The message is not the device's, or of another community, user, version or time.
    Refused,
    /// The device does not answer the user, for this reason. Anybody may have made the report.
    Report(UsmReport),
    /// The device said what a request needs to know, by this report: the request is to be sent again.
    Again(UsmReport),
}

/// A user at a device.
pub(crate) struct Usm {
    user: Arc<User>,
    engine: Option<SnmpEngine>,
    /// True if the device said that it is another engine: the next message asks for its id.
    is_doubted: bool,
    packet: Vec<u8>,
}

/// The SNMP engine of a device.
struct SnmpEngine {
    id: Box<[u8]>,
    keys: Option<UsmKeys>,
    clock: EngineClock,
}

impl Usm {
    pub(crate) fn new(user: Arc<User>) -> Usm {
        Usm {
            user,
            engine: None,
            is_doubted: false,
            packet: Vec::new(),
        }
    }

    /// Bytes of a message besides those of one without a community.
    pub(crate) fn overhead_bytes(&self) -> usize {
        let context_bytes = self.user.context_name.len();
        kymo_wire::snmp::usm::usm_message_bytes(self.user.name.len(), context_bytes)
    }

    /// Makes the packet of a request whose id is set, or the question for the engine's id in its place.
    pub(crate) fn seal(&mut self, id: i32, pdu: &[u8], salt: u64, now: Stamp) -> &[u8] {
        self.packet.clear();
        match &self.engine {
            Some(engine) if !self.is_doubted => {
                let has_time = engine.keys.is_some();
                let head = UsmHead {
                    id,
                    engine: &engine.id,
                    boots: if has_time { engine.clock.boots } else { 0 },
                    time_s: if has_time {
                        engine.clock.time_s(now.boot_ns)
                    } else {
                        0
                    },
                    user: &self.user.name,
                    context_engine: self.user.context_engine.as_deref().unwrap_or(&engine.id),
                    context_name: &self.user.context_name,
                };
                put_usm_message(&mut self.packet, &head, engine.keys.as_ref(), salt, pdu);
            }
            _ => put_question(&mut self.packet, id),
        }
        &self.packet
    }

    /// Unwraps a message with the id of an attempt. `plain` takes a decrypted text.
    pub(crate) fn open<'p>(
        &mut self,
        message: &UsmMessage<'p>,
        plain: &'p mut Vec<u8>,
        keyring: &mut Keyring,
        came: Stamp,
    ) -> Opened<'p> {
        if !message.is_signed {
            return self.open_unsigned(message, plain, keyring, came);
        }
        let Some(engine) = &mut self.engine else {
            return Opened::Refused;
        };
        let Some(keys) = &engine.keys else {
            return Opened::Refused;
        };
        let is_ours = *message.engine == *engine.id && *message.user == *self.user.name;
        if !is_ours || !message.is_proven_by(keys) {
            return Opened::Refused;
        }
        let is_private = message.is_encrypted() || !keys.has_privacy();
        let Some(pdu) = pdu_of(message, Some(keys), plain) else {
            return Opened::Refused;
        };
        match (pdu.kind, report_of(&pdu)) {
            (PduKind::Response, _) if is_private && pdu.id == message.id => {
                match engine.clock.takes(message, came.boot_ns) {
                    true => Opened::Response(pdu.response),
                    false => Opened::Refused,
                }
            }
            // The report repeats the random id of a request under its signature, so it is of now, whatever is known of the clock.
            (PduKind::Report, Some(UsmReport::NotInTimeWindow)) if message.boots < BOOTS_MAX => {
                engine.clock.set(message, came.boot_ns);
                Opened::Again(UsmReport::NotInTimeWindow)
            }
            (PduKind::Report, Some(report)) => Opened::Report(report),
            _ => Opened::Refused,
        }
    }

    fn open_unsigned<'p>(
        &mut self,
        message: &UsmMessage<'p>,
        plain: &'p mut Vec<u8>,
        keyring: &mut Keyring,
        came: Stamp,
    ) -> Opened<'p> {
        let Some(pdu) = pdu_of(message, None, plain) else {
            return Opened::Refused;
        };
        match (pdu.kind, report_of(&pdu)) {
            // Some devices answer the question for the id by another report, which has the id as well.
            (PduKind::Report, Some(report))
                if report == UsmReport::UnknownEngine || self.engine.is_none() =>
            {
                self.take_engine(message, keyring, came)
            }
            (PduKind::Report, Some(report)) => Opened::Report(report),
            (PduKind::Response, _) => {
                let is_known =
                    |engine: &SnmpEngine| engine.keys.is_none() && *engine.id == *message.engine;
                let is_ours = self.engine.as_ref().is_some_and(is_known)
                    && *message.user == *self.user.name
                    && pdu.id == message.id;
                match is_ours {
                    true => Opened::Response(pdu.response),
                    false => Opened::Refused,
                }
            }
            _ => Opened::Refused,
        }
    }

    /// Takes the engine's id from the answer to a question for it. The answer's boots and time are good for a first attempt; a
    /// signed message will say the right ones. Otherwise the device does not know its id any more, and is to be asked for it.
    fn take_engine<'p>(
        &mut self,
        message: &UsmMessage<'_>,
        keyring: &mut Keyring,
        came: Stamp,
    ) -> Opened<'p> {
        let again = Opened::Again(UsmReport::UnknownEngine);
        if !ID_BYTES.contains(&message.engine.len()) {
            return Opened::Refused;
        }
        if self.engine.is_some() && !std::mem::take(&mut self.is_doubted) {
            self.is_doubted = true;
            return again;
        }
        let is_known = |engine: &SnmpEngine| *engine.id == *message.engine;
        if !self.engine.as_ref().is_some_and(is_known) {
            self.engine = Some(SnmpEngine {
                id: message.engine.into(),
                keys: keyring.keys(&self.user, message.engine),
                clock: EngineClock::guessed(message, came.boot_ns),
            });
        }
        again
    }
}

/// Appends the question for the engine's id.
fn put_question(packet: &mut Vec<u8>, id: i32) {
    let mut request = RequestMessage::new_pdu(Ask::Get, [] as [Oid; 0], IdWidth::Bits31);
    request.set_id(id.cast_unsigned());
    let head = UsmHead {
        id,
        engine: b"",
        boots: 0,
        time_s: 0,
        user: b"",
        context_engine: b"",
        context_name: b"",
    };
    put_usm_message(packet, &head, None, 0, request.bytes());
}

fn pdu_of<'p>(
    message: &UsmMessage<'p>,
    keys: Option<&UsmKeys>,
    plain: &'p mut Vec<u8>,
) -> Option<ScopedPdu<'p>> {
    ScopedPdu::decode(message.scoped(keys, plain)?).ok()
}

/// The reason of a report.
fn report_of(pdu: &ScopedPdu<'_>) -> Option<UsmReport> {
    let first = pdu.response.varbinds.clone().next()?.ok()?;
    UsmReport::of_name(first.0)
}
