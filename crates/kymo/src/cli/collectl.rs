//! kymo under the name `collectl`, or as `kymo collectl`: its command line, its settings, its exit codes.

mod conf;
pub(crate) mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use kymo_sys::talk;

use crate::cli::{self, Stop};

use crate::process::daemon;
use words::Under;

/// Exit code of failures, as collectl's.
const FAILED: u8 = 1;

/// Runs with the words behind the name.
pub(crate) fn run(words: &[OsString]) -> ExitCode {
    let mut line = vec![OsString::from("collectl")];
    line.extend(words.iter().map(|word| words::translated(word)));
    let arguments = words::with_settings(line, Under::Collectl)
        .map_err(Stop::Refuse)
        .and_then(cli::parse_as_collectl);
    match arguments {
        Ok(arguments) => match cli::run(arguments) {
            Ok(code) if code == ExitCode::from(daemon::FAILED) => ExitCode::from(FAILED),
            // To collectl it is no failure if there is nothing to show.
            Ok(_) => ExitCode::SUCCESS,
            Err(error) if crate::is_closed_pipe(&error) => ExitCode::SUCCESS,
            Err(error) => failed(&crate::error_text(&error)),
        },
        Err(Stop::Say(text)) => crate::answer(&text.to_string()),
        Err(Stop::Refuse(text)) => failed(&text),
    }
}

fn failed(text: &str) -> ExitCode {
    talk::say(format_args!("collectl: {text}"));
    ExitCode::from(FAILED)
}
