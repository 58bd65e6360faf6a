//! Any bytes as a datagram of collectd, as nearly valid parts, and as the files that collectd reads.

use crate::collectd::{
    Cdtime, Datagram, Dropped, Encoder, Identifier, Item, NAME_MAX, Parts, Pushed, RawValues,
    ReplayWindow, RrdSettings, SecurityLevel, TypesDb, Users, VALUES_MAX, Value, ValueList, Values,
    encrypt, escape, put_update, put_value, read_auth_file, sign,
};

/// Reads any bytes as input from a network or an administrator. Reading terminates, its result is bounded by the
/// input, and encoding the result and reading it again gives the same.
pub fn fuzz_collectd(input: &[u8]) {
    read_parts(input);
    read_parts(&assembled(input));
    read_datagram(input);
    come_back_protected(input);
    read_files(input);
    name_comes_back(input);
    remember(input);
}

/// Each step must consume bytes, and encoded values must come back unchanged.
fn read_parts(payload: &[u8]) {
    let (mut parts, mut left) = (Parts::new(payload), payload.len());
    let (mut values, mut bad) = (Vec::new(), false);
    while let Some(item) = parts.next_item() {
        assert!(!bad, "an item behind an error");
        match item {
            Ok(Item::Values(list)) => values.push(ListValues::of(&list)),
            Ok(Item::Notification(it)) => {
                assert!(!it.message.is_empty() && !it.message.contains(&0))
            }
            Ok(Item::Dropped(dropped)) => assert!(Dropped::ALL.contains(&dropped)),
            Err(_) => bad = true,
        }
        assert!(parts.rest_bytes() < left, "no progress");
        left = parts.rest_bytes();
    }
    assert!(values.len() <= payload.len() / 15, "more values than bytes");
    values.iter().for_each(check_values);
    say_again(&values);
}

/// A value list without the state of the parser.
#[derive(PartialEq)]
struct ListValues<'a> {
    identifier: Identifier<'a>,
    time: Cdtime,
    interval: Cdtime,
    values: RawValues<'a>,
}

impl<'a> ListValues<'a> {
    fn of(list: &Values<'_, 'a>) -> ListValues<'a> {
        ListValues {
            identifier: *list.identifier,
            time: list.time,
            interval: list.interval,
            values: list.values,
        }
    }
}

fn check_values(list: &ListValues) {
    let id = &list.identifier;
    let names = [
        id.host,
        id.plugin,
        id.plugin_instance,
        id.type_name,
        id.type_instance,
    ];
    assert!(
        names
            .iter()
            .all(|name| name.len() <= NAME_MAX && !name.contains(&0))
    );
    assert!(!id.host.is_empty() && !id.plugin.is_empty() && !id.type_name.is_empty());
    assert!(list.time != Cdtime::ZERO && (1..=VALUES_MAX).contains(&list.values.len()));
    let mut path = Vec::new();
    if id.put_rrd_path(&mut path).is_ok() {
        check_path(&path);
    } else {
        assert!(path.is_empty(), "a refused path left bytes");
    }
    let mut text = Vec::new();
    put_update(&mut text, list.time, list.values.iter());
    let colons = text.iter().filter(|&&byte| byte == b':').count();
    assert_eq!(colons, list.values.len());
    list.values.iter().for_each(gauge_is_near);
}

fn check_path(path: &[u8]) {
    let components: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
    let harmless = |component: &&[u8]| !matches!(*component, b"" | b"." | b"..");
    assert!(
        components.len() == 3 && components.iter().all(harmless),
        "a path leaves the base"
    );
    assert!(!path.iter().any(u8::is_ascii_control));
}

/// The text of a gauge has 15 correct digits.
fn gauge_is_near(value: Value) {
    let Value::Gauge(number) = value else {
        return;
    };
    let mut text = Vec::new();
    put_value(&mut text, value);
    let Ok(read) = String::from_utf8_lossy(&text).parse::<f64>() else {
        unreachable!("BUG: {} is no number", text.escape_ascii())
    };
    if number.is_normal() && read.is_finite() {
        assert!(
            (read - number).abs() <= number.abs() * 5.1e-15,
            "{number:e} became {read:e}"
        );
    }
}

/// Encodes the values and reads them back.
fn say_again(values: &[ListValues]) {
    let (mut encoder, mut first) = (Encoder::new(4096), 0);
    for (at, list) in values.iter().enumerate() {
        let numbers: Vec<Value> = list.values.iter().collect();
        let list = ValueList {
            identifier: list.identifier,
            time: list.time,
            interval: list.interval,
            values: &numbers,
        };
        if encoder.push(&list) == Pushed::Full {
            were_said(&values[first..at], encoder.payload());
            first = at;
            encoder.clear();
            assert_eq!(encoder.push(&list), Pushed::Added);
        }
    }
    were_said(&values[first..], encoder.payload());
}

fn were_said(values: &[ListValues], payload: &[u8]) {
    let mut read = Parts::new(payload);
    for list in values {
        let Some(Ok(Item::Values(again))) = read.next_item() else {
            unreachable!("BUG: values were lost")
        };
        assert!(*list == ListValues::of(&again), "values came back changed");
    }
    assert!(read.next_item().is_none());
}

/// Makes parts with correct lengths from the input: one byte chooses the kind of a part, the next one its length.
fn assembled(input: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), input);
    while let [choice, size, behind @ ..] = rest {
        let (body, behind) = behind.split_at(usize::from(*size).min(behind.len()));
        rest = behind;
        match choice % 16 {
            kind @ (0 | 2..=5) => put_part(&mut out, u16::from(kind), &[body, &[0]]),
            kind @ (1 | 7..=9) => put_part(&mut out, u16::from(kind), &[&number(body)]),
            10 => put_part(&mut out, 0x0101, &[&[0; 7], &[size % 5]]),
            11 => put_part(&mut out, 0x0100, &[body, &[0]]),
            12 => put_part(&mut out, u16::from_be_bytes([*choice, *size]), &[body]),
            13 => out.extend_from_slice(body),
            _ => {
                let cells = body.chunks(8).map(number);
                let codes: Vec<u8> = body.chunks(8).map(|cell| cell[0] % 4).collect();
                let cells: Vec<u8> = cells.flatten().collect();
                put_part(&mut out, 0x0006, &[&[0, codes.len() as u8], &codes, &cells]);
            }
        }
    }
    out
}

fn number(bytes: &[u8]) -> [u8; 8] {
    std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(1))
}

fn put_part(out: &mut Vec<u8>, kind: u16, body: &[&[u8]]) {
    let size = 4 + body.iter().map(|piece| piece.len()).sum::<usize>();
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(size as u16).to_be_bytes());
    body.iter().for_each(|piece| out.extend_from_slice(piece));
}

const USER: &[u8] = b"user0";
const PASSWORD: &[u8] = b"foo";

fn users() -> Users {
    let (users, bad) = read_auth_file(b"user0: foo\nuser1: bar\n");
    assert!(bad.is_empty() && users.len() == 2);
    users
}

/// Reads the input unchanged, and behind the head of a signed and of an encrypted part.
fn read_datagram(input: &[u8]) {
    let users = users();
    for (level, users) in [
        (SecurityLevel::None, None),
        (SecurityLevel::None, Some(&users)),
        (SecurityLevel::Sign, Some(&users)),
        (SecurityLevel::Encrypt, Some(&users)),
    ] {
        for head in [&[][..], &[2, 0], &[2, 0x10]] {
            let mut datagram = [head, input].concat();
            let mut left = datagram.len();
            let mut sections = Datagram::new(&mut datagram, level, users);
            while let Some(section) = sections.next() {
                assert!(sections.rest_bytes() < left, "no progress");
                left = sections.rest_bytes();
                if let Ok(section) = section {
                    read_parts(section.payload);
                }
            }
        }
    }
}

fn come_back_protected(input: &[u8]) {
    let payload = &input[..input.len().min(60_000)];
    if payload.is_empty() {
        return;
    }
    let (users, mut signed, mut encrypted) = (users(), Vec::new(), Vec::new());
    sign(&mut signed, USER, PASSWORD, payload);
    encrypt(&mut encrypted, USER, PASSWORD, &[input[0]; 16], payload);
    for (mut datagram, level) in [
        (signed, SecurityLevel::Sign),
        (encrypted, SecurityLevel::Encrypt),
    ] {
        let mut sections = Datagram::new(&mut datagram, level, Some(&users));
        let same = matches!(sections.next(), Some(Ok(section)) if section.payload == payload);
        assert!(same && sections.next().is_none(), "a payload was lost");
    }
}

fn read_files(input: &[u8]) {
    let lines = input.split(|&byte| byte == b'\n').count();
    let (users, bad) = read_auth_file(input);
    assert!(users.len() + bad.len() <= lines, "more users than lines");
    let mut types = TypesDb::default();
    let bad = types.add(input);
    assert!(types.len() + bad.len() <= lines, "more types than lines");
    let interval = Cdtime(u64::from_be_bytes(number(input)));
    for (_, sources) in types.iter() {
        let definition = RrdSettings::default().define(interval, sources);
        assert!(definition.is_none_or(|definition| definition.words.len() == sources.len() + 15));
    }
}

fn name_comes_back(input: &[u8]) {
    let text = &input[..input.len().min(1024)];
    assert!(!escape(text).contains(&b'/'));
    let mut path = Vec::new();
    if Identifier::parse(text).is_some_and(|id| id.put_rrd_path(&mut path).is_ok()) {
        check_path(&path);
        // Parsing cuts at the first dash, so the identifier may differ; the path must not.
        if let Some(identifier) = Identifier::of_rrd_path(&path) {
            let mut again = Vec::new();
            assert!(identifier.put_rrd_path(&mut again).is_ok() && again == path);
        }
    }
}

fn remember(input: &[u8]) {
    let mut window = ReplayWindow::new(100, 16);
    for (at, unique) in input.chunks(16).enumerate() {
        window.admit(USER, unique, at as u64 * u64::from(unique[0]));
        assert!(window.len() <= 16);
    }
}
