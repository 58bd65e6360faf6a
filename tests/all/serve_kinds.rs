//! Senders of collectd's protocol that change the kinds of their values, and types that types.db lacks.

use std::fs;
use std::net::UdpSocket;
use std::time::UNIX_EPOCH;

use kymo_tests::Scratch;
use kymo_tests::collectd_packet::datagram;
use kymo_tests::served::{ask, eventually, get, kill};
use kymo_wire::collectd::{Cdtime, Identifier, Value, ValueList};
use serde_json::{Value as Json, json};

use crate::serve_collectd::Hub;

const TRUSTED: &str = "trusted = [\"127.0.0.0/8\"]\n";

/// A sender of one series.
struct Sender<'a> {
    hub: &'a Hub,
    socket: UdpSocket,
    type_name: &'static str,
    /// The stamp of the last value, far in the past, so that there is room for many.
    time: u64,
    sent: u64,
}

impl Sender<'_> {
    fn of<'a>(hub: &'a Hub, type_name: &'static str) -> Sender<'a> {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(("127.0.0.1", hub.port)).expect("an address");
        Sender {
            hub,
            socket,
            type_name,
            time: UNIX_EPOCH.elapsed().expect("a clock").as_secs() / 10 * 10 - 100_000,
            sent: 0,
        }
    }

    fn name(&self) -> String {
        format!("web1/odd/{}.rrd", self.type_name)
    }

    /// Sends values, and waits until the keeper has counted them.
    fn send(&mut self, values: &[Value]) {
        self.time += 10;
        let sent = self.socket.send(&datagram(&ValueList {
            identifier: Identifier {
                host: b"web1",
                plugin: b"odd",
                plugin_instance: b"",
                type_name: self.type_name.as_bytes(),
                type_instance: b"",
            },
            time: Cdtime::from_seconds(self.time),
            interval: Cdtime::from_seconds(10),
            values,
        }));
        sent.expect("sent");
        self.sent += 1;
        let counted = || (count(self.hub, "datagrams") >= self.sent).then_some(());
        eventually(counted).expect("the datagram is counted");
    }

    fn last(&self) -> Option<u64> {
        let said = self.hub.client().text(&format!("LAST {}", self.name()));
        said.strip_prefix("0 ")?.parse().ok()
    }

    /// Sends values of this kind until one is stored.
    fn send_until_stored(&mut self, values: impl Fn(u64) -> Vec<Value>) {
        let stored = eventually(|| {
            self.send(&values(self.time));
            (self.last() == Some(self.time)).then_some(())
        });
        stored.expect("such a value is stored");
    }

    fn info(&self) -> String {
        self.hub.client().text(&format!("INFO {}", self.name()))
    }
}

fn hosts(hub: &Hub) -> Json {
    get(&hub.address, "/kymo/v1/hosts", "")
}

/// A count, summed over the hub's senders.
fn count(hub: &Hub, what: &str) -> u64 {
    let senders = &hosts(hub)["sockets"][0]["senders"];
    let each = senders.as_array().into_iter().flatten();
    each.filter_map(|sender| sender[what].as_u64()).sum()
}

/// Each value was either stored or counted as one of another kind.
fn all_are_counted(hub: &Hub, came: u64) {
    let (stored, mismatched) = (count(hub, "values"), count(hub, "mismatched"));
    assert_eq!(stored + mismatched, came, "{}", hosts(hub));
}

/// A sender whose counter became a DERIVE was refused until a restart;
/// after a restart its values were stored with the old definition.
#[test]
fn a_sender_whose_kinds_change_goes_on() {
    for (before, after, words) in [
        (
            Value::Counter as fn(u64) -> Value,
            derive as fn(u64) -> Value,
            "DERIVE",
        ),
        (gauge, Value::Counter, "COUNTER"),
        (derive, gauge, "GAUGE"),
    ] {
        for restarts in [false, true] {
            let story = format!("to {words}, restarts {restarts}");
            let hub = Hub::start("kinds", TRUSTED);
            let mut sender = Sender::of(&hub, "counter");
            for _ in 0..4 {
                let time = sender.time;
                sender.send(&[before(time)]);
            }
            assert_eq!(sender.last(), Some(sender.time), "{story}");
            if restarts {
                let keeper = hub.served.child("keeper").expect("a keeper");
                kill("-KILL", keeper);
                hub.served.next_child("keeper", keeper);
                sender.sent = 0;
                let back = || (sender.last()? > 0 && is_back(&hub)).then_some(());
                eventually(back).expect("the keeper is back");
            }
            let first = sender.time + 10;
            sender.send_until_stored(|time| vec![after(time)]);
            let info = sender.info();
            assert!(info.contains(words), "{story}: {info}");
            assert!(
                sender.time >= first + 20,
                "{story}: an accident is no change"
            );
            let known = if restarts { 0 } else { 4 };
            all_are_counted(&hub, known + (sender.time - first) / 10 + 1);
            // Earlier rows are still there.
            let fetched = sender.hub.client().text(&format!(
                "FETCH {} AVERAGE {} {}",
                sender.name(),
                first - 40,
                first
            ));
            assert!(has_rows(&fetched), "{story}: {fetched}");
        }
    }
}

/// True if the keeper answers again.
fn is_back(hub: &Hub) -> bool {
    let (status, _) = ask(&hub.address, "GET", "/kymo/v1/hosts", "", "").unwrap_or_default();
    status == 200
}

/// True if an answer to FETCH has a known row.
fn has_rows(fetched: &str) -> bool {
    let mut rows = fetched.lines().filter_map(|line| line.split_once(": "));
    rows.any(|(stamp, cells)| stamp.parse::<u64>().is_ok() && !cells.contains("nan"))
}

/// A type that types.db lacks was reported nowhere; after an administrator added it, series kept meaningless names.
#[test]
fn a_type_that_is_missing_is_said_and_mended() {
    let scratch = Scratch::new("types-db");
    let types = scratch.text("types.db");
    let lines = "users users:GAUGE:0:65535\n";
    fs::write(&types, lines).expect("types");
    let mut hub = Hub::start("types", &format!("types_db = [\"{types}\"]\n{TRUSTED}"));
    let mut sender = Sender::of(&hub, "own");
    let first = sender.time + 10;
    for _ in 0..4 {
        let time = sender.time;
        sender.send(&[gauge(time), gauge(7)]);
    }
    let info = sender.info();
    assert!(
        info.contains("ds[value0]") && info.contains("ds[value1]"),
        "{info}"
    );
    let odd = json!([{"type": "own", "series": "web1/odd/own.rrd", "known": 0, "values": 2}]);
    assert_eq!(hosts(&hub)["types"], odd);

    fs::write(&types, format!("{lines}own rx:GAUGE:0:U tx:GAUGE:0:U\n")).expect("types");
    kill("-HUP", hub.served.pid());
    let mended = eventually(|| {
        let time = sender.time;
        sender.send(&[gauge(time), gauge(7)]);
        sender.info().contains("ds[rx]").then_some(())
    });
    mended.expect("the names of types.db");
    let fetched = hub.client().text(&format!(
        "FETCH web1/odd/own.rrd AVERAGE {} {}",
        first,
        first + 20
    ));
    assert!(has_rows(&fetched), "{fetched}");
    assert_eq!(hosts(&hub)["types"], json!([]));
    all_are_counted(&hub, sender.sent * 2);

    // Fewer values than before: another definition, and a line with the series and its sender.
    let (stored, sent) = (sender.sent * 2, sender.sent);
    sender.send_until_stored(|time| vec![gauge(time)]);
    all_are_counted(&hub, stored + sender.sent - sent);
    assert!(count(&hub, "mismatched") >= 3, "{}", hosts(&hub));
    let odd = json!([{"type": "own", "series": "web1/odd/own.rrd", "known": 2, "values": 1}]);
    assert_eq!(hosts(&hub)["types"], odd);
    drop(sender);
    for said in [
        "types.db lacks the type own (web1/odd/own.rrd)",
        "read types.db again: 2 types",
        "values of another type than their series",
        "last: web1/odd/own.rrd, sent by 127.0.0.1",
    ] {
        hub.served.has_said(said);
    }
    // The keeper reads a changed types.db without a signal.
    let more = format!("{lines}own rx:GAUGE:0:U tx:GAUGE:0:U\nother value:GAUGE:0:U\n");
    fs::write(&types, more).expect("types");
    hub.served.has_said("read types.db again: 3 types");
}

fn gauge(value: u64) -> Value {
    Value::Gauge(value as f64)
}

fn derive(value: u64) -> Value {
    Value::Derive(value as i64)
}
