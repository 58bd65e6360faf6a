//! `kymo verify --backup`: reads all backups of a folder or a bucket, and compares each content with its hash.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use kymo_backup::{Checked, check};
use kymo_base::name::DisplayName;

use crate::commands::serve::{BackupsPlace, S3Options};
use crate::options::size_words as size;
use crate::output::progress::Progress;

/// Runs the command.
pub(super) fn run(backups: &Path, s3: &S3Options) -> Result<ExitCode> {
    let target = BackupsPlace::find(backups, s3)?.open()?;
    let mut out = io::stdout().lock();
    let (mut lines, mut steps) = (Vec::new(), Progress::new());
    let checked = check(
        &target,
        &mut |finding| {
            let path = DisplayName(finding.path.as_os_str().as_encoded_bytes()).to_string();
            lines.push(format!("{path}: {}", finding.what));
        },
        &mut |done, all| steps.show(|| format!("checked {} of {}", size(done), size(all))),
    );
    steps.clear();
    let checked = checked?;
    ensure!(
        checked.backups > 0 || checked.damaged > 0,
        "cannot find a backup in {}: the first one has not ended yet",
        backups.display()
    );
    lines.push(text_of(checked));
    match writeln!(out, "{}", lines.join("\n")) {
        // Damage counts even if the reader of the output is gone.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::from(u8::from(checked.damaged > 0))),
    }
}

fn text_of(checked: Checked) -> String {
    let Checked {
        backups,
        contents,
        bytes,
        damaged,
    } = checked;
    let found = match damaged {
        0 => "no damage".to_string(),
        1 => "1 place is damaged".to_string(),
        many => format!("{many} places are damaged"),
    };
    format!("{found}: backups {backups}, contents {contents}, {bytes} bytes")
}
