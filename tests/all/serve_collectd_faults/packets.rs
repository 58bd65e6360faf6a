//! Packets in collectd's format, and senders with any address of loopback.

use std::net::UdpSocket;

use kymo_wire::collectd::{Cdtime, Encoder, Identifier, PACKET_DEFAULT, Pushed, Value, ValueList};

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    let since = std::time::UNIX_EPOCH.elapsed();
    since.expect("a clock").as_secs()
}

/// A packet of gauges of one host's plugin `p`, one for each instance.
pub(super) fn gauges(
    host: &str,
    instances: &[String],
    time: u64,
    interval: u64,
    value: f64,
) -> Vec<u8> {
    let mut encoder = Encoder::new(PACKET_DEFAULT);
    for instance in instances {
        let list = ValueList {
            identifier: Identifier {
                host: host.as_bytes(),
                plugin: b"p",
                plugin_instance: b"",
                type_name: b"gauge",
                type_instance: instance.as_bytes(),
            },
            time: Cdtime::from_seconds(time),
            interval: Cdtime::from_seconds(interval),
            values: &[Value::Gauge(value)],
        };
        assert_eq!(encoder.push(&list), Pushed::Added, "{instance}");
    }
    encoder.payload().to_vec()
}

/// A packet of the gauge `x` with an interval of 10 s.
pub(super) fn gauge(host: &str, time: u64, value: f64) -> Vec<u8> {
    gauges(host, &["x".into()], time, 10, value)
}

/// A packet of the gauge `x` with an interval of [`SLOW_S`]: its sender stays the writer of the series for two intervals
/// of silence, however slow the machine is.
pub(super) fn slow_gauge(host: &str, time: u64, value: f64) -> Vec<u8> {
    gauges(host, &["x".into()], time, SLOW_S, value)
}

/// Interval of a slow gauge, in seconds.
pub(super) const SLOW_S: u64 = 600;

/// The newest end of a slow gauge's row that is at least `ago_s` old.
pub(super) fn slow_time(ago_s: u64) -> u64 {
    let time = now() - ago_s;
    time - time % SLOW_S
}

/// The name of the series of the gauge `x`.
pub(super) fn name(host: &str) -> String {
    format!("{host}/p/gauge-x.rrd")
}

/// A socket at an address that sends to a port of loopback.
pub(super) fn sender(address: &str, port: u16) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).expect("a socket");
    socket.connect(("127.0.0.1", port)).expect("an address");
    socket
}
