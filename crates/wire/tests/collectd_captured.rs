//! Packets that a collectd 5.12 sent on loopback, one line of hex per datagram: the same values plain, signed and
//! encrypted by user `user0` with password `foo`. The tests parse them, and encode the same bytes again.

use std::collections::BTreeSet;

use kymo_wire::collectd::{
    Bad, Cdtime, Datagram, Encoder, Identifier, Item, Notification, PACKET_DEFAULT, Parts,
    Protection, Pushed, SecurityLevel, Severity, Users, Value, ValueList, encrypt,
    put_notification, sign,
};

const PLAIN: &str = include_str!("collectd/plain.hex");
const SIGNED: &str = include_str!("collectd/signed.hex");
const ENCRYPTED: &str = include_str!("collectd/encrypted.hex");

const MACHINE: &str = include_str!("collectd/machine.hex");

const USER: &[u8] = b"user0";
const PASSWORD: &[u8] = b"foo";

fn packets(hex: &str) -> Vec<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("hex") as u8;
    let line = |line: &str| {
        line.as_bytes()
            .chunks(2)
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect()
    };
    hex.lines().map(line).collect()
}

fn users() -> Users {
    let mut users = Users::default();
    users.add(USER, PASSWORD).expect("a user");
    users
}

fn spelled(item: Result<Item, Bad>) -> String {
    let texts = |id: &Identifier| {
        [
            id.host,
            id.plugin,
            id.plugin_instance,
            id.type_name,
            id.type_instance,
        ]
        .map(|text| text.escape_ascii().to_string())
        .join("|")
    };
    match item {
        Ok(Item::Values(it)) => {
            let values: Vec<Value> = it.values.iter().collect();
            let (time, interval) = (
                it.time.nanoseconds() as f64 / 1e9,
                it.interval.nanoseconds() as f64 / 1e9,
            );
            format!(
                "{} {time:.2} {interval:.2} {values:?}",
                texts(it.identifier)
            )
        }
        Ok(Item::Notification(it)) => {
            let (time, message) = (
                it.time.nanoseconds() as f64 / 1e9,
                it.message.escape_ascii(),
            );
            format!(
                "{} {time:.2} {:?} {message}",
                texts(it.identifier),
                it.severity
            )
        }
        other => panic!("{other:?}"),
    }
}

/// The items of packets, and the protection of each section.
fn items_of(packets: Vec<Vec<u8>>, level: SecurityLevel) -> (Vec<String>, Vec<Protected>) {
    let (users, mut lines, mut protected) = (users(), Vec::new(), Vec::new());
    for mut packet in packets {
        for section in Datagram::new(&mut packet, level, Some(&users)) {
            let section = section.expect("a section");
            let mut parts = section.parts();
            while let Some(item) = parts.next_item() {
                lines.push(spelled(item));
            }
            protected.push(match section.protection {
                Protection::Plain => Protected::No,
                Protection::Signed(proof) if proof.user == USER => Protected::Signed,
                Protection::Encrypted(proof) if proof.user == USER => Protected::Encrypted,
                other => panic!("{other:?}"),
            });
        }
    }
    (lines, protected)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Protected {
    No,
    Signed,
    Encrypted,
}

/// Input of collectd by PUTVAL and PUTNOTIF. collectd sends notifications at once, values at FLUSH.
const SAID: &[&str] = &[
    "h1|x||| 1700000002.00 Warning roof on fire",
    "h1|df|root|df_complex|free 1700000003.50 Failure disk full: 99.5%",
    "h1|load||load| 1700000000.00 10.00 [Gauge(0.5), Gauge(1.5), Gauge(2.5)]",
    "h1|interface|eth0|if_octets| 1700000000.00 10.00 [Derive(1000), Derive(2000)]",
    "h1|interface|eth0|if_packets| 1700000000.00 10.00 [Derive(10), Derive(20)]",
    "h1|cpu|0|cpu|user 1700000000.25 10.00 [Derive(123456789)]",
    "h1|cpu|0|cpu|system 1700000000.25 10.00 [Derive(987654321)]",
    "h1|df|root|df_complex|free 1700000000.50 60.00 [Gauge(1000000000000.0)]",
    "h1|df|root|df_complex|used 1700000000.50 60.00 [Gauge(NaN)]",
    "h2.example.org|counting||counter|c 1700000001.00 0.50 [Counter(18446744073709551615)]",
    "h2.example.org|counting||absolute|a 1700000001.00 0.50 [Absolute(7)]",
    "h2.example.org|counting||derive|d 1700000001.00 0.50 [Derive(-9223372036854775808)]",
    "h2.example.org|counting||gauge|g 1700000001.00 0.50 [Gauge(-0.1)]",
];

#[test]
fn what_collectd_sent_is_read() {
    for (hex, level, protected) in [
        (PLAIN, SecurityLevel::None, Protected::No),
        (SIGNED, SecurityLevel::Sign, Protected::Signed),
        (ENCRYPTED, SecurityLevel::Encrypt, Protected::Encrypted),
    ] {
        let (lines, how) = items_of(packets(hex), level);
        assert_eq!(lines, SAID);
        assert!(how.iter().all(|how| *how == protected), "{how:?}");
    }
}

/// Encodes the items of a payload again.
fn again(payload: &[u8]) -> Vec<u8> {
    let (mut encoder, mut notification) = (Encoder::new(PACKET_DEFAULT), Vec::new());
    let mut parts = Parts::new(payload);
    while let Some(item) = parts.next_item() {
        match item.expect("an item") {
            Item::Values(it) => {
                let values: Vec<Value> = it.values.iter().collect();
                let list = ValueList {
                    identifier: *it.identifier,
                    time: it.time,
                    interval: it.interval,
                    values: &values,
                };
                assert_eq!(encoder.push(&list), Pushed::Added);
            }
            Item::Notification(it) => assert!(put_notification(&mut notification, &it)),
            other => panic!("{other:?}"),
        }
    }
    [encoder.payload(), &notification].concat()
}

#[test]
fn what_we_send_is_what_collectd_sends() {
    let users = users();
    for payload in packets(PLAIN) {
        assert_eq!(again(&payload), payload);
    }
    for packet in packets(SIGNED) {
        let payload = &packet[36 + USER.len()..];
        let mut made = Vec::new();
        sign(&mut made, USER, PASSWORD, &again(payload));
        assert_eq!(made, packet);
    }
    for packet in packets(ENCRYPTED) {
        let iv = *packet[6 + USER.len()..].first_chunk().expect("a vector");
        let mut decrypted = packet.clone();
        let mut sections = Datagram::new(&mut decrypted, SecurityLevel::Encrypt, Some(&users));
        let section = sections.next().expect("a section").expect("decrypted");
        let mut made = Vec::new();
        encrypt(&mut made, USER, PASSWORD, &iv, &again(section.payload));
        assert_eq!(made, packet);
    }
}

/// Packets of a machine's own plugins. Our encoder fills each packet as far as collectd does.
#[test]
fn our_packets_are_as_full_as_collectds() {
    let theirs = packets(MACHINE);
    let (mut encoder, mut ours) = (Encoder::new(PACKET_DEFAULT), Vec::new());
    let mut plugins = BTreeSet::new();
    for payload in &theirs {
        let mut parts = Parts::new(payload);
        while let Some(item) = parts.next_item() {
            let Ok(Item::Values(it)) = item else {
                panic!("{item:?}");
            };
            plugins.insert(it.identifier.plugin);
            let values: Vec<Value> = it.values.iter().collect();
            let list = ValueList {
                identifier: *it.identifier,
                time: it.time,
                interval: it.interval,
                values: &values,
            };
            if encoder.push(&list) == Pushed::Full {
                ours.push(encoder.payload().to_vec());
                encoder.clear();
                assert_eq!(encoder.push(&list), Pushed::Added);
            }
        }
    }
    ours.push(encoder.payload().to_vec());
    assert_eq!(ours, theirs);
    assert!(plugins.len() >= 5, "{plugins:?}");
}

#[test]
fn a_notification_says_what_is_not_empty() {
    let notification = Notification {
        identifier: &Identifier::default(),
        time: Cdtime(1),
        severity: Severity::Okay,
        message: b"m",
    };
    let mut out = Vec::new();
    assert!(put_notification(&mut out, &notification) && out.len() == 30);
}
