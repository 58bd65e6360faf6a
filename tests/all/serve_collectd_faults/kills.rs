//! Processes are killed while values arrive by both protocols.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kymo_sys::effort::{effort, first_seed};
use kymo_tests::Scratch;
use kymo_tests::rrd_client::Client;
use kymo_tests::rrd_stream::Random;
use kymo_tests::served::{is_alive, kill};

use super::hub::{Hub, eventually, last};
use super::packets::{gauge, gauges, name, now, sender};

/// Datagrams that the keeper reads by one system call, and stores in one write of its journal.
const DATAGRAMS_OF_A_ROUND: u64 = 64;
/// With more kills in a round the guardian would pause for long.
const KILLS: u64 = 2;
const HOSTS: u64 = 8;
/// Series of a packet.
const SERIES: usize = 25;
/// A lost value leaves rows unknown: heartbeat and step are one second.
const CONFIG: &str = "[store]\nfiles = \"never\"\n\
     [collectd]\nheartbeat = 1\nsingle = true\nrows = 200000\ntimespans = [3600]\n";

/// Unknown rows of a series between its first and its last.
fn unknown_rows(client: &mut Client, name: &str, from: u64, thru: u64) -> BTreeSet<u64> {
    let said = client.text(&format!("FETCH {name} AVERAGE {from} {thru}"));
    assert!(said.contains("Success"), "{name}: {said:.200}");
    let rows = said.lines().filter_map(|line| {
        let (stamp, value) = line.split_once(": ")?;
        Some((stamp.parse::<u64>().ok()?, value.contains("nan")))
    });
    let rows: Vec<(u64, bool)> = rows
        .filter(|(stamp, _)| (from + 1..=thru).contains(stamp))
        .collect();
    assert_eq!(rows.len() as u64, thru - from, "{name}");
    let unknown = rows.into_iter().filter(|(_, unknown)| *unknown);
    unknown.map(|(stamp, _)| stamp).collect()
}

/// Sends one value after the other by rrdcached's protocol; returns acknowledged stamps.
fn acknowledged(socket: &Path, first: u64, end: &AtomicBool) -> (BTreeSet<u64>, u64) {
    let (mut stamps, mut stamp) = (BTreeSet::new(), first);
    while !end.load(Ordering::Relaxed) {
        // Without a keeper a new connection waits.
        let mut client = Client::unix(socket).expect("a client");
        while !end.load(Ordering::Relaxed) {
            stamp += 1;
            let line = format!("UPDATE a.rrd {stamp}:{stamp}");
            match client.ask(line.as_bytes()) {
                Ok(reply) if reply.show().starts_with("0 errors, enqueued 1") => {
                    stamps.insert(stamp);
                }
                _ => break,
            }
        }
    }
    (stamps, stamp)
}

/// Sends packets of all hosts for each simulated second; `stamp` is the last one.
fn send(port: u16, first: u64, end: &AtomicBool, stamp: &AtomicU64) {
    let socket = sender("127.0.0.1", port);
    let instances: Vec<String> = (0..SERIES).map(|n| n.to_string()).collect();
    let mut time = first;
    while !end.load(Ordering::Relaxed) {
        time += 1;
        for host in 0..HOSTS {
            let packet = gauges(&format!("h{host}"), &instances, time, 1, time as f64);
            socket.send(&packet).expect("sent");
        }
        stamp.store(time, Ordering::Relaxed);
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Number of missing packets: each leaves its own row and the next one unknown.
fn missing(unknown: &BTreeSet<u64>) -> u64 {
    let runs = unknown.iter().filter(|&&row| !unknown.contains(&(row + 1)));
    unknown.len() as u64 - runs.count() as u64
}

#[test]
fn killed_under_full_load_it_keeps_what_it_acknowledged_and_loses_a_round_of_datagrams_at_most() {
    let seed = first_seed(u64::from(std::process::id()));
    eprintln!("SEED={seed}");
    let mut random = Random(seed);
    for round in 0..effort(3) {
        let hub = Hub::start(&format!("killed-{round}"), CONFIG);
        let first = now() - 200_000;
        let created = hub.client().text(&format!(
            "CREATE a.rrd -s 1 -b {first} DS:x:GAUGE:1:U:U RRA:AVERAGE:0.1:1:200000"
        ));
        assert_eq!(created, "0 RRD created OK");
        let (end, stamp) = (AtomicBool::new(false), AtomicU64::new(first));
        let (socket, port) = (hub.dir.join("rrdcached.sock"), hub.port);
        let (stamps, tried) = std::thread::scope(|scope| {
            let client = scope.spawn(|| acknowledged(&socket, first, &end));
            let datagrams = scope.spawn(|| send(port, first, &end, &stamp));
            for _ in 0..KILLS {
                std::thread::sleep(Duration::from_millis(random.below(1500)));
                let keeper = hub.keeper();
                kill("-KILL", keeper);
                hub.served.next_child("keeper", keeper);
                // The new keeper stores values.
                let before = stamp.load(Ordering::Relaxed);
                let goes_on =
                    || last(&mut hub.client(), "h0/p/gauge-0.rrd").filter(|&row| row > before);
                eventually("values after a kill", goes_on);
            }
            end.store(true, Ordering::Relaxed);
            datagrams.join().expect("a sender");
            client.join().expect("a client")
        });
        check_acknowledged(&hub, first, tried, &stamps);
        let (lost, dropped) = (
            lost_datagrams(&hub, stamp.load(Ordering::Relaxed)),
            hub.dropped(),
        );
        eprintln!(
            "round {round}: {} values acknowledged, {lost} datagrams lost, {dropped} of them by the kernel",
            stamps.len()
        );
        assert!(
            lost <= KILLS * DATAGRAMS_OF_A_ROUND + dropped,
            "{lost} datagrams are missing, and the kernel dropped {dropped}"
        );
    }
}

/// A row is unknown only where its value, or the one before, was not acknowledged.
fn check_acknowledged(hub: &Hub, first: u64, tried: u64, stamps: &BTreeSet<u64>) {
    let mut client = hub.client();
    let newest = stamps.last().copied().expect("acknowledged values");
    let here = last(&mut client, "a.rrd").expect("a row");
    assert!((newest..=tried).contains(&here), "{newest} {here} {tried}");
    for row in unknown_rows(&mut client, "a.rrd", first + 1, newest) {
        let whole = stamps.contains(&row) && stamps.contains(&(row - 1));
        assert!(!whole, "{row} was acknowledged, and is not there");
    }
}

/// Lost datagrams of all hosts, once the last ones are stored.
fn lost_datagrams(hub: &Hub, thru: u64) -> u64 {
    let mut client = hub.client();
    let mut lost = 0;
    for host in 0..HOSTS {
        let name = |at: usize| format!("h{host}/p/gauge-{at}.rrd");
        for at in [0, SERIES - 1] {
            eventually("the last values", || {
                (last(&mut client, &name(at)) == Some(thru)).then_some(())
            });
        }
        let begin = begins(&mut client, &name(0), thru);
        let unknown = unknown_rows(&mut client, &name(0), begin, thru);
        lost += missing(&unknown);
        // All values of a packet are stored or lost together.
        let others = unknown_rows(&mut client, &name(SERIES - 1), begin, thru);
        assert_eq!(unknown, others, "h{host}");
    }
    lost
}

/// Stamp of a series' first known row.
fn begins(client: &mut Client, name: &str, thru: u64) -> u64 {
    let said = client.text(&format!("FETCH {name} AVERAGE {} {thru}", thru - 150_000));
    let known = said.lines().find_map(|line| {
        let (stamp, value) = line.split_once(": ")?;
        let stamp: u64 = stamp.parse().ok()?;
        (!value.contains("nan")).then_some(stamp)
    });
    known.expect("a row")
}

#[test]
fn each_process_that_is_killed_comes_back_and_values_go_on() {
    let hub = Hub::start("turns", "[store]\nfiles = \"never\"\n");
    let socket = sender("127.0.0.1", hub.port);
    let mut time = now() - 100_000;
    let mut goes_on = |hub: &Hub, when: &str| {
        let before = hub.last(&name("web")).unwrap_or(0);
        eventually(&format!("values {when}"), || {
            time += 10;
            socket.send(&gauge("web", time, 1.0)).expect("sent");
            hub.last(&name("web")).filter(|&row| row > before)
        });
    };
    goes_on(&hub, "before");
    for word in ["keeper", "hub", "record", "keeper"] {
        let before = hub.served.child(word).expect(word);
        let keeper = hub.keeper();
        kill("-KILL", before);
        goes_on(&hub, &format!("after a kill of the {word}"));
        hub.served.next_child(word, before);
        if word != "keeper" {
            assert_eq!(hub.keeper(), keeper, "it goes on without the {word}");
        }
        hub.shows_the_page(&format!("after a kill of the {word}"));
    }
    // Without the guardian the hub and the keeper end; the recorder goes on.
    let row = hub.last(&name("web")).expect("a row");
    let children = ["keeper", "hub", "record"].map(|word| hub.served.child(word).expect(word));
    kill("-KILL", hub.served.pid());
    for child in &children[..2] {
        eventually("the end of the others", || {
            (!is_alive(*child)).then_some(())
        });
    }
    let Hub {
        mut served,
        scratch,
        ..
    } = hub;
    served.guardian.0.wait().expect("its end");
    let hub = again(scratch);
    assert_eq!(hub.last(&name("web")), Some(row), "what was there is there");
    let socket = sender("127.0.0.1", hub.port);
    let later = now() - 1000;
    socket.send(&gauge("web", later, 1.0)).expect("sent");
    hub.ends_at(&name("web"), later);
    kill("-TERM", children[2]);
    eventually("the recorder's end", || {
        (!is_alive(children[2])).then_some(())
    });
}

fn again(scratch: Scratch) -> Hub {
    Hub::start_on(scratch, "[store]\nfiles = \"never\"\n")
}
