//! Events that the screen on a terminal waits for.

use crossterm::event::Event;
use kymo_top::app::{Question, Reply};
use ratatui_core::buffer::Buffer;

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
    /// The terminal is gone, or the screen is not wanted any more.
    Closed,
    /// A host has new numbers.
    Row,
    /// The screen of a host that was opened, by its number.
    Far(u64, FarNews),
}

/// News of a host that is shown alone.
pub(super) enum FarNews {
    /// A picture, and how many inputs it has taken in.
    Picture(Box<Buffer>, usize),
    /// The screen was left at a moment of the host's clock, `None` live; or it cannot be shown.
    Left(Result<Option<i64>, String>),
}
