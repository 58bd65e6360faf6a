//! `kymo restore`: makes a data folder again from a backup, for a `kymo serve` that is started on it then.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Error, Result, ensure};
use clap::Args;
use jiff::tz::TimeZone;
use kymo_backup::{Target, restore};
use kymo_sys::disk::RealDisk;
use kymo_sys::talk;

use super::backup::is_url;
use super::series::{Times, range, sample_time};
use crate::options::size_words as size;
use crate::output::progress::Progress;

/// Options of `kymo restore`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RestoreOptions {
    /// The folder of backups
    #[arg(value_name = "FROM")]
    pub backups: PathBuf,
    /// The folder to make; it must be empty if it is there
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// The newest backup that is not later than this: 14:30, 20261121:14:30, 2026-11-21T14:30, -2h; or as rrdtool reads it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub at: Option<String>,
}

/// Runs the command.
pub(crate) fn run(options: &RestoreOptions) -> Result<ExitCode> {
    let RestoreOptions { backups, dir, at } = options;
    ensure!(
        !is_url(backups),
        "cannot restore from {}: only folders have backups",
        backups.display()
    );
    let at_ms = at.as_deref().map(moment).transpose()?;
    let target = Target::open(Arc::new(RealDisk), backups)?;
    let mut progress = Progress::new();
    let restored = restore(&target, at_ms, &RealDisk, dir, &mut |done, all| {
        progress.show(|| format!("restored {} of {}", size(done), size(all)));
    });
    progress.clear();
    let restored = restored?;
    talk::say(format_args!(
        "kymo: restored {} files of {}, as of {}; start kymo serve --data {}",
        restored.files,
        size(restored.bytes),
        sample_time(restored.time_ms, &TimeZone::system()),
        dir.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// The end of the second that a time names, milliseconds since 1970.
fn moment(at: &str) -> Result<i64> {
    let times = Times {
        from: at.into(),
        thru: None,
    };
    let (from, _now) = range(&times).map_err(|error| {
        let why = error.to_string();
        Error::msg(
            why.replace("--from", "--at")
                .replace("before --thru", "in the past"),
        )
    })?;
    Ok(from.saturating_mul(1000).saturating_add(999))
}
