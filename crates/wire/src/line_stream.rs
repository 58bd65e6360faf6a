//! Lines of a TCP stream or a datagram. Lines have a size limit, so that a peer that never ends its line costs no memory.

use memchr::memchr;

use crate::rrdcached::take_line;

/// Splits a buffer, which the caller fills, into lines. A line above the limit is skipped, even over several reads.
#[derive(Clone, Copy, Debug)]
pub struct LineStream {
    line_max: usize,
    skipping: bool,
}

/// A line exceeded the limit. The stream continues behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTooLong;

impl LineStream {
    /// A splitter for a new stream; lines have at most `line_max` bytes without their ends.
    pub fn new(line_max: usize) -> LineStream {
        LineStream {
            line_max,
            skipping: false,
        }
    }

    /// The next line, without `\n` or `\r\n`; `rest` becomes the bytes behind it. `None`: the caller keeps `rest`, at most
    /// `line_max + 1` bytes, and calls again with more bytes appended. Bytes left when the peer closes are a truncated line.
    pub fn take<'a>(&mut self, rest: &mut &'a [u8]) -> Option<Result<&'a [u8], LineTooLong>> {
        while let Some((line, size)) = take_line(rest) {
            *rest = &rest[size..];
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            return Some(match line.len() > self.line_max {
                true => Err(LineTooLong),
                false => Ok(line),
            });
        }
        if self.skipping {
            *rest = &[];
            return None;
        }
        // The extra byte may be the \r of the line's end.
        if rest.len() <= self.line_max.saturating_add(1) {
            return None;
        }
        self.skipping = true;
        *rest = &[];
        Some(Err(LineTooLong))
    }
}

/// The next line of a datagram, without any `\r` at its end; `rest` becomes the bytes behind it. The last line needs no
/// newline. `None`: no byte is left.
pub(crate) fn next_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    if rest.is_empty() {
        return None;
    }
    let end = memchr(b'\n', rest);
    let mut line = &rest[..end.unwrap_or(rest.len())];
    *rest = end.map_or(&[][..], |end| &rest[end + 1..]);
    while let Some(shorter) = line.strip_suffix(b"\r") {
        line = shorter;
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds `pieces` to a stream as a listener does; returns the lines and the bytes left over.
    fn lines_of(pieces: &[&[u8]], line_max: usize) -> (Vec<Option<Vec<u8>>>, Vec<u8>) {
        let mut stream = LineStream::new(line_max);
        let (mut lines, mut buffer) = (Vec::new(), Vec::new());
        for piece in pieces {
            buffer.extend_from_slice(piece);
            let mut rest = buffer.as_slice();
            while let Some(line) = stream.take(&mut rest) {
                lines.push(line.ok().map(<[u8]>::to_vec));
            }
            assert!(rest.len() <= line_max + 1, "{} bytes kept", rest.len());
            buffer = rest.to_vec();
        }
        (lines, buffer)
    }

    #[test]
    fn lines_have_a_limit() {
        type Lines = &'static [Option<&'static str>];
        let table: &[(&str, Lines, &str)] = &[
            ("", &[], ""),
            ("a", &[], "a"),
            ("a\nbc\r\n\nd", &[Some("a"), Some("bc"), Some("")], "d"),
            ("abcd\nabcde\nf\n", &[Some("abcd"), None, Some("f")], ""),
            ("abcd\r\nabcde\r\n", &[Some("abcd"), None], ""),
            ("abcd\r", &[], "abcd\r"),
            ("abcdef", &[None], ""),
            ("abcdefghijkl\nm\n", &[None, Some("m")], ""),
        ];
        for (text, expected, left) in table {
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            for pieces in [vec![text.as_bytes()], bytes] {
                let (lines, kept) = lines_of(&pieces, 4);
                let lines: Vec<_> = lines
                    .iter()
                    .map(|line| line.as_deref().map(|line| str::from_utf8(line).unwrap()))
                    .collect();
                assert_eq!(lines, *expected, "{text:?}");
                assert_eq!(kept, left.as_bytes(), "{text:?}");
            }
        }
    }

    #[test]
    fn a_datagram_need_not_end() {
        for (text, expected) in [
            ("", &[][..]),
            ("\n", &[""]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\r\r\n\nb\r", &["a", "", "b"]),
        ] {
            let mut rest = text.as_bytes();
            let lines: Vec<_> = std::iter::from_fn(|| next_line(&mut rest)).collect();
            let expected: Vec<_> = expected.iter().map(|line| line.as_bytes()).collect();
            assert_eq!(lines, expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            pieces in prop::collection::vec("[a\r\n]{0,9}", 0..9),
            line_max in 0..12usize,
        ) {
            let whole = pieces.concat();
            let pieces: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
            let (lines, _) = lines_of(&pieces, line_max);
            let (at_once, _) = lines_of(&[whole.as_bytes()], line_max);
            prop_assert_eq!(lines, at_once);
        }
    }
}
