//! Numbers in as few bytes as they need: seven bits a byte, lowest first (LEB128).

/// Appends `value`.
pub(crate) fn push(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed value; small ones of either sign are short.
pub(crate) fn push_signed(out: &mut Vec<u8>, value: i64) {
    push(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// How many bytes [`push`] appends.
pub(crate) fn len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Reads a value at `*at` and moves on.
pub(crate) fn take(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Reads a signed value at `*at` and moves on.
pub(crate) fn take_signed(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let folded = take(bytes, at)?;
    Some((folded >> 1) as i64 ^ -((folded & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for value in [0, 1, 127, 128, 300, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            push(&mut bytes, value);
            assert_eq!(bytes.len(), len(value));
            push_signed(&mut bytes, value as i64);
            let mut at = 0;
            assert_eq!(take(&bytes, &mut at), Some(value));
            assert_eq!(take_signed(&bytes, &mut at), Some(value as i64));
            assert_eq!(at, bytes.len());
            assert_eq!(take(&bytes, &mut at), None);
        }
        assert_eq!(take(&[0xff; 11], &mut 0), None);
    }
}
