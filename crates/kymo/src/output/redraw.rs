//! A text on the whole terminal, drawn again each second.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use kymo_sys::machine::{self, Signal, Signals};

/// Time between two texts.
const EVERY: Duration = Duration::from_secs(1);
/// Escape codes: to the first line, erase the rest of a line, erase the rest of the screen.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K\n";
const REST_OF_SCREEN: &str = "\x1b[J";
/// Lines of a terminal that does not say how many it has.
const LINES: usize = 24;

/// Draws the text until a signal comes or the terminal is gone.
pub(crate) fn redraw(
    signals: &Signals,
    mut text: impl FnMut() -> Result<String>,
) -> Result<ExitCode> {
    let mut out = io::stdout();
    let mut screen = format!("{HOME}{REST_OF_SCREEN}");
    loop {
        let text = text()?;
        let room = machine::terminal_lines().map_or(LINES, usize::from);
        screen.push_str(HOME);
        for line in text.lines().take(room.saturating_sub(1).max(1)) {
            screen.push_str(line);
            screen.push_str(REST_OF_LINE);
        }
        screen.push_str(REST_OF_SCREEN);
        let drawn = out.write_all(screen.as_bytes());
        if drawn.and_then(|()| out.flush()).is_err() || signals.wait(EVERY) == Some(Signal::Stop) {
            return Ok(ExitCode::SUCCESS);
        }
        screen.clear();
    }
}
