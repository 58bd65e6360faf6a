//! `kymo dump`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

/// What `kymo dump` is told.
#[derive(Args, Clone, Debug)]
pub struct DumpOptions {
    /// Folder of a recording
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Only this source, by its path under the root: proc/stat, proc/1/stat
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Begin at this time
    #[arg(long, value_name = "[YYYYMMDD:]HH:MM[:SS]")]
    pub from: Option<String>,
    /// End after this time
    #[arg(long, value_name = "[YYYYMMDD:]HH:MM[:SS]")]
    pub thru: Option<String>,
}

/// Runs the command.
pub fn run(_options: &DumpOptions) -> anyhow::Result<ExitCode> {
    anyhow::bail!("cannot run dump: not built yet")
}
