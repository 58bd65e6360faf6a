//! `kymo poll-runner`: the process that runs a configuration's commands. `kymo poll` starts it, not a person.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result};
use kymo_poll::runner::{self, Commands, Runner};

use super::check::Debugging;
use super::log::PollLog;
use super::reading;

/// Name of the command.
const WORD: &str = "poll-runner";

/// Least time limit of a command in a single run, which has no next cycle to keep free.
const LIMIT_ONCE: Duration = Duration::from_secs(30);

/// Runs the command. `once` says that the poller polls once.
pub(crate) fn run(file: &OsStr, once: bool) -> Result<ExitCode> {
    // Commands may need any amount of memory.
    kymo_sys::privilege::lift_memory_limit();
    let files = [PathBuf::from(file)];
    let mut read = || {
        // The poller has logged the errors of the configuration.
        let configs = reading::read_all(&files, &Debugging::new(&[], false), &PollLog::silent())
            .map_err(|_| "cannot run commands: the configuration cannot be read".to_string())?;
        let mut commands = configs.first().map(Commands::of).unwrap_or_default();
        if once {
            commands.limit = commands.limit.max(LIMIT_ONCE);
        }
        Ok(commands)
    };
    runner::serve(&mut read).context("cannot run commands")?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the runner of a configuration, whose path is absolute. `once` says that the caller polls once.
pub(super) fn start(file: &std::path::Path, once: bool) -> Result<Runner, String> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("kymo").arg(WORD);
    if once {
        command.arg("--once");
    }
    command.arg(file);
    Runner::start(command).map_err(|error| format!("cannot start the runner of commands: {error}"))
}
