//! Error messages of commands: bytes, because they contain file names, printed as rrdtool prints them.

use std::io::{self, Write};

/// Bytes of an error that rrdtool prints.
const LEN_MAX: usize = 4095;

/// An error's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message(pub Vec<u8>);

impl Message {
    /// Joins the parts of a text.
    pub(super) fn of(parts: &[&[u8]]) -> Message {
        Message(parts.concat())
    }

    /// `<verb> '<name>': <cause>`, rrdtool's usual form.
    pub(super) fn about(verb: &str, name: &[u8], error: &io::Error) -> Message {
        let cause = strerror(error);
        Message::of(&[verb.as_bytes(), b" '", name, b"': ", cause.as_bytes()])
    }

    /// Prints the message among a pipe's answers. If the reader is gone, a flush notices it.
    pub(super) fn print(&self, out: &mut impl Write) {
        let _ = out.write_all(&self.line());
    }

    /// Prints the message on stderr.
    pub(super) fn print_error(&self) {
        talk::put(&self.line());
    }

    /// The line `ERROR: <text>`.
    fn line(&self) -> Vec<u8> {
        let text = &self.0[..self.0.len().min(LEN_MAX)];
        [b"ERROR: ", text, b"\n"].concat()
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Message {
        Message(text.into())
    }
}

impl From<String> for Message {
    fn from(text: String) -> Message {
        Message(text.into())
    }
}

impl From<kymo_rrd::Error> for Message {
    fn from(error: kymo_rrd::Error) -> Message {
        Message(error.text.into())
    }
}

use kymo_base::errno::strerror;
use kymo_sys::talk;
