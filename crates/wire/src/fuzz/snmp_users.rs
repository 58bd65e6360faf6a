//! SNMPv3: any bytes as a message; any PDU comes back unchanged from a message that is signed and encrypted, and no changed byte
//! passes for it.

use crate::snmp::usm::{
    AuthProtocol, Key, PrivProtocol, ScopedPdu, UsmHead, UsmKeys, UsmMessage, put_usm_message,
};
use std::sync::OnceLock;

/// Reads any bytes as a message; then the first byte chooses a cipher, the next two a byte of a message to be changed.
pub fn fuzz_snmp_users(input: &[u8]) {
    let mut plain = Vec::new();
    if let Ok(message) = UsmMessage::decode(input) {
        for keys in all_keys() {
            assert!(!message.is_proven_by(keys), "a signature without the key");
            let scoped = message.scoped(Some(keys), &mut plain);
            let _ = scoped.map(ScopedPdu::decode);
        }
    }
    let [which, high, low, pdu @ ..] = input else {
        return;
    };
    let all = all_keys();
    let keys = &all[usize::from(*which) % all.len()];
    let mut packet = Vec::new();
    put_usm_message(&mut packet, &HEAD, Some(keys), 5, pdu);
    let Ok(message) = UsmMessage::decode(&packet) else {
        unreachable!("BUG: a message of our own is malformed")
    };
    assert!(message.is_proven_by(keys), "a signature changed");
    let scoped = message.scoped(Some(keys), &mut plain);
    assert!(scoped.is_some_and(|scoped| scoped.ends_with(pdu)));
    let at = usize::from(u16::from_be_bytes([*high, *low])) % packet.len();
    packet[at] ^= 1;
    if let Ok(message) = UsmMessage::decode(&packet) {
        assert!(!message.is_proven_by(keys), "a changed byte passed");
    }
}

const HEAD: UsmHead = UsmHead {
    id: 7,
    engine: b"\x80\0\0\0\x01e",
    boots: 3,
    time_s: 400,
    user: b"u",
    context_engine: b"\x80\0\0\0\x01e",
    context_name: b"c",
};

fn all_keys() -> &'static [UsmKeys] {
    static KEYS: OnceLock<Vec<UsmKeys>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let key = Key::new(&[7; 64]);
        [
            (AuthProtocol::Md5, PrivProtocol::Des),
            (AuthProtocol::Sha256, PrivProtocol::Aes128),
            (AuthProtocol::Sha512, PrivProtocol::Aes256),
        ]
        .into_iter()
        .filter_map(|(auth, privacy)| UsmKeys::new((auth, &key), Some((privacy, &key))))
        .collect()
    })
}
