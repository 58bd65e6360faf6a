//! Commands of rrdcached's protocol.

use std::io::Write as _;

use kymo_wire::collectd::{ValueKind, put_value};
use kymo_wire::rrdcached::put_field;

use super::definition::Definition;
use crate::file_values::{FileSeries, value_of};

/// Numbers whose decimal form is short.
const PLAIN: std::ops::Range<f64> = 1e-5..1e15;

/// Appends an UPDATE with one value.
pub(super) fn put_update(out: &mut Vec<u8>, series: &FileSeries, t_ms: i64, cells: &[f64]) {
    out.extend_from_slice(b"UPDATE ");
    put_field(out, &series.name);
    let (seconds, ms) = (t_ms.div_euclid(1000), t_ms.rem_euclid(1000));
    // Writing to memory cannot fail.
    let _ = write!(out, " {seconds}");
    if ms > 0 {
        let _ = write!(out, ".{ms:03}");
    }
    for (&kind, &cell) in series.kinds.iter().zip(cells) {
        out.push(b':');
        put_cell(out, kind, cell);
    }
    out.push(b'\n');
}

/// Appends a CREATE that replaces no file. It begins before the first value.
pub(super) fn put_create(out: &mut Vec<u8>, name: &[u8], definition: &Definition, first_ms: i64) {
    out.extend_from_slice(b"CREATE ");
    put_field(out, name);
    let begin = first_ms.div_euclid(1000) - 1;
    let _ = write!(out, " -b {begin} -s {} -O", definition.step);
    for word in &definition.words {
        out.push(b' ');
        put_field(out, word.as_bytes());
    }
    out.push(b'\n');
}

/// Appends an INFO.
pub(super) fn put_info(out: &mut Vec<u8>, name: &[u8]) {
    out.extend_from_slice(b"INFO ");
    put_field(out, name);
    out.push(b'\n');
}

/// Appends a number as the kind of its column wants it.
fn put_cell(out: &mut Vec<u8>, kind: Option<ValueKind>, cell: f64) {
    let whole = kind.filter(|&kind| kind != ValueKind::Gauge);
    match whole.and_then(|kind| value_of(kind, cell)) {
        Some(value) => put_value(out, value),
        None if cell.is_nan() => out.push(b'U'),
        None if cell == 0.0 || PLAIN.contains(&cell.abs()) => {
            let _ = write!(out, "{cell}");
        }
        None => {
            let _ = write!(out, "{cell:e}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_lines() {
        let series = FileSeries {
            name: b"a b/c\\d.rrd".as_slice().into(),
            step_s: 10,
            kinds: [
                Some(ValueKind::Gauge),
                Some(ValueKind::Derive),
                Some(ValueKind::Counter),
                None,
            ]
            .into(),
        };
        for (t_ms, cells, expected) in [
            (
                1_700_000_000_000,
                [0.1, -3.0, 1e15, 1.5],
                "1700000000:0.1:-3:1000000000000000:1.5",
            ),
            (
                1_700_000_000_007,
                [f64::NAN, f64::NAN, -1.0, -1e300],
                "1700000000.007:U:U:-1:-1e300",
            ),
            (1000, [1e-300, 0.0, 0.0, f64::INFINITY], "1:1e-300:0:0:inf"),
        ] {
            let mut out = Vec::new();
            put_update(&mut out, &series, t_ms, &cells);
            let expected = format!("UPDATE a\\ b/c\\\\d.rrd {expected}\n");
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
        let definition = Definition {
            step: "10".into(),
            words: vec!["DS:v:GAUGE:20:0:U".into(), "RRA:LAST:0.5:1:2".into()],
        };
        let mut out = Vec::new();
        put_create(&mut out, b"a b.rrd", &definition, 1_700_000_000_500);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "CREATE a\\ b.rrd -b 1699999999 -s 10 -O DS:v:GAUGE:20:0:U RRA:LAST:0.5:1:2\n"
        );
    }
}
