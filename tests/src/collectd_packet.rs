//! Datagrams in collectd's format.

use kymo_wire::collectd::{Cdtime, Encoder, Identifier, PACKET_DEFAULT, Pushed, Value, ValueList};

/// A datagram with one list of values.
pub fn datagram(list: &ValueList) -> Vec<u8> {
    let mut encoder = Encoder::new(PACKET_DEFAULT);
    assert_eq!(encoder.push(list), Pushed::Added);
    encoder.payload().to_vec()
}

/// A datagram with one gauge of the series `HOST/users/users`, which has an interval of 10 s.
pub fn users(host: &str, stamp_s: u64, value: f64) -> Vec<u8> {
    datagram(&ValueList {
        identifier: Identifier {
            host: host.as_bytes(),
            plugin: b"users",
            plugin_instance: b"",
            type_name: b"users",
            type_instance: b"",
        },
        time: Cdtime::from_seconds(stamp_s),
        interval: Cdtime::from_seconds(10),
        values: &[Value::Gauge(value)],
    })
}
