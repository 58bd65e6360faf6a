//! Messages of SNMPv3 between this crate and snmp2, an independent library: each reads messages that the other one has signed and encrypted,
//! with all pairs of protocols. A user has the same password at both.

#![allow(clippy::unwrap_used)]

use kymo_wire::snmp::usm::{
    AuthProtocol, Key, PrivProtocol, ScopedPdu, UsmHead, UsmKeys, UsmMessage, put_usm_message,
};
use kymo_wire::snmp::{MessageHead, ObjectValue, Oid, PduKind, Version, put_pdu, put_varbind};
use snmp2::v3::{self, Auth, Cipher, KeyExtension, Security};
use snmp2::{MessageType, Pdu, Value};

const ENGINE: &[u8] = &[0x80, 0, 0x1f, 0x88, 4, b'c', b'o', b'r', b'e'];
const USER: &[u8] = b"poller";
const SIGNING: &[u8] = b"a password to sign";
const PRIVATE: &[u8] = b"a password to encrypt";
const BOOTS: u32 = 7;
const TIME_S: u32 = 86_400;

const SIGNATURES: [(AuthProtocol, v3::AuthProtocol); 6] = [
    (AuthProtocol::Md5, v3::AuthProtocol::Md5),
    (AuthProtocol::Sha1, v3::AuthProtocol::Sha1),
    (AuthProtocol::Sha224, v3::AuthProtocol::Sha224),
    (AuthProtocol::Sha256, v3::AuthProtocol::Sha256),
    (AuthProtocol::Sha384, v3::AuthProtocol::Sha384),
    (AuthProtocol::Sha512, v3::AuthProtocol::Sha512),
];
const CIPHERS: [Option<(PrivProtocol, Cipher, KeyExtension)>; 7] = [
    None,
    Some((PrivProtocol::Des, Cipher::Des, KeyExtension::Reeder)),
    Some((PrivProtocol::Aes128, Cipher::Aes128, KeyExtension::Reeder)),
    Some((
        PrivProtocol::Aes192,
        Cipher::Aes192,
        KeyExtension::Blumenthal,
    )),
    Some((
        PrivProtocol::Aes256,
        Cipher::Aes256,
        KeyExtension::Blumenthal,
    )),
    Some((
        PrivProtocol::Aes192Reeder,
        Cipher::Aes192,
        KeyExtension::Reeder,
    )),
    Some((
        PrivProtocol::Aes256Reeder,
        Cipher::Aes256,
        KeyExtension::Reeder,
    )),
];

/// The keys of this crate.
fn keys(auth: AuthProtocol, privacy: Option<PrivProtocol>) -> UsmKeys {
    let localized = |password| {
        Key::of_password(auth, password)
            .unwrap()
            .localized(auth, ENGINE)
    };
    let signing = localized(SIGNING);
    let privacy = privacy.map(|privacy| {
        let key = localized(PRIVATE).extended(auth, privacy, ENGINE);
        (privacy, key)
    });
    let privacy = privacy.as_ref().map(|(privacy, key)| (*privacy, key));
    UsmKeys::new((auth, &signing), privacy).unwrap()
}

/// Keys of snmp2 for the same user.
fn security(auth: v3::AuthProtocol, privacy: Option<(Cipher, KeyExtension)>) -> Security {
    let security = Security::new(USER, SIGNING).with_auth_protocol(auth);
    let security = match privacy {
        None => security.with_auth(Auth::AuthNoPriv),
        Some((cipher, extension)) => security
            .with_auth(Auth::AuthPriv {
                cipher,
                privacy_password: PRIVATE.to_vec(),
            })
            .with_key_extension_method(extension),
    };
    let security = security.with_engine_id(ENGINE).unwrap();
    security.with_engine_boots_and_time(BOOTS.into(), TIME_S.into())
}

/// A response of this crate with a number and a text.
fn response(keys: &UsmKeys, text: &'static [u8]) -> Vec<u8> {
    let (mut varbinds, mut pdu, mut packet) = (Vec::new(), Vec::new(), Vec::new());
    let number = ObjectValue::Counter64(1 << 40);
    put_varbind(&mut varbinds, &Oid::parse("1.3.6.1.2").unwrap(), number);
    let text = ObjectValue::OctetString(text);
    put_varbind(&mut varbinds, &Oid::parse("1.3.6.1.3").unwrap(), text);
    let head = MessageHead {
        version: Version::V2c,
        community: b"",
        kind: PduKind::Response,
        id: 77,
        status: 0,
        index: 0,
    };
    put_pdu(&mut pdu, &head, &varbinds);
    let head = UsmHead {
        id: 77,
        engine: ENGINE,
        boots: BOOTS,
        time_s: TIME_S,
        user: USER,
        context_engine: ENGINE,
        context_name: b"",
    };
    put_usm_message(&mut packet, &head, Some(keys), 0x0123_4567_89ab_cdef, &pdu);
    packet
}

#[test]
fn each_reads_messages_of_the_other_with_all_protocols() {
    let mut agreed = 0;
    for (auth, their_auth) in SIGNATURES {
        for cipher in CIPHERS {
            for text in [&b"eth0"[..], b"", &[0xff; 61]] {
                let keys = keys(auth, cipher.map(|cipher| cipher.0));
                let mut theirs = security(
                    their_auth,
                    cipher.map(|(_, cipher, extension)| (cipher, extension)),
                );
                let writer = theirs.clone();
                // The library writes zeros into the packet.
                let packet = response(&keys, text);
                let read = Pdu::from_bytes_with_security(&packet, Some(&mut theirs)).unwrap();
                let which = format!("{auth:?} {cipher:?} {}", text.len());
                assert_eq!(read.message_type, MessageType::Response, "{which}");
                assert_eq!((read.req_id, read.error_status), (77, 0), "{which}");
                let values: Vec<Value<'_>> =
                    read.varbinds.clone().map(|(_, value)| value).collect();
                let [Value::Counter64(number), Value::OctetString(their_text)] = values[..] else {
                    panic!("{which}: {values:?}");
                };
                assert_eq!((number, their_text), (1 << 40, text), "{which}");

                let packet = read.to_bytes_with_security(Some(&writer)).unwrap();
                let message = UsmMessage::decode(&packet).unwrap();
                assert!(message.is_proven_by(&keys), "{which}");
                assert_eq!(message.is_encrypted(), cipher.is_some(), "{which}");
                let mut plain = Vec::new();
                let scoped = message.scoped(Some(&keys), &mut plain).unwrap();
                let pdu = ScopedPdu::decode(scoped).unwrap();
                assert_eq!((pdu.kind, pdu.id), (PduKind::Response, 77), "{which}");
                let values = pdu.response.varbinds.map(|varbind| varbind.unwrap().1);
                let expected = [
                    ObjectValue::Counter64(1 << 40),
                    ObjectValue::OctetString(text),
                ];
                assert_eq!(values.collect::<Vec<_>>(), expected, "{which}");
                agreed += 1;
            }
        }
    }
    assert_eq!(agreed, 42 * 3);
}

#[test]
fn neither_takes_a_message_of_another_password() {
    let packet = response(&keys(AuthProtocol::Sha256, None), b"eth0");
    let mut other = Security::new(USER, b"another password")
        .with_auth_protocol(v3::AuthProtocol::Sha256)
        .with_engine_id(ENGINE)
        .unwrap()
        .with_engine_boots_and_time(BOOTS.into(), TIME_S.into());
    assert!(Pdu::from_bytes_with_security(&packet, Some(&mut other)).is_err());
    let mut right = security(v3::AuthProtocol::Sha256, None);
    let packet = response(&keys(AuthProtocol::Sha256, None), b"eth0");
    let read = Pdu::from_bytes_with_security(&packet, Some(&mut right)).unwrap();
    let packet = read.to_bytes_with_security(Some(&other)).unwrap();
    let message = UsmMessage::decode(&packet).unwrap();
    assert!(!message.is_proven_by(&keys(AuthProtocol::Sha256, None)));
}
