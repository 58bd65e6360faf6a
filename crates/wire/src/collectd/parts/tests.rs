//! Packets of collectd, and every way to damage one.

use super::super::value::Value;
use super::*;
use crate::collectd::hex::hex;

/// A part with a valid head.
fn part(kind: u16, body: &[u8]) -> Vec<u8> {
    let size = (part::HEAD + body.len()) as u16;
    [&kind.to_be_bytes()[..], &size.to_be_bytes(), body].concat()
}

fn text_part(kind: u16, text: &str) -> Vec<u8> {
    part(kind, format!("{text}\0").as_bytes())
}

fn number_part(kind: u16, number: u64) -> Vec<u8> {
    part(kind, &number.to_be_bytes())
}

fn values_part(values: &[Value]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    body.extend(values.iter().map(|value| value.kind().code()));
    body.extend(values.iter().flat_map(|value| value.cell()));
    part(part::VALUES, &body)
}

/// Time, host, plugin and type.
fn named() -> Vec<u8> {
    [
        number_part(part::TIME_HR, 1_700_000_000 << 30),
        text_part(part::HOST, "h"),
        text_part(part::PLUGIN, "p"),
        text_part(part::TYPE, "t"),
    ]
    .concat()
}

const ONE: &[Value] = &[Value::Derive(1)];

fn spelled(item: &Result<Item, Bad>) -> String {
    let texts = |identifier: &Identifier| {
        let Identifier {
            host,
            plugin,
            plugin_instance,
            type_name,
            type_instance,
        } = *identifier;
        [host, plugin, plugin_instance, type_name, type_instance]
            .map(|text| text.escape_ascii().to_string())
            .join("|")
    };
    match item {
        Ok(Item::Values(values)) => {
            let numbers: Vec<Value> = values.values.iter().collect();
            let (time, interval) = (values.time.seconds(), values.interval.seconds());
            format!("{} {time} {interval} {numbers:?}", texts(values.identifier))
        }
        Ok(Item::Notification(it)) => {
            let message = it.message.escape_ascii();
            format!(
                "{} {} {:?} {message}",
                texts(it.identifier),
                it.time.seconds(),
                it.severity
            )
        }
        Ok(Item::Dropped(dropped)) => format!("dropped: {dropped:?}"),
        Err(bad) => format!("bad: {bad:?}"),
    }
}

/// The items of a packet, one line per item.
fn lines(packet: &[u8]) -> Vec<String> {
    let (mut parts, mut lines) = (Parts::new(packet), Vec::new());
    while let Some(item) = parts.next_item() {
        lines.push(spelled(&item));
        assert!(lines.len() <= packet.len(), "it does not end");
    }
    lines
}

/// The changed fields of each values in a packet.
fn changes(packet: &[u8]) -> Vec<Changed> {
    let (mut parts, mut changes) = (Parts::new(packet), Vec::new());
    while let Some(item) = parts.next_item() {
        match item {
            Ok(Item::Values(values)) => changes.push(values.changed),
            Ok(Item::Dropped(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    changes
}

/// Packets made by collectd 5.12.
const NOTIFICATION: &str = "0008000c1954fc4000000000 0101000c0000000000000002 000000076831 00 0002000678 00 \
     01000011 726f6f66206f6e206669726500";
const INTERFACE: &str = "000000076831 00 0008000c1954fc4000000000 0009000c0000000280000000 0002000e696e7465726661636500 \
     0003000965746830 00 0004000e69665f6f637465747300 00060018 0002 0202 00000000000003e8 00000000000007d0";
const LOAD: &str = "00060021 0003 010101 000000000000e03f 000000000000f83f 0000000000000440";
const COUNTER: &str = "0006000f 0001 00 0000000000000007";
const ABSOLUTE: &str = "0006000f 0001 03 0000000000000009";

#[test]
fn packets_of_collectd_are_read() {
    let name = "h1|interface|eth0|if_octets| 1700000000 10";
    let values = hex(&[INTERFACE, LOAD, COUNTER, ABSOLUTE].concat());
    assert_eq!(
        lines(&values),
        [
            format!("{name} [Derive(1000), Derive(2000)]"),
            format!("{name} [Gauge(0.5), Gauge(1.5), Gauge(2.5)]"),
            format!("{name} [Counter(7)]"),
            format!("{name} [Absolute(9)]"),
        ]
    );
    assert_eq!(
        lines(&hex(NOTIFICATION)),
        ["h1|x||| 1700000000 Warning roof on fire"]
    );
}

#[test]
fn fields_stay_until_they_are_said_again() {
    let packet = [
        named(),
        values_part(ONE),
        text_part(part::TYPE_INSTANCE, "i"),
        number_part(part::INTERVAL, 60),
        values_part(ONE),
        text_part(part::TYPE_INSTANCE, ""),
        text_part(part::PLUGIN_INSTANCE, "x"),
        number_part(part::TIME, 7),
        number_part(part::INTERVAL_HR, 10 << 30),
        values_part(ONE),
        part(0x4242, b"of a later version"),
        values_part(ONE),
    ]
    .concat();
    assert_eq!(
        lines(&packet),
        [
            "h|p||t| 1700000000 0 [Derive(1)]",
            "h|p||t|i 1700000000 60 [Derive(1)]",
            "h|p|x|t| 7 10 [Derive(1)]",
            "h|p|x|t| 7 10 [Derive(1)]",
        ]
    );
    let both = |left: Changed, right: Changed| Changed(left.0 | right.0);
    let (instances, times) = (
        both(Changed::TYPE_INSTANCE, Changed::PLUGIN_INSTANCE),
        both(Changed::TIME, Changed::INTERVAL),
    );
    assert_eq!(
        changes(&packet),
        [
            Changed::ALL,
            both(Changed::TYPE_INSTANCE, Changed::INTERVAL),
            both(instances, times),
            Changed::default(),
        ]
    );
    assert!(Changed::ALL.has(Changed::NAME) && Changed::TYPE.has(Changed::NAME));
    assert!(!Changed::TIME.has(Changed::NAME) && !Changed::default().has(Changed::ALL));
}

/// Fields set before dropped values still count as changed for the next values.
#[test]
fn changes_are_since_values_that_were_given() {
    let packet = [
        named(),
        values_part(ONE),
        text_part(part::HOST, "g"),
        values_part(&[]),
        values_part(ONE),
    ]
    .concat();
    assert_eq!(changes(&packet), [Changed::ALL, Changed::HOST]);
}

#[test]
fn names_end_at_their_first_nul_as_in_c() {
    let long = "x".repeat(NAME_MAX);
    for (body, expected) in [
        ("h\0", Ok("h")),
        ("h\0x\0", Ok("h")),
        ("h\0\0\0", Ok("h")),
        ("a\nb\x1b\0", Ok("a\\nb\\x1b")),
        (&format!("{long}\0"), Ok(&*long)),
        (&format!("{long}x\0"), Err("TextLength")),
        ("", Err("TextLength")),
        ("h", Err("Unterminated")),
        ("h\0x", Err("Unterminated")),
    ] {
        let packet = [named(), part(part::HOST, body.as_bytes()), values_part(ONE)].concat();
        let expected = match expected {
            Ok(host) => format!("{host}|p||t| 1700000000 0 [Derive(1)]"),
            Err(bad) => format!("bad: {bad}"),
        };
        assert_eq!(lines(&packet), [expected], "{body:?}");
    }
}

#[test]
fn a_nul_is_found_anywhere() {
    for size in 0..40 {
        for filler in [1, 0x7f, 0x80, 0xff] {
            let mut text = vec![filler; size];
            assert!(!has_nul(&text), "{size}");
            for at in 0..size {
                text[at] = 0;
                assert!(has_nul(&text), "{at} of {size}");
                text[at] = filler;
            }
        }
    }
}

#[test]
fn what_collectd_drops_is_dropped_and_what_follows_counts() {
    let without = |kind: u16| {
        let value = match kind {
            part::TIME_HR => number_part(kind, 0),
            _ => text_part(kind, ""),
        };
        [named(), value, values_part(ONE), named(), values_part(ONE)].concat()
    };
    let values = |values: &[Value]| [named(), values_part(values), values_part(ONE)].concat();
    let event = |severity: u64, message: &str| {
        [
            named(),
            number_part(part::SEVERITY, severity),
            text_part(part::MESSAGE, message),
            values_part(ONE),
        ]
        .concat()
    };
    let timeless = [
        number_part(part::SEVERITY, 1),
        text_part(part::MESSAGE, "m"),
        named(),
        values_part(ONE),
    ]
    .concat();
    for (packet, dropped) in [
        (without(part::TIME_HR), Dropped::Timeless),
        (without(part::HOST), Dropped::Nameless),
        (without(part::PLUGIN), Dropped::Nameless),
        (without(part::TYPE), Dropped::Nameless),
        (values(&[]), Dropped::NoValues),
        (values(&[ONE[0]; 64]), Dropped::TooManyValues),
        (event(0, "m"), Dropped::Severity),
        (event(3, "m"), Dropped::Severity),
        ((event(1 << 32 | 1, "m")), Dropped::Severity),
        (event(4, ""), Dropped::NoMessage),
        (timeless, Dropped::Timeless),
    ] {
        let expected = [
            format!("dropped: {dropped:?}"),
            "h|p||t| 1700000000 0 [Derive(1)]".to_string(),
        ];
        assert_eq!(lines(&packet), expected);
    }
    assert_eq!(lines(&values(&[ONE[0]; 63])).len(), 2);
}

#[test]
fn damage_ends_a_packet_and_what_was_before_counts() {
    let values = values_part(ONE);
    let long = |kind: u16, by: i32| {
        let mut values = values_part(ONE);
        values[0..2].copy_from_slice(&kind.to_be_bytes());
        values[3] = (i32::from(values[3]) + by) as u8;
        values
    };
    let mut unknown = values.clone();
    unknown[6] = 4;
    for (damage, bad) in [
        (vec![0], Bad::Head),
        (vec![0, 0, 0], Bad::Head),
        (vec![0; 40], Bad::PartLength),
        (vec![0, 1, 0, 3], Bad::PartLength),
        (vec![0x42, 0x42, 0, 5], Bad::Cut),
        (part(part::TIME, &[0; 7]), Bad::NumberLength),
        (part(part::TIME_HR, &[0; 9]), Bad::NumberLength),
        (part(part::INTERVAL, &[]), Bad::NumberLength),
        (part(part::INTERVAL_HR, &[0; 16]), Bad::NumberLength),
        (part(part::SEVERITY, &[0; 4]), Bad::NumberLength),
        (part(part::TYPE, &[]), Bad::TextLength),
        (part(part::PLUGIN, &[b'x'; 129]), Bad::TextLength),
        (part(part::MESSAGE, &[b'x'; 257]), Bad::TextLength),
        (part(part::MESSAGE, b"x"), Bad::Unterminated),
        (part(part::VALUES, &[]), Bad::ValuesLength),
        (part(part::VALUES, &[0]), Bad::ValuesLength),
        (part(part::VALUES, &[0, 1]), Bad::ValuesLength),
        (part(part::VALUES, &[0xff; 64]), Bad::ValuesLength),
        (long(part::VALUES, -1), Bad::ValuesLength),
        (long(part::VALUES, 1), Bad::Cut),
        (unknown, Bad::ValueKind),
        (part(part::SIGN_SHA256, &[0; 40]), Bad::Misplaced),
        (part(part::ENCR_AES256, &[0; 60]), Bad::Misplaced),
    ] {
        let before = "h|p||t| 1700000000 0 [Derive(1)]";
        let expected = [before.to_string(), format!("bad: {bad:?}")];
        let last = [named(), values.clone(), damage.clone()].concat();
        assert_eq!(lines(&last), expected, "{}", damage.escape_ascii());
        // With bytes of the next part behind them, the two other kinds of damage would be whole parts.
        if !matches!(bad, Bad::Head | Bad::Cut) {
            let amid = [last, values.clone()].concat();
            assert_eq!(lines(&amid), expected, "{}", damage.escape_ascii());
        }
    }
    let amid = [named(), long(part::VALUES, 1), values].concat();
    assert_eq!(lines(&amid), ["bad: ValuesLength"]);
}

/// A truncated packet gives no new name or value, and each byte is read at most once.
#[test]
fn a_packet_cut_anywhere_says_less_and_nothing_else() {
    let mut load = hex(LOAD);
    load.extend(hex(NOTIFICATION));
    let packet = [hex(INTERFACE), load].concat();
    let whole = lines(&packet);
    assert_eq!(whole.len(), 3);
    for cut in 0..packet.len() {
        let mut found = lines(&packet[..cut]);
        if found.last().is_some_and(|last| last.starts_with("bad: ")) {
            found.pop();
        }
        assert!(
            found.len() < 3 && found[..] == whole[..found.len()],
            "{cut}: {found:?}"
        );
    }
}

/// A wrong length misreads the bytes behind it, but changes no item before it, and reading terminates.
#[test]
fn a_part_of_any_length_harms_what_follows_only() {
    let packet = hex(&[INTERFACE, LOAD, NOTIFICATION, COUNTER].concat());
    let whole = lines(&packet);
    let (mut at, mut before) = (0, 0);
    while at < packet.len() {
        let size = u16::from_be_bytes([packet[at + 2], packet[at + 3]]);
        for wrong in (0..=300).chain([0x7fff, 0xffff]) {
            let mut damaged = packet.clone();
            damaged[at + 2..at + 4].copy_from_slice(&u16::to_be_bytes(wrong));
            let found = lines(&damaged);
            assert_eq!(found[..before], whole[..before], "{wrong} at {at}");
            assert_eq!(found == whole, wrong == size, "{wrong} at {at}");
            assert!(found.len() <= packet.len() / 15);
        }
        let is_item = matches!(
            u16::from_be_bytes([packet[at], packet[at + 1]]),
            part::VALUES | part::MESSAGE
        );
        before += usize::from(is_item);
        at += usize::from(size);
    }
}

#[test]
fn each_item_takes_bytes() {
    let packet = [
        named(),
        values_part(ONE),
        values_part(&[]),
        vec![0, 0, 0, 0],
    ]
    .concat();
    let (mut parts, mut before) = (Parts::new(&packet), packet.len());
    while parts.next_item().is_some() {
        assert!(parts.rest_bytes() < before);
        before = parts.rest_bytes();
    }
    assert_eq!(before, 0);
    assert!(parts.next_item().is_none());
}

#[test]
fn reasons_are_counted_by_their_numbers() {
    for (at, bad) in Bad::ALL.into_iter().enumerate() {
        assert_eq!(bad as usize, at);
        assert!(!bad.to_string().is_empty());
    }
    for (at, dropped) in Dropped::ALL.into_iter().enumerate() {
        assert_eq!(dropped as usize, at);
        assert!(!dropped.why().is_empty());
    }
}
