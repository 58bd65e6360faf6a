//! Senders that do more than they may: forged and cut signatures, packets sent twice, senders of other networks, names that
//! are cut, wrong clocks.

use std::cell::Cell;

use kymo_wire::collectd::{encrypt, sign};

use super::hub::{Hub, files_below};
use super::packets::{gauge, gauges, name, now, sender};

const SIGN: &str =
    "[store]\nfiles = \"never\"\n[collectd]\nsecurity = \"sign\"\nauth_file = \"AUTH\"\n";
/// Bytes of the MAC after a part's head.
const MAC: std::ops::Range<usize> = 4..36;

fn signed(packet: &[u8], password: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    sign(&mut out, b"user0", password, packet);
    out
}

fn encrypted(packet: &[u8], iv: u8) -> Vec<u8> {
    let mut out = Vec::new();
    encrypt(&mut out, b"user0", b"foo", &[iv; 16], packet);
    out
}

/// Waits until all earlier datagrams are processed; returns the names of all series.
fn settled(hub: &Hub, stamp: u64, send: impl Fn(&[u8])) -> Vec<String> {
    send(&signed(&gauge("good", stamp, 1.0), b"foo"));
    hub.ends_at(&name("good"), stamp);
    hub.names()
}

/// Ends the hub, so that it reports all counts, and checks them.
fn reports(mut hub: Hub, parts: &[(u64, &str)]) {
    hub.end();
    for (count, words) in parts {
        assert_eq!(
            hub.reported(words),
            *count,
            "{words}: {:#?}",
            hub.served.said
        );
    }
}

#[test]
fn forged_macs_of_every_length_make_no_name() {
    let hub = Hub::start("macs", SIGN);
    let (socket, sent) = (sender("127.0.0.1", hub.port), Cell::new(0));
    let send = |packet: &[u8]| {
        socket.send(packet).expect("sent");
        sent.set(sent.get() + 1);
    };
    let time = now() - 1000;
    let whole = signed(&gauge("forged", time, 1.0), b"foo");
    // One wrong bit in each byte of the MAC.
    for at in MAC {
        let mut packet = whole.clone();
        packet[at] ^= 1;
        send(&packet);
    }
    // MACs of a wrong length, in parts whose stated length is right.
    for length in (0..MAC.len()).chain(MAC.len() + 1..MAC.len() + 64) {
        let mac: Vec<u8> = whole[MAC].iter().copied().cycle().take(length).collect();
        let size = (4 + length + b"user0".len()) as u16;
        let head = [&[2, 0], &size.to_be_bytes()[..]].concat();
        send(&[&head, &mac, &whole[MAC.end..]].concat());
    }
    // Wrong stated lengths.
    for length in 0..=whole.len() as u16 + 8 {
        let mut packet = whole.clone();
        if packet[2..4] != length.to_be_bytes() {
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            send(&packet);
        }
    }
    send(&signed(&gauge("forged", time, 1.0), b"fox"));
    send(&gauge("forged", time, 1.0));
    let crypted = encrypted(&gauge("forged", time, 1.0), 1);
    for at in 0..crypted.len() {
        let mut packet = crypted.clone();
        packet[at] ^= 0x10;
        send(&packet);
    }
    assert_eq!(settled(&hub, time, send), [name("good")]);
    // All datagrams except the good one.
    reports(hub, &[(sent.get() - 1, "damaged or forged datagrams")]);
}

#[test]
fn what_is_cut_makes_no_name() {
    let hub = Hub::start("cuts", SIGN);
    let mut open = Hub::start("cuts-open", "[store]\nfiles = \"never\"\n");
    let time = now() - 1000;
    let instances = [
        "first".to_string(),
        "thesecondislonger".into(),
        "third".into(),
    ];
    let packet = gauges("cut", &instances, time, 10, 1.0);
    let socket = sender("127.0.0.1", hub.port);
    let send = |packet: &[u8]| {
        socket.send(packet).expect("sent");
    };
    for whole in [signed(&packet, b"foo"), encrypted(&packet, 2)] {
        for length in 0..whole.len() {
            send(&whole[..length]);
        }
    }
    assert_eq!(settled(&hub, time, send), [name("good")]);
    // Without a signature, parts that are whole before the cut count, and no others.
    let socket = sender("127.0.0.1", open.port);
    for length in 0..packet.len() {
        socket.send(&packet[..length]).expect("sent");
    }
    socket.send(&gauge("good", time, 1.0)).expect("sent");
    open.ends_at(&name("good"), time);
    let mut want = vec![
        "cut/p/gauge-first.rrd".to_string(),
        "cut/p/gauge-thesecondislonger.rrd".into(),
        name("good"),
    ];
    want.sort();
    assert_eq!(open.names(), want);
    open.end();
    assert!(open.reported("damaged or forged datagrams") > 0);
}

#[test]
fn packets_sent_twice_and_a_spoofed_first_one() {
    let hub = Hub::start("replays", SIGN);
    let socket = sender("127.0.0.1", hub.port);
    let send = |packet: &[u8]| {
        socket.send(packet).expect("sent");
    };
    let time = now() - 1000;
    // The first packet with a name comes from another sender, with another interval.
    send(&gauges("web", &["x".into()], time, 3600, 7.0));
    send(&signed(
        &gauges("web", &["x".into()], time, 3600, 7.0),
        b"fox",
    ));
    send(&signed(&gauge("web", time, 1.0), b"foo"));
    hub.ends_at(&name("web"), time);
    let replayed = signed(&gauge("web", time + 10, 1.0), b"foo");
    let crypted = encrypted(&gauge("web", time + 20, 1.0), 3);
    for _ in 0..5 {
        send(&replayed);
    }
    for _ in 0..3 {
        send(&crypted);
    }
    hub.ends_at(&name("web"), time + 20);
    assert_eq!(settled(&hub, time, send), [name("good"), name("web")]);
    let said = hub.client().text(&format!(
        "FETCH {} AVERAGE {time} {}",
        name("web"),
        time + 20
    ));
    assert!(said.contains("Step: 10\n"), "{said:.300}");
    reports(
        hub,
        &[
            (6, "datagrams sent twice"),
            (2, "damaged or forged datagrams"),
        ],
    );
}

#[test]
fn senders_of_other_networks() {
    let config =
        "[store]\nfiles = \"never\"\n[collectd]\nallow = [\"127.0.0.2\", \"127.7.0.0/16\"]\n";
    let hub = Hub::start("networks", config);
    let time = now() - 1000;
    for address in ["127.0.0.1", "127.0.0.3", "127.6.255.255", "127.8.0.1"] {
        let socket = sender(address, hub.port);
        socket.send(&gauge("spoofed", time, 7.0)).expect("sent");
        socket.send(&gauge("good", time + 500, 7.0)).expect("sent");
    }
    for address in ["127.7.200.1", "127.0.0.2"] {
        sender(address, hub.port)
            .send(&gauge("good", time, 1.0))
            .expect("sent");
    }
    hub.ends_at(&name("good"), time);
    assert_eq!(hub.names(), [name("good")]);
    reports(hub, &[(8, "datagrams of networks that may not send")]);
}

/// Clocks that jump a day ahead, or back to the first second of 1970.
#[test]
fn clocks_of_senders_that_are_set() {
    let hub = Hub::start("clocks", "");
    let keeper = hub.keeper();
    let socket = sender("127.0.0.1", hub.port);
    let send = |host: &str, time: u64| {
        socket.send(&gauge(host, time, 1.0)).expect("sent");
    };
    let time = now() - 1000;
    send("web", time);
    for wrong in [
        now() + 86_400,
        now() + 3600,
        (1 << 34) - 1,
        time - 86_400,
        time,
        1,
        0,
    ] {
        send("web", wrong);
    }
    // Names whose first value is from 1970 or from tomorrow.
    send("old", 1);
    send("later", now() + 86_400);
    send("other", time);
    send("web", time + 10);
    hub.ends_at(&name("web"), time + 10);
    hub.ends_at(&name("other"), time);
    let files = files_below(&hub.dir.join("rrd"));
    assert!(
        !files.iter().any(|file| file.contains("later")),
        "{files:?}"
    );
    // The series with the value from 1970 goes on with present ones.
    send("old", time + 10);
    hub.ends_at(&name("old"), time + 10);
    let mut hub = hub;
    hub.is_unharmed(keeper);
    // The first second of 1970 is before any series begins.
    reports(
        hub,
        &[
            (4, "values from the future"),
            (4, "values not newer than the last"),
            (1, "values without time or name"),
        ],
    );
}
