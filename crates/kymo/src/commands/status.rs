//! `kymo status`: the contents of a store's folder in numbers.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use kymo_base::name::DisplayName;
use kymo_store::status::{self, Status};
use kymo_sys::clock::RealClock;
use kymo_sys::disk::RealDisk;
use kymo_wire::backup_state::BackupState;
use serde_json::{Value, json};

use super::backup::backup_state;
use super::serve::files_folder;
use super::verify::folder_of;

/// Options of `kymo status`.
#[derive(Args, Clone, Debug)]
pub(crate) struct StatusOptions {
    /// As the daemon's -j or -b: the store is in DIR/kymo or DIR/.kymo; or its own folder; or the --data of kymo serve.
    /// Default: the folder of the kymo serve that runs
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// For programs: one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub(crate) fn run(options: &StatusOptions) -> Result<ExitCode> {
    let folder = folder_of(&RealDisk, &files_folder(options.dir.as_deref())?)?;
    let found = status::status(Arc::new(RealDisk), &RealClock, &folder)?;
    let backup = folder.parent().and_then(backup_state);
    let mut out = std::io::stdout().lock();
    match options.json {
        true => writeln!(out, "{}", object(&found, backup.as_ref()))?,
        false => out.write_all(text(&found, backup.as_ref()).as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A time in ISO 8601, UTC.
fn iso(stamp: f64) -> String {
    let time = jiff::Timestamp::from_second(stamp.floor() as i64);
    time.map_or_else(|_| stamp.to_string(), |time| time.to_string())
}

/// Numbers with their names, in the order of the output.
fn numbers(found: &Status) -> [(&'static str, u64); 16] {
    let (bytes, unsaved) = (&found.bytes, &found.unsaved);
    [
        ("bytes of rows", bytes.rows),
        ("bytes of states", bytes.states),
        ("bytes of points", bytes.points),
        ("bytes of names", bytes.names),
        ("bytes of heads", bytes.heads),
        ("bytes of journal", bytes.journal),
        ("bytes for tails", bytes.tailed),
        ("bytes free", bytes.free),
        ("segments", found.segments),
        ("blocks", found.blocks),
        ("chunks", found.chunks),
        ("series", found.series),
        ("series forgotten", found.forgotten),
        ("series without files", found.without_files),
        ("unsaved values", unsaved.values),
        ("unsaved series", unsaved.series),
    ]
}

/// Times with their names.
fn stamps(found: &Status) -> [(&'static str, Option<String>); 7] {
    let from = |reach: Option<(f64, f64)>| reach.map(|reach| iso(reach.0));
    let to = |reach: Option<(f64, f64)>| reach.map(|reach| iso(reach.1));
    [
        ("unsaved since", found.unsaved.oldest.map(iso)),
        ("rows from", from(found.rows)),
        ("rows to", to(found.rows)),
        ("fine rows from", from(found.fine_rows)),
        ("fine rows to", to(found.fine_rows)),
        ("points from", from(found.points)),
        ("points to", to(found.points)),
    ]
}

fn text(found: &Status, backup: Option<&BackupState>) -> String {
    let mut text = String::new();
    for (name, number) in numbers(found) {
        text += &format!("{name:20} {number:>20}\n");
    }
    for (name, stamp) in stamps(found) {
        text += &format!("{name:20} {:>20}\n", stamp.as_deref().unwrap_or("-"));
    }
    for tail in &found.tails {
        text += &format!(
            "tail {}: position {}, {} bytes of {:.0} s behind, {} values missed\n",
            tail.name, tail.position, tail.backlog_bytes, tail.backlog_age_s, tail.missed_values
        );
    }
    if let Some(backup) = backup {
        text += &backup_text(backup);
    }
    for notice in &found.notices {
        text += &format!("# {}\n", DisplayName(notice.as_bytes()));
    }
    text
}

fn backup_text(backup: &BackupState) -> String {
    let newest = match backup.newest_ms {
        0 => "-".to_string(),
        ms => iso(ms as f64 / 1000.0),
    };
    let failed = match backup.error.as_str() {
        "" => String::new(),
        why => format!("; the last failed: {}", DisplayName(why.as_bytes())),
    };
    let to = DisplayName(backup.to.as_bytes());
    format!(
        "backup: newest {newest} in {to}, every {} s, {} made, {} failed, {} files left out, {} bytes sent{failed}\n",
        backup.every_s, backup.backups, backup.failures, backup.left_out, backup.sent_bytes
    )
}

fn object(found: &Status, backup: Option<&BackupState>) -> Value {
    let key = |name: &str| name.replace(' ', "_");
    let numbers = numbers(found).into_iter();
    let numbers = numbers.map(|(name, number)| (key(name), json!(number)));
    let stamps = stamps(found).into_iter();
    let stamps = stamps.map(|(name, stamp)| (key(name), json!(stamp)));
    let tails = found.tails.iter().map(|tail| {
        json!({
            "name": tail.name,
            "position": tail.position,
            "backlog_bytes": tail.backlog_bytes,
            "backlog_age_s": tail.backlog_age_s,
            "missed_values": tail.missed_values,
        })
    });
    let tails = ("tails".to_string(), json!(tails.collect::<Vec<Value>>()));
    let notices = ("notices".to_string(), json!(found.notices));
    let backup = ("backup".to_string(), json!(backup));
    Value::Object(
        numbers
            .chain(stamps)
            .chain([tails, backup, notices])
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_store::TailStatus;

    #[test]
    fn numbers_and_stamps_are_shown() {
        let mut found = Status {
            series: 20_500,
            rows: Some((1_000_000_000.0, 1_000_000_010.5)),
            ..Status::default()
        };
        found.bytes.rows = 123_456_789_012;
        found.tails.push(TailStatus {
            name: "forward".into(),
            position: 4096,
            backlog_bytes: 100,
            backlog_age_s: 2.25,
            missed_values: 7,
        });
        found.notices.push("a\x1b".into());
        let backup = BackupState {
            newest_ms: 1_000_000_000_000,
            to: "/b".into(),
            every_s: 900,
            failures: 1,
            error: "full\x1b".into(),
            ..BackupState::default()
        };
        let shown = text(&found, Some(&backup));
        for line in [
            "bytes of rows                123456789012\n",
            "series                              20500\n",
            "rows from            2001-09-09T01:46:40Z\n",
            "rows to              2001-09-09T01:46:50Z\n",
            "points to                               -\n",
            "tail forward: position 4096, 100 bytes of 2 s behind, 7 values missed\n",
            "backup: newest 2001-09-09T01:46:40Z in /b, every 900 s, 0 made, 1 failed, 0 files left out, 0 bytes sent; the last failed: full",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
        assert!(!shown.contains('\x1b'));
        let object = object(&found, Some(&backup));
        assert_eq!(object["bytes_of_rows"], json!(123_456_789_012u64));
        assert_eq!(object["rows_to"], json!("2001-09-09T01:46:50Z"));
        assert_eq!(object["points_to"], Value::Null);
        assert_eq!(object["backup"]["failures"], json!(1));
        assert_eq!(object["tails"][0]["backlog_bytes"], json!(100));
    }
}
