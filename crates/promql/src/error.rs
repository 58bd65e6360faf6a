//! Why a text is no expression.

use std::fmt;

use crate::span::Span;

/// An error of some bytes, before lines are counted.
#[derive(Debug)]
pub(crate) struct Fault {
    pub span: Span,
    pub message: String,
}

impl Fault {
    /// A fault of some bytes.
    pub(crate) fn at(span: Span, message: impl Into<String>) -> Fault {
        Fault {
            span,
            message: message.into(),
        }
    }
}

/// Why a text is no expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The bytes that are wrong.
    pub span: Span,
    /// Line of the first of them, from 1; 0 in an empty text.
    pub line: usize,
    /// Place of the byte in the line, from 1.
    pub column: usize,
    /// For people, without the place.
    pub message: String,
}

impl ParseError {
    /// A fault of a text.
    pub(crate) fn of(text: &str, fault: Fault) -> ParseError {
        let Fault { span, message } = fault;
        let before = text.as_bytes().get(..span.start).unwrap_or_default();
        let line_start = (before.iter().rposition(|&byte| byte == b'\n')).map_or(0, |at| at + 1);
        ParseError {
            span,
            line: before.iter().filter(|&&byte| byte == b'\n').count()
                + usize::from(!text.is_empty()),
            column: before.len() - line_start + 1,
            message,
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => out.write_str("unknown position")?,
            (line, column) => write!(out, "{line}:{column}")?,
        }
        write!(out, ": parse error: {}", self.message)
    }
}

impl std::error::Error for ParseError {}
