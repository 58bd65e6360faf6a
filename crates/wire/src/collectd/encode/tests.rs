//! Packets equal those of collectd, and values come back from them unchanged.

use proptest::prelude::*;

use super::super::parts::{Item, Parts, Severity, Values};
use super::super::security::{Datagram, Protection, SecurityLevel};
use super::super::users::Users;
use super::*;

/// A value list that owns its bytes.
#[derive(Clone, Debug)]
struct Owned {
    texts: [Vec<u8>; 5],
    time: u64,
    interval: u64,
    values: Vec<Value>,
}

impl Owned {
    fn list(&self) -> ValueList<'_> {
        let [host, plugin, plugin_instance, type_name, type_instance] = &self.texts;
        ValueList {
            identifier: Identifier {
                host,
                plugin,
                plugin_instance,
                type_name,
                type_instance,
            },
            time: Cdtime(self.time),
            interval: Cdtime(self.interval),
            values: &self.values,
        }
    }
}

/// The payloads of all lists, each payload as full as possible.
fn packets(lists: &[Owned], packet_max: usize) -> Vec<Vec<u8>> {
    let (mut encoder, mut packets) = (Encoder::new(packet_max), Vec::new());
    for list in lists {
        if encoder.push(&list.list()) == Pushed::Full {
            packets.push(encoder.payload().to_vec());
            encoder.clear();
            assert_eq!(encoder.push(&list.list()), Pushed::Added);
        }
    }
    packets.push(encoder.payload().to_vec());
    packets
}

/// How many lists a valid payload contains; they must be the first ones of `lists`.
fn count_of_same(payload: &[u8], lists: &[Owned]) -> usize {
    let (mut parts, mut count) = (Parts::new(payload), 0);
    while let Some(item) = parts.next_item() {
        let Ok(Item::Values(values)) = item else {
            panic!("{item:?}");
        };
        assert!(
            same(&lists[count], &values),
            "{:?} became {values:?}",
            lists[count]
        );
        count += 1;
    }
    count
}

fn same(list: &Owned, values: &Values) -> bool {
    let expected = list.list();
    // Compares bits, so that NaN equals NaN.
    let cells = |value: Value| (value.kind(), value.cell());
    expected.identifier == *values.identifier
        && (expected.time, expected.interval) == (values.time, values.interval)
        && list
            .values
            .iter()
            .copied()
            .map(cells)
            .eq(values.values.iter().map(cells))
}

fn text(least: usize) -> impl Strategy<Value = Vec<u8>> {
    // A small choice of texts, so that neighbours often share fields.
    let short = prop::sample::select(vec![
        b"a".to_vec(),
        b"b-c".to_vec(),
        vec![0xff; 127],
        b"/".to_vec(),
    ]);
    prop_oneof![
        4 => short,
        1 => prop::collection::vec(1..=255u8, least..20),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u64>().prop_map(Value::Counter),
        any::<u64>().prop_map(|bits| Value::Gauge(f64::from_bits(bits))),
        any::<i64>().prop_map(Value::Derive),
        any::<u64>().prop_map(Value::Absolute),
    ]
}

fn list() -> impl Strategy<Value = Owned> {
    let texts = (text(1), text(1), text(0), text(1), text(0));
    let numbers = (
        prop_oneof![Just(1u64 << 60), 1..=u64::MAX],
        prop_oneof![Just(10u64 << 30), any::<u64>()],
    );
    (texts, numbers, prop::collection::vec(value(), 1..5)).prop_map(
        |(texts, (time, interval), values)| Owned {
            texts: texts.into(),
            time,
            interval,
            values,
        },
    )
}

proptest! {
    #[test]
    fn what_is_encoded_comes_back(lists in prop::collection::vec(list(), 1..60), packet_max in 1024..4000usize) {
        let packets = packets(&lists, packet_max);
        let mut left = &lists[..];
        for payload in &packets {
            prop_assert!(payload.len() + SECURITY_ROOM <= packet_max);
            left = &left[count_of_same(payload, left)..];
        }
        prop_assert!(left.is_empty());
    }

    #[test]
    fn what_is_protected_comes_back(
        payload in prop::collection::vec(any::<u8>(), 1..100),
        user in prop::collection::vec(any::<u8>(), 1..=64),
        password in prop::collection::vec(any::<u8>(), 0..80),
        iv in any::<[u8; 16]>(),
    ) {
        let mut users = Users::default();
        users.add(&user, &password).unwrap();
        let mut signed = Vec::new();
        sign(&mut signed, &user, &password, &payload);
        let mut encrypted = Vec::new();
        encrypt(&mut encrypted, &user, &password, &iv, &payload);
        encrypt(&mut encrypted, &user, &password, &iv, &payload);
        for (datagram, count) in [(&mut signed, 1), (&mut encrypted, 2)] {
            let sections: Vec<_> = Datagram::new(datagram, SecurityLevel::Sign, Some(&users)).take(3).collect();
            prop_assert_eq!(sections.len(), count);
            for section in sections {
                let section = section.unwrap();
                prop_assert_eq!(section.payload, &payload[..]);
                let (Protection::Signed(proof) | Protection::Encrypted(proof)) = section.protection else {
                    panic!("plain");
                };
                prop_assert_eq!(proof.user, &user[..]);
                prop_assert!(count == 1 || proof.unique == iv);
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let good = Owned {
        texts: ["h", "p", "", "t", ""].map(|text| text.as_bytes().to_vec()),
        time: 1 << 60,
        interval: 1,
        values: vec![Value::Counter(1)],
    };
    let with = |at: usize, text: Vec<u8>| {
        let mut list = good.clone();
        list.texts[at] = text;
        list
    };
    let many = Owned {
        values: vec![Value::Counter(1); 64],
        ..good.clone()
    };
    let mut encoder = Encoder::new(1024);
    for (list, expected) in [
        (good.clone(), Pushed::Added),
        (with(0, vec![b'x'; 127]), Pushed::Added),
        (with(0, vec![b'x'; 128]), Pushed::Refused),
        (with(4, b"a\0b".to_vec()), Pushed::Refused),
        (many, Pushed::Refused),
    ] {
        assert_eq!(encoder.push(&list.list()), expected);
    }
    // Names of 3 x 6 bytes, two numbers of 12, and 15 of a value: exactly the payload's limit.
    let room = SECURITY_ROOM + 18 + 24 + 15;
    assert_eq!(Encoder::new(room - 1).push(&good.list()), Pushed::Refused);
    let mut encoder = Encoder::new(room);
    assert_eq!(encoder.push(&good.list()), Pushed::Added);
    assert_eq!(encoder.push(&good.list()), Pushed::Full);
    let mut out = Vec::new();
    let notification = Notification {
        identifier: &Identifier::default(),
        time: Cdtime(1),
        severity: Severity::Okay,
        message: &[b'x'; 256],
    };
    assert!(!put_notification(&mut out, &notification) && out.is_empty());
}
