//! Lines of the protocol and their fields. A single blank separates fields, so two blanks enclose an empty
//! field. A backslash escapes the next character. A line without a backslash needs no allocation.

use memchr::{memchr, memchr2};

/// The first line of `input` without its line end, and its size in bytes with the line end.
pub fn take_line(input: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr(b'\n', input)?;
    let line = &input[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1))
}

/// The fields of one line, in order. A backslash at the end of the line drops the field that contains it.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: Option<&'a [u8]>,
    /// True if a blank separates fields; false after [`resolve`], which separates them by NULs.
    blank: bool,
}

impl<'a> Fields<'a> {
    /// The fields of `line`; `scratch` receives the fields of a line with backslashes.
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

/// Writes the fields to `out`, separated by NULs. `false`: there is no field.
fn resolve(line: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    // Start of the current field in `out`.
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
                // A NUL ends a text, even if escaped.
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

/// Appends `field` with blanks and backslashes escaped, so that [`Fields`] reads it back.
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
