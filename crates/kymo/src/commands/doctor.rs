//! `kymo doctor`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

/// What `kymo doctor` is told.
#[derive(Args, Clone, Debug)]
pub struct DoctorOptions {
    /// Read the kernel's files below this folder
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(_options: &DoctorOptions) -> anyhow::Result<ExitCode> {
    anyhow::bail!("cannot run doctor: not built yet")
}
