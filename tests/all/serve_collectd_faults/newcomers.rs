//! New names: a flood of invented names costs the store nothing, and a host that repeats its values loses none. The
//! flooder is a local user, who can send from all addresses of loopback.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kymo_sys::effort::effort;
use kymo_tests::Scratch;
use kymo_tests::served::get;
use kymo_wire::collectd::sign;

use super::hub::{Hub, eventually, files_bytes, memory, waiting_bytes};
use super::packets::{gauge, gauges, name, now, sender};

const CONFIG: &str = "[collectd]\nauth_file = \"AUTH\"\n[store]\nfiles = \"never\"\n";
/// Names of one packet, and of one true host.
const NAMES_A_PACKET: u64 = 25;
const SERIES: u64 = 50;
/// Hosts that arrive during the flood.
const NEW_HOSTS: u64 = 10;
/// A part of the shortest possible queue.
const WAITING_MAX: u64 = 64 << 10;
/// Most memory of the keeper during a flood.
const MEMORY_BYTES: u64 = 64 << 20;
/// Most bytes of the store's folder: values of the true hosts, and no name of a flood.
const STORE_BYTES: u64 = 4 << 20;

fn instances(numbers: Range<u64>) -> Vec<String> {
    numbers.map(|n| format!("n{n}")).collect()
}

/// Sends new names, each at all of these times, until all are sent or `over` is true.
fn flood(port: u16, names: u64, times: &[u64], over: &AtomicBool) {
    let senders = [
        "127.0.0.2",
        "127.0.0.3",
        "127.0.0.4",
        "127.0.0.5",
        "127.0.0.6",
    ];
    let senders = senders.map(|address| sender(address, port));
    for &time in times {
        for first in (0..names).step_by(NAMES_A_PACKET as usize) {
            if over.load(Ordering::Relaxed) {
                return;
            }
            let instances = instances(first..first + NAMES_A_PACKET);
            // Half of the names are of invented hosts, half of a true one.
            let host = match first % 2 {
                0 => format!("flood{first}"),
                _ => "known".to_string(),
            };
            let packet = gauges(&host, &instances, time, 10, 1.0);
            let sender = &senders[first as usize % senders.len()];
            sender.send(&packet).expect("sent");
            // Datagrams beyond the queue would be dropped, true ones as well.
            while waiting_bytes(port) > WAITING_MAX {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// A true host sends its series once.
fn send(hub: &Hub, host: &str, time: u64) {
    let socket = sender("127.0.0.1", hub.port);
    for first in (0..SERIES).step_by(NAMES_A_PACKET as usize) {
        let of_host: Vec<String> = (first..first + NAMES_A_PACKET)
            .map(|n| format!("s{n}"))
            .collect();
        socket
            .send(&gauges(host, &of_host, time, 10, 1.0))
            .expect("sent");
    }
}

/// The sum of a count over all senders whose address begins so.
fn counted(hub: &Hub, address: &str, count: &str) -> u64 {
    let answer = get(&hub.address, "/kymo/v1/hosts", "");
    let senders = answer["sockets"][0]["senders"].as_array().expect("senders");
    let picked = senders.iter().filter(|sender| {
        let shown = sender["address"].as_str();
        shown.is_some_and(|shown| shown.starts_with(address))
    });
    picked
        .map(|sender| sender[count].as_u64().expect("a count"))
        .sum()
}

/// A local user sent 200,000 invented names: no new host was accepted for as long as the keeper lived, and after a restart
/// not even known ones were. `make soak` sends millions of names.
#[test]
fn names_that_come_once_cost_nothing_and_keep_nobody_out() {
    let names = effort(250_000);
    let hub = Hub::start_wary(Scratch::new("once"), CONFIG);
    let keeper = hub.keeper();
    let time = now() - 10_000_000;
    for round in 0..2 {
        send(&hub, "known", time + 10 * round);
    }
    let mut wanted = 2 * SERIES;
    let stored = |hub: &Hub, wanted: u64| {
        eventually(&format!("{wanted} values"), || {
            (counted(hub, "127.0.0.1", "values") == wanted).then_some(())
        });
    };
    stored(&hub, wanted);
    let (before, folder) = (memory(keeper), hub.dir.join("store"));
    let (over, mut rounds, mut hosts) = (AtomicBool::new(false), 0, 0);
    thread::scope(|scope| {
        let (over, port) = (&over, hub.port);
        let flooding = scope.spawn(move || flood(port, names, &[now() - 1000], over));
        while !flooding.is_finished() {
            // A known host goes on, and new hosts arrive.
            rounds += 1;
            send(&hub, "known", time + 10 + 10 * rounds);
            wanted += SERIES;
            if hosts < NEW_HOSTS {
                hosts += 1;
                send(&hub, &format!("new{hosts}"), time);
                send(&hub, &format!("new{hosts}"), time + 10);
                wanted += 2 * SERIES;
            }
            stored(&hub, wanted);
        }
    });
    let (grown, bytes) = (memory(keeper).saturating_sub(before), files_bytes(&folder));
    eprintln!("{names} names: {grown} bytes of memory, {bytes} of the store, {hosts} new hosts");
    assert_eq!(hub.names().len() as u64, (1 + hosts) * SERIES);
    assert!(grown < MEMORY_BYTES, "{grown} bytes");
    assert!(bytes < STORE_BYTES, "{bytes} bytes");
    assert_eq!(counted(&hub, "127.0.0.1", "refused"), 0);
    let mut hub = hub;
    hub.is_unharmed(keeper);
    hub.end();
    let told = hub.reported("values of new names that were not repeated");
    assert_eq!(told, names, "{:#?}", hub.served.said);

    // Under the same flood the next keeper knows all known hosts.
    let hub = Hub::start_wary(hub.scratch, CONFIG);
    thread::scope(|scope| {
        let (over, port) = (&over, hub.port);
        scope.spawn(move || flood(port, names / 10, &[now() - 1000], over));
        send(&hub, "known", time + 1_000_000);
        stored(&hub, SERIES);
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(counted(&hub, "127.0.0.1", "new"), 0);
}

/// A flooder that repeats invented names uses up its own budget. Users who sign have their own budget, enough for a site
/// of 290 hosts at once.
#[test]
fn a_flooder_that_repeats_names_uses_up_its_own_budget() {
    const AT_ONCE: u64 = 25_000;
    let mut hub = Hub::start_wary(Scratch::new("repeated"), CONFIG);
    let (names, time) = (30_000, now() - 1000);
    flood(hub.port, names, &[time, time + 10], &AtomicBool::new(false));
    let made = eventually("an end of the new names", || {
        let new = counted(&hub, "127.0.0", "new");
        let refused = counted(&hub, "127.0.0", "refused");
        (new + refused == names).then_some(new)
    });
    // The budget grows a little in the meantime.
    assert!((AT_ONCE..AT_ONCE + 500).contains(&made), "{made} series");
    let site = 290 * 70;
    let socket = sender("127.0.0.9", hub.port);
    for host in 0..290 {
        for first in [0, 25, 50] {
            let of_host = instances(first..(first + NAMES_A_PACKET).min(70));
            let mut packet = Vec::new();
            let plain = gauges(&format!("site{host}"), &of_host, time, 10, 1.0);
            sign(&mut packet, b"user0", b"foo", &plain);
            socket.send(&packet).expect("sent");
            while waiting_bytes(hub.port) > WAITING_MAX {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
    eventually("all of a site", || {
        (counted(&hub, "127.0.0.9", "values") == site).then_some(())
    });
    assert_eq!(counted(&hub, "127.0.0.9", "new"), site);
    hub.end();
    let line = hub.says("values of series that may not be made");
    let words = "this machine has brought as many new series as it may";
    assert!(line.contains(words), "{line}");
}

/// One datagram 299 s ahead made all true values late for five minutes.
#[test]
fn a_plain_datagram_moves_a_clock_two_intervals_at_most() {
    let hub = Hub::start_wary(Scratch::new("ahead"), CONFIG);
    let [own, other] = ["127.0.0.1", "127.0.0.2"].map(|address| sender(address, hub.port));
    let begun = now() - 100;
    for n in 0..2 {
        own.send(&gauge("web", begun + 10 * n, 1.0)).expect("sent");
    }
    hub.ends_at(&name("web"), begun + 10);
    // Datagrams in the name of the host, with another interval, and with a new name.
    let ahead = gauges("web", &["x".into()], now() + 299, 3600, 9.0);
    own.send(&gauge("web", now() + 290, 9.0)).expect("sent");
    own.send(&ahead).expect("sent");
    other.send(&gauge("later", now() + 290, 9.0)).expect("sent");
    eventually("values from the future", || {
        (counted(&hub, "127.0.0", "future") == 3).then_some(())
    });
    for n in 2..10 {
        own.send(&gauge("web", begun + 10 * n, 1.0)).expect("sent");
    }
    hub.ends_at(&name("web"), begun + 90);
    assert_eq!(counted(&hub, "127.0.0", "late"), 0);
    // A sender that signs may have a clock this far ahead.
    let (mut packet, time) = (Vec::new(), now() + 250);
    sign(&mut packet, b"user0", b"foo", &gauge("signed", time, 1.0));
    own.send(&packet).expect("sent");
    hub.ends_at(&name("signed"), time);
}
