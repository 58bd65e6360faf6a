//! Folders of .rrd files, read again when they changed.
//!
//! Questions about all series look for files that the store does not know. Thousands of folders of known files would make
//! up most of such a question's time.

use crate::names;
use kymo_sys::disk::Metadata;
use kymo_sys::disk::NameKind;
use kymo_sys::tree::Tree;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A folder changed so recently may change again with the same time of modification: kernels count it in ticks, some
/// file systems in seconds.
const UNSETTLED_NS: i64 = 2_000_000_000;
/// Limit of a listing's age. Targets of links change without their folder.
const AGE_MAX_NS: i64 = 60_000_000_000;
/// Limit of the bytes of all listings.
const BYTES_MAX: usize = 4 << 20;

/// Names in a folder, each followed by a slash.
#[derive(Default)]
pub(crate) struct Folder {
    files: Vec<u8>,
    folders: Vec<u8>,
}

impl Folder {
    /// Reads a folder: its .rrd files, sockets, devices and folders.
    pub(crate) fn read(tree: &dyn Tree, path: &[u8]) -> io::Result<Folder> {
        let mut folder = Folder::default();
        tree.list(names::path(path), &mut |name, kind| {
            let names = match kind {
                NameKind::Directory => &mut folder.folders,
                NameKind::File if !name.ends_with(b".rrd") => return,
                NameKind::File | NameKind::Other => &mut folder.files,
            };
            names.extend_from_slice(name);
            names.push(b'/');
        })?;
        Ok(folder)
    }

    /// Names of .rrd files, sockets and devices.
    pub(crate) fn files(&self) -> impl Iterator<Item = &[u8]> {
        split(&self.files)
    }

    /// Names of folders.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &[u8]> {
        split(&self.folders)
    }
}

fn split(names: &[u8]) -> impl Iterator<Item = &[u8]> {
    names
        .split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty())
}

/// Folders as they were read, by path.
#[derive(Default)]
pub(crate) struct Listings(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    folders: HashMap<Vec<u8>, Listing>,
    bytes: usize,
}

struct Listing {
    /// Device, inode and time of modification.
    version: (u64, u64, i64),
    read_ns: i64,
    folder: Arc<Folder>,
}

impl Listings {
    /// The names in a folder, read again if the folder changed.
    pub(crate) fn folder(
        &self,
        tree: &dyn Tree,
        path: &[u8],
        now_ns: i64,
    ) -> io::Result<Arc<Folder>> {
        let stat = tree.stat(names::path(path))?;
        let version = version(&stat);
        let is_current = |listing: &&Listing| {
            listing.version == version && (0..AGE_MAX_NS).contains(&(now_ns - listing.read_ns))
        };
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listing) = kept.folders.get(path).filter(is_current) {
            return Ok(listing.folder.clone());
        }
        drop(kept);
        let folder = Arc::new(Folder::read(tree, path)?);
        // A simulated disk gives folders no time.
        if stat.mtime_ns > 0 && stat.mtime_ns + UNSETTLED_NS <= now_ns {
            let listing = Listing {
                version,
                read_ns: now_ns,
                folder: folder.clone(),
            };
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.insert(path, listing);
        }
        Ok(folder)
    }
}

impl Kept {
    fn insert(&mut self, path: &[u8], listing: Listing) {
        let bytes = size(path, &listing);
        if self.bytes + bytes > BYTES_MAX {
            *self = Kept::default();
        }
        if bytes > BYTES_MAX {
            return;
        }
        self.bytes += bytes;
        if let Some(old) = self.folders.insert(path.to_vec(), listing) {
            self.bytes -= size(path, &old);
        }
    }
}

fn size(path: &[u8], listing: &Listing) -> usize {
    let names = listing.folder.files.len() + listing.folder.folders.len();
    path.len() + names + size_of::<(Vec<u8>, Listing, Folder)>()
}

fn version(stat: &Metadata) -> (u64, u64, i64) {
    (stat.device, stat.inode, stat.mtime_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_sys::disk::{Disk, RealDisk};
    use kymo_sys::tree::Reach;
    use std::fs;
    use std::time::{Duration, SystemTime};

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_folder_is_read_again_when_it_changed_or_its_listing_is_old() {
        let root = std::env::temp_dir().join(format!("kymo-listings-{}", std::process::id()));
        let _left_over = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("d")).expect("a folder");
        let tree = RealDisk.tree(&root, Reach::Anywhere).expect("a tree");
        let path = root.to_str().expect("UTF-8").as_bytes();
        let listings = Listings::default();
        let changed = |s: u64| {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(s);
            let folder = fs::File::open(&root).expect("the folder");
            folder.set_modified(at).expect("a time");
        };
        let files = |now_s: i64| {
            let folder = listings.folder(&*tree, path, now_s * S).expect("a listing");
            assert_eq!(folder.folders().collect::<Vec<_>>(), [b"d"]);
            folder.files().count()
        };
        let put = |name: &str, at_s: u64| {
            fs::write(root.join(name), "").expect("a file");
            changed(at_s);
        };
        put("a.rrd", 1000);
        put("b.txt", 1000);
        assert_eq!(files(1001), 1);
        // The second change within one tick is seen, since the folder was not settled.
        put("b.rrd", 1000);
        assert_eq!(files(1010), 2);
        // The listing answers while the folder's time stays, for a minute.
        put("c.rrd", 1000);
        assert_eq!(files(1069), 2);
        assert_eq!(files(1071), 3);
        put("d.rrd", 1072);
        assert_eq!(files(1073), 4);
        // A clock that was set back makes no listing last.
        put("e.rrd", 1001);
        assert_eq!(files(1080), 5);
        put("f.rrd", 1001);
        assert_eq!(files(1079), 6);
        fs::remove_dir_all(&root).expect("the folder");
    }

    #[test]
    fn listings_have_a_limit() {
        let mut kept = Kept::default();
        let listing = |names: usize| Listing {
            version: (1, 1, 1),
            read_ns: 0,
            folder: Arc::new(Folder {
                files: vec![b'a'; names],
                folders: Vec::new(),
            }),
        };
        for n in 0..100_u8 {
            kept.insert(&[n], listing(BYTES_MAX / 10));
            let sum: usize = kept.folders.iter().map(|(path, one)| size(path, one)).sum();
            assert_eq!(sum, kept.bytes);
            assert!(sum <= BYTES_MAX && kept.folders.contains_key(&vec![n]));
        }
        kept.insert(b"x", listing(BYTES_MAX));
        assert!(kept.folders.is_empty() && kept.bytes == 0);
    }
}
