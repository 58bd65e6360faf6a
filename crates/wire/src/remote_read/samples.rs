//! An answer with all samples in one message.

use crate::protobuf::{put_bytes, put_double, put_message, put_number};

/// Appends the fields of sorted labels, which both forms of an answer have.
pub fn put_labels<'a>(out: &mut Vec<u8>, labels: impl IntoIterator<Item = (&'a str, &'a str)>) {
    for (name, value) in labels {
        put_message(out, 1, |out| {
            put_bytes(out, 1, name.as_bytes());
            put_bytes(out, 2, value.as_bytes());
        });
    }
}

/// Appends the field of a sample.
pub fn put_sample(out: &mut Vec<u8>, t_ms: i64, v: f64) {
    put_message(out, 2, |out| {
        // -0 is not the value that is left out.
        if v.to_bits() != 0 {
            put_double(out, 1, v);
        }
        if t_ms != 0 {
            put_number(out, 2, t_ms.cast_unsigned());
        }
    });
}

/// Appends a series to a result, of fields of its labels and of its samples.
pub fn put_series(out: &mut Vec<u8>, labels: &[u8], samples: &[u8]) {
    put_message(out, 1, |out| {
        out.extend_from_slice(labels);
        out.extend_from_slice(samples);
    });
}

/// Appends the result of the next query, whose series `fill` appends.
pub fn put_result<T>(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
    let mut filled = None;
    put_message(out, 1, |out| filled = Some(fill(out)));
    filled
}
