//! Object identifiers, kept in their encoded form: requests copy the bytes, and a reply's names are compared with the
//! requested ones byte by byte.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

/// An object identifier: the content bytes of its BER, to which it dereferences. If made from arcs, it has the shortest
/// form; if copied from a packet, it may have any bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Oid(Box<[u8]>);

impl Oid {
    /// Encodes arcs. `None`: fewer than two arcs, or a beginning that BER cannot encode: the first arc is 0 to 2, and the
    /// first two fit into one byte (as in MRTG).
    pub fn of_arcs(all: &[u32]) -> Option<Oid> {
        let &[first, second, ref rest @ ..] = all else {
            return None;
        };
        let head = first.checked_mul(40)?.checked_add(second)?;
        let below = if first < 2 { second < 40 } else { first == 2 };
        if !below || head > 127 {
            return None;
        }
        let mut bytes = Vec::with_capacity(all.len() + 4);
        put_arc(&mut bytes, head);
        rest.iter().for_each(|&arc| put_arc(&mut bytes, arc));
        Some(Oid(bytes.into()))
    }

    /// Parses numbers separated by dots, with or without a leading dot. `None`: the text is not of this form, or
    /// [`Oid::of_arcs`] refuses it.
    pub fn parse(text: &str) -> Option<Oid> {
        let text = text.strip_prefix('.').unwrap_or(text);
        let arcs: Option<Vec<u32>> = text.split('.').map(|arc| arc.parse().ok()).collect();
        Oid::of_arcs(&arcs?)
    }

    /// Copies the content of a packet's identifier, unchecked.
    pub fn of_bytes(content: &[u8]) -> Oid {
        Oid(content.into())
    }

    /// The identifier extended by `arcs`.
    pub fn with(&self, arcs: &[u32]) -> Oid {
        let mut bytes = Vec::with_capacity(self.0.len() + 5 * arcs.len());
        bytes.extend_from_slice(&self.0);
        arcs.iter().for_each(|&arc| put_arc(&mut bytes, arc));
        Oid(bytes.into())
    }
}

impl Deref for Oid {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Oid {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Oid {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        put_oid_text(&mut text, &self.0);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Appends an arc in its shortest form.
fn put_arc(out: &mut Vec<u8>, arc: u32) {
    let bits = (32 - arc.leading_zeros()).max(1);
    for group in (0..bits.div_ceil(7)).rev() {
        let [.., low] = (arc >> (7 * group)).to_be_bytes();
        let more = if group > 0 { 0x80 } else { 0 };
        out.push(low & 0x7f | more);
    }
}

/// The arcs of an identifier's content; the first byte holds two of them. Arcs beyond 32 bits are `u32::MAX`; an incomplete
/// last arc is left out.
pub fn arcs(content: &[u8]) -> impl Iterator<Item = u32> {
    let (head, rest) = content.split_at(content.len().min(1));
    let first_two = head.iter().flat_map(|&byte| {
        let first = u32::from(byte / 40).min(2);
        [first, u32::from(byte) - 40 * first]
    });
    first_two.chain(Groups(rest))
}

/// Reads numbers of seven bits per byte.
struct Groups<'a>(&'a [u8]);

impl Iterator for Groups<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let mut arc = 0u32;
        for (at, &byte) in self.0.iter().enumerate() {
            let low = u32::from(byte & 0x7f);
            arc = match arc >> 25 {
                0 => arc << 7 | low,
                _ => u32::MAX,
            };
            if byte < 0x80 {
                self.0 = &self.0[at + 1..];
                return Some(arc);
            }
        }
        self.0 = &[];
        None
    }
}

/// Compares in the order of GETNEXT.
pub fn compare_oids(left: &[u8], right: &[u8]) -> Ordering {
    // Equal bytes need no decoding. A difference may lie within an arc, so the arcs are compared from the start.
    match left == right {
        true => Ordering::Equal,
        false => arcs(left).cmp(arcs(right)),
    }
}

/// Appends numbers separated by dots, without a leading dot.
pub fn put_oid_text(out: &mut Vec<u8>, content: &[u8]) {
    for (at, arc) in arcs(content).enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        put_decimal(out, u64::from(arc));
    }
}

/// Appends a number in decimal.
pub(super) fn put_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        let [.., digit] = (number % 10).to_be_bytes();
        digits[at] = b'0' + digit;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arcs_are_bytes_and_come_back() {
        for (text, bytes) in [
            ("1.3.6.1.2.1.1.3.0", &[43, 6, 1, 2, 1, 1, 3, 0][..]),
            ("1.3.127.128", &[43, 127, 0x81, 0]),
            ("1.3.16383.16384", &[43, 0xff, 0x7f, 0x81, 0x80, 0]),
            ("1.3.4294967295", &[43, 0x8f, 0xff, 0xff, 0xff, 0x7f]),
            ("0.39", &[39]),
            ("2.47", &[127]),
        ] {
            let oid = Oid::parse(text).unwrap();
            assert_eq!(&*oid, bytes, "{text}");
            assert_eq!(oid.to_string(), text);
            assert_eq!(Oid::parse(&format!(".{text}")), Some(oid));
        }
        for text in [
            "",
            ".",
            "1",
            "3.1",
            "1.40",
            "2.48",
            "1.3.4294967296",
            "1.3.",
            "1.3.x",
        ] {
            assert_eq!(Oid::parse(text), None, "{text}");
        }
        let table = Oid::parse("1.3.6.1").unwrap();
        assert_eq!(table.with(&[2, 300]).to_string(), "1.3.6.1.2.300");
    }

    #[test]
    fn hostile_arcs_end() {
        let of = |bytes: &[u8]| Oid::of_bytes(bytes).to_string();
        assert_eq!(of(&[]), "");
        assert_eq!(of(&[43, 0x80, 0x80]), "1.3");
        assert_eq!(of(&[43, 0x80, 0x80, 5]), "1.3.5");
        assert_eq!(
            of(&[43, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 5]),
            "1.3.4294967295"
        );
        assert_eq!(of(&[255]), "2.175");
    }

    #[test]
    fn order_is_that_of_arcs() {
        let mut sorted = [
            "1.3.6",
            "1.3.6.1",
            "1.3.6.127",
            "1.3.6.128",
            "1.3.6.16383",
            "1.3.6.16383.1",
            "1.3.6.16384",
            "1.3.6.2097151",
            "1.3.6.2097152",
            "1.3.6.4294967295",
            "1.3.7",
        ]
        .map(|text| Oid::parse(text).unwrap());
        let expected = sorted.clone();
        sorted.reverse();
        sorted.sort_by(|left, right| compare_oids(left, right));
        assert_eq!(sorted, expected);
    }
}
