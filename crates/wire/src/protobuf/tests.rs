//! The wire format, byte by byte.

use proptest::prelude::*;

use super::*;

fn all(message: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    MessageFields::of(message).collect::<Result<_, _>>().ok()
}

#[test]
fn fields_are_read() {
    use Wire::{Bytes, Fixed64, Other, Varint};
    type Read = Option<&'static [(u64, Wire<'static>)]>;
    let table: &[(&[u8], Read)] = &[
        (b"", Some(&[])),
        (b"\x08\x96\x01", Some(&[(1, Varint(150))])),
        // A number may be longer than it has to be.
        (b"\x88\x80\x00\x81\x00", Some(&[(1, Varint(1))])),
        (b"\x12\x02hi", Some(&[(2, Bytes(b"hi"))])),
        (
            b"\x12\x00\x12\x01a",
            Some(&[(2, Bytes(b"")), (2, Bytes(b"a"))]),
        ),
        (b"\x09\x01\0\0\0\0\0\0\0", Some(&[(1, Fixed64(1))])),
        (b"\x0d\x01\0\0\0", Some(&[(1, Other)])),
        // A group with all kinds in it, and a group in the group.
        (
            b"\x0b\x08\x01\x11\0\0\0\0\0\0\0\0\x12\x01a\x1d\0\0\0\0\x23\x24\x0c\x08\x07",
            Some(&[(1, Other), (1, Varint(7))]),
        ),
        (b"\x0b\x14", None),
        (b"\x0c", None),
        (b"\x0e", None),
        (b"\x0f", None),
        (b"\x00\x01", None),
        (b"\x08", None),
        (b"\x12\x03hi", None),
        (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", None),
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", None),
        (b"\x09\0\0\0\0\0\0\0", None),
        (b"\x0d\0\0\0", None),
        // 2^29 is no field's number.
        (b"\x80\x80\x80\x80\x10\x01", None),
    ];
    for (bytes, expected) in table {
        assert_eq!(all(bytes).as_deref(), *expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn groups_in_groups_have_a_limit() {
    for (depth, read) in [(GROUPS_MAX, true), (GROUPS_MAX + 1, false)] {
        let message = ["\x0b".repeat(depth), "\x0c".repeat(depth)].concat();
        assert_eq!(all(message.as_bytes()).is_some(), read, "{depth}");
    }
}

#[test]
fn lists_are_packed_or_not() {
    let fixed = |wire| {
        let numbers = Numbers::of_fixed64(wire)?;
        numbers.collect::<Result<Vec<u64>, _>>().ok()
    };
    assert_eq!(fixed(Wire::Fixed64(5)), Some(vec![5]));
    assert_eq!(
        fixed(Wire::Bytes(b"\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0")),
        Some(vec![5, 6])
    );
    assert_eq!(fixed(Wire::Bytes(b"\x05\0\0\0\0\0\0\0\x06")), None);
    assert_eq!(fixed(Wire::Varint(5)), None);
}

proptest! {
    #[test]
    fn what_is_written_is_read(number in 1u64..FIELD_MAX, value: u64, bytes: Vec<u8>, double: f64) {
        let mut out = Vec::new();
        put_number(&mut out, number, value);
        put_bytes(&mut out, number, &bytes);
        put_double(&mut out, number, double);
        put_fixed64(&mut out, number, value);
        put_message(&mut out, number, |out| out.extend_from_slice(&bytes));
        let expected = [
            Wire::Varint(value),
            Wire::Bytes(&bytes),
            Wire::Fixed64(double.to_bits()),
            Wire::Fixed64(value),
            Wire::Bytes(&bytes),
        ];
        prop_assert_eq!(all(&out), Some(expected.map(|wire| (number, wire)).to_vec()));
    }

    #[test]
    fn any_bytes_end(bytes: Vec<u8>) {
        prop_assert!(MessageFields::of(&bytes).count() <= bytes.len());
        prop_assert!(Numbers::Packed(&bytes).count() <= bytes.len());
    }
}
