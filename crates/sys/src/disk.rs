//! The few file operations that kymo's stores need, as a trait, and the real disk.
//! `SimDisk` is the simulated twin.

use crate::clock::{Clock as _, RealClock};
use crate::disk_file::{RealFile, kind_of, metadata_of};
use crate::tree::{Reach, RealTree, Tree};
use rustix::fs::OFlags;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

pub use crate::disk_file::{DiskFile, Metadata, NameKind, RecordLock};

/// How a file is opened. Never through a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Existing file, reading only.
    Read,
    /// Existing file, reading and writing.
    Write,
    /// Reading and writing; made with mode 0640 when missing.
    Create,
    /// Reading and writing; must not exist yet, so it is a fresh inode.
    CreateNew,
}

/// A file system.
pub trait Disk: Send + Sync {
    /// Makes `dir` and missing folders above it, mode 0750.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Opens `path`.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>>;
    /// Gives `from` the name `to`, replacing what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file another name, `to`, that must not exist. `Unsupported` where there are no such names.
    fn link(&self, _file: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Removes a file's name.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn rmdir(&self, dir: &Path) -> io::Result<()>;
    /// Calls `each` with every name in `dir`, in no order. Names that are not UTF-8 are left out.
    fn list(&self, dir: &Path, each: &mut dyn FnMut(&str, NameKind)) -> io::Result<()>;
    /// Identity and last change of a folder. `None`: not known, or so recent that a later change may have the same time.
    fn folder_stamp(&self, _dir: &Path) -> Option<FolderStamp> {
        None
    }
    /// Makes the names in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// `lstat`.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;
    /// Kind of `path`; does not follow links.
    fn name_kind(&self, path: &Path) -> io::Result<NameKind>;
    /// Makes everything on the file system of `path` durable (`syncfs`). `Unsupported` where that reaches no disk: each file
    /// and each folder has to be synced.
    fn sync_file_system(&self, path: &Path) -> io::Result<()>;
    /// The user whose files this process makes.
    fn user(&self) -> u32;
    /// The files of others below `base`, by names from outside.
    fn tree(&self, base: &Path, reach: Reach) -> io::Result<Box<dyn Tree>>;
}

/// Identity and last change of a folder: while they stay, its names do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderStamp {
    device_inode: (u64, u64),
    /// Seconds and nanoseconds of the last change of its names, and of anything.
    changed: [i64; 4],
}

/// A change within this time has a time of its own: the kernel stamps changes by a clock that moves each 10 ms at the slowest,
/// and file systems such as FAT by one of 2 s.
const STAMP_AGE_MIN_S: i64 = 3;

/// From Linux's list of file systems: `FUSE_SUPER_MAGIC`.
const FUSE: libc::c_long = 0x6573_5546;

/// The machine's own file systems.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o750).create(dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        // The standard library adds O_CLOEXEC.
        let mut options = OpenOptions::new();
        options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
        options.read(true).write(mode != OpenMode::Read).mode(0o640);
        match mode {
            OpenMode::Read | OpenMode::Write => {}
            OpenMode::Create => {
                options.create(true);
            }
            OpenMode::CreateNew => {
                options.create_new(true);
            }
        }
        Ok(Box::new(RealFile::new(options.open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn link(&self, file: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(file, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn rmdir(&self, dir: &Path) -> io::Result<()> {
        std::fs::remove_dir(dir)
    }

    fn list(&self, dir: &Path, each: &mut dyn FnMut(&str, NameKind)) -> io::Result<()> {
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            if let Some(name) = entry.file_name().to_str() {
                each(name, kind_of(entry.file_type()?));
            }
        }
        Ok(())
    }

    fn folder_stamp(&self, dir: &Path) -> Option<FolderStamp> {
        let found = std::fs::metadata(dir).ok()?;
        let now_s = RealClock.now().real_ns.div_euclid(1_000_000_000);
        let is_settled = now_s.saturating_sub(found.ctime()) >= STAMP_AGE_MIN_S;
        is_settled.then(|| FolderStamp {
            device_inode: (found.dev(), found.ino()),
            changed: [
                found.mtime(),
                found.mtime_nsec(),
                found.ctime(),
                found.ctime_nsec(),
            ],
        })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(metadata_of(&std::fs::symlink_metadata(path)?))
    }

    fn name_kind(&self, path: &Path) -> io::Result<NameKind> {
        Ok(kind_of(std::fs::symlink_metadata(path)?.file_type()))
    }

    fn sync_file_system(&self, path: &Path) -> io::Result<()> {
        let folder = File::open(path)?;
        // The kernel does not pass `syncfs` on to the program behind FUSE, and reports success.
        if rustix::fs::fstatfs(&folder)?.f_type == FUSE {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(rustix::fs::syncfs(folder)?)
    }

    fn user(&self) -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn tree(&self, base: &Path, reach: Reach) -> io::Result<Box<dyn Tree>> {
        Ok(Box::new(RealTree::open(base, reach)?))
    }
}

/// Syncs the names of a folder and of the folders above: a synced file in a folder without a durable name is lost
/// with the folder. Skips folders above that this process may not open; their owners keep them.
pub fn sync_names_of(folder: &Path) {
    let folder = std::path::absolute(folder).unwrap_or_default();
    for above in folder.ancestors().skip(1) {
        let _of_others = File::open(above).and_then(|above| above.sync_all());
    }
}

/// True if `error` says that there is no room: the disk is full or the quota is used up.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A folder for one test.
    struct Scratch(std::path::PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn scratch(name: &str) -> Scratch {
        let name = format!("kymo-real-disk-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        RealDisk.create_dir_all(&folder).expect("a folder");
        Scratch(folder)
    }

    #[test]
    fn files_are_opened_as_asked_and_never_through_a_link() {
        let folder = scratch("open");
        let path = folder.0.join("file");
        let open = |mode| RealDisk.open(&path, mode);
        for mode in [OpenMode::Read, OpenMode::Write] {
            let error = open(mode).err().expect("no file");
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{mode:?}");
        }
        let made = open(OpenMode::CreateNew).expect("a file");
        made.write_at(b"text", 0).expect("written");
        let error = open(OpenMode::CreateNew).err().expect("a file is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        for mode in [OpenMode::Read, OpenMode::Write, OpenMode::Create] {
            let mut text = [0; 10];
            let file = open(mode).expect("the file");
            assert_eq!(file.read_at(&mut text, 0).expect("read"), 4);
            let is_written = file.write_at(b"text", 0).is_ok();
            assert_eq!(is_written, mode != OpenMode::Read, "{mode:?}");
        }
        let mode = std::fs::metadata(&path)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o137, 0, "not for others, not to be executed");
        let link = folder.0.join("link");
        symlink(&path, &link).expect("a link");
        for mode in [OpenMode::Read, OpenMode::Write, OpenMode::Create] {
            assert!(RealDisk.open(&link, mode).is_err(), "{mode:?}");
        }
    }

    #[test]
    fn names_are_listed_renamed_and_removed() {
        let folder = scratch("names");
        let below = |name: &str| folder.0.join(name);
        let listed = || {
            let mut found = BTreeMap::new();
            let mut each =
                |name: &str, kind| assert!(found.insert(name.to_string(), kind).is_none());
            RealDisk.list(&folder.0, &mut each).expect("listed");
            found
        };
        RealDisk
            .create_dir_all(&below("dir/inner"))
            .expect("folders");
        RealDisk
            .open(&below("old"), OpenMode::Create)
            .expect("a file");
        RealDisk
            .open(&below("new"), OpenMode::Create)
            .expect("a file");
        symlink("old", below("link")).expect("a link");
        let expect = |names: &[(&str, NameKind)]| -> BTreeMap<String, NameKind> {
            let own = names.iter().map(|(name, kind)| (name.to_string(), *kind));
            own.collect()
        };
        let (file, directory, other) = (NameKind::File, NameKind::Directory, NameKind::Other);
        let all = [
            ("dir", directory),
            ("link", other),
            ("new", file),
            ("old", file),
        ];
        assert_eq!(listed(), expect(&all));
        for (name, kind) in all {
            assert_eq!(RealDisk.name_kind(&below(name)).expect(name), kind);
            assert_eq!(RealDisk.metadata(&below(name)).expect(name).kind, kind);
        }
        assert!(RealDisk.rmdir(&below("dir")).is_err(), "it is not empty");
        RealDisk.rmdir(&below("dir/inner")).expect("removed");
        RealDisk.rmdir(&below("dir")).expect("removed");
        RealDisk
            .rename(&below("old"), &below("new"))
            .expect("renamed");
        RealDisk.unlink(&below("link")).expect("removed");
        assert_eq!(listed(), expect(&[("new", file)]));
        RealDisk.sync_dir(&folder.0).expect("synced");
        assert!(RealDisk.sync_dir(&below("none")).is_err());
        sync_names_of(&below("none"));
    }

    #[test]
    fn full_disks_and_quotas_are_full() {
        for (kind, full) in [
            (io::ErrorKind::StorageFull, true),
            (io::ErrorKind::QuotaExceeded, true),
            (io::ErrorKind::PermissionDenied, false),
        ] {
            assert_eq!(is_full(&kind.into()), full, "{kind:?}");
        }
    }

    #[test]
    fn files_belong_to_this_user() {
        let folder = scratch("user");
        let made = RealDisk.metadata(&folder.0).expect("a folder");
        assert_eq!(made.owner, RealDisk.user());
        let synced = RealDisk.sync_file_system(&folder.0);
        assert!(synced.is_ok(), "{synced:?}");
    }
}
