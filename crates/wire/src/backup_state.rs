//! Outcomes of the process of `[backup]`, docs/formats/kept.md: a file of one line of JSON, which the page, `/metrics` and
//! `kymo status` read.

use serde::{Deserialize, Serialize};

/// Folder of the file, below the folder of `kymo serve`.
pub const FOLDER: &str = "backup";
/// Name of the file.
pub const FILE: &str = "state";
/// Longest file, in bytes.
pub const BYTES_MAX: usize = 64 << 10;
/// Longest reason of a failure, in bytes.
const ERROR_MAX: usize = 1 << 10;
const VERSION: u32 = 1;

/// Backups so far, and the newest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackupState {
    /// Version of the format.
    #[serde(rename = "kymo_backup_state")]
    pub version: u32,
    /// The place of backups, as the configuration names it.
    pub to: String,
    /// Moment of the newest backup that is whole, milliseconds since 1970; 0: there is none.
    pub newest_ms: i64,
    /// Seconds from one backup to the next.
    pub every_s: u64,
    /// Files of the newest backup, and their bytes.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Files that the newest backup does not have, since they could not be read.
    pub left_out: u64,
    /// Seconds that the newest backup took.
    pub duration_s: f64,
    /// Backups since the folder was made.
    pub backups: u64,
    /// Backups that failed.
    pub failures: u64,
    /// Bytes that were sent for all backups.
    pub sent_bytes: u64,
    /// Why the last backup failed; empty: it did not.
    pub error: String,
}

impl BackupState {
    /// The file's text.
    pub fn text(&self) -> String {
        let mut state = self.clone();
        state.version = VERSION;
        state
            .error
            .truncate(state.error.floor_char_boundary(ERROR_MAX));
        let text = serde_json::to_string(&state);
        text.unwrap_or_else(|_| unreachable!("BUG: a state is no JSON")) + "\n"
    }

    /// Reads a file; `None`: it is damaged or of another version.
    pub fn parse(bytes: &[u8]) -> Option<BackupState> {
        if bytes.len() > BYTES_MAX {
            return None;
        }
        let state: BackupState = serde_json::from_slice(bytes).ok()?;
        let is_sound = state.newest_ms >= 0 && state.duration_s.is_finite();
        (state.version == VERSION && is_sound).then_some(state)
    }

    /// Age of the newest backup in seconds; `None`: there is none.
    pub fn age_s(&self, now_ms: i64) -> Option<f64> {
        let age_ms = now_ms.saturating_sub(self.newest_ms).max(0);
        (self.newest_ms > 0).then_some(age_ms as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_written_and_read_and_others_are_refused() {
        let state = BackupState {
            version: VERSION,
            newest_ms: 1_795_824_000_123,
            every_s: 900,
            error: "no \"room\"\n".into(),
            ..BackupState::default()
        };
        let text = state.text();
        assert_eq!(BackupState::parse(text.as_bytes()), Some(state.clone()));
        assert_eq!(state.age_s(1_795_824_002_123), Some(2.0));
        assert_eq!(state.age_s(0), Some(0.0));
        assert_eq!(BackupState::default().age_s(5), None);
        for end in 0..text.len() - 1 {
            assert_eq!(BackupState::parse(&text.as_bytes()[..end]), None, "{end}");
        }
        for other in [
            text.replace(":1,", ":2,"),
            text.replace("1795824000123", "-1"),
            text.replace("0.0", "1e999"),
            format!("{text}{}", " ".repeat(64 << 10)),
        ] {
            assert_ne!(other, text);
            assert_eq!(BackupState::parse(other.as_bytes()), None, "{other}");
        }
    }
}
