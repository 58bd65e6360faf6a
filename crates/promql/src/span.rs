//! Bytes of a text that a part of an expression was read from.

/// Bytes of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub start: usize,
    /// Behind the last.
    pub end: usize,
}

impl Span {
    /// From the start of one to the end of another.
    pub fn to(self, last: Span) -> Span {
        Span {
            start: self.start,
            end: last.end,
        }
    }
}
