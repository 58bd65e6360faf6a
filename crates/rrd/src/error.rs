//! Errors in rrdtool's words, which clients look for.

use std::fmt;

/// Kinds of errors that callers distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The stamp of an update is not newer than the last one; `--skip-past-updates` ignores this error.
    Past,
    /// A season was not smoothed, as its archive has a wrong dependency. The update is done nevertheless.
    NotSmoothed,
    /// The request exceeds the caller's limit.
    Large,
    /// Any other error.
    Other,
}

/// An error with rrdtool's text, without a file name in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of the error.
    pub kind: Kind,
    /// The text of `rrd_get_error()`. It contains untrusted names: show it through `DisplayName`.
    pub text: String,
}

impl Error {
    /// An error of the kind [`Kind::Other`].
    pub fn new(text: impl Into<String>) -> Error {
        Error {
            kind: Kind::Other,
            text: text.into(),
        }
    }

    /// The error of a write to rows that are open for reading.
    pub fn read_only() -> Error {
        Error::new("the file was opened for reading")
    }

    /// The error of a stamp that is not newer than the last one.
    pub fn past(text: impl Into<String>) -> Error {
        Error {
            kind: Kind::Past,
            text: text.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
