//! SNMP messages between this crate and snmp2, an independent library: each reads what the other writes.

#![allow(clippy::unwrap_used)]

use kymo_wire::snmp::{
    Ask, IdWidth, Message, MessageHead, ObjectValue, Oid, PduKind, RequestMessage, Version,
    put_message, put_varbind,
};
use proptest::prelude::*;
use snmp2::{MessageType, Pdu, Value};

/// Values that both libraries support. The crate's own tests cover others, such as a Counter32 of over 32 bits.
fn value() -> impl Strategy<Value = ObjectValue<'static>> {
    const TEXTS: [&[u8]; 4] = [b"", b"eth0", &[0xff; 200], &[b'x'; 300]];
    prop_oneof![
        any::<i64>().prop_map(ObjectValue::Integer),
        any::<u32>().prop_map(|n| ObjectValue::Counter32(n.into())),
        any::<u32>().prop_map(|n| ObjectValue::Gauge32(n.into())),
        any::<u32>().prop_map(|n| ObjectValue::TimeTicks(n.into())),
        (any::<u64>(), 0..64u32).prop_map(|(n, shift)| ObjectValue::Counter64(n >> shift)),
        any::<[u8; 4]>().prop_map(ObjectValue::IpAddress),
        (0..TEXTS.len()).prop_map(|at| ObjectValue::OctetString(TEXTS[at])),
        Just(ObjectValue::Null),
        Just(ObjectValue::NoSuchObject),
        Just(ObjectValue::NoSuchInstance),
        Just(ObjectValue::EndOfMibView),
    ]
}

/// The value in the other library's type.
fn theirs(value: ObjectValue<'static>) -> Value<'static> {
    let of_32_bits = |number| u32::try_from(number).unwrap();
    match value {
        ObjectValue::Integer(number) => Value::Integer(number),
        ObjectValue::Counter32(number) => Value::Counter32(of_32_bits(number)),
        ObjectValue::Gauge32(number) => Value::Unsigned32(of_32_bits(number)),
        ObjectValue::TimeTicks(number) => Value::Timeticks(of_32_bits(number)),
        ObjectValue::Counter64(number) => Value::Counter64(number),
        ObjectValue::IpAddress(parts) => Value::IpAddress(parts),
        ObjectValue::OctetString(text) => Value::OctetString(text),
        ObjectValue::Null => Value::Null,
        ObjectValue::NoSuchObject => Value::NoSuchObject,
        ObjectValue::NoSuchInstance => Value::NoSuchInstance,
        ObjectValue::EndOfMibView => Value::EndOfMibView,
        other => unreachable!("BUG: {other:?}"),
    }
}

fn same(left: &Value, right: &Value) -> bool {
    format!("{left:?}") == format!("{right:?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn responses_are_understood(
        values in prop::collection::vec((prop::collection::vec(any::<u32>(), 0..10), value()), 0..30),
        id in any::<i32>(),
        (status, index) in (0..20u32, 0..100u32),
    ) {
        let root = Oid::parse("1.3.6.1").unwrap();
        let (mut varbinds, mut packet) = (Vec::new(), Vec::new());
        for (arcs, ours) in &values {
            put_varbind(&mut varbinds, &root.with(arcs), *ours);
        }
        let head = MessageHead {
            version: Version::V2c,
            community: b"public",
            kind: PduKind::Response,
            id,
            status: status.cast_signed(),
            index: index.cast_signed(),
        };
        put_message(&mut packet, &head, &varbinds);
        let read = Pdu::from_bytes(&packet).unwrap();
        prop_assert_eq!(read.message_type, MessageType::Response);
        prop_assert_eq!((read.req_id, read.error_status, read.error_index), (id, status, index));
        prop_assert_eq!(read.community, b"public");
        let all: Vec<_> = read.varbinds.clone().collect();
        prop_assert_eq!(all.len(), values.len());
        for ((name, value), (arcs, given)) in all.iter().zip(&values) {
            prop_assert_eq!(name.as_bytes(), &*root.with(arcs));
            prop_assert!(same(value, &theirs(*given)), "{:?} is not {:?}", value, given);
        }
        // This crate reads the other library's encoding of the message as the same message.
        let again = read.to_bytes().unwrap();
        let ours = Message::decode_response(&again).unwrap();
        prop_assert_eq!(ours.head, head);
        for (read, (arcs, expected)) in ours.varbinds.zip(&values) {
            let (name, value) = read.unwrap();
            prop_assert_eq!(name, &*root.with(arcs));
            prop_assert_eq!(value, *expected);
        }
    }

    #[test]
    fn requests_are_understood(
        names in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..10), 1..60),
        random in any::<u32>(),
    ) {
        let root = Oid::parse("1.3.6.1").unwrap();
        let names: Vec<Oid> = names.iter().map(|arcs| root.with(arcs)).collect();
        let bulk = Ask::GetBulk { non_repeaters: 0, max_repetitions: 12 };
        for (ask, kind, index) in [
            (Ask::Get, MessageType::GetRequest, 0),
            (Ask::GetNext, MessageType::GetNextRequest, 0),
            (bulk, MessageType::GetBulkRequest, 12),
        ] {
            let mut request =
                RequestMessage::new(ask, Version::V2c, b"public", &names, IdWidth::Bits31);
            let id = request.set_id(random);
            let read = Pdu::from_bytes(request.bytes()).unwrap();
            prop_assert_eq!(read.message_type, kind);
            prop_assert_eq!((read.req_id, read.error_index), (id, index));
            let names_read: Vec<Vec<u8>> =
                read.varbinds.clone().map(|(name, _)| name.as_bytes().to_vec()).collect();
            let expected: Vec<Vec<u8>> = names.iter().map(|name| name.to_vec()).collect();
            prop_assert_eq!(names_read, expected);
        }
    }
}
