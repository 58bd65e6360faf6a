//! Tags, lengths and integers of BER. Lengths in a longer form than necessary are accepted; the indefinite form, which SNMP
//! forbids, is refused.

use super::malformed::Malformed;

/// Tags of SNMP, all of one byte.
pub(super) mod tag {
    pub(crate) const INTEGER: u8 = 0x02;
    pub(crate) const OCTET_STRING: u8 = 0x04;
    pub(crate) const NULL: u8 = 0x05;
    pub(crate) const OID: u8 = 0x06;
    pub(crate) const SEQUENCE: u8 = 0x30;
    pub(crate) const IP_ADDRESS: u8 = 0x40;
    pub(crate) const COUNTER32: u8 = 0x41;
    pub(crate) const GAUGE32: u8 = 0x42;
    pub(crate) const TIME_TICKS: u8 = 0x43;
    pub(crate) const OPAQUE: u8 = 0x44;
    pub(crate) const COUNTER64: u8 = 0x46;
    pub(crate) const UINTEGER32: u8 = 0x47;
    pub(crate) const NO_SUCH_OBJECT: u8 = 0x80;
    pub(crate) const NO_SUCH_INSTANCE: u8 = 0x81;
    pub(crate) const END_OF_MIB_VIEW: u8 = 0x82;
}

/// One element.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
}

/// The first element, and the bytes behind it.
#[inline]
pub(super) fn take(input: &[u8]) -> Result<(Element<'_>, &[u8]), Malformed> {
    let &[tag, first, ref rest @ ..] = input else {
        return Err(Malformed::Head);
    };
    let (length, rest) = match first {
        0..0x80 => (usize::from(first), rest),
        _ => long_length(first, rest)?,
    };
    let (content, rest) = rest.split_at_checked(length).ok_or(Malformed::Cut)?;
    Ok((Element { tag, content }, rest))
}

/// The content of the first element, whose tag must be `tag`, and the bytes behind it.
#[inline]
pub(super) fn expect(input: &[u8], tag: u8) -> Result<(&[u8], &[u8]), Malformed> {
    let (element, rest) = take(input)?;
    match element.tag == tag {
        true => Ok((element.content, rest)),
        false => Err(Malformed::Tag),
    }
}

/// As [`expect`], but no byte may be behind the element.
#[inline]
pub(super) fn expect_last(input: &[u8], tag: u8) -> Result<&[u8], Malformed> {
    match expect(input, tag)? {
        (content, []) => Ok(content),
        _ => Err(Malformed::Trailing),
    }
}

fn long_length(first: u8, rest: &[u8]) -> Result<(usize, &[u8]), Malformed> {
    let size = usize::from(first & 0x7f);
    if !(1..=4).contains(&size) {
        return Err(Malformed::Length);
    }
    let (digits, rest) = rest.split_at_checked(size).ok_or(Malformed::Head)?;
    let length = digits
        .iter()
        .fold(0u32, |length, &digit| length << 8 | u32::from(digit));
    let length = usize::try_from(length).map_err(|_| Malformed::Length)?;
    Ok((length, rest))
}

/// Decodes a signed integer. `None`: no byte, or out of the range of `i64`.
#[inline]
pub(super) fn signed(content: &[u8]) -> Option<i64> {
    let (&first, _) = content.split_first()?;
    let filling = if first < 0x80 { 0 } else { 0xff };
    let digits = match content.len() {
        0..=8 => content,
        size => {
            let (over, digits) = content.split_at(size - 8);
            let same_sign = digits[0] & 0x80 == filling & 0x80;
            let superfluous = same_sign && over.iter().all(|&byte| byte == filling);
            superfluous.then_some(digits)?
        }
    };
    let mut bytes = [filling; 8];
    bytes[8 - digits.len()..].copy_from_slice(digits);
    Some(i64::from_be_bytes(bytes))
}

/// Decodes an unsigned integer. As in MRTG's counters, a set first bit is part of the number, not a sign. `None`: no byte,
/// or out of the range of `u64`.
#[inline]
pub(super) fn unsigned(content: &[u8]) -> Option<u64> {
    let digits = match content.len() {
        0 => return None,
        1..=8 => content,
        size => {
            let (over, digits) = content.split_at(size - 8);
            over.iter().all(|&byte| byte == 0).then_some(digits)?
        }
    };
    let number = digits.iter();
    Some(number.fold(0, |number, &digit| number << 8 | u64::from(digit)))
}

/// Bytes of an encoded length.
#[inline]
pub(super) fn length_bytes(length: usize) -> usize {
    match length {
        0..0x80 => 1,
        0x80..0x100 => 2,
        0x100..0x1_0000 => 3,
        _ => 4,
    }
}

/// Bytes of an element with its tag and length, for a content of `content` bytes.
#[inline]
pub(super) fn element_bytes(content: usize) -> usize {
    1 + length_bytes(content) + content
}

/// Appends a tag and the shortest form of a length below 2^24.
#[inline]
pub(super) fn put_head(out: &mut Vec<u8>, tag: u8, length: usize) {
    let digits = length.to_be_bytes();
    let [.., high, middle, low] = digits;
    match length_bytes(length) {
        1 => out.extend_from_slice(&[tag, low]),
        2 => out.extend_from_slice(&[tag, 0x81, low]),
        3 => out.extend_from_slice(&[tag, 0x82, middle, low]),
        _ => {
            assert!(length < 1 << 24, "BUG: {length} bytes in a packet");
            out.extend_from_slice(&[tag, 0x83, high, middle, low]);
        }
    }
}

/// Appends an element.
pub(super) fn put(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    put_head(out, tag, content.len());
    out.extend_from_slice(content);
}

/// Appends a signed integer in its shortest form.
pub(super) fn put_signed(out: &mut Vec<u8>, tag: u8, number: i64) {
    let digits = number.to_be_bytes();
    put(out, tag, &digits[8 - signed_bytes(number)..]);
}

/// Bytes of a signed integer in its shortest form.
pub(super) fn signed_bytes(number: i64) -> usize {
    // The significant bits, and one for the sign.
    bytes_of(65 - (number ^ (number >> 63)).leading_zeros())
}

/// Appends an unsigned integer in its shortest form; a zero byte precedes a set first bit.
#[inline]
pub(super) fn put_unsigned(out: &mut Vec<u8>, tag: u8, number: u64) {
    let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
    let digits = [0, a, b, c, d, e, f, g, h];
    put(
        out,
        tag,
        &digits[9 - bytes_of(65 - number.leading_zeros())..],
    );
}

/// Bytes for up to 72 bits.
#[inline]
fn bytes_of(bits: u32) -> usize {
    let [.., bytes] = bits.div_ceil(8).to_be_bytes();
    usize::from(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_their_shortest_form() {
        for (number, bytes) in [
            (0, &[0][..]),
            (127, &[127]),
            (128, &[0, 128]),
            (-1, &[255]),
            (-128, &[128]),
            (-129, &[255, 127]),
            (i64::MAX, &[127, 255, 255, 255, 255, 255, 255, 255]),
            (i64::MIN, &[128, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            let mut out = Vec::new();
            put_signed(&mut out, tag::INTEGER, number);
            assert_eq!(&out[2..], bytes, "{number}");
            assert_eq!(signed(bytes), Some(number));
        }
        for (number, bytes) in [
            (0, &[0][..]),
            (127, &[127]),
            (255, &[0, 255]),
            (256, &[1, 0]),
            (u64::MAX, &[0, 255, 255, 255, 255, 255, 255, 255, 255]),
        ] {
            let mut out = Vec::new();
            put_unsigned(&mut out, tag::COUNTER64, number);
            assert_eq!(&out[2..], bytes, "{number}");
            assert_eq!(unsigned(bytes), Some(number));
        }
    }

    #[test]
    fn numbers_of_agents_that_count_bytes_otherwise() {
        // Counters of four bytes with the first bit set; as signed numbers they would be negative.
        assert_eq!(unsigned(&[0xff; 4]), Some(u64::from(u32::MAX)));
        assert_eq!(unsigned(&[0xff; 8]), Some(u64::MAX));
        assert_eq!(unsigned(&[0; 12]), Some(0));
        assert_eq!(unsigned(&[]), None);
        assert_eq!(unsigned(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(signed(&[]), None);
        assert_eq!(signed(&[0xff; 20]), Some(-1));
        assert_eq!(signed(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 5]), Some(5));
        assert_eq!(signed(&[0, 255, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(signed(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn lengths_of_every_form() {
        for (input, expected) in [
            (&[4, 0][..], Ok(0)),
            (&[4, 1, 9], Ok(1)),
            (&[4, 0x81, 1, 9], Ok(1)),
            (&[4, 0x82, 0, 1, 9], Ok(1)),
            (&[4, 0x83, 0, 0, 1, 9], Ok(1)),
            (&[4, 0x84, 0, 0, 0, 1, 9], Ok(1)),
            (&[4, 0x85, 0, 0, 0, 0, 1, 9], Err(Malformed::Length)),
            (&[4, 0x80, 9, 0, 0], Err(Malformed::Length)),
            (&[4, 0xff, 9], Err(Malformed::Length)),
            (&[4, 0x84, 255, 255, 255, 255, 9], Err(Malformed::Cut)),
            (&[4, 0x84, 0, 0, 0], Err(Malformed::Head)),
            (&[4, 2, 9], Err(Malformed::Cut)),
            (&[4], Err(Malformed::Head)),
            (&[], Err(Malformed::Head)),
        ] {
            let length = take(input).map(|(element, _)| element.content.len());
            assert_eq!(length, expected, "{input:?}");
        }
        for length in [0, 127, 128, 255, 256, 65_535, 65_536] {
            let (mut out, content) = (Vec::new(), vec![7; length]);
            put(&mut out, 4, &content);
            assert_eq!(out.len(), element_bytes(length));
            assert_eq!(expect_last(&out, 4), Ok(&content[..]));
        }
    }
}
