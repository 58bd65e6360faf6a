//! The mark of the process that writes the files of a configuration.

use kymo_sys::disk::{Disk, DiskFile, OpenMode};
use kymo_sys::tree::Reach;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Locks the file that marks the writer of this configuration's files in this folder. `None`: another process has the lock.
/// The file is one that other users can read, which is enough for its lock: they may run the poller another time.
pub(super) fn claim(
    disk: &dyn Disk,
    log_dir: &Path,
    config: &Path,
) -> io::Result<Option<Box<dyn DiskFile>>> {
    let path = log_dir.join(name(config));
    let put = disk.tree(log_dir, Reach::Beneath)?.put_empty(&path);
    put.or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Ok(()),
        _ => Err(error),
    })?;
    let file = disk.open(&path, OpenMode::Read).map_err(|error| {
        let shown = path.display();
        io::Error::new(error.kind(), format!("cannot lock {shown}: {error}"))
    })?;
    let is_ours = file.try_lock()?;
    Ok(is_ours.then_some(file))
}

/// Name of the file. It has a hash, as several configurations may share a folder.
fn name(config: &Path) -> String {
    let hash = kymo_rrd::spec::hash(config.as_os_str().as_bytes());
    format!(".kymo-poll-{hash:016x}")
}
