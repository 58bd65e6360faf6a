//! Number and line scanners over byte slices; they allocate nothing.

/// Length of the run of bytes that `a` and `b` begin with alike.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let mut at = 0;
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)).take(NEAR_WORDS) {
        let diff = word(x) ^ word(y);
        if diff != 0 {
            return at + (diff.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    // Far from the last difference, many bytes are looked at at once.
    let (far, _) = a[at..].as_chunks::<64>();
    let far = far.iter().zip(b[at..].as_chunks::<64>().0);
    at += 64 * far.take_while(|(x, y)| x == y).count();
    for (x, y) in a[at..].chunks_exact(8).zip(b[at..].chunks_exact(8)) {
        let diff = word(x) ^ word(y);
        if diff != 0 {
            return at + (diff.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + a[at..]
        .iter()
        .zip(&b[at..])
        .take_while(|(x, y)| x == y)
        .count()
}

/// Words of eight bytes that are compared one by one, as differences are often near.
const NEAR_WORDS: usize = 8;

/// Behind the last newline; 0 where there is none.
#[inline]
pub fn last_line_end(text: &[u8]) -> usize {
    let has_newline = |bytes: &&[u8; 64]| bytes.contains(&b'\n');
    let (head, chunks) = text.as_rchunks::<64>();
    let without = chunks.iter().rev().take_while(|c| !has_newline(c)).count();
    let chunks = &chunks[..chunks.len() - without];
    let last = chunks.last().map_or(head, |chunk| &chunk[..]);
    let before = match chunks.len() {
        0 => 0,
        n => head.len() + (n - 1) * 64,
    };
    let behind = last.iter().rposition(|&b| b == b'\n').map(|at| at + 1);
    behind.map_or(0, |behind| before + behind)
}

#[inline]
fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Decimal digits of `value` (1 for 0).
#[inline]
pub fn digits(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |n| n as usize + 1)
}

/// Length of the run of ASCII digits at the front.
#[inline]
pub fn digit_run(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// The number a run of digits spells; `None` over u64 or with no or other bytes.
#[inline]
pub fn number(run: &[u8]) -> Option<u64> {
    if run.is_empty() || run.len() > 20 {
        return None;
    }
    let mut value = 0u64;
    for &byte in run {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = if run.len() < 20 {
            value * 10 + u64::from(digit)
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))?
        };
    }
    Some(value)
}

/// Lines of `text` without their newline; a last line without one counts.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|&b| b == b'\n')
}

/// Words of `line` parted by blanks and tabs.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b' ' || b == b'\t')
        .filter(|w| !w.is_empty())
}

/// Appends `value` in decimal, at least `width` bytes wide, filled with `fill`.
#[inline]
pub fn put_number(out: &mut Vec<u8>, value: u64, width: usize, fill: u8) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let len = digits.len() - at;
    out.resize(out.len() + width.saturating_sub(len), fill);
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn common_prefix_is_exact(a in proptest::collection::vec(any::<u8>(), 0..300), mut b: Vec<u8>, cut in 0usize..300) {
            let mut joined = a[..cut.min(a.len())].to_vec();
            joined.append(&mut b);
            let naive = a.iter().zip(&joined).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(common_prefix(&a, &joined), naive);
        }
        #[test]
        fn the_last_line_ends_where_it_does(lines in proptest::collection::vec("[ab]{0,90}", 0..5)) {
            let text = lines.join("\n").into_bytes();
            let naive = text.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
            prop_assert_eq!(last_line_end(&text), naive);
        }
        #[test]
        fn numbers_come_back(value: u64, width in 0usize..30) {
            let mut out = Vec::new();
            put_number(&mut out, value, width, b'0');
            prop_assert_eq!(out.len(), width.max(digits(value)));
            if out.len() <= 20 { prop_assert_eq!(number(&out), Some(value)); }
        }
    }

    #[test]
    fn numbers_at_the_edge() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        assert_eq!(number(b""), None);
        assert_eq!(number(b"12a"), None);
        assert_eq!(lines(b"a\nb\n").count(), 2);
    }
}
