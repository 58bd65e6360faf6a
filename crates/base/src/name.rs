//! Names from outside, made safe to show.

use std::borrow::Cow;
use std::fmt;

/// A name as bytes from the kernel or the wire, shown with every control
/// character, escape sequence and invalid UTF-8 byte spelled out as `\xNN`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DisplayName<'a>(pub &'a [u8]);

impl<'a> DisplayName<'a> {
    /// The safe text; borrowed when nothing had to be escaped.
    pub fn text(&self) -> Cow<'a, str> {
        match std::str::from_utf8(self.0) {
            Ok(text) if !text.chars().any(is_unsafe) => Cow::Borrowed(text),
            _ => Cow::Owned(self.to_string()),
        }
    }
}

/// Control characters, and the marks that reorder or hide text on a terminal.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

impl fmt::Display for DisplayName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if is_unsafe(c) {
                    let mut utf8 = [0; 4];
                    for byte in c.encode_utf8(&mut utf8).bytes() {
                        write!(f, "\\x{byte:02x}")?;
                    }
                } else {
                    write!(f, "{c}")?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_a_terminal_raw() {
        for (name, shown) in [
            (&b"kworker/0:1"[..], "kworker/0:1"),
            (b"\x1b]52;c;AA\x07", "\\x1b]52;c;AA\\x07"),
            (b"a\nb\tc", "a\\x0ab\\x09c"),
            (b"\xff\xfe", "\\xff\\xfe"),
            ("caf\u{e9}".as_bytes(), "caf\u{e9}"),
            ("\u{202e}txt".as_bytes(), "\\xe2\\x80\\xaetxt"),
            ("\u{9b}31m".as_bytes(), "\\xc2\\x9b31m"),
        ] {
            assert_eq!(DisplayName(name).text(), shown);
        }
    }
}
