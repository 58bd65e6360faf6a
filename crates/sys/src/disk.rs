//! The few file operations that kymo's stores need, as a trait, and the real disk.
//! `SimDisk` is the simulated twin.

use crate::disk_file::{RealFile, kind_of, metadata_of};
use crate::tree::{Reach, RealTree, Tree};
use rustix::fs::OFlags;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
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
    /// Makes `dir` and what is missing above it, mode 0750.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Opens `path`.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>>;
    /// Gives `from` the name `to`, replacing what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file's name.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn rmdir(&self, dir: &Path) -> io::Result<()>;
    /// Calls `each` with every name in `dir`, in no order. Names that are not UTF-8 are left out.
    fn list(&self, dir: &Path, each: &mut dyn FnMut(&str, NameKind)) -> io::Result<()>;
    /// Makes the names in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// `lstat`.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;
    /// What `path` is, not following links.
    fn name_kind(&self, path: &Path) -> io::Result<NameKind>;
    /// Makes everything on the file system of `path` durable (`syncfs`). `Unsupported` where that reaches no disk: each file
    /// and each folder has to be synced.
    fn sync_file_system(&self, path: &Path) -> io::Result<()>;
    /// The user whose files this process makes.
    fn user(&self) -> u32;
    /// The files of others below `base`, by names from outside.
    fn tree(&self, base: &Path, reach: Reach) -> io::Result<Box<dyn Tree>>;
}

/// <linux/magic.h>: `FUSE_SUPER_MAGIC`.
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

/// Whether `error` says that there is no room: the disk is full or the quota is used up.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
