//! Holes: places in the values of a series where others are lost to
//! damage. The arithmetic makes the time up to the next value unknown.
//!
//! In memory and in the journal a hole is a value that no client can
//! send: it has the stamp of the value before it instead of its own.

const MARK: u8 = b'?';

/// The hole after the value with this stamp.
pub(crate) fn text(after: f64) -> Vec<u8> {
    format!("{}{after:?}", char::from(MARK)).into_bytes()
}

/// The stamp of the value before the hole; `None` if this is no hole.
pub(crate) fn after(text: &[u8]) -> Option<f64> {
    let (&mark, stamp) = text.split_first()?;
    let stamp = std::str::from_utf8(stamp).ok().filter(|_| mark == MARK)?;
    stamp.parse().ok()
}

/// Returns true if this is a hole.
pub(crate) fn is_one(text: &[u8]) -> bool {
    after(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::value::stamp_of;

    #[test]
    fn a_hole_comes_back_and_is_no_value() {
        for stamp in [0.0, 1_000_000_010.000001, f64::NEG_INFINITY] {
            let text = text(stamp);
            assert_eq!((after(&text), stamp_of(&text)), (Some(stamp), None));
        }
        assert_eq!([after(b"1:2"), after(b""), after(b"?")], [None; 3]);
    }
}
