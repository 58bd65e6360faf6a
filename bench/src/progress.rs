//! Progress of a long row: one line of a terminal, which is
//! overwritten and then erased. Without a terminal on stderr, nothing.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(500);

pub(crate) struct Progress {
    what: String,
    terminal: bool,
    /// `None` while the line is empty.
    shown: Option<Instant>,
}

impl Progress {
    pub(crate) fn of(what: impl Into<String>) -> Progress {
        Progress {
            what: what.into(),
            terminal: std::io::stderr().is_terminal(),
            shown: None,
        }
    }

    pub(crate) fn at(&mut self, done: u64, of: u64) {
        if self.terminal && self.shown.is_none_or(|shown| shown.elapsed() > EVERY) {
            self.say(&format!("kymo-bench: {}, {done} of {of}", self.what));
            self.shown = Some(Instant::now());
        }
    }

    fn say(&self, text: &str) {
        let mut out = std::io::stderr().lock();
        // A terminal that is gone does not stop the measurement.
        let _ = write!(out, "\r\x1b[K{text}");
        let _ = out.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            self.say("");
        }
    }
}
