//! `kymo verify`: every block and every record in a store's folder, checked.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use kymo_base::name::DisplayName;
use kymo_store::verify::{self, Event, Finding, Summary, Weight};
use kymo_sys::disk::{Disk, RealDisk};

use crate::progress::Progress;

/// What `kymo verify` is told.
#[derive(Args, Clone, Debug)]
pub(crate) struct VerifyOptions {
    /// As the daemon's -j or -b: the store is in DIR/kymo or DIR/.kymo; or its own folder
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Runs the command.
pub(crate) fn run(options: &VerifyOptions) -> Result<ExitCode> {
    let disk = Arc::new(RealDisk);
    let folder = folder_of(&*disk, &options.dir)?;
    let mut out = std::io::stdout().lock();
    let (mut progress, mut said) = (Progress::new(), Ok(()));
    let summary = verify::verify(disk, &folder, &mut |event| match event {
        Event::Found(finding) => {
            progress.clear();
            let line = writeln!(out, "{}", line_of(&finding));
            said = std::mem::replace(&mut said, Ok(())).and(line);
        }
        Event::Progress {
            done_bytes,
            of_bytes,
        } => progress.show(|| {
            let (done, of) = (done_bytes >> 20, of_bytes.div_ceil(1 << 20));
            format!("checked {done} of {of} MiB")
        }),
    });
    progress.clear();
    let summary = summary?;
    said?;
    writeln!(out, "{}", text_of(&summary))?;
    Ok(ExitCode::from(u8::from(summary.damaged > 0)))
}

/// The store's folder that is meant by `dir`.
pub(crate) fn folder_of(disk: &dyn Disk, dir: &Path) -> Result<PathBuf> {
    let found = kymo_store::store_folder(disk, dir)?;
    let none = || anyhow::anyhow!("cannot open {}: there is no store in it", dir.display());
    found.ok_or_else(none)
}

fn line_of(finding: &Finding) -> String {
    let Finding {
        path, offset, what, ..
    } = finding;
    let path = DisplayName(path.as_os_str().as_encoded_bytes());
    let note = match finding.weight {
        Weight::Damage => "",
        Weight::Note => " (no damage)",
    };
    format!("{path} byte {offset}: {what}{note}")
}

fn text_of(summary: &Summary) -> String {
    let Summary {
        segments,
        blocks,
        frames,
        journal_files,
        journal_frames,
        bytes,
        damaged,
    } = summary;
    let found = match damaged {
        0 => "no damage".to_string(),
        1 => "1 place is damaged".to_string(),
        many => format!("{many} places are damaged"),
    };
    format!(
        "{found}: {bytes} bytes, segments {segments}, blocks {blocks}, frames {frames}, \
         journal files {journal_files}, records {journal_frames}"
    )
}
