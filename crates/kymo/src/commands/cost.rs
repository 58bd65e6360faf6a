//! `kymo cost`.

use std::process::ExitCode;

use crate::options::RecordOptions;

/// Runs the command.
pub fn run(_options: &RecordOptions) -> anyhow::Result<ExitCode> {
    anyhow::bail!("cannot run cost: not built yet")
}
