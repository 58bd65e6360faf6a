//! `kymo play`: recordings and collectl's raw files through the views.

use std::process::ExitCode;

use crate::cli::PlayOptions;

/// Runs the command.
pub fn run(_options: &PlayOptions) -> anyhow::Result<ExitCode> {
    anyhow::bail!("cannot play: not built yet")
}
