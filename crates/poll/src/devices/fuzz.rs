//! Answers of a hostile device, and the text of the scrape that they make.

use kymo_sys::clock::Stamp;
use kymo_wire::exposition_text::{ExpositionFormat, ExpositionReader};
use kymo_wire::mrtg_cfg::Secret;
use kymo_wire::snmp::{Message, MessageHead, ObjectValue, Oid, PduKind, put_message, put_varbind};

use super::{
    DeviceAccess, DeviceAsker, DeviceSetup, ExtractedText, InterfaceFilter, Profile, ProfileTable,
};

/// Packets of a poll; a longer one is left.
const PACKETS_MAX: usize = 200;

/// Answers with names and values that the input chooses; the poll goes on with each, and its text can be read.
pub fn fuzz_devices(input: &[u8]) {
    let Some((&first, mut rest)) = input.split_first() else {
        return;
    };
    let community = Secret::new(b"c");
    let access = match first % 2 {
        0 => DeviceAccess::V1(community),
        _ => DeviceAccess::V2c(community),
    };
    let setup = DeviceSetup {
        access,
        profiles: vec![profile(first)],
        interfaces: InterfaceFilter::everything(),
        random: |bytes| bytes.fill(7),
    };
    let Ok(mut asker) = DeviceAsker::new(&setup) else {
        unreachable!("BUG: a wrong profile");
    };
    let now = Stamp::default();
    asker.begin();
    for _ in 0..PACKETS_MAX {
        let Some(packet) = asker.packet(now).map(<[u8]>::to_vec) else {
            break;
        };
        let answer = answer(&packet, &mut rest);
        asker.take(&answer, now);
    }
    let text = asker.finish();
    let mut reader = ExpositionReader::new(ExpositionFormat::Prometheus, &text);
    while let Some(_line) = reader.read().unwrap_or_else(|fault| {
        unreachable!("BUG: {fault}: {}", String::from_utf8_lossy(&text));
    }) {}
}

fn profile(kind: u8) -> Profile {
    let map = |name: &str, oid: &str| [(name.to_string(), oid.to_string())].into();
    let index = match kind / 2 % 5 {
        0 => "i",
        1 => "i:string",
        2 => "i:rest",
        3 => "i:ip",
        _ => "i:mac",
    };
    let extract = ExtractedText {
        value: "1.3.6.1.4".into(),
        regex: vec![("(.)(.*)".into(), "$2$1".into()), (".*".into(), "7".into())],
    };
    let columns = |gauge: &str| ProfileTable {
        labels: map("l", "1.3.6.1.1"),
        gauge: map("g", gauge),
        counter: map("c", "1.3.6.1.3"),
        text: map("t", "1.3.6.1.4"),
        mac: map("m", "1.3.6.1.5"),
        info: map("n", "1.3.6.1.1"),
        time: map("d", "1.3.6.1.4"),
        bits: map("b", "1.3.6.1.4"),
        states: map("s", "1.3.6.1.3"),
        words: ["b", "s"].map(|name| (name.into(), map("1", "one"))).into(),
        extract: [("x".into(), extract.clone())].into(),
        ..ProfileTable::default()
    };
    Profile {
        name: "p".into(),
        hourly: kind.is_multiple_of(5),
        lldp: kind.is_multiple_of(7),
        table: vec![
            columns("1.3.6.1.2"),
            ProfileTable {
                index: vec![index.into()],
                interfaces: kind.is_multiple_of(3),
                ..columns("1.3.6.2")
            },
        ],
    }
}

/// An answer to a request: each varbind is a requested name with more behind it, or another name.
fn answer(packet: &[u8], rest: &mut &[u8]) -> Vec<u8> {
    let mut byte = || {
        let (&first, behind) = rest.split_first()?;
        *rest = behind;
        Some(first)
    };
    let Ok(request) = Message::decode(packet) else {
        unreachable!("BUG: a request that is malformed");
    };
    let names = request.varbinds.filter_map(|varbind| Some(varbind.ok()?.0));
    let names: Vec<&[u8]> = names.collect();
    let (status, index) = (byte().unwrap_or(0) % 16, byte().unwrap_or(0));
    let head = MessageHead {
        kind: PduKind::Response,
        status: if status > 6 { 0 } else { i32::from(status) },
        index: i32::from(index) - 1,
        ..request.head
    };
    let mut varbinds = Vec::new();
    for at in 0..byte().unwrap_or(0) {
        let (Some(arc), Some(kind)) = (byte(), byte()) else {
            break;
        };
        let name = names[usize::from(at) % names.len()];
        let name = match kind / 16 {
            0 => name.to_vec(),
            1 => vec![43, arc],
            count => [name, &vec![arc; usize::from(count) - 1]].concat(),
        };
        let text = [arc; 3];
        put_varbind(
            &mut varbinds,
            &Oid::of_bytes(&name),
            match kind % 8 {
                0 => ObjectValue::Integer(i64::from(arc) - 100),
                1 => ObjectValue::Counter64(u64::MAX - u64::from(arc)),
                2 => ObjectValue::OctetString(&text),
                3 => ObjectValue::Oid(&text),
                4 => ObjectValue::Opaque(&text),
                5 => ObjectValue::EndOfMibView,
                6 => ObjectValue::Null,
                _ => ObjectValue::TimeTicks(arc.into()),
            },
        );
    }
    let mut out = Vec::new();
    put_message(&mut out, &head, &varbinds);
    out
}
