//! Events that the screen on a terminal waits for.

use crossterm::event::Event;
use kymo_top::app::{Question, Reply};

/// A reason for another picture, or for the end.
pub(super) enum Happening {
    /// A key, the mouse, another size.
    Input(Event),
    /// A live sample.
    Sample,
    /// A reading aside.
    Answer(Question, Result<Reply, String>),
    /// A signal.
    Signal(i32),
    /// The terminal is gone.
    Closed,
}
