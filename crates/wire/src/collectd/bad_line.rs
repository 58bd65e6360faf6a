//! A line of a file that could not be used. The other lines count all the same.

use std::fmt;

/// Which line, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// From 1 on.
    pub line: usize,
    /// What is wrong with it.
    pub why: &'static str,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

/// The lines of a text with their numbers, without their ends.
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

/// What C's `isspace` takes.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0b' | b'\x0c' | b'\r')
}
