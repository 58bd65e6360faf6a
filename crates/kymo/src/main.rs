//! kymo: records the kernel's statistics of this machine, and plays them back.
//!
//! The command line has plain commands (`kymo record`, `kymo play`) and collectl's style (`kymo
//! -scdn -i1`), where the switches choose the work.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cli;
mod commands;
#[cfg(feature = "serve")]
mod config;
mod options;
mod output;
mod process;
mod recorder;
mod times;

use std::process::ExitCode;

use kymo_sys::{machine, name_service, talk};

use crate::cli::collectl::{self, words::Under};
use crate::cli::{help, stand_in, styles};

/// Exit code of a usage or run error.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    talk::say_panics();
    machine::outlive_file_limit();
    machine::share_heap();
    machine::list_no_functions_for_errors();
    machine::name_process();
    name_service::need_no_modules();
    let words = help::turned(std::env::args_os().collect());
    // This comes first because collectl has no commands: under its name no word means another
    // program.
    if let Some(words) = collectl::words::behind_name(&words) {
        return collectl::run(words);
    }
    if let Some(text) = help::examples_before(&words)
        && let Err(error) = output::put(&styles::for_stdout(&text))
    {
        return failed(&error.into());
    }
    if let Some((program, words)) = stand_in::find(words.iter().cloned()) {
        return (program.run)(words);
    }
    let words = collectl::words::with_settings(words, Under::Kymo);
    let arguments = match words.map_err(cli::Stop::Refuse).and_then(cli::parse) {
        Ok(arguments) => arguments,
        Err(cli::Stop::Say(text)) => return answer(&styles::for_stdout(&text)),
        Err(cli::Stop::Refuse(line)) => {
            talk::say(format_args!("kymo: {line}"));
            return ExitCode::from(FAILED);
        }
    };
    cli::run(arguments).unwrap_or_else(|error| failed(&error))
}

fn failed(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    talk::say(format_args!("kymo: {}", error_text(error)));
    ExitCode::from(FAILED)
}

/// Prints the help or the version.
fn answer(text: &str) -> ExitCode {
    let shown = output::put(text).map(|()| ExitCode::SUCCESS);
    shown.unwrap_or_else(|error| failed(&error.into()))
}

/// An error in words. A plain error of the system is about stdout; all others have a context.
fn error_text(error: &anyhow::Error) -> String {
    let bare = error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.raw_os_error().is_some());
    match bare && error.chain().count() == 1 {
        true => cannot_print(error),
        false => format!("{error:#}"),
    }
}

fn cannot_print(error: impl std::fmt::Display) -> String {
    format!("cannot write to standard output: {error}")
}

/// True if the reader of the output is gone, which is no error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kind = error
        .downcast_ref::<std::io::Error>()
        .map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}
