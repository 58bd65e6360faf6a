//! Keys beside the vectors of RFC 3414 and of Reeder's draft, and messages that come back, cut and changed ones too.

use super::*;
use crate::snmp::{Ask, IdWidth, Oid, PduKind, RequestMessage};

const AUTH: [AuthProtocol; 6] = [
    AuthProtocol::Md5,
    AuthProtocol::Sha1,
    AuthProtocol::Sha224,
    AuthProtocol::Sha256,
    AuthProtocol::Sha384,
    AuthProtocol::Sha512,
];

const PRIVACY: [PrivProtocol; 6] = [
    PrivProtocol::Des,
    PrivProtocol::Aes128,
    PrivProtocol::Aes192,
    PrivProtocol::Aes256,
    PrivProtocol::Aes192Reeder,
    PrivProtocol::Aes256Reeder,
];

/// The engine of RFC 3414, A.3.
const ENGINE: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn key(protocol: AuthProtocol) -> Key {
    Key::of_password(protocol, b"maplesyrup").unwrap()
}

/// The first two are of RFC 3414, A.3; the others were computed with Python's hashlib.
#[test]
fn passwords_become_localized_keys() {
    let keys = [
        "526f5eed9fcce26f8964c2930787d82b",
        "6695febc9288e36282235fc7151f128497b38f3f",
        "0bd8827c6e29f8065e08e09237f177e410f69b90e1782be682075674",
        "8982e0e549e866db361a6b625d84cccc11162d453ee8ce3a6445c2d6776f0f8b",
        "3b298f16164a11184279d5432bf169e2d2a48307de02b3d3f7e2b4f36eb6f0455a53689a3937eea07319a633d2ccba78",
        "22a5a36cedfcc085807a128d7bc6c2382167ad6c0dbc5fdff856740f3d84c099ad1ea87a8db096714d9788bd544047c9021e4229ce27e4c0a69250adfcffbb0b",
    ];
    for (protocol, expected) in AUTH.into_iter().zip(keys) {
        let localized = key(protocol).localized(protocol, ENGINE);
        assert_eq!(hex(localized.bytes()), expected, "{protocol:?}");
        assert_eq!(localized.bytes().len(), protocol.key_bytes());
    }
    let user = |protocol| hex(key(protocol).bytes());
    assert_eq!(user(AuthProtocol::Md5), "9faf3283884e92834ebc9847d8edd963");
    assert_eq!(
        user(AuthProtocol::Sha1),
        "9fb5cc0381497b3793528939ff788d5d79145211"
    );
    assert!(Key::of_password(AuthProtocol::Md5, b"").is_none());
}

/// Reeder's vectors are from the draft; Blumenthal's were computed with Python's hashlib.
#[test]
fn short_keys_are_extended() {
    for (auth, privacy, expected) in [
        (
            AuthProtocol::Md5,
            PrivProtocol::Aes256Reeder,
            "526f5eed9fcce26f8964c2930787d82b79eff44a90650ee0a3a40abfac5acc12",
        ),
        (
            AuthProtocol::Sha1,
            PrivProtocol::Aes192Reeder,
            "6695febc9288e36282235fc7151f128497b38f3f9b8b6d78936ba6e7d19dfd9cd2d5065547743fb5",
        ),
        (
            AuthProtocol::Md5,
            PrivProtocol::Aes192,
            "526f5eed9fcce26f8964c2930787d82bfa24a92467426c2f4b09192be10dfaec",
        ),
        (
            AuthProtocol::Sha1,
            PrivProtocol::Aes256,
            "6695febc9288e36282235fc7151f128497b38f3f505e07eb9af25568fa1f5dbe",
        ),
        (
            AuthProtocol::Sha224,
            PrivProtocol::Aes256,
            "0bd8827c6e29f8065e08e09237f177e410f69b90e1782be682075674e82d9bf0",
        ),
        (
            AuthProtocol::Md5,
            PrivProtocol::Des,
            "526f5eed9fcce26f8964c2930787d82b",
        ),
    ] {
        let localized = key(auth).localized(auth, ENGINE);
        let extended = hex(localized.extended(auth, privacy, ENGINE).bytes());
        assert!(
            extended.starts_with(expected),
            "{auth:?} {privacy:?} {extended}"
        );
    }
}

fn keys(auth: AuthProtocol, privacy: Option<PrivProtocol>) -> UsmKeys {
    let localized = key(auth).localized(auth, ENGINE);
    let private = privacy.map(|privacy| {
        let extended = localized.clone().extended(auth, privacy, ENGINE);
        (privacy, extended)
    });
    let private = private.as_ref().map(|(protocol, key)| (*protocol, key));
    UsmKeys::new((auth, &localized), private).unwrap()
}

const HEAD: UsmHead = UsmHead {
    id: 0x1234_5678,
    engine: ENGINE,
    boots: 3,
    time_s: 70_000,
    user: b"operator",
    context_engine: ENGINE,
    context_name: b"vlan-7",
};

/// A message with names of this number of bytes in all, and its PDU.
fn message(keys: Option<&UsmKeys>, names: usize) -> (Vec<u8>, Vec<u8>) {
    let name = Oid::parse("1.3.6.1.2.1.1.3.0").unwrap();
    let names = vec![name; names];
    let mut request = RequestMessage::new_pdu(Ask::Get, &names, IdWidth::Bits31);
    request.set_id(0x1234_5678);
    let mut packet = Vec::new();
    put_usm_message(
        &mut packet,
        &HEAD,
        keys,
        0x0102_0304_0506_0708,
        request.bytes(),
    );
    (packet, request.bytes().to_vec())
}

fn assert_comes_back(keys: Option<&UsmKeys>, packet: &[u8], names: usize) {
    let message = UsmMessage::decode(packet).unwrap();
    assert_eq!((message.id, message.boots), (HEAD.id, HEAD.boots));
    assert_eq!(
        (message.time_s, message.engine, message.user),
        (HEAD.time_s, ENGINE, HEAD.user)
    );
    assert_eq!(message.is_signed, keys.is_some());
    let mut plain = Vec::new();
    let scoped = message.scoped(keys, &mut plain).unwrap();
    let pdu = ScopedPdu::decode(scoped).unwrap();
    assert_eq!((pdu.kind, pdu.id), (PduKind::Get, HEAD.id));
    assert_eq!(pdu.response.varbinds.flatten().count(), names);
}

#[test]
fn messages_come_back_with_every_combination() {
    for names in [0, 1, 2, 7, 40] {
        assert_comes_back(None, &message(None, names).0, names);
    }
    for auth in AUTH {
        for privacy in PRIVACY.map(Some).into_iter().chain([None]) {
            let keys = keys(auth, privacy);
            for names in [1, 2, 3, 40] {
                let (packet, pdu) = message(Some(&keys), names);
                assert_comes_back(Some(&keys), &packet, names);
                assert!(UsmMessage::decode(&packet).unwrap().is_proven_by(&keys));
                let is_there = packet.windows(pdu.len()).any(|part| part == pdu);
                assert_eq!(is_there, privacy.is_none(), "{auth:?} {privacy:?}");
                let overhead = packet.len() - pdu.len();
                assert!(
                    overhead <= usm_message_bytes(HEAD.user.len(), 6),
                    "{overhead}"
                );
            }
        }
    }
}

#[test]
fn cut_and_changed_messages_prove_nothing() {
    let keys = keys(AuthProtocol::Sha256, Some(PrivProtocol::Aes128));
    let (packet, _) = message(Some(&keys), 2);
    for size in 0..packet.len() {
        assert!(UsmMessage::decode(&packet[..size]).is_err(), "{size}");
    }
    for at in 0..packet.len() {
        for bit in 0..8 {
            let mut changed = packet.clone();
            changed[at] ^= 1 << bit;
            let message = UsmMessage::decode(&changed);
            assert!(
                message.is_err() || !message.unwrap().is_proven_by(&keys),
                "{at}"
            );
        }
    }
    let longer = [&packet[..], &[0]].concat();
    assert!(UsmMessage::decode(&longer).is_err());
}

#[test]
fn other_keys_and_lengths_prove_nothing() {
    let (sha256, aes) = (AuthProtocol::Sha256, Some(PrivProtocol::Aes128));
    let (packet, _) = message(Some(&keys(sha256, aes)), 2);
    let message = UsmMessage::decode(&packet).unwrap();
    for auth in AUTH {
        let is_same = auth == sha256;
        assert_eq!(message.is_proven_by(&keys(auth, aes)), is_same, "{auth:?}");
    }
    let mut plain = Vec::new();
    assert!(message.scoped(None, &mut plain).is_none());
    let without = keys(sha256, None);
    assert!(message.scoped(Some(&without), &mut plain).is_none());
    // Another cipher yields no ScopedPDU, nor a panic; the length is no multiple of a block of DES.
    let des = keys(sha256, Some(PrivProtocol::Des));
    assert!(message.scoped(Some(&des), &mut plain).is_none());
    let key = Key::new(&[7; 15]);
    assert!(UsmKeys::new((sha256, &key), Some((PrivProtocol::Aes128, &key))).is_none());
}

#[test]
fn names_of_protocols() {
    for (name, protocol) in [
        ("md5", Some(AuthProtocol::Md5)),
        ("SHA", Some(AuthProtocol::Sha1)),
        ("sha1", Some(AuthProtocol::Sha1)),
        ("SHA-512", Some(AuthProtocol::Sha512)),
        ("sha3", None),
        ("", None),
    ] {
        assert_eq!(AuthProtocol::of_name(name.as_bytes()), protocol, "{name}");
    }
    for (name, protocol) in [
        ("des", Some(PrivProtocol::Des)),
        ("AES", Some(PrivProtocol::Aes128)),
        ("aes-128", Some(PrivProtocol::Aes128)),
        ("aes192c", Some(PrivProtocol::Aes192Reeder)),
        ("aes256", Some(PrivProtocol::Aes256)),
        ("3des", None),
    ] {
        assert_eq!(PrivProtocol::of_name(name.as_bytes()), protocol, "{name}");
    }
}

#[test]
fn reports_have_names() {
    for (text, report) in [
        ("1.3.6.1.6.3.15.1.1.1.0", Some(UsmReport::UnsupportedLevel)),
        ("1.3.6.1.6.3.15.1.1.2.0", Some(UsmReport::NotInTimeWindow)),
        ("1.3.6.1.6.3.15.1.1.3.0", Some(UsmReport::UnknownUser)),
        ("1.3.6.1.6.3.15.1.1.4.0", Some(UsmReport::UnknownEngine)),
        ("1.3.6.1.6.3.15.1.1.5.0", Some(UsmReport::WrongDigest)),
        ("1.3.6.1.6.3.15.1.1.6.0", Some(UsmReport::DecryptionError)),
        ("1.3.6.1.6.3.15.1.1.7.0", None),
        ("1.3.6.1.6.3.15.1.1.1", None),
        ("1.3.6.1.2.1.1.3.0", None),
    ] {
        assert_eq!(
            UsmReport::of_name(&Oid::parse(text).unwrap()),
            report,
            "{text}"
        );
    }
}
