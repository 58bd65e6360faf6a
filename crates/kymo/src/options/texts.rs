//! `--grep`, `--extract`, `--showheader` and `--showcolheaders`: questions about recorded texts.

use std::path::PathBuf;

use clap::Args;

/// Questions about recorded texts.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What was recorded, as texts")]
pub(crate) struct Texts {
    /// Of what is played, the recorded lines that match, behind their times; see -o
    #[arg(long, value_name = "REGEX", conflicts_with_all = ["extract", "showheader"])]
    pub grep: Option<String>,
    /// Write what is between --from and --thru into this folder, or into files whose names begin so
    #[arg(long, value_name = "DIR|PREFIX", conflicts_with = "showheader")]
    pub extract: Option<PathBuf>,
    /// Show the header that plot files begin with, or of collectl's files their own
    #[arg(long)]
    pub showheader: bool,
    /// Show what stands over the columns
    #[arg(long, conflicts_with = "showheader")]
    pub showcolheaders: bool,
}

impl Texts {
    /// True if texts are requested, and not their values.
    pub(crate) fn is_asked(&self) -> bool {
        self.grep.is_some() || self.extract.is_some() || self.showheader
    }
}
