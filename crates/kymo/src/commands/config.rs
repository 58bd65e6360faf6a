//! `kymo config`: prints the file with every key and its default.

use std::process::ExitCode;

use anyhow::Result;

use crate::config::{self, Config};
use crate::output;

/// Runs the command.
pub(crate) fn run() -> Result<ExitCode> {
    output::put(&config::text(&Config::default()))?;
    Ok(ExitCode::SUCCESS)
}
