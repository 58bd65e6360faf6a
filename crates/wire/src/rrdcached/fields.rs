//! Lines of the protocol and their fields: parted by single blanks, so that two make an empty field; a
//! backslash takes the next character as it is. Nothing is allocated for a line without a backslash.

use memchr::{memchr, memchr2};

/// The first line of `input`, without its line end, and how many bytes it took.
pub fn take_line(input: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr(b'\n', input)?;
    let line = &input[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1))
}

/// The fields of one line, in order. A backslash at the very end spoils the field that it is in: it and what
/// follows are not there.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: Option<&'a [u8]>,
    /// Whether a blank parts fields; not where escapes have been resolved.
    blank: bool,
}

impl<'a> Fields<'a> {
    /// The fields of `line`; `scratch` is used where the line has a backslash.
    pub fn of(line: &'a [u8], scratch: &'a mut Vec<u8>) -> Fields<'a> {
        if memchr(b'\\', line).is_none() {
            return Fields {
                rest: Some(line),
                blank: true,
            };
        }
        let whole = resolve(line, scratch);
        Fields {
            rest: whole.then_some(scratch.as_slice()),
            blank: false,
        }
    }
}

/// Writes the fields to `out`, parted by NULs; `false`: there is not even one.
fn resolve(line: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    // Where the field that is being read began.
    let mut begin = 0;
    let mut bytes = line.iter();
    let mut cut = false;
    while let Some(&byte) = bytes.next() {
        match byte {
            b' ' | 0 => {
                out.push(0);
                begin = out.len();
                cut = false;
            }
            b'\\' => match bytes.next() {
                None => {
                    out.truncate(begin.saturating_sub(1));
                    return begin > 0;
                }
                // A text ends where its NUL is, escaped or not.
                Some(0) => cut = true,
                Some(&byte) if !cut => out.push(byte),
                Some(_) => {}
            },
            _ if !cut => out.push(byte),
            _ => {}
        }
    }
    true
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let end = match self.blank {
            true => memchr2(b' ', 0, rest),
            false => memchr(0, rest),
        };
        let Some(end) = end else {
            self.rest = None;
            return Some(rest);
        };
        self.rest = Some(&rest[end + 1..]);
        Some(&rest[..end])
    }
}

/// Appends `field` so that [`Fields`] gives it back: blanks and backslashes escaped.
pub fn put_field(out: &mut Vec<u8>, field: &[u8]) {
    for &byte in field {
        if matches!(byte, b' ' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &[u8]) -> Vec<Vec<u8>> {
        let mut scratch = b"left over".to_vec();
        Fields::of(line, &mut scratch).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn fields_are_stocks() {
        let table: &[(&[u8], &[&[u8]])] = &[
            (b"", &[b""]),
            (b"PING", &[b"PING"]),
            (b"a b", &[b"a", b"b"]),
            (b"a  b", &[b"a", b"", b"b"]),
            (b"a b ", &[b"a", b"b", b""]),
            (b"a\0b", &[b"a", b"b"]),
            (b"a\\ b c", &[b"a b", b"c"]),
            (b"a\\\\ b", &[b"a\\", b"b"]),
            (b"a\\bc", &[b"abc"]),
            (b"a\\\0b c", &[b"a", b"c"]),
            (b"a\\\0b\\c d", &[b"a", b"d"]),
            (b"\\", &[]),
            (b"a\\", &[]),
            (b"a b\\", &[b"a"]),
            (b"a  \\", &[b"a", b""]),
            (b"a\\ \\", &[]),
            (b"\\  \\ ", &[b" ", b" "]),
        ];
        for (line, expected) in table {
            assert_eq!(
                fields(line),
                *expected,
                "{:?}",
                line.escape_ascii().to_string()
            );
        }
    }

    #[test]
    fn lines_end_with_a_line_feed() {
        type Taken<'a> = Option<(&'a [u8], usize)>;
        let table: &[(&[u8], Taken)] = &[
            (b"", None),
            (b"PING", None),
            (b"PING\r", None),
            (b"PING\n", Some((b"PING", 5))),
            (b"PING\r\nPI", Some((b"PING", 6))),
            (b"\n\n", Some((b"", 1))),
            (b"\r\r\n", Some((b"\r", 3))),
        ];
        for (input, expected) in table {
            assert_eq!(take_line(input), *expected);
        }
    }

    #[test]
    fn a_field_comes_back() {
        for field in [&b"a b"[..], b"\\", b"", b"a\\ b c\\", b"x"] {
            let mut line = b"first ".to_vec();
            put_field(&mut line, field);
            line.extend_from_slice(b" last");
            assert_eq!(fields(&line), [b"first", field, b"last"]);
        }
    }
}
