//! Values that go on by collectd's protocol: to Debian's collectd, plain, signed and encrypted, and between two kymos.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::process::{Command, Stdio};

use kymo_tests::collectd_packet::{datagram, users};
use kymo_tests::machine::skipped;
use kymo_tests::rrd_client::Client;
use kymo_tests::served::eventually;
use kymo_tests::{Running, Scratch, free_port};
use kymo_wire::collectd::{Cdtime, Identifier, Value, ValueList};

use super::ForwardHub;
use crate::prometheus_api::now_s;

const COLLECTD: &str = "/usr/sbin/collectd";
const INTERVAL_S: u64 = 10;

/// A collectd that writes received values as text.
struct CollectdReceiver {
    scratch: Scratch,
    running: Option<Running>,
    port: u16,
    level: &'static str,
}

impl CollectdReceiver {
    fn start(level: &'static str) -> CollectdReceiver {
        let mut receiver = CollectdReceiver {
            scratch: Scratch::new(&format!("forwarded-to-collectd-{level}")),
            running: None,
            port: free_port(),
            level,
        };
        fs::write(receiver.scratch.path("users"), "hub: a secret\n").expect("a file of users");
        receiver.restart();
        receiver
    }

    fn restart(&mut self) {
        let (folder, level) = (self.scratch.text(""), self.level);
        let text = format!(
            "Hostname \"receiver\"\nFQDNLookup false\nInterval 10\nWriteThreads 1\nBaseDir \"{folder}\"\n\
             PIDFile \"{folder}/pid\"\nPluginDir \"/usr/lib/collectd\"\nTypesDB \"/usr/share/collectd/types.db\"\n\
             LoadPlugin csv\n<Plugin csv>\n  DataDir \"{folder}/csv\"\n  StoreRates false\n</Plugin>\n\
             LoadPlugin network\n<Plugin network>\n  <Listen \"127.0.0.1\" \"{}\">\n    SecurityLevel {level}\n\
             AuthFile \"{folder}/users\"\n  </Listen>\n</Plugin>\n",
            self.port
        );
        let config = self.scratch.path("collectd.conf");
        fs::write(&config, text).expect("a configuration");
        let mut command = Command::new(COLLECTD);
        let command = command.arg("-f").arg("-C").arg(&config);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.running = Some(Running(child.expect("collectd starts")));
    }

    fn stop(&mut self) {
        let mut running = self.running.take().expect("it runs");
        running.signal("-TERM");
        running.0.wait().expect("its end");
    }

    /// Values of a series by their seconds. The files have a day each.
    fn values(&self, series: &str) -> BTreeMap<u64, String> {
        let (folder, name) = series.rsplit_once('/').expect("a folder");
        let mut found = BTreeMap::new();
        let folder = self.scratch.path("csv").join(folder);
        for file in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !file.file_name().to_string_lossy().starts_with(name) {
                continue;
            }
            let text = fs::read_to_string(file.path()).unwrap_or_default();
            let pair = |line: &str| {
                let (time, values) = line.split_once(',')?;
                let seconds = time.split('.').next()?.parse().ok()?;
                Some((seconds, values.to_string()))
            };
            // A line that is being written has no end yet.
            found.extend(
                text.split_inclusive('\n')
                    .filter(|line| line.ends_with('\n'))
                    .filter_map(|line| pair(line.trim_end())),
            );
        }
        found
    }
}

/// Sends a gauge and two counters of a host for each of these steps before now.
fn send(port: u16, host: &str, now: u64, steps: std::ops::Range<u64>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for step in steps.rev() {
        let stamp = now - INTERVAL_S * step;
        let octets = datagram(&ValueList {
            identifier: Identifier {
                host: host.as_bytes(),
                plugin: b"interface",
                plugin_instance: b"eth0",
                type_name: b"if_octets",
                type_instance: b"",
            },
            time: Cdtime::from_seconds(stamp),
            interval: Cdtime::from_seconds(INTERVAL_S),
            values: &[
                Value::Derive((stamp * 1000).cast_signed()),
                Value::Derive(-3),
            ],
        });
        for packet in [users(host, stamp, stamp as f64 + 0.25), octets] {
            socket.send_to(&packet, ("127.0.0.1", port)).expect("sent");
        }
    }
}

/// The values that [`send`] sent, as collectd's plugin csv writes them.
fn sent(now: u64, steps: std::ops::Range<u64>) -> [BTreeMap<u64, String>; 2] {
    let stamps = steps.map(|step| now - INTERVAL_S * step);
    let gauges = stamps
        .clone()
        .map(|stamp| (stamp, format!("{stamp}.250000")));
    let octets = stamps.map(|stamp| (stamp, format!("{},-3", stamp * 1000)));
    [gauges.collect(), octets.collect()]
}

fn table(name: &str, address: &str, more: &str) -> String {
    format!("[[forward]]\nname = \"{name}\"\ncollectd = \"{address}\"\n{more}\n")
}

/// Debian's collectd has the same values, whatever protects the packets. Values of a time in which it was away arrive
/// when it is back: the kernel says that its port has no socket.
#[test]
fn a_real_collectd_has_the_values() {
    if !fs::exists(COLLECTD).unwrap_or(false) {
        return skipped("collectd is missing");
    }
    let mut receivers = ["None", "Sign", "Encrypt"].map(CollectdReceiver::start);
    let scratch = Scratch::new("forwarded-to-collectd");
    fs::write(scratch.path("password"), "a secret\n").expect("a file");
    let password = scratch.text("password");
    let tables = receivers.each_ref().map(|receiver| {
        let address = format!("127.0.0.1:{}", receiver.port);
        let level = receiver.level.to_lowercase();
        let secret =
            format!("security = \"{level}\"\nuser = \"hub\"\npassword_file = \"{password}\"");
        let more = if level == "none" { "" } else { &secret };
        let selected = format!("match = ['rrd{{path=~\"h1/.*\"}}']\n{more}");
        table(&level, &address, &selected)
    });
    let mut hub = ForwardHub::start_in(scratch, &tables.concat());
    let now = now_s().cast_unsigned();
    send(hub.collectd, "not-selected", now, 0..2);
    send(hub.collectd, "h1", now, 10..20);
    let has = |receiver: &CollectdReceiver, steps: std::ops::Range<u64>| {
        let [users, octets] = sent(now, steps);
        let same = || {
            let equal = receiver.values("h1/users/users") == users
                && receiver.values("h1/interface-eth0/if_octets") == octets;
            equal.then_some(())
        };
        eventually(same).unwrap_or_else(|| {
            panic!(
                "{}: {:?}, not {users:?}",
                receiver.level,
                receiver.values("h1/users/users")
            )
        });
    };
    receivers.iter().for_each(|receiver| has(receiver, 10..20));
    receivers[0].stop();
    send(hub.collectd, "h1", now, 0..10);
    receivers[1..]
        .iter()
        .for_each(|receiver| has(receiver, 0..20));
    hub.served
        .has_said("cannot forward to none: cannot send to 127.0.0.1");
    receivers[0].restart();
    has(&receivers[0], 0..20);
    assert!(receivers[0].values("not-selected/users/users").is_empty());
    let said = hub.served.said.join("\n");
    assert!(!said.contains("a secret"), "{said}");
}

/// An address of this machine that is not loopback.
fn own_address() -> Option<String> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // This sends nothing: the kernel looks up the way to an address for documents.
    socket.connect("198.51.100.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then(|| address.to_string())
}

/// Two kymos that forward to each other.
fn pair(name: &str, host: &str) -> [ForwardHub; 2] {
    let ports = [free_port(), free_port()];
    let hub = |own: usize| {
        let scratch = Scratch::new(&format!("{name}-{own}"));
        let to = format!("{host}:{}", ports[1 - own]);
        let own = format!("{host}:{}", ports[own]);
        ForwardHub::start_with(scratch, &own, &table("other", &to, ""))
    };
    [hub(0), hub(1)]
}

impl ForwardHub {
    /// Waits until a host's newest value has this stamp. LAST answers with the begin of the step that the stamp is in.
    fn has_last(&self, host: &str, stamp: u64) {
        let begin = stamp - stamp % INTERVAL_S;
        let socket = self.scratch.path("data/rrdcached.sock");
        let last = || {
            let mut client = Client::unix(&socket).ok()?;
            let text = client.text(&format!("LAST {host}/interface-eth0/if_octets.rrd"));
            (text.strip_prefix("0 ")?.parse() == Ok(begin)).then_some(())
        };
        eventually(last).unwrap_or_else(|| panic!("no {host}: {:#?}", self.served.said));
    }

    fn has_sent(&self, samples: f64) {
        let sent = || self.own("kymo_forward_samples_total", "other");
        let same = || (sent()? == samples).then_some(());
        eventually(same).unwrap_or_else(|| panic!("{:?} sent, not {samples}", sent()));
    }
}

/// On one machine by loopback, where addresses say nothing, a value comes back once and goes no further.
#[test]
fn two_kymos_that_forward_to_each_other_do_not_loop() {
    let [one, two] = pair("forwarded-loop", "127.0.0.1");
    let now = now_s().cast_unsigned();
    send(one.collectd, "h1", now, 5..10);
    two.has_last("h1", now - 5 * INTERVAL_S);
    one.has_sent(15.0);
    two.has_sent(15.0);
    // The second part arrives behind all that could have gone in a circle.
    send(two.collectd, "h2", now, 0..5);
    one.has_last("h2", now);
    two.has_sent(30.0);
    one.has_sent(30.0);
}

/// Values that came from a receiver do not go back to it.
#[test]
fn values_of_the_receiver_do_not_go_back() {
    let Some(host) = own_address() else {
        return skipped("this machine has loopback alone");
    };
    let [one, two] = pair("forwarded-echo", &host);
    let now = now_s().cast_unsigned();
    send(one.collectd, "h1", now, 5..10);
    two.has_last("h1", now - 5 * INTERVAL_S);
    send(two.collectd, "h2", now, 0..5);
    one.has_last("h2", now);
    one.has_sent(15.0);
    two.has_sent(15.0);
}
