//! `kymo verify`: reads and checks a folder: a store, the keeper's files beside it, and a recording with its
//! roll-ups.

mod backed_up;
mod recorded;

use std::io::{self, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;
use kymo_base::name::DisplayName;
use kymo_ingest::kept::{self, Checked};
use kymo_store::verify::{self, Event, Finding, Summary, Weight};
use kymo_sys::disk::{Disk, RealDisk};

use super::serve::{S3Options, files_folder};
use crate::output::progress::Progress;
use recorded::Recorded;

/// Options of `kymo verify`.
#[derive(Args, Clone, Debug)]
pub(crate) struct VerifyOptions {
    /// As the daemon's -j or -b: the store is in DIR/kymo or DIR/.kymo; or its own folder; or the --data of kymo serve.
    /// Default: the folder of the kymo serve that runs
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Check a folder of backups instead, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "TO", conflicts_with = "dir")]
    pub backup: Option<PathBuf>,
    #[command(flatten)]
    pub s3: S3Options,
}

/// Counts and lines of a run.
struct Report {
    out: StdoutLock<'static>,
    progress: Progress,
    printed: io::Result<()>,
    damaged: u64,
}

impl Report {
    fn found(&mut self, finding: &Finding) {
        self.damaged += u64::from(finding.weight == Weight::Damage);
        self.progress.clear();
        let line = writeln!(self.out, "{}", line_of(finding));
        self.printed = std::mem::replace(&mut self.printed, Ok(())).and(line);
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Found(finding) => self.found(finding),
            Event::Progress {
                done_bytes,
                of_bytes,
            } => self.progress.show(|| {
                let (done, of) = (done_bytes >> 20, of_bytes.div_ceil(1 << 20));
                format!("checked {done} of {of} MiB")
            }),
        }
    }
}

/// Runs the command.
pub(crate) fn run(options: &VerifyOptions) -> Result<ExitCode> {
    if let Some(backups) = &options.backup {
        return backed_up::run(backups, &options.s3);
    }
    let disk = Arc::new(RealDisk);
    let dir = files_folder(options.dir.as_deref())?;
    let has_recording = recorded::is_there(&*disk, &dir);
    let store = match folder_of(&*disk, &dir) {
        Err(_) if has_recording => None,
        found => Some(found?),
    };
    let mut report = Report {
        out: io::stdout().lock(),
        progress: Progress::new(),
        printed: Ok(()),
        damaged: 0,
    };
    let mut texts = Vec::new();
    if let Some(folder) = store {
        let summary = verify::verify(disk.clone(), &folder, &mut |event| report.event(&event))?;
        let kept = kept::check(&*disk, &folder, &mut |finding| report.found(&finding));
        let kept =
            kept.with_context(|| format!("cannot check the files in {}", folder.display()))?;
        texts.push(text_of(&summary, &kept));
    }
    if has_recording {
        let recorded = recorded::check(&(disk as Arc<dyn Disk>), &dir, &mut |finding| {
            report.found(&finding)
        })?;
        texts.push(text_of_recorded(&recorded));
    }
    report.progress.clear();
    let found = match report.damaged {
        0 => "no damage".to_string(),
        1 => "1 place is damaged".to_string(),
        many => format!("{many} places are damaged"),
    };
    let printed = report
        .printed
        .and_then(|()| writeln!(report.out, "{found}: {}", texts.join(", ")));
    match printed {
        // Damage counts even if the reader of the output is gone.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::from(u8::from(report.damaged > 0))),
    }
}

/// The store's folder, from the folder on the command line.
pub(crate) fn folder_of(disk: &dyn Disk, dir: &Path) -> Result<PathBuf> {
    let of_serve = dir.join("store");
    let found = match kymo_store::store_folder(disk, dir)? {
        None if disk.metadata(&of_serve).is_ok() => kymo_store::store_folder(disk, &of_serve)?,
        found => found,
    };
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

fn text_of(summary: &Summary, kept: &Checked) -> String {
    let Summary {
        segments,
        blocks,
        frames,
        journal_files,
        journal_frames,
        bytes,
        ..
    } = summary;
    let (bytes, others) = (bytes + kept.bytes, kept.files);
    format!(
        "{bytes} bytes, segments {segments}, blocks {blocks}, frames {frames}, \
         journal files {journal_files}, records {journal_frames}, other files {others}"
    )
}

fn text_of_recorded(recorded: &Recorded) -> String {
    let Recorded {
        samples,
        bytes,
        rollups,
    } = recorded;
    format!("recording of {bytes} bytes, samples {samples}, roll-ups {rollups}")
}
