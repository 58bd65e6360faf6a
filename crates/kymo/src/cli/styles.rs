//! Colours of help texts: clap's styles on a terminal, none elsewhere and none with NO_COLOR.

#[cfg(feature = "serve")]
use std::ffi::OsStr;
#[cfg(feature = "serve")]
use std::io::IsTerminal as _;

use clap::Command;
use clap::builder::StyledStr;
#[cfg(feature = "serve")]
use clap::builder::styling::{AnsiColor, Styles};

/// Columns of a help text on a wider terminal.
#[cfg(feature = "serve")]
const WIDTH_MAX: usize = 110;

#[cfg(feature = "serve")]
const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// A command whose help has colours, and lines that fit the terminal.
#[cfg(feature = "serve")]
pub(super) fn styled(command: Command) -> Command {
    command.styles(STYLES).max_term_width(WIDTH_MAX)
}

/// The recorder-only program has plain help texts.
#[cfg(not(feature = "serve"))]
pub(super) fn styled(command: Command) -> Command {
    command
}

/// A text with its colours.
#[cfg(feature = "serve")]
pub(super) fn raw(text: &StyledStr) -> String {
    text.ansi().to_string()
}

#[cfg(not(feature = "serve"))]
pub(super) fn raw(text: &StyledStr) -> String {
    text.to_string()
}

/// A text for standard output, with colours where they are taken.
#[cfg(feature = "serve")]
pub(crate) fn for_stdout(text: &StyledStr) -> String {
    let no_color = std::env::var_os("NO_COLOR");
    let term = std::env::var_os("TERM");
    match std::io::stdout().is_terminal() && takes_colours(no_color.as_deref(), term.as_deref()) {
        true => raw(text),
        false => text.to_string(),
    }
}

#[cfg(not(feature = "serve"))]
pub(crate) fn for_stdout(text: &StyledStr) -> String {
    text.to_string()
}

/// True if a terminal takes colours. An empty NO_COLOR is as good as none (no-color.org).
#[cfg(feature = "serve")]
fn takes_colours(no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    no_color.is_none_or(OsStr::is_empty) && term != Some("dumb".as_ref())
}

#[cfg(all(test, feature = "serve"))]
mod tests {
    use super::*;

    #[test]
    fn a_user_turns_colours_off() {
        for (no_color, term, expected) in [
            (None, Some("xterm"), true),
            (None, None, true),
            (Some(""), Some("xterm"), true),
            (Some("1"), Some("xterm"), false),
            (Some("0"), None, false),
            (None, Some("dumb"), false),
        ] {
            let colours = takes_colours(no_color.map(OsStr::new), term.map(OsStr::new));
            assert_eq!(colours, expected, "{no_color:?} {term:?}");
        }
    }
}
