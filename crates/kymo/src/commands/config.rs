//! `kymo config`: prints the file with every key and its default.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;

use crate::config::{self, Config};

/// Runs the command.
pub(crate) fn run() -> Result<ExitCode> {
    std::io::stdout().write_all(config::text(&Config::default()).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
