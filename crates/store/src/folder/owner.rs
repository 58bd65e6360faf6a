//! Ownership of a folder of .rrd files: a lock on a file in it while a daemon runs. Two daemons with separate stores would
//! take each other's writes for changes by other programs.

use crate::error::Error;
use crate::settings::{Files, Settings};
use kymo_sys::disk::{Disk, DiskFile, NameKind, OpenMode, RecordLock};
use std::io;

/// Name of the owner file, which LIST does not show.
pub(crate) const NAME: &str = ".kymo-owner";
/// Longest content that is shown.
const TEXT_MAX: usize = 4096;

/// Takes ownership of the base if the store is to own it. A folder without write permission needs no owner.
pub(crate) fn take(
    disk: &dyn Disk,
    settings: &Settings,
    notices: &mut Vec<String>,
) -> Result<Option<Box<dyn DiskFile>>, Error> {
    let Some(owner) = settings
        .owner
        .as_ref()
        .filter(|_| settings.files != Files::Never)
    else {
        return Ok(None);
    };
    let path = settings.base.join(NAME);
    let mut lock = RecordLock::Exclusive;
    let file = disk.open(&path, OpenMode::Create).or_else(|error| {
        lock = RecordLock::Shared;
        disk.open(&path, OpenMode::Read).map_err(|_| error)
    });
    let locked = file.and_then(|file| match file.metadata()?.kind {
        NameKind::File => Ok((file.try_record_lock(lock)?, file)),
        _ => Err(io::Error::other(format!("{NAME} is no regular file"))),
    });
    match locked {
        Ok((true, file)) => {
            if lock == RecordLock::Exclusive {
                // Only for the error message of another process, so a full disk does not matter.
                let _full = sign(&*file, owner);
            }
            Ok(Some(file))
        }
        Ok((false, file)) => Err(Error::Owned {
            folder: settings.base.clone(),
            owner: owner_of(&*file),
        }),
        Err(cause) => {
            notices.push(format!(
                "cannot own {}: {cause}; nothing keeps another daemon from its files",
                settings.base.display()
            ));
            Ok(None)
        }
    }
}

/// Writes address and process number.
fn sign(file: &dyn DiskFile, owner: &str) -> io::Result<()> {
    // A file with further names was not created by kymo.
    if file.metadata()?.links != 1 {
        return Ok(());
    }
    let text = format!("{owner} {}\n", std::process::id());
    file.set_len(0)?;
    file.write_at(text.as_bytes(), 0)
}

fn owner_of(file: &dyn DiskFile) -> String {
    let mut text = [0; TEXT_MAX];
    let count = file.read_at(&mut text, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&text[..count]);
    text.trim().to_string()
}
