//! `[backup]`: the process of `kymo serve` that backs up the data folder. The guardian reads keys and certificates for it.

use std::path::Path;

use anyhow::{Context as _, Error, Result, bail};
use kymo_sys::privilege::{Account, Memory};

use super::backups_place::{BackupOrder, BackupsPlace, S3Options};
use super::guardian::BackupProcess;
use super::{STORE_FOLDER, poller, sockets};
use crate::config::{BackupKeys, Config};

/// Plans the process; `None`: nothing is backed up.
pub(super) fn plan(
    config: &Config,
    dir: &Path,
    hub: Option<&Account>,
) -> Result<Option<BackupProcess>> {
    let Some(place) = place_of(&config.backup)? else {
        return Ok(None);
    };
    let own = dir.join(STORE_FOLDER);
    if let Some(folder) = config
        .store
        .folder
        .as_ref()
        .filter(|folder| **folder != own)
    {
        bail!(
            "cannot use [backup]: [store] folder is {}, outside of the data folder; remove that key, and move the store to {}",
            folder.display(),
            own.display()
        );
    }
    let keys = config.backup.clone();
    Ok(Some(BackupProcess {
        order: BackupOrder {
            data: dir.into(),
            base: config.store.base.clone().unwrap_or_else(|| dir.join("rrd")),
            keeper: dir.join(sockets::WRITES),
            to: keys.to.clone().unwrap_or_default(),
            place,
            every_s: config.backup.every_s().map_err(Error::msg)?,
            keep: config.backup.keep.clone().unwrap_or_default(),
        },
        place: Box::new(move || place_of(&keys)),
        role: poller::role(hub.cloned(), hub, Memory::Unlimited),
    }))
}

/// The place, with the contents of its files.
fn place_of(keys: &BackupKeys) -> Result<Option<BackupsPlace>> {
    let Some(to) = &keys.to else {
        return Ok(None);
    };
    let options = S3Options {
        endpoint: keys.endpoint.clone(),
        region: keys.region.clone(),
        credentials: keys.credentials.clone(),
        tls_ca: keys.tls_ca.clone(),
    };
    let place = BackupsPlace::find(Path::new(to), &options);
    place.context("cannot use [backup]").map(Some)
}
