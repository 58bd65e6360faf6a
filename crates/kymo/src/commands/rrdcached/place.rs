//! Folder and settings of the store, from the options.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kymo_store::Settings;
use kymo_sys::disk::RealDisk;

use super::options::Options;

/// Base of names without `-b`, as in stock.
const NO_BASE: &str = "/tmp";

/// Settings of the store. Makes its folder if that needs care.
pub(super) fn settings(options: &Options) -> Result<Settings, String> {
    let folder = match (&options.journal, &options.base) {
        (Some(journal), _) => beginning(journal, "kymo")?,
        (None, Some(base)) => beginning(base, ".kymo")?,
        (None, None) => private(Path::new(NO_BASE), &options.identity())?,
    };
    let address = options.addresses.first();
    let address = address.map_or("a socket of the service manager".into(), |address| {
        String::from_utf8_lossy(&address.text).into_owned()
    });
    let base = options.base.clone().unwrap_or_else(|| NO_BASE.into());
    Ok(Settings {
        // Without -b the daemon owns no folder of files: it may write files anywhere.
        owner: options.base.is_some().then_some(address),
        beneath: options.daemon.beneath,
        stock_journals: options.journal.clone(),
        write_after: Duration::from_secs(options.write_after),
        files: options.files,
        jitter: Duration::from_secs(options.jitter),
        sweep_every: Duration::from_secs(options.sweep_every),
        store_bytes: options.store_bytes,
        max_series: options.max_series,
        max_new: options.max_new,
        ..Settings::new(folder, base)
    })
}

/// Folder of a store, which may be new. No store is begun beside another one.
fn beginning(above: &Path, name: &str) -> Result<PathBuf, String> {
    kymo_store::place_of_store(&RealDisk, above, name).map_err(|error| error.to_string())
}

/// A folder of this user's in one that all users may write to; the same command line gets the same
/// folder.
fn private(parent: &Path, identity: &str) -> Result<PathBuf, String> {
    // FNV-1a, 64 bits: a name and no secret.
    let hash = identity
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let folder = parent.join(format!(".kymo-rrdcached-{hash:016x}"));
    let cannot =
        |cause: &dyn std::fmt::Display| format!("cannot use {}: {cause}", folder.display());
    let mut builder = std::fs::DirBuilder::new();
    match builder.mode(0o700).create(&folder) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(cannot(&error)),
    }
    let stat = std::fs::symlink_metadata(&folder).map_err(|error| cannot(&error))?;
    let own = kymo_sys::privilege::Account::own().uid;
    if !stat.is_dir() || stat.uid() != own || stat.mode() & 0o077 != 0 {
        return Err(cannot(&"it is somebody else's"));
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_private_folder_is_ours_alone() {
        let parent =
            std::env::temp_dir().join(format!("kymo-rrdcached-place-{}", std::process::id()));
        std::fs::create_dir(&parent).unwrap();
        let folder = private(&parent, "a").unwrap();
        assert_eq!(private(&parent, "a").unwrap(), folder);
        assert_ne!(private(&parent, "b").unwrap(), folder);
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o770)).unwrap();
        assert!(
            private(&parent, "a")
                .unwrap_err()
                .ends_with("somebody else's")
        );
        std::fs::remove_dir(&folder).unwrap();
        symlink("/etc", &folder).unwrap();
        assert!(private(&parent, "a").is_err());
        std::fs::remove_dir_all(parent).unwrap();
    }
}
