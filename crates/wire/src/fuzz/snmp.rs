//! SNMP: any bytes as a packet; values that can be read come back unchanged from writing and reading.

use crate::snmp::{
    Message, MessageHead, NotificationMessage, ObjectValue, Oid, arcs, compare_oids, put_message,
    put_oid_text, put_varbind,
};

/// Reads any bytes as a message, and as the varbinds of a message with a valid head.
pub fn fuzz_snmp(input: &[u8]) {
    read(input);
    let mut packet = Vec::new();
    put_message(&mut packet, &HEAD, input);
    assert!(Message::decode(&packet).is_ok(), "a head was lost");
    read(&packet);
    // Valid outer lengths let damage deep inside reach the inner parsers.
    packet.clear();
    let (name, content) = input.split_at(input.len() / 2);
    let tag = name.first().copied().unwrap_or_default();
    let mut varbind = Vec::new();
    put_varbind(&mut varbind, name, ObjectValue::Other { tag, content });
    put_message(&mut packet, &HEAD, &varbind);
    read(&packet);
}

const HEAD: MessageHead = MessageHead {
    version: crate::snmp::Version::V2c,
    community: b"public",
    kind: crate::snmp::PduKind::Response,
    id: 7,
    status: 0,
    index: 0,
};

fn read(packet: &[u8]) {
    if let Ok(NotificationMessage { notification, .. }) = NotificationMessage::decode(packet) {
        let told = notification.objects.bytes();
        assert!(notification.varbinds.bytes().ends_with(told), "other bytes");
        assert!(notification.objects.count() * 4 <= packet.len());
    }
    let Ok(message) = Message::decode(packet) else {
        return;
    };
    let mut count = 0;
    let (mut varbinds, mut text) = (Vec::new(), Vec::new());
    let mut rest = message.varbinds;
    while let Some(Ok((name, value))) = rest.next() {
        count += 1;
        look(name, value, &mut text);
        put_varbind(&mut varbinds, name, value);
    }
    assert!(rest.next().is_none(), "a varbind behind a broken one");
    assert!(count * 4 <= packet.len(), "more varbinds than bytes");
    let mut again = Vec::new();
    put_message(&mut again, &message.head, &varbinds);
    let Ok(read) = Message::decode(&again) else {
        unreachable!("BUG: a message of our own is malformed")
    };
    assert!(read.head == message.head, "a head changed");
    let (before, after) = (message.varbinds.flatten(), read.varbinds.flatten());
    assert!(before.take(count).eq(after), "a varbind changed");
}

fn look(name: &[u8], value: ObjectValue, text: &mut Vec<u8>) {
    text.clear();
    let readable = value.put_text(text);
    assert!(readable || (text.is_empty() && value.number().is_none()));
    text.clear();
    if value.put_reading(text) {
        let mut digits = text
            .iter()
            .filter(|&&byte| !matches!(byte, b'+' | b'-' | b'.'));
        assert!(
            digits.all(u8::is_ascii_digit),
            "a reading that is no number"
        );
    }
    text.clear();
    put_oid_text(text, name);
    // If all arcs are below 2^32, parsing the text gives the same identifier, which compares as equal.
    let text = std::str::from_utf8(text).unwrap_or_else(|_| unreachable!("BUG: not digits"));
    if let Some(oid) = Oid::parse(text) {
        assert!(arcs(&oid).eq(arcs(name)), "an identifier changed");
        assert!(compare_oids(&oid, name).is_eq());
    }
}
