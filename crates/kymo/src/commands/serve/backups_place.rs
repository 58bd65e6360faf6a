//! The place of backups: a folder, or a bucket with its server and keys; and the order for the process that backs up.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Error, Result, bail, ensure};
use clap::Args;
use kymo_backup::{Keys, S3Place, Target};
use kymo_scrape::TlsTexts;
use kymo_sys::disk::RealDisk;
use serde::{Deserialize, Serialize};

use super::access::authorities;

/// Most bytes of a file with keys.
const KEYS_MAX: u64 = 64 << 10;
/// Rights of a file with keys that no other user may have: the group may read it.
const OF_OTHERS: u32 = 0o027;
/// Region of servers that have none.
const REGION: &str = "us-east-1";

/// Options for a bucket.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct S3Options {
    /// URL of the server of s3://, such as http://127.0.0.1:8333; default: Amazon's of the region
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Region of the bucket of s3://
    #[arg(long, value_name = "NAME", default_value = REGION)]
    pub region: String,
    /// File with the keys of s3://: lines aws_access_key_id = ... and aws_secret_access_key = ..., as ~/.aws/credentials
    #[arg(long, value_name = "FILE")]
    pub credentials: Option<PathBuf>,
    /// Certificates of authorities for https of s3://, PEM; default: the system's
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
}

/// A place of backups.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum BackupsPlace {
    /// A folder.
    Folder(PathBuf),
    /// A bucket.
    Bucket(Box<S3Place>),
}

impl BackupsPlace {
    /// The place that a command line names. Keys and certificates are read.
    pub(crate) fn find(place: &Path, options: &S3Options) -> Result<BackupsPlace> {
        let text = place.to_string_lossy();
        if !S3Place::is_one(&text) {
            ensure!(
                !is_url(&text),
                "cannot use {text}: backups are in a folder or in s3://BUCKET/PREFIX"
            );
            return Ok(BackupsPlace::Folder(place.into()));
        }
        let words = S3Place::parse(&text).map_err(Error::msg);
        let words = words.with_context(|| format!("cannot use {text}"))?;
        let Some(keys) = &options.credentials else {
            bail!("cannot use {text}: give --credentials, a file with the keys");
        };
        let endpoint = options.endpoint.clone().unwrap_or_default();
        let needs_tls = !endpoint.starts_with("http://");
        Ok(BackupsPlace::Bucket(Box::new(S3Place {
            region: options.region.clone(),
            keys: keys_of(keys)?,
            tls: match needs_tls {
                true => TlsTexts {
                    authorities: authorities(options.tls_ca.as_deref())?,
                    ..TlsTexts::default()
                },
                false => TlsTexts::default(),
            },
            endpoint,
            ..words
        })))
    }

    /// Opens it for a new backup of this data folder.
    pub(crate) fn begin(&self) -> Result<Target> {
        Ok(match self {
            BackupsPlace::Folder(folder) => Target::begin(Arc::new(RealDisk), folder)?,
            BackupsPlace::Bucket(place) => Target::begin_s3(place)?,
        })
    }

    /// Opens it to read backups.
    pub(crate) fn open(&self) -> Result<Target> {
        Ok(match self {
            BackupsPlace::Folder(folder) => Target::open(Arc::new(RealDisk), folder)?,
            BackupsPlace::Bucket(place) => Target::open_s3(place)?,
        })
    }
}

/// Order for the process that backs up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BackupOrder {
    /// The data folder.
    pub data: PathBuf,
    /// Folder of .rrd files.
    pub base: PathBuf,
    /// The keeper's socket for processes of kymo serve.
    pub keeper: PathBuf,
    /// The place of backups, as the configuration names it.
    pub to: String,
    /// The place, with its keys.
    pub place: BackupsPlace,
    /// Seconds from one backup to the next.
    pub every_s: u64,
    /// Backups that stay; empty: all.
    pub keep: String,
}

/// True for a place that is no path.
pub(crate) fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// The keys of a file that no other user can read.
fn keys_of(path: &Path) -> Result<Keys> {
    let shown = path.display();
    let cannot = || format!("cannot read {shown}");
    let file = File::open(path).with_context(cannot)?;
    let mode = file.metadata().with_context(cannot)?.mode() & 0o7777;
    ensure!(
        mode & OF_OTHERS == 0,
        "cannot use {shown}: others can read it, or its group can write it (mode {mode:04o}); chmod 600 it"
    );
    let mut text = String::new();
    let read = file.take(KEYS_MAX).read_to_string(&mut text);
    read.with_context(cannot)?;
    let keys = Keys::parse(&text).map_err(Error::msg);
    keys.with_context(|| format!("cannot use {shown}"))
}
