//! Claims a store's folder, and the base of its files, for this process. A daemon does this first, so that the sockets
//! and the pid file that it replaces are not those of a running daemon.

use crate::error::{Error, Tried};
use crate::folder::owner;
use crate::settings::Settings;
use kymo_sys::disk::{Disk, DiskFile, OpenMode};
use std::path::Path;
use std::sync::Arc;

/// A claim of the folder and the base, which ends with its last clone.
#[derive(Clone)]
pub struct Claim {
    _locks: Arc<Vec<Box<dyn DiskFile>>>,
    /// Messages for the log.
    pub(crate) notices: Vec<String>,
}

impl Claim {
    /// An empty claim, for callers that only read.
    pub(crate) fn none() -> Claim {
        Claim {
            _locks: Arc::default(),
            notices: Vec::new(),
        }
    }

    /// Claims both, or returns an error that names the holder. Creates a missing folder.
    pub fn take(settings: &Settings, disk: &dyn Disk) -> Result<Claim, Error> {
        let folder = &settings.folder;
        disk.create_dir_all(folder).tried("make", folder)?;
        let lock = take_lock(disk, folder)?;
        let mut notices = Vec::new();
        let owned = owner::take(disk, settings, &mut notices)?;
        let locks = [Some(lock), owned].into_iter().flatten().collect();
        Ok(Claim {
            _locks: Arc::new(locks),
            notices,
        })
    }
}

fn take_lock(disk: &dyn Disk, folder: &Path) -> Result<Box<dyn DiskFile>, Error> {
    let path = folder.join("lock");
    let file = disk.open(&path, OpenMode::Create).tried("open", &path)?;
    if !file.try_lock().tried("lock", &path)? {
        let mut holder = [0; 20];
        let count = file.read_at(&mut holder, 0).unwrap_or(0);
        let holder = String::from_utf8_lossy(&holder[..count]).trim().to_string();
        return Err(Error::Locked { path, holder });
    }
    let holder = format!("{:<19}\n", std::process::id());
    // Only for the error message of another process, so a full disk does not matter.
    let _full = file.write_at(holder.as_bytes(), 0);
    Ok(file)
}
