//! `kymo restore`: makes a data folder again from a backup, for a `kymo serve` that is started on it then.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Error, Result};
use clap::Args;
use kymo_backup::restore;
use kymo_rrd::zone::own_zone;
use kymo_sys::disk::RealDisk;
use kymo_sys::talk;

use super::series::{Times, range, sample_time};
use super::serve::{BackupsPlace, S3Options};
use crate::options::size_words as size;
use crate::output::progress::Progress;

/// Options of `kymo restore`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RestoreOptions {
    /// The folder of backups, or s3://BUCKET/PREFIX
    #[arg(value_name = "FROM")]
    pub backups: PathBuf,
    /// The folder to make; it must be empty if it is there
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// The newest backup that is not later than this: 14:30, 20261121:14:30, 2026-11-21T14:30, -2h; or as rrdtool reads it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub at: Option<String>,
    #[command(flatten)]
    pub s3: S3Options,
}

/// Runs the command.
pub(crate) fn run(options: &RestoreOptions) -> Result<ExitCode> {
    let RestoreOptions {
        backups,
        dir,
        at,
        s3,
    } = options;
    let at_ms = at.as_deref().map(moment).transpose()?;
    let target = BackupsPlace::find(backups, s3)?.open()?;
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
        sample_time(restored.time_ms, &own_zone()),
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
