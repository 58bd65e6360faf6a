//! `[poll]`: the configurations of MRTG to poll, the user to poll as, and
//! options.

use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{File, quoted};

/// The poller's keys.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Poll {
    /// Configurations: absolute paths, which may have `*`; empty: nothing is
    /// polled.
    #[serde(deserialize_with = "patterns")]
    pub mrtg: Vec<String>,
    /// User to run as when started by root; empty: the user of serve.
    pub user: String,
    /// Time at which `.rrd` files are written.
    pub files: FilesWritten,
    /// True if all devices are asked at once.
    pub burst: bool,
    /// True if stamps are whole seconds.
    pub integer_stamps: bool,
    /// Replaces LogDir of the configurations.
    pub log_dir: Option<PathBuf>,
    /// Folder with profiles of devices.
    #[serde(deserialize_with = "folder")]
    pub profiles: Option<PathBuf>,
}

/// Time at which the poller's `.rrd` files are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FilesWritten {
    /// In each cycle.
    #[default]
    Current,
    /// On demand.
    Ask,
}

impl FilesWritten {
    /// The word in the file.
    fn word(self) -> &'static str {
        match self {
            FilesWritten::Current => "current",
            FilesWritten::Ask => "ask",
        }
    }
}

fn patterns<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    match texts.iter().find(|text| !text.starts_with('/')) {
        Some(text) => Err(D::Error::custom(format!(
            "{text:?} is not a file's absolute path such as /etc/mrtg/*.cfg or /etc/mrtg/*/*.cfg"
        ))),
        None => Ok(texts),
    }
}

fn folder<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(from)?;
    match path.is_absolute() {
        true => Ok(Some(path)),
        false => Err(D::Error::custom(format!(
            "{path:?} is no folder's absolute path"
        ))),
    }
}

/// Writes all keys with their help.
pub(super) fn text(file: &mut File, poll: &Poll) {
    file.0.push_str("\n[poll]\n");
    let patterns: Vec<_> = poll.mrtg.iter().map(|text| quoted(text)).collect();
    file.key(
        "mrtg",
        "Configurations of MRTG whose devices are polled, such as [\"/etc/mrtg/*.cfg\"]; []: none.\n\
         Values go to the store, and into MRTG's files: .rrd where a configuration says `LogFormat: rrdtool`, else .log.",
        Ok(format!("[{}]", patterns.join(", "))),
    );
    file.key(
        "user",
        "User to poll as, who also runs the configurations' commands; empty: the one of all.",
        Ok(quoted(&poll.user)),
    );
    file.key(
        "files",
        "When .rrd files are written: \"current\" each cycle, for programs that read them; \"ask\" on demand.",
        Ok(quoted(poll.files.word())),
    );
    file.key(
        "burst",
        "Ask all devices at the beginning of each interval, as MRTG does, instead of spreading them over it.",
        Ok(poll.burst.to_string()),
    );
    file.key(
        "integer_stamps",
        "Stamp values with whole seconds, as MRTG does.",
        Ok(poll.integer_stamps.to_string()),
    );
    let log_dir = poll
        .log_dir
        .as_ref()
        .map(|path| quoted(&path.to_string_lossy()));
    file.key(
        "log_dir",
        "Folder of .rrd and .log files instead of each configuration's LogDir: to run beside MRTG.",
        log_dir.ok_or("\"/var/lib/kymo/mrtg\""),
    );
    let profiles = poll
        .profiles
        .as_ref()
        .map(|path| quoted(&path.to_string_lossy()));
    file.key(
        "profiles",
        "Folder with own profiles for [[device]], NAME.toml each.",
        profiles.ok_or("\"/etc/kymo/profiles\""),
    );
}
