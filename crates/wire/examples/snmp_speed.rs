//! Measures reading a reply of 48 counters, each name compared with the requested one, and setting the id of a request:
//! nanoseconds, the minimum of ten rounds. `cargo run --release -p kymo-wire --example snmp_speed`: 377 ns per reply and 1 ns
//! per id (AMD EPYC of 2 CPUs, 2026-11-24, with other work on the machine).

#![allow(clippy::print_stderr, reason = "a person reads it")]

use std::hint::black_box;
use std::time::Instant;

use kymo_wire::snmp::{
    Ask, IdWidth, Message, MessageHead, ObjectValue, Oid, PduKind, RequestMessage, Version,
    put_message, put_varbind,
};

const COUNTERS: u32 = 48;
const TIMES: u32 = 20_000;

fn main() {
    let Some(table) = Oid::parse("1.3.6.1.2.1.31.1.1.1") else {
        return;
    };
    let names: Vec<Oid> = (0..COUNTERS)
        .map(|n| table.with(&[6 + n % 2 * 4, 100 + n / 2]))
        .collect();
    let mut request =
        RequestMessage::new(Ask::Get, Version::V2c, b"public", &names, IdWidth::Bits31);
    let (mut varbinds, mut reply) = (Vec::new(), Vec::new());
    for name in &names {
        put_varbind(
            &mut varbinds,
            name,
            ObjectValue::Counter64(12_345_678_901_234_567),
        );
    }
    let head = MessageHead {
        version: Version::V2c,
        community: b"public",
        kind: PduKind::Response,
        id: request.set_id(77),
        status: 0,
        index: 0,
    };
    put_message(&mut reply, &head, &varbinds);
    let mut sum = 0u64;
    let read = least(|| sum = sum.wrapping_add(read(black_box(&reply), &names)));
    let patch = least(|| {
        black_box(request.set_id(black_box(99)));
    });
    eprintln!(
        "a reply of {COUNTERS} counters, {} bytes: {read:.0} ns, {:.1} each; an id: {patch:.1} ns ({sum})",
        reply.len(),
        read / f64::from(COUNTERS)
    );
}

fn read(reply: &[u8], names: &[Oid]) -> u64 {
    let Ok(message) = Message::decode_response(reply) else {
        return 0;
    };
    let pairs = message.varbinds.flatten().zip(names);
    let counters = pairs.map(|((name, value), asked)| match value {
        ObjectValue::Counter64(number) if *name == **asked => number,
        _ => 0,
    });
    counters.fold(0, u64::wrapping_add)
}

/// Nanoseconds per call, the minimum of ten rounds.
fn least(mut call: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..10 {
        let begun = Instant::now();
        (0..TIMES).for_each(|_| call());
        least = least.min(begun.elapsed().as_nanos() as f64 / f64::from(TIMES));
    }
    least
}
