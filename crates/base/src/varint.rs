//! LEB128 integers and zigzag, appended to and taken from byte slices.

/// Appends `value`, seven bits a byte, low bits first.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends how many there are of something.
#[inline]
pub fn put_count(out: &mut Vec<u8>, count: usize) {
    put(out, count as u64);
}

/// Takes one integer off the front of `input`; `None` when it is cut short or over 64 bits.
#[inline]
pub fn take(input: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = input.split_first()?;
    if first < 0x80 {
        *input = rest;
        return Some(u64::from(first));
    }
    take_long(input)
}

fn take_long(input: &mut &[u8]) -> Option<u64> {
    // The numbers of most files end within eight bytes.
    let word = input.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let ends = word.map_or(0, |word| !word & 0x8080_8080_8080_8080);
    if let (Some(word), 1..) = (word, ends) {
        let len = ends.trailing_zeros() / 8 + 1;
        *input = input.get(usize::try_from(len).ok()?..)?;
        return Some(gathered(word & (u64::MAX >> (64 - 8 * len))));
    }
    let mut value = 0u64;
    for (i, &byte) in input.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if i == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * i);
        if byte < 0x80 {
            *input = &input[i + 1..];
            return Some(value);
        }
    }
    None
}

/// The low seven bits of each byte, side by side.
fn gathered(word: u64) -> u64 {
    let pairs = (word & 0x007f_007f_007f_007f) | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    (fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4
}

/// Takes a length and that many bytes.
pub fn take_bytes<'a>(input: &mut &'a [u8], max: usize) -> Option<&'a [u8]> {
    let len = usize::try_from(take(input)?).ok()?;
    if len > max || len > input.len() {
        return None;
    }
    let (bytes, rest) = input.split_at(len);
    *input = rest;
    Some(bytes)
}

/// Appends a length and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends a signed integer; small ones of either sign are short.
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// How many bytes [`put`] appends.
#[inline]
pub fn len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Takes an integer at `*at` and moves on.
pub fn take_at(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut rest = bytes.get(*at..)?;
    let value = take(&mut rest)?;
    *at = bytes.len() - rest.len();
    Some(value)
}

/// Takes a signed integer at `*at` and moves on.
pub fn take_signed_at(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let folded = take_at(bytes, at)?;
    Some((folded >> 1) as i64 ^ -((folded & 1) as i64))
}

/// Maps the difference of two u64 onto small unsigned numbers for small steps either way.
#[inline]
pub fn zigzag(now: u64, last: u64) -> u64 {
    let step = now.wrapping_sub(last) as i64;
    ((step << 1) ^ (step >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub fn unzigzag(code: u64, last: u64) -> u64 {
    last.wrapping_add((code >> 1) ^ (code & 1).wrapping_neg())
}

/// Takes a signed number off the front.
pub fn take_signed(input: &mut &[u8]) -> Option<i64> {
    take(input).map(|folded| unzigzag(folded, 0).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_come_back(value: u64, bits in 1..=64_u32, last: u64) {
            let value = value >> (64 - bits);
            let mut out = Vec::new();
            put(&mut out, value);
            // Bytes behind an integer do not change it.
            let followed = [&out[..], &[0xff; 8]].concat();
            let mut input = &followed[..];
            prop_assert_eq!(take(&mut input), Some(value));
            prop_assert_eq!(input, &[0xff; 8][..]);
            let mut input = &out[..];
            prop_assert_eq!(take(&mut input), Some(value));
            prop_assert!(input.is_empty());
            prop_assert_eq!(unzigzag(zigzag(value, last), last), value);
            prop_assert_eq!(take(&mut &out[..out.len() - 1]), None);
        }
    }

    #[test]
    fn over_long_integers_are_refused() {
        assert_eq!(take(&mut &[0xff; 10][..]), None);
        assert_eq!(take(&mut &[0x80; 11][..]), None);
        assert_eq!(take_bytes(&mut &[5, 1, 2][..], 10), None);
    }

    #[test]
    fn signed_and_by_position() {
        for value in [0, 1, 127, 128, 300, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(bytes.len(), len(value));
            put_signed(&mut bytes, value as i64);
            let mut at = 0;
            assert_eq!(take_at(&bytes, &mut at), Some(value));
            assert_eq!(take_signed_at(&bytes, &mut at), Some(value as i64));
            assert_eq!(at, bytes.len());
            assert_eq!(take_at(&bytes, &mut at), None);
        }
        assert_eq!(take_at(&[0xff; 11], &mut 0), None);
    }
}
