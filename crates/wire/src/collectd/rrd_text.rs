//! Values as collectd's rrdtool plugin passes them to rrdtool:
//! `time:value[:value]...`.

use kymo_base::printf::{put_general, put_signed, put_unsigned};

use super::cdtime::Cdtime;
use super::value::Value;

/// Significant digits of a gauge: `%.15g`.
const GAUGE_DIGITS: usize = 15;

/// Appends an argument of `rrdtool update`: whole seconds, and each value.
pub fn put_update(out: &mut Vec<u8>, time: Cdtime, values: impl Iterator<Item = Value>) {
    put_unsigned(out, time.seconds(), 0);
    for value in values {
        out.push(b':');
        put_value(out, value);
    }
}

/// Appends one value as `%.15g`, `%li` or `%lu`. NaN is `nan` or `-nan`.
pub fn put_value(out: &mut Vec<u8>, value: Value) {
    match value {
        Value::Gauge(number) => put_general(out, number, GAUGE_DIGITS),
        Value::Derive(number) => put_signed(out, number),
        Value::Counter(number) | Value::Absolute(number) => put_unsigned(out, number, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_text() {
        let values = [
            Value::Gauge(0.1),
            Value::Gauge(1e15),
            Value::Gauge(f64::NAN.copysign(1.0)),
            Value::Gauge(-0.5),
            Value::Derive(i64::MIN),
            Value::Counter(u64::MAX),
            Value::Absolute(0),
        ];
        let mut out = b"update ".to_vec();
        put_update(
            &mut out,
            Cdtime((1_700_000_000 << 30) + (1 << 29)),
            values.into_iter(),
        );
        assert_eq!(
            String::from_utf8_lossy(&out),
            "update 1700000001:0.1:1e+15:nan:-0.5:-9223372036854775808:18446744073709551615:0"
        );
    }
}
