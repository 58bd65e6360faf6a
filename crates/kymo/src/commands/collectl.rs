//! kymo under the name `collectl`, or as `kymo collectl`: its command line, its settings, its exit codes.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use crate::cli::{self, Stop};
use crate::collectl_words::{self, Under};

/// Exit code of what cannot be done, as collectl's.
const FAILED: u8 = 1;

/// Runs with the words behind the name.
pub(crate) fn run(words: &[OsString]) -> ExitCode {
    let mut line = vec![OsString::from("collectl")];
    line.extend(words.iter().map(|word| collectl_words::translated(word)));
    let arguments = collectl_words::with_settings(line, Under::Collectl)
        .map_err(Stop::Refuse)
        .and_then(cli::parse_as_collectl);
    match arguments {
        Ok(arguments) => match cli::run(arguments) {
            // Nothing to show is no failure to collectl.
            Ok(_) => ExitCode::SUCCESS,
            Err(error) if crate::is_closed_pipe(&error) => ExitCode::SUCCESS,
            Err(error) => failed(&crate::said(&error)),
        },
        Err(Stop::Say(text)) => {
            // A closed pipe ends quietly.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(Stop::Refuse(text)) => failed(&text),
    }
}

fn failed(text: &str) -> ExitCode {
    eprintln!("collectl: {text}");
    ExitCode::from(FAILED)
}
