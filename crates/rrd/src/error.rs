//! What goes wrong, in rrdtool's words: clients look for them.

use std::fmt;

/// What a caller may want to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The stamp of an update is not newer than the last one; `--skip-past-updates` passes over it.
    Past,
    /// A season was not smoothed, because its archive leans on a wrong one. The update is done all the same.
    NotSmoothed,
    /// More is asked for than the caller wants at once.
    Large,
    /// Anything else.
    Other,
}

/// An error with rrdtool's text, without a file name in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What kind.
    pub kind: Kind,
    /// What `rrd_get_error()` would say. From outside: show it through `DisplayName`.
    pub text: String,
}

impl Error {
    /// An error that is just a text.
    pub fn new(text: impl Into<String>) -> Error {
        Error {
            kind: Kind::Other,
            text: text.into(),
        }
    }

    /// Rows were to be written that can only be read.
    pub fn read_only() -> Error {
        Error::new("the file was opened for reading")
    }

    /// A stamp that is not newer than the last.
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
