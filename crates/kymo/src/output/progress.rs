//! A line on the terminal that says how far a long command is. Elsewhere nothing is said.

use std::time::{Duration, Instant};

use kymo_sys::{machine, talk};

/// Between two lines.
const EVERY: Duration = Duration::from_millis(100);

/// The line.
pub(crate) struct Progress {
    on: bool,
    shown: Option<Instant>,
}

impl Progress {
    /// One on stderr, if that is a terminal.
    pub(crate) fn new() -> Progress {
        Progress {
            on: machine::stderr_is_terminal(),
            shown: None,
        }
    }

    /// Shows what `text` says in the place of what was shown, not too often.
    pub(crate) fn show(&mut self, text: impl FnOnce() -> String) {
        let due = self.shown.is_none_or(|shown| shown.elapsed() >= EVERY);
        if self.on && due {
            self.shown = Some(Instant::now());
            talk::put(format!("\r\x1b[Kkymo: {}", text()).as_bytes());
        }
    }

    /// Takes the line away, before something else is said.
    pub(crate) fn clear(&mut self) {
        if self.on && self.shown.take().is_some() {
            talk::put(b"\r\x1b[K");
        }
    }
}
