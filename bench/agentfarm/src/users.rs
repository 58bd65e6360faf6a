//! SNMPv3: each device answers one user, whose messages are signed by SHA-256 and encrypted by AES-128.

use std::sync::OnceLock;

use kymo_wire::snmp::usm::{
    AuthProtocol, Key, PrivProtocol, ScopedPdu, UsmHead, UsmKeys, UsmMessage, put_usm_message,
};
use kymo_wire::snmp::{
    Message, MessageHead, ObjectValue, Oid, PduKind, Version, put_message, put_pdu, put_varbind,
};

/// The user as `SnmpOptions` of an mrtg.cfg.
pub const SNMP_OPTIONS: &str = "username => 'farm', authprotocol => 'sha256', \
    authpassword => 'signing one', privprotocol => 'aes', privpassword => 'private one'";

const USER: &[u8] = b"farm";
/// The engine of all devices, which are one program.
const ENGINE: &[u8] = b"\x80\0\0\0\x04farm";
const BOOTS: u32 = 1;

/// The answer to a message of version 3; `inner` answers its request as one of version 2c. `None`: no answer.
pub(crate) fn answer(
    packet: &[u8],
    community: &[u8],
    now_ns: u64,
    inner: impl FnOnce(&Message) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let request = UsmMessage::decode(packet).ok()?;
    let time_s = u32::try_from(now_ns / 1_000_000_000 % (1 << 31)).ok()?;
    if request.engine != ENGINE {
        return Some(report(request.id, time_s));
    }
    let keys = keys()?;
    if request.user != USER || !request.is_proven_by(keys) {
        return None;
    }
    let mut plain = Vec::new();
    let scoped = ScopedPdu::decode(request.scoped(Some(keys), &mut plain)?).ok()?;
    let head = MessageHead {
        version: Version::V2c,
        community,
        kind: scoped.kind,
        id: scoped.id,
        status: scoped.response.status.0,
        index: scoped.response.index,
    };
    let mut inside = Vec::new();
    put_message(&mut inside, &head, &again(scoped.response.varbinds));
    let reply = inner(&Message::decode(&inside).ok()?)?;
    let reply = Message::decode(&reply).ok()?;
    let mut pdu = Vec::new();
    put_pdu(&mut pdu, &reply.head, &again(reply.varbinds));
    Some(message(request.id, time_s, Some(keys), &pdu))
}

fn again(varbinds: kymo_wire::snmp::Varbinds) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in varbinds.flatten() {
        put_varbind(&mut out, name, value);
    }
    out
}

/// Says the engine's id, boots and time: usmStatsUnknownEngineIDs.
fn report(id: i32, time_s: u32) -> Vec<u8> {
    let (mut varbinds, mut pdu) = (Vec::new(), Vec::new());
    let name = Oid::of_bytes(&[43, 6, 1, 6, 3, 15, 1, 1, 4, 0]);
    put_varbind(&mut varbinds, &name, ObjectValue::Counter32(1));
    let head = MessageHead {
        version: Version::V2c,
        community: b"",
        kind: PduKind::Report,
        id,
        status: 0,
        index: 0,
    };
    put_pdu(&mut pdu, &head, &varbinds);
    message(id, time_s, None, &pdu)
}

fn message(id: i32, time_s: u32, keys: Option<&UsmKeys>, pdu: &[u8]) -> Vec<u8> {
    let head = UsmHead {
        id,
        engine: ENGINE,
        boots: BOOTS,
        time_s,
        user: USER,
        context_engine: ENGINE,
        context_name: b"",
    };
    let mut out = Vec::new();
    // The id, which is random, makes a salt that no other message has.
    put_usm_message(&mut out, &head, keys, u64::from(id.cast_unsigned()), pdu);
    out
}

fn keys() -> Option<&'static UsmKeys> {
    static KEYS: OnceLock<Option<UsmKeys>> = OnceLock::new();
    let keys = KEYS.get_or_init(|| {
        let auth = AuthProtocol::Sha256;
        let key = |password: &[u8]| Some(Key::of_password(auth, password)?.localized(auth, ENGINE));
        let (signing, private) = (key(b"signing one")?, key(b"private one")?);
        UsmKeys::new((auth, &signing), Some((PrivProtocol::Aes128, &private)))
    });
    keys.as_ref()
}
