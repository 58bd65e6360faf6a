//! Fields appended to a buffer. As protobuf 3 has it, the caller leaves out values that are 0 or empty.

use kymo_base::varint;

fn put_tag(out: &mut Vec<u8>, number: u64, wire_type: u64) {
    varint::put(out, number << 3 | wire_type);
}

/// Appends a varint. Negative numbers of 64 bits are cast by the caller and take ten bytes.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64, value: u64) {
    put_tag(out, number, 0);
    varint::put(out, value);
}

/// Appends the bits of a number of 64 bits.
pub(crate) fn put_fixed64(out: &mut Vec<u8>, number: u64, bits: u64) {
    put_tag(out, number, 1);
    out.extend_from_slice(&bits.to_le_bytes());
}

/// Appends a double.
pub(crate) fn put_double(out: &mut Vec<u8>, number: u64, value: f64) {
    put_fixed64(out, number, value.to_bits());
}

/// Appends a text, bytes or a message that is whole.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_tag(out, number, 2);
    varint::put_bytes(out, bytes);
}

/// Appends a message whose fields `fill` appends. A message shorter than 128 bytes is not moved.
pub(crate) fn put_message(out: &mut Vec<u8>, number: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    put_tag(out, number, 2);
    let length_at = out.len();
    out.push(0);
    let from = out.len();
    fill(out);
    let size = out.len() - from;
    match (u8::try_from(size), out.get_mut(length_at)) {
        (Ok(short @ 0..0x80), Some(length)) => *length = short,
        _ => {
            let mut length = Vec::with_capacity(10);
            varint::put_count(&mut length, size);
            out.splice(length_at..from, length);
        }
    }
}
