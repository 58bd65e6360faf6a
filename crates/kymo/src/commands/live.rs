//! This machine, shown live: the same views as for a recording.

use std::process::ExitCode;

use crate::options::{RecordOptions, ViewOptions};

/// Shows this machine until the count, the time or an interrupt ends it.
pub fn run(_record: &RecordOptions, _view: &ViewOptions) -> anyhow::Result<ExitCode> {
    anyhow::bail!("cannot show this machine: not built yet")
}
