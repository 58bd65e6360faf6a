//! How much room a file system has, by statvfs. It may take for ever.

use rustix::fs::StatVfsMountFlags;

use crate::kernel_file::{Errno, Root};

/// Room of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Bytes of a block.
    pub unit: u64,
    /// Blocks there are.
    pub blocks: u64,
    /// Blocks that are free.
    pub free: u64,
    /// Blocks that are free for all, not for root alone.
    pub available: u64,
    /// Files there may be; 0 where that is not limited.
    pub files: u64,
    /// Free ones among them.
    pub free_files: u64,
    /// True: the file system is read-only.
    pub is_read_only: bool,
}

/// The room at a mount point, which is a path from the root on.
pub fn of(root: &Root, point: &str) -> Result<Space, Errno> {
    let path = root.path().join(point.trim_start_matches('/'));
    let stats = rustix::fs::statvfs(&path)?;
    Ok(Space {
        unit: stats.f_frsize,
        blocks: stats.f_blocks,
        free: stats.f_bfree,
        available: stats.f_bavail,
        files: stats.f_files,
        free_files: stats.f_ffree,
        is_read_only: stats.f_flag.contains(StatVfsMountFlags::RDONLY),
    })
}
