//! `[backup]`: the place of the backups that `kymo serve` makes, and the time between them.

use std::path::PathBuf;
use std::time::Duration;

use kymo_backup::{Keep, S3Place};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{File, checked, quoted};
use crate::options;

/// Shortest and longest time from one backup to the next.
const EVERY: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(7 * 86_400)];

/// The keys of `[backup]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BackupKeys {
    /// A folder, or `s3://BUCKET/PREFIX`; `None`: nothing is backed up.
    #[serde(deserialize_with = "place")]
    pub to: Option<String>,
    /// Time from one backup to the next.
    #[serde(deserialize_with = "every")]
    pub every: String,
    /// Backups that stay; `None`: all.
    #[serde(deserialize_with = "keep")]
    pub keep: Option<String>,
    /// URL of the server of S3; `None`: Amazon's.
    pub endpoint: Option<String>,
    /// Region of the bucket.
    pub region: String,
    /// File with the keys of S3.
    pub credentials: Option<PathBuf>,
    /// Certificates of authorities, PEM; `None`: the system's.
    pub tls_ca: Option<PathBuf>,
}

impl Default for BackupKeys {
    fn default() -> BackupKeys {
        BackupKeys {
            to: None,
            every: "15m".into(),
            keep: None,
            endpoint: None,
            region: "us-east-1".into(),
            credentials: None,
            tls_ca: None,
        }
    }
}

impl BackupKeys {
    /// Seconds from one backup to the next.
    pub(crate) fn every_s(&self) -> Result<u64, String> {
        every_s(&self.every)
    }
}

fn place<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    if text.starts_with('/') {
        return Ok(Some(text));
    }
    let read = S3Place::parse(&text).map(|_| Some(text.clone()));
    read.map_err(|why| {
        D::Error::custom(format!(
            "{text:?} is no folder's absolute path and no s3://BUCKET/PREFIX: {why}"
        ))
    })
}

fn every_s(text: &str) -> Result<u64, String> {
    let every = Duration::from_nanos(options::duration_ns("", text)?);
    let [least, most] = EVERY;
    match (least..=most).contains(&every) {
        true => Ok(every.as_secs()),
        false => Err(format!("cannot use {text}: not a time from 1m to 7d")),
    }
}

fn every<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    checked(every_s(&text), text)
}

fn keep<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    match Keep::parse(&text) {
        Some(_) => Ok(Some(text)),
        None => Err(D::Error::custom(format!(
            "{text:?} is no number of hours, days and weeks, such as \"24h,7d,8w\""
        ))),
    }
}

/// Writes all keys with their help.
pub(super) fn text(file: &mut File, keys: &BackupKeys) {
    file.0.push_str("\n[backup]\n");
    let text = |text: &Option<String>| text.as_deref().map(quoted);
    let path = |path: &Option<PathBuf>| {
        let path = path.as_ref()?;
        Some(quoted(&path.to_string_lossy()))
    };
    for (name, help, value) in [
        (
            "to",
            "Folder of backups, or s3://BUCKET/PREFIX, for this machine alone; without it nothing is backed up.\n\
             The user of kymo must be able to write the folder.",
            text(&keys.to).ok_or("\"s3://my-backups/web-1\""),
        ),
        (
            "every",
            "Time from one backup to the next, 1m to 7d.",
            Ok(quoted(&keys.every)),
        ),
        (
            "keep",
            "Backups that stay: the newest of each of the last hours, days and weeks that have one. Without it all stay.",
            text(&keys.keep).ok_or("\"24h,7d,8w\""),
        ),
        (
            "endpoint",
            "URL of a server of S3. Without it: Amazon's of the region.",
            text(&keys.endpoint).ok_or("\"https://s3.example:9000\""),
        ),
        ("region", "Region of the bucket.", Ok(quoted(&keys.region))),
        (
            "credentials",
            "File with the keys of S3, in the shape of ~/.aws/credentials. It is read at start and at SIGHUP, by the user that starts kymo.",
            path(&keys.credentials).ok_or("\"/etc/kymo/s3-keys\""),
        ),
        (
            "tls_ca",
            "Certificates of authorities for https, PEM. Without it: those of the system.",
            path(&keys.tls_ca).ok_or("\"/etc/kymo/s3-ca.pem\""),
        ),
    ] {
        file.key(name, help, value);
    }
}
