use super::*;

fn oid(text: &str) -> Oid {
    Oid::parse(text).unwrap()
}

/// One of each kind.
fn values<'a>(text: &'a [u8], name: &'a [u8]) -> Vec<ObjectValue<'a>> {
    vec![
        ObjectValue::Integer(-5),
        ObjectValue::Counter32(4_294_967_295),
        ObjectValue::Gauge32(0),
        ObjectValue::TimeTicks(8_640_100),
        ObjectValue::Counter64(u64::MAX),
        ObjectValue::UInteger32(7),
        ObjectValue::OctetString(text),
        ObjectValue::Oid(name),
        ObjectValue::IpAddress([127, 0, 0, 1]),
        ObjectValue::Opaque(&[0x9f, 0x78, 4, 0, 0, 0, 0]),
        ObjectValue::Null,
        ObjectValue::NoSuchObject,
        ObjectValue::NoSuchInstance,
        ObjectValue::EndOfMibView,
        ObjectValue::Other {
            tag: 0x45,
            content: text,
        },
    ]
}

fn response<'a>(varbinds: &[u8], out: &'a mut Vec<u8>) -> Message<'a> {
    let head = MessageHead {
        version: Version::V2c,
        community: b"public",
        kind: PduKind::Response,
        id: 0x1234_5678,
        status: 0,
        index: 0,
    };
    put_message(out, &head, varbinds);
    let message = Message::decode_response(out).unwrap();
    assert_eq!(message.head, head);
    message
}

#[test]
fn what_was_said_is_read() {
    let (name, text) = (oid("1.3.6.1.2.1.31.1.1.1.6.99"), vec![b'x'; 300]);
    let values = values(&text, &name);
    let (mut varbinds, mut packet) = (Vec::new(), Vec::new());
    for &value in &values {
        put_varbind(&mut varbinds, &name, value);
    }
    let message = response(&varbinds, &mut packet);
    let read: Vec<_> = message.varbinds.map(Result::unwrap).collect();
    let said: Vec<_> = values.iter().map(|&value| (&*name, value)).collect();
    assert_eq!(read, said);
}
