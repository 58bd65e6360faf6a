//! A line on the terminal with the progress of a long command. Without a terminal there
//! is no such line.

use std::time::{Duration, Instant};

use kymo_sys::{machine, talk};

/// Shortest time between two lines.
const EVERY: Duration = Duration::from_millis(100);

/// The line with the progress.
pub(crate) struct Progress {
    on: bool,
    shown: Option<Instant>,
}

impl Progress {
    /// A line on stderr, if that is a terminal.
    pub(crate) fn new() -> Progress {
        Progress {
            on: machine::stderr_is_terminal(),
            shown: None,
        }
    }

    /// Replaces the line by `text`, at most every `EVERY`.
    pub(crate) fn show(&mut self, text: impl FnOnce() -> String) {
        let due = self.shown.is_none_or(|shown| shown.elapsed() >= EVERY);
        if self.on && due {
            self.shown = Some(Instant::now());
            talk::put(format!("\r\x1b[Kkymo: {}", text()).as_bytes());
        }
    }

    /// Erases the line, before another text is printed.
    pub(crate) fn clear(&mut self) {
        if self.on && self.shown.take().is_some() {
            talk::put(b"\r\x1b[K");
        }
    }
}
