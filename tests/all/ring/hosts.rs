//! The hosts of the ring's tests: their collectds send values that a test knows beforehand.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use kymo_wire::collectd::{Cdtime, Encoder, Identifier, PACKET_DEFAULT, Pushed, Value, ValueList};

/// Hosts, and series of each.
const HOSTS: u32 = 290;
const SERIES: u32 = 7;
/// Seconds between two rounds.
const INTERVAL_S: u64 = 10;
/// Name of the metric in kymo: series with files go out as these.
pub(super) const METRIC: &str = "rrd";
/// Pause after a datagram, so that a busy machine's buffer loses none.
const PAUSE: Duration = Duration::from_millis(1);

/// Samples of each series, which has the path of its file, by their times in milliseconds.
pub(super) type Samples = BTreeMap<String, BTreeMap<i64, f64>>;

/// The hosts, and the samples that they have sent.
pub(super) struct Hosts {
    socket: UdpSocket,
    first_s: u64,
    rounds: u32,
    pub(super) sent: Samples,
}

impl Hosts {
    /// Hosts that send to an address; their first values are from a while ago.
    pub(super) fn new(address: &str, now_s: i64) -> Hosts {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(address).expect("an address");
        Hosts {
            socket,
            first_s: now_s.unsigned_abs() - 120,
            rounds: 0,
            sent: Samples::new(),
        }
    }

    /// Number of series.
    pub(super) fn series() -> usize {
        (HOSTS * SERIES) as usize
    }

    /// Each host sends a value of each of its series.
    pub(super) fn send_round(&mut self) {
        let stamp_s = self.first_s + u64::from(self.rounds) * INTERVAL_S;
        for host in 0..HOSTS {
            let mut packet = Encoder::new(PACKET_DEFAULT);
            for series in 0..SERIES {
                let value = f64::from(host * 1000 + series * 100 + self.rounds) + 0.25;
                let (name, number) = (format!("host-{host}"), series.to_string());
                let pushed = packet.push(&ValueList {
                    identifier: Identifier {
                        host: name.as_bytes(),
                        plugin: b"ring",
                        plugin_instance: b"",
                        type_name: b"gauge",
                        type_instance: number.as_bytes(),
                    },
                    time: Cdtime::from_seconds(stamp_s),
                    interval: Cdtime::from_seconds(INTERVAL_S),
                    values: &[Value::Gauge(value)],
                });
                assert_eq!(pushed, Pushed::Added);
                let sent = self
                    .sent
                    .entry(format!("{name}/ring/gauge-{number}"))
                    .or_default();
                sent.insert(stamp_s as i64 * 1000, value);
            }
            self.socket.send(packet.payload()).expect("a datagram");
            thread::sleep(PAUSE);
        }
        self.rounds += 1;
    }

    /// Time of the newest round in seconds, and the sum of its values.
    pub(super) fn newest(&self) -> (i64, f64) {
        let newest = self.sent.values().filter_map(BTreeMap::last_key_value);
        let (times, values): (Vec<i64>, Vec<f64>) =
            newest.map(|(time, value)| (*time, *value)).unzip();
        (
            times.iter().max().expect("a round") / 1000,
            values.iter().sum(),
        )
    }
}
