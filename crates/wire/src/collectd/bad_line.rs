//! Bad lines of a configuration file. Its other lines still count.

use std::fmt;

/// A bad line and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Number of the line, from 1 on.
    pub line: usize,
    /// Fault of the line, for a message.
    pub why: &'static str,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

/// The lines of a text with their numbers from 1 on, without `\n` and `\r`.
pub(super) fn numbered_lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = text.split(|&byte| byte == b'\n');
    lines.enumerate().map(|(at, line)| {
        let mut line = line;
        while let Some(shorter) = line.strip_suffix(b"\r") {
            line = shorter;
        }
        (at + 1, line)
    })
}

/// True for the blanks of C's `isspace`.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0b' | b'\x0c' | b'\r')
}
