//! `kymo record`.

use std::process::ExitCode;

use crate::options::RecordOptions;

/// Runs the command.
pub fn run(_options: &RecordOptions) -> anyhow::Result<ExitCode> {
    anyhow::bail!("cannot run record: not built yet")
}
