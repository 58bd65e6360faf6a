//! Answers of slow, lossy and lying devices, from a client's side.

#![allow(clippy::unwrap_used)]

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use kymo_agentfarm::{Broken, Farm, Lie, Percent, Settings};
use kymo_wire::snmp::{
    Ask, IdWidth, Malformed, Message, ObjectValue, Oid, RequestMessage, Version,
};

fn farm() -> Farm {
    let settings = Settings {
        first: [127, 0, 12, 40].into(),
        port: 0,
        devices: 2,
        interfaces: 20,
        community: b"public".to_vec(),
    };
    Farm::start(settings).unwrap()
}

fn row(column: u32, index: u32) -> Oid {
    Oid::parse("1.3.6.1.2.1.31.1.1.1")
        .unwrap()
        .with(&[column, index])
}

/// A received reply, its source, and its delay.
struct Came {
    bytes: Vec<u8>,
    from: SocketAddr,
    after: Duration,
}

/// Sends a v2c request for three counters to the first device; receives up to `most` replies, each within `patience`.
fn ask(farm: &Farm, ask: Ask, most: usize, patience: Duration) -> (i32, Vec<Came>) {
    let names = [row(6, 1), row(10, 1), row(6, 2)];
    let mut request = RequestMessage::new(ask, Version::V2c, b"public", names, IdWidth::Bits31);
    let id = request.set_id(77);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(patience)).unwrap();
    let begun = Instant::now();
    let agent = (farm.address(0), farm.settings().port);
    client.send_to(request.bytes(), agent).unwrap();
    let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    while all.len() < most {
        let Ok((size, from)) = client.recv_from(&mut buffer) else {
            break;
        };
        all.push(Came {
            bytes: buffer[..size].to_vec(),
            from,
            after: begun.elapsed(),
        });
    }
    (id, all)
}

const SOON: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn a_device_is_dead_slow_or_stutters() {
    let farm = farm();
    farm.change(0, |behaviour, _| behaviour.dead = true);
    assert_eq!(ask(&farm, Ask::Get, 1, SOON).1.len(), 0);
    farm.change(0, |behaviour, _| {
        behaviour.dead = false;
        behaviour.latency_us = 30_000;
        behaviour.varbind_us = 10_000;
        behaviour.duplicated = Percent(100.0);
    });
    let (_, came) = ask(&farm, Ask::Get, 2, PATIENCE);
    assert_eq!(came[0].bytes, came[1].bytes);
    assert!(
        came[0].after >= Duration::from_millis(60),
        "{:?}",
        came[0].after
    );
    farm.change(0, |behaviour, _| behaviour.varbinds_max = 2);
    assert_eq!(ask(&farm, Ask::Get, 1, SOON).1.len(), 0);
    let counts = farm.counts_of(0);
    assert_eq!((counts.requests, counts.replies, counts.lost), (3, 2, 2));
    assert_eq!(farm.counts(), counts);
}

#[test]
fn loss_is_as_often_as_was_said() {
    let farm = farm();
    farm.change(0, |behaviour, _| behaviour.loss = Percent(20.0));
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let names = [row(6, 1)];
    let request = RequestMessage::new(Ask::Get, Version::V2c, b"public", names, IdWidth::Bits31);
    client
        .connect((farm.address(0), farm.settings().port))
        .unwrap();
    for _ in 0..2000 {
        client.send(request.bytes()).unwrap();
    }
    let until = Instant::now() + PATIENCE;
    while farm.counts_of(0).requests < 2000 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let lost = farm.counts_of(0).lost;
    assert!((300..500).contains(&lost), "{lost} of 2000");
}

#[test]
fn a_lie_is_what_it_says() {
    let farm = farm();
    let device = SocketAddr::from((farm.address(0), farm.settings().port));
    for (word, lie) in Lie::ALL {
        farm.change(0, |behaviour, _| behaviour.lie = Some(lie));
        let asked = match lie {
            Lie::Endless | Lie::Stuck => Ask::GetNext,
            _ => Ask::Get,
        };
        let (id, came) = ask(&farm, asked, 1, PATIENCE);
        let reply = Message::decode_response(&came[0].bytes).unwrap();
        let names: Vec<Oid> = reply
            .varbinds
            .map(|v| Oid::of_bytes(v.unwrap().0))
            .collect();
        let asked = vec![row(6, 1), row(10, 1), row(6, 2)];
        let next = vec![row(6, 2), row(10, 2), row(6, 3)];
        let others = vec![row(6, 65), row(10, 65), row(6, 66)];
        let mut reversed = asked.clone();
        reversed.reverse();
        let more = [&asked[..], &asked[2..]].concat();
        let expected = match lie {
            Lie::Names => others,
            Lie::Endless => next,
            Lie::Fewer => asked[..2].to_vec(),
            Lie::More => more,
            Lie::Reversed => reversed,
            _ => asked,
        };
        assert_eq!(names, expected, "{word}");
        assert_eq!(reply.head.id != id, lie == Lie::Id, "{word}");
        assert_eq!(
            reply.head.community != b"public",
            lie == Lie::Community,
            "{word}"
        );
        assert_eq!(came[0].from != device, lie == Lie::Address, "{word}");
        let texts = reply
            .varbinds
            .flatten()
            .any(|(_, value)| value == ObjectValue::OctetString(b"n/a"));
        assert_eq!(texts, lie == Lie::Texts, "{word}");
    }
}

fn varbinds<'a>(message: &Message<'a>) -> Result<Vec<(&'a [u8], ObjectValue<'a>)>, Malformed> {
    message.varbinds.collect()
}

#[test]
fn what_is_broken_is_refused_for_its_reason() {
    let farm = farm();
    for (word, broken) in Broken::ALL {
        farm.change(0, |behaviour, _| behaviour.lie = Some(Lie::Broken(broken)));
        let (_, came) = ask(&farm, Ask::Get, 1, PATIENCE);
        let read = Message::decode_response(&came[0].bytes);
        let expected = match broken {
            Broken::Empty => Some(Malformed::Head),
            Broken::Half | Broken::Cut | Broken::Endless => Some(Malformed::Cut),
            Broken::Trailing => Some(Malformed::Trailing),
            Broken::Indefinite => Some(Malformed::Length),
            Broken::Version3 => Some(Malformed::Version),
            Broken::Trap => Some(Malformed::Kind),
            Broken::Value => {
                assert_eq!(varbinds(&read.unwrap()).unwrap_err(), Malformed::Cut);
                continue;
            }
            Broken::NoDigits | Broken::Digits => {
                let numbers = varbinds(&read.unwrap()).unwrap();
                assert!(
                    numbers.iter().all(|(_, value)| value.number().is_none()),
                    "{word}"
                );
                continue;
            }
            Broken::Noise => {
                assert!(read.is_err(), "{word}");
                continue;
            }
        };
        assert_eq!(read.err(), expected, "{word}");
    }
}

#[test]
fn a_restarted_device_counts_from_nothing() {
    let farm = farm();
    let number = |farm: &Farm| {
        let (_, came) = ask(farm, Ask::Get, 1, PATIENCE);
        let reply = Message::decode_response(&came[0].bytes).unwrap();
        let (_, value) = reply.varbinds.flatten().next().unwrap();
        value.number().unwrap()
    };
    assert!(number(&farm) > 1_000_000_000);
    farm.change(0, |behaviour, now_ns| behaviour.restart(now_ns));
    assert!(number(&farm) < 1_000_000_000);
    farm.change(0, |behaviour, now_ns| {
        behaviour.count_from(u64::MAX - 5, now_ns)
    });
    std::thread::sleep(Duration::from_millis(20));
    assert!(number(&farm) < 1_000_000_000);
    farm.change(0, |behaviour, now_ns| {
        behaviour.wrap_uptime_in(10.0, now_ns);
        assert!(behaviour.uptime(now_ns) > u32::MAX - 1001);
        assert!(behaviour.uptime(now_ns + 11_000_000_000) < 200);
    });
}
