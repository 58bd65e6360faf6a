//! `kymo poll-runner`: the process that runs a configuration's commands. `kymo poll` starts it, not a person.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use kymo_poll::runner::{self, Commands, Runner};

use super::check::Debugging;
use super::log::PollLog;
use super::reading;

/// Name of the command.
const WORD: &str = "poll-runner";

/// Runs the command.
pub(crate) fn run(file: &OsStr) -> Result<ExitCode> {
    // Commands may need any amount of memory.
    kymo_sys::privilege::lift_memory_limit();
    let files = [PathBuf::from(file)];
    let mut read = || {
        // The poller has logged the errors of the configuration.
        let configs = reading::read_all(&files, &Debugging::new(&[], false), &PollLog::silent())
            .map_err(|_| "cannot run commands: the configuration cannot be read".to_string())?;
        Ok(configs.first().map(Commands::of).unwrap_or_default())
    };
    runner::serve(&mut read).context("cannot run commands")?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the runner of a configuration, whose path is absolute.
pub(super) fn start(file: &std::path::Path) -> Result<Runner, String> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("kymo").arg(WORD).arg(file);
    Runner::start(command).map_err(|error| format!("cannot start the runner of commands: {error}"))
}
