use proptest::prelude::*;

use super::*;

fn oid(text: &str) -> Oid {
    Oid::parse(text).unwrap()
}

/// A value of each kind.
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

/// A v2c response with these values, all under one name.
fn packet_of(values: &[ObjectValue], name: &Oid) -> Vec<u8> {
    let (mut varbinds, mut packet) = (Vec::new(), Vec::new());
    for &value in values {
        put_varbind(&mut varbinds, name, value);
    }
    put_message(&mut packet, &HEAD, &varbinds);
    packet
}

const HEAD: MessageHead = MessageHead {
    version: Version::V2c,
    community: b"public",
    kind: PduKind::Response,
    id: 0x1234_5678,
    status: 0,
    index: 0,
};

/// All varbinds, or the first error.
fn read(packet: &[u8]) -> Result<Vec<(&[u8], ObjectValue<'_>)>, Malformed> {
    Message::decode_response(packet)?.varbinds.collect()
}

#[test]
fn what_was_said_is_read() {
    let (name, text) = (oid("1.3.6.1.2.1.31.1.1.1.6.99"), vec![b'x'; 300]);
    let values = values(&text, &name);
    let packet = packet_of(&values, &name);
    assert_eq!(Message::decode_response(&packet).unwrap().head, HEAD);
    let expected: Vec<_> = values.iter().map(|&value| (&*name, value)).collect();
    assert_eq!(read(&packet), Ok(expected));
}

#[test]
fn a_packet_that_is_cut_or_longer_is_refused_at_each_byte() {
    let (name, text) = (oid("1.3.6.1.2.1.31.1.1.1.6.99"), vec![b'x'; 150]);
    let packet = packet_of(&values(&text, &name), &name);
    for cut in 0..packet.len() {
        assert!(read(&packet[..cut]).is_err(), "cut at {cut}");
    }
    for more in [&[0][..], &[0x30, 0], &packet] {
        let longer = [&packet, more].concat();
        assert_eq!(read(&longer), Err(Malformed::Trailing));
    }
}

/// A changed byte may change a value, but a varbind never has fewer than 6 bytes.
#[test]
fn a_packet_with_any_byte_changed_is_read_or_refused() {
    let name = oid("1.3.6.1.2.1.2.2.1.10.7");
    let packet = packet_of(&values(b"eth7", &name), &name);
    for at in 0..packet.len() {
        for byte in 0..=u8::MAX {
            let mut changed = packet.clone();
            changed[at] = byte;
            if let Ok(varbinds) = read(&changed) {
                assert!(varbinds.len() * 6 <= packet.len(), "byte {at} is {byte}");
            }
        }
    }
}

/// A message of arbitrary parts, valid or not.
fn message(version: &[u8], community: &[u8], pdu: &[u8]) -> Vec<u8> {
    element(0x30, &[version, community, pdu].concat())
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let size = u8::try_from(content.len()).unwrap();
    assert!(size < 128);
    [&[tag, size], content].concat()
}

#[test]
fn what_is_wrong_is_said() {
    let (v2c, public) = (&[2, 1, 1][..], &[4, 1, b'p'][..]);
    let (id, zero) = (&[2, 1, 9][..], &[2, 1, 0][..]);
    let none = &[0x30, 0][..];
    let pdu = |parts: &[&[u8]]| element(0xa2, &parts.concat());
    let good = pdu(&[id, zero, zero, none]);
    let list = |varbinds: &[u8]| pdu(&[id, zero, zero, &element(0x30, varbinds)]);
    let of = |varbind: &[u8]| message(v2c, public, &list(varbind));
    use Malformed::*;
    for (what, packet, expected) in [
        ("good", message(v2c, public, &good), None),
        ("v3", message(&[2, 1, 3], public, &good), Some(Version)),
        (
            "version of no byte",
            message(&[2, 0], public, &good),
            Some(Number),
        ),
        (
            "version of five bytes",
            message(&[2, 5, 1, 0, 0, 0, 0], public, &good),
            Some(Number),
        ),
        (
            "version with zeros before",
            message(&[2, 4, 0, 0, 0, 1], public, &good),
            None,
        ),
        (
            "community is no text",
            message(v2c, &[5, 0], &good),
            Some(Tag),
        ),
        (
            "a request",
            message(
                v2c,
                public,
                &element(0xa0, &[id, zero, zero, none].concat()),
            ),
            Some(Kind),
        ),
        (
            "a trap",
            message(
                v2c,
                public,
                &element(0xa7, &[id, zero, zero, none].concat()),
            ),
            Some(Kind),
        ),
        (
            "no list",
            message(v2c, public, &pdu(&[id, zero, zero])),
            Some(Head),
        ),
        (
            "two lists",
            message(v2c, public, &pdu(&[id, zero, zero, none, none])),
            Some(Trailing),
        ),
        (
            "two PDUs",
            message(v2c, public, &[&good[..], &good].concat()),
            Some(Trailing),
        ),
        (
            "id beyond 32 bits",
            message(
                v2c,
                public,
                &pdu(&[&[2, 5, 1, 0, 0, 0, 0], zero, zero, none]),
            ),
            Some(Number),
        ),
        (
            "indefinite list",
            message(v2c, public, &pdu(&[id, zero, zero, &[0x30, 0x80, 0, 0]])),
            Some(Length),
        ),
        (
            "list longer than PDU",
            message(v2c, public, &pdu(&[id, zero, zero, &[0x30, 9, 0]])),
            Some(Cut),
        ),
        ("varbind is no sequence", of(&[5, 0]), Some(Tag)),
        (
            "varbind without a value",
            of(&[0x30, 3, 6, 1, 43]),
            Some(Head),
        ),
        (
            "varbind of three",
            of(&[0x30, 7, 6, 1, 43, 5, 0, 5, 0]),
            Some(Trailing),
        ),
        ("name is no OID", of(&[0x30, 5, 4, 1, 43, 5, 0]), Some(Tag)),
        (
            "value longer than varbind",
            of(&[0x30, 5, 6, 1, 43, 4, 2]),
            Some(Cut),
        ),
        (
            "varbind longer than list",
            of(&[0x30, 6, 6, 1, 43, 5, 0]),
            Some(Cut),
        ),
        (
            "name longer than varbind",
            of(&[0x30, 5, 6, 4, 43, 5, 0]),
            Some(Cut),
        ),
        (
            "a length of 4 bytes",
            of(&[0x30, 0x84, 0, 0, 0, 5, 6, 1, 43, 5, 0]),
            None,
        ),
        (
            "a length of 5 bytes",
            of(&[0x30, 0x85, 0, 0, 0, 0, 5, 6, 1, 43, 5, 0]),
            Some(Length),
        ),
        (
            "a length of 4 GB",
            of(&[0x30, 0x84, 255, 255, 255, 255, 6, 1, 43, 5, 0]),
            Some(Cut),
        ),
    ] {
        assert_eq!(read(&packet).err(), expected, "{what}");
    }
}

#[test]
fn after_a_wrong_varbind_there_is_none() {
    let name = oid("1.3.6");
    let (mut varbinds, mut packet) = (vec![], vec![]);
    put_varbind(&mut varbinds, &name, ObjectValue::Integer(1));
    varbinds.extend([0x30, 0]);
    put_varbind(&mut varbinds, &name, ObjectValue::Integer(2));
    put_message(&mut packet, &HEAD, &varbinds);
    let read: Vec<_> = Message::decode(&packet).unwrap().varbinds.collect();
    assert_eq!(
        read,
        [Ok((&*name, ObjectValue::Integer(1))), Err(Malformed::Head)]
    );
}

#[test]
fn values_are_the_text_and_the_number_of_mrtg() {
    use ObjectValue::*;
    let ticks = |seconds: u64| TimeTicks(seconds * 100 + 99);
    for (value, text, reading) in [
        (Integer(-12), Some("-12"), Some("-12")),
        (
            Integer(i64::MIN),
            Some("-9223372036854775808"),
            Some("-9223372036854775808"),
        ),
        (
            Counter32(4_294_967_295),
            Some("4294967295"),
            Some("4294967295"),
        ),
        (
            Counter64(u64::MAX),
            Some("18446744073709551615"),
            Some("18446744073709551615"),
        ),
        (Gauge32(0), Some("0"), Some("0")),
        (UInteger32(10), Some("10"), Some("10")),
        (ticks(3_661), Some("1:01:01"), Some("366199")),
        (ticks(86_400 + 59), Some("1 day, 0:00:59"), Some("8645999")),
        (
            ticks(42_949_672),
            Some("497 days, 2:27:52"),
            Some("4294967299"),
        ),
        (
            OctetString(b" \n12.5\r\n"),
            Some(" \n12.5\r\n"),
            Some("12.5"),
        ),
        (OctetString(b"-3"), Some("-3"), Some("-3")),
        (OctetString(b"+3"), Some("+3"), Some("+3")),
        (OctetString(b"1\n2"), Some("1\n2"), Some("12")),
        (OctetString(b"1 2"), Some("1 2"), Some("1")),
        (OctetString(b"12.x"), Some("12.x"), None),
        (OctetString(b"."), Some("."), None),
        (OctetString(b""), Some(""), None),
        (Oid(&[43, 6, 1, 0x81, 0]), Some("1.3.6.1.128"), None),
        (IpAddress([10, 0, 255, 1]), Some("10.0.255.1"), None),
        (Null, Some("(null)"), None),
        (Opaque(&[1]), Some("#<unprintable BER type 0x44>"), None),
        (NoSuchObject, None, None),
        (NoSuchInstance, None, None),
        (EndOfMibView, None, None),
        (
            Other {
                tag: 0x45,
                content: &[],
            },
            Some("#<unprintable BER type 0x45>"),
            None,
        ),
        (
            Other {
                tag: 0x41,
                content: &[],
            },
            None,
            None,
        ),
    ] {
        let mut out = b"before ".to_vec();
        assert_eq!(value.put_text(&mut out), text.is_some(), "{value:?}");
        assert_eq!(out[7..], *text.unwrap_or_default().as_bytes(), "{value:?}");
        out.truncate(7);
        assert_eq!(value.put_reading(&mut out), reading.is_some(), "{value:?}");
        assert_eq!(
            out[7..],
            *reading.unwrap_or_default().as_bytes(),
            "{value:?}"
        );
        assert!(out.starts_with(b"before "));
    }
}

#[test]
fn a_counter_of_any_length_is_read() {
    for size in 1..=12usize {
        let mut content = vec![0; size];
        content[size - 1] = 200;
        for tag in [0x41, 0x42, 0x43, 0x46, 0x47] {
            let varbind = element(0x30, &[&[6, 1, 43][..], &element(tag, &content)].concat());
            let pdu = element(
                0xa2,
                &[&[2, 1, 9, 2, 1, 0, 2, 1, 0][..], &element(0x30, &varbind)].concat(),
            );
            let packet = message(&[2, 1, 1], &[4, 0], &pdu);
            let (_, value) = read(&packet).unwrap()[0];
            let number = match value {
                ObjectValue::TimeTicks(ticks) => Some(i128::from(ticks)),
                value => value.number(),
            };
            assert_eq!(number, Some(200), "{size} bytes of {tag:#x}");
        }
    }
}

#[test]
fn a_request_is_sent_again_with_another_id() {
    let names = [oid("1.3.6.1.2.1.1.3.0"), oid("1.3.6.1.2.1.2.2.1.10.1")];
    let bulk = Ask::GetBulk {
        non_repeaters: 1,
        max_repetitions: 300,
    };
    for (ask, version, kind, status, index) in [
        (Ask::Get, Version::V1, PduKind::Get, 0, 0),
        (Ask::GetNext, Version::V2c, PduKind::GetNext, 0, 0),
        (bulk, Version::V2c, PduKind::GetBulk, 1, 300),
        (bulk, Version::V1, PduKind::GetNext, 0, 0),
    ] {
        for width in [IdWidth::Bits31, IdWidth::Bits15] {
            let mut request = RequestMessage::new(ask, version, b"secret", &names, width);
            let size = request.bytes().len();
            for random in [
                0,
                1,
                0x7f,
                0x80,
                0x8000,
                0x007f_ffff,
                0x0080_0000,
                u32::MAX,
                0xdead_beef,
            ] {
                let id = request.set_id(random);
                assert!(id > 0);
                let message = Message::decode(request.bytes()).unwrap();
                let head = MessageHead {
                    version,
                    community: b"secret",
                    kind,
                    id,
                    status,
                    index,
                };
                assert_eq!(message.head, head);
                let names_read: Vec<_> =
                    message.varbinds.map(|varbind| varbind.unwrap().0).collect();
                assert_eq!(names_read, [&*names[0], &*names[1]]);
                assert_eq!(message.varbinds.count(), 2);
                assert!(request.varbinds().eq(message.varbinds));
                assert_eq!(request.bytes().len(), size);
                // The id has its shortest form, so that encoding the message anew gives the same bytes.
                let (mut again, mut varbinds) = (Vec::new(), Vec::new());
                for name in &names {
                    put_varbind(&mut varbinds, name, ObjectValue::Null);
                }
                put_message(&mut again, &head, &varbinds);
                assert_eq!(again, request.bytes());
            }
        }
    }
}

/// Requests that net-snmp 5.9.3 sent, with its ids.
#[test]
fn a_request_is_that_of_others() {
    let (v1, v2c) = (Version::V1, Version::V2c);
    let counters = ["1.3.6.1.2.1.2.2.1.10.1", "1.3.6.1.2.1.2.2.1.16.1"];
    let column = ["1.3.6.1.2.1.1.3.0", "1.3.6.1.2.1.31.1.1.1.6"];
    let bulk = Ask::GetBulk {
        non_repeaters: 1,
        max_repetitions: 12,
    };
    for (ask, version, names, id, expected) in [
        (
            Ask::Get,
            v1,
            counters,
            0x7320_e4ef,
            &b"\x30\x3b\x02\x01\x00\x04\x06public\xa0\x2e\x02\x04\x73\x20\xe4\xef\
            \x02\x01\x00\x02\x01\x00\x30\x20\
            \x30\x0e\x06\x0a\x2b\x06\x01\x02\x01\x02\x02\x01\x0a\x01\x05\x00\
            \x30\x0e\x06\x0a\x2b\x06\x01\x02\x01\x02\x02\x01\x10\x01\x05\x00"[..],
        ),
        (
            bulk,
            v2c,
            column,
            0x4c07_d854,
            b"\x30\x39\x02\x01\x01\x04\x06public\xa5\x2c\x02\x04\x4c\x07\xd8\x54\
            \x02\x01\x01\x02\x01\x0c\x30\x1e\
            \x30\x0c\x06\x08\x2b\x06\x01\x02\x01\x01\x03\x00\x05\x00\
            \x30\x0e\x06\x0a\x2b\x06\x01\x02\x01\x1f\x01\x01\x01\x06\x05\x00",
        ),
    ] {
        let names = names.map(oid);
        let mut request = RequestMessage::new(ask, version, b"public", names, IdWidth::Bits31);
        request.set_id(id);
        assert_eq!(request.bytes(), expected);
    }
}

#[test]
fn sizes_are_known_before() {
    let name = oid("1.3.6.1.2.1.31.1.1.1.6.100");
    for count in [0, 1, 8, 24, 55, 200] {
        let values = vec![ObjectValue::Counter64(u64::MAX); count];
        let packet = packet_of(&values, &name);
        let estimate = message_bytes(6, count * varbind_bytes(name.len(), 9));
        // Status and index have one byte here, the estimate has two.
        assert_eq!(packet.len() + 2, estimate, "{count}");
        let names = vec![name.clone(); count];
        let request =
            RequestMessage::new(Ask::Get, Version::V2c, b"public", names, IdWidth::Bits31);
        let estimate = message_bytes(6, count * varbind_bytes(name.len(), 0));
        assert_eq!(request.bytes().len() + 2, estimate, "{count}");
    }
}

#[test]
fn a_community_is_not_printed() {
    let packet = packet_of(&[], &oid("1.3.6"));
    let text = format!("{:?}", Message::decode(&packet));
    assert!(
        text.contains("V2c") && !text.contains("public") && !text.contains("112"),
        "{text}"
    );
}

fn any_value() -> impl Strategy<Value = OwnedValue> {
    prop_oneof![
        any::<i64>().prop_map(OwnedValue::Integer),
        (0..4u8, any::<u64>(), 0..64u32)
            .prop_map(|(kind, n, shift)| OwnedValue::Unsigned(kind, n >> shift)),
        prop::collection::vec(any::<u8>(), 0..400).prop_map(OwnedValue::Text),
        any::<[u8; 4]>().prop_map(OwnedValue::Address),
    ]
}

#[derive(Clone, Debug)]
enum OwnedValue {
    Integer(i64),
    Unsigned(u8, u64),
    Text(Vec<u8>),
    Address([u8; 4]),
}

impl OwnedValue {
    fn value(&self) -> ObjectValue<'_> {
        match self {
            OwnedValue::Integer(number) => ObjectValue::Integer(*number),
            OwnedValue::Unsigned(0, number) => ObjectValue::Counter64(*number),
            OwnedValue::Unsigned(1, number) => ObjectValue::Gauge32(*number),
            OwnedValue::Unsigned(2, number) => ObjectValue::TimeTicks(*number),
            OwnedValue::Unsigned(_, number) => ObjectValue::Counter32(*number),
            OwnedValue::Text(text) => ObjectValue::OctetString(text),
            OwnedValue::Address(parts) => ObjectValue::IpAddress(*parts),
        }
    }
}

proptest! {
    #[test]
    fn messages_come_back(
        all in prop::collection::vec((prop::collection::vec(any::<u32>(), 0..12), any_value()), 0..40),
        community in prop::collection::vec(any::<u8>(), 0..200),
        (id, status, index) in any::<(i32, i32, i32)>(),
    ) {
        let root = oid("1.3.6");
        let named: Vec<_> = all.iter().map(|(arcs, value)| (root.with(arcs), value.value())).collect();
        let (mut varbinds, mut packet) = (Vec::new(), Vec::new());
        for (name, value) in &named {
            put_varbind(&mut varbinds, name, *value);
        }
        let head = MessageHead { community: &community, id, status, index, ..HEAD };
        put_message(&mut packet, &head, &varbinds);
        prop_assert_eq!(Message::decode(&packet).unwrap().head, head);
        let read = read(&packet).unwrap();
        prop_assert_eq!(read.len(), named.len());
        for ((name, value), ((arcs_given, _), (oid, given))) in read.iter().zip(all.iter().zip(&named)) {
            prop_assert_eq!(*name, &**oid);
            prop_assert_eq!(value, given);
            let expected: Vec<u32> = [1, 3, 6].into_iter().chain(arcs_given.iter().copied()).collect();
            prop_assert_eq!(arcs(name).collect::<Vec<_>>(), expected);
        }
    }
}
