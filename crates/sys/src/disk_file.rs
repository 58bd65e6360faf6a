//! An open file, as a trait, and the real one, with what `stat` says of it. Positional reads and writes only: no cursor; memory
//! maps are this file's own affair.

use crate::window::Window;
use std::fs::{File, TryLockError};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Result of `stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Kind of the file.
    pub kind: NameKind,
    /// Length in bytes.
    pub size_bytes: u64,
    /// Bytes that the file system set aside (`st_blocks` × 512).
    pub allocated_bytes: u64,
    /// Inode number.
    pub inode: u64,
    /// The file system it is on.
    pub device: u64,
    /// Last modification, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Names it has.
    pub links: u64,
    /// Number of the owner.
    pub owner: u32,
    /// Permission bits.
    pub mode: u32,
}

/// A lock on all of a file that other programs' `fcntl` locks respect, and which respects theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordLock {
    /// Many may read.
    Shared,
    /// One writes.
    Exclusive,
}

/// Kind of a name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A link, a socket or anything else, which kymo leaves alone.
    Other,
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Reads until `buffer` is full or the file ends; the number of bytes read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes`, with one system call unless the kernel takes less.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Writes zeros where [`DiskFile::map`] is to be used, so that the kernel writes no more than the pages that were touched.
    fn write_zeros(&self, range: Range<u64>) -> io::Result<()> {
        let len = range.end.saturating_sub(range.start);
        self.write_at(&vec![0; len as usize], range.start)
    }
    /// Has short writes into a range that was written before cost no system call from now on, where that can be done.
    /// The range begins at a page and takes the place of an earlier one.
    fn map(&self, _range: Range<u64>) {}
    /// `fdatasync`. After an error the file must not be trusted again.
    fn sync_data(&self) -> io::Result<()>;
    /// Cuts or extends (with zeros) to `size_bytes`.
    fn set_len(&self, size_bytes: u64) -> io::Result<()>;
    /// `fstat`.
    fn metadata(&self) -> io::Result<Metadata>;
    /// Takes the exclusive lock without waiting; `false` when another open file holds it.
    /// The lock ends when the file is closed, also by the death of the process.
    fn try_lock(&self) -> io::Result<bool>;
    /// Takes a record lock (OFD: it belongs to this open file, not to the process) without waiting; `false` if another lock
    /// conflicts. The lock ends when the file is closed here, even if a newly forked child still has it open.
    fn try_record_lock(&self, kind: RecordLock) -> io::Result<bool>;
}

pub(crate) struct RealFile {
    file: File,
    window: Mutex<Option<Window>>,
    has_record_lock: AtomicBool,
}

/// Longer writes are cheaper by a system call than by touching new pages.
const SHORT: usize = 4096;
/// The kernel keeps files in no smaller pieces.
const PAGE: usize = 4096;

impl RealFile {
    pub(crate) fn new(file: File) -> RealFile {
        RealFile {
            file,
            window: Mutex::default(),
            has_record_lock: AtomicBool::new(false),
        }
    }
}

impl Drop for RealFile {
    fn drop(&mut self) {
        if *self.has_record_lock.get_mut() {
            // The lock ends with the last descriptor at the latest.
            let _ = record_lock(&self.file, libc::F_UNLCK);
        }
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self
                .file
                .read_at(&mut buffer[filled..], offset + filled as u64)
            {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if bytes.len() < SHORT {
            let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(window) = window
                .as_mut()
                .filter(|window| window.holds(offset, bytes.len()))
            {
                window.write(bytes, offset);
                return Ok(());
            }
        }
        self.file.write_all_at(bytes, offset)
    }

    /// Writes page by page. The kernel's cache has one piece of memory for the bytes of one call, of a MiB and more, and a
    /// touched byte in a mapping makes all of its piece dirty.
    fn write_zeros(&self, mut range: Range<u64>) -> io::Result<()> {
        while range.start < range.end {
            let page = (range.start / PAGE as u64 + 1) * PAGE as u64;
            let piece = page.min(range.end) - range.start;
            self.file
                .write_all_at(&[0; PAGE][..piece as usize], range.start)?;
            range.start += piece;
        }
        Ok(())
    }

    fn map(&self, range: Range<u64>) {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        *window = Window::open(&self.file, range);
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        self.file.set_len(size_bytes)
    }

    /// By `fstat`: std's `statx` costs half as much again.
    fn metadata(&self) -> io::Result<Metadata> {
        let stat = rustix::fs::fstat(&self.file)?;
        Ok(Metadata {
            kind: match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
                rustix::fs::FileType::RegularFile => NameKind::File,
                rustix::fs::FileType::Directory => NameKind::Directory,
                _ => NameKind::Other,
            },
            size_bytes: stat.st_size.unsigned_abs(),
            allocated_bytes: stat.st_blocks.unsigned_abs() * 512,
            inode: stat.st_ino,
            device: stat.st_dev,
            mtime_ns: stat
                .st_mtime
                .saturating_mul(1_000_000_000)
                .saturating_add_unsigned(stat.st_mtime_nsec),
            links: stat.st_nlink,
            owner: stat.st_uid,
            mode: stat.st_mode & 0o7777,
        })
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn try_record_lock(&self, kind: RecordLock) -> io::Result<bool> {
        let kind = match kind {
            RecordLock::Shared => libc::F_RDLCK,
            RecordLock::Exclusive => libc::F_WRLCK,
        };
        let is_ours = record_lock(&self.file, kind)?;
        self.has_record_lock.fetch_or(is_ours, Ordering::Relaxed);
        Ok(is_ours)
    }
}

/// `fcntl(F_OFD_SETLK)`; rustix has only the process's own locks, which closing any descriptor of the file drops.
#[allow(unsafe_code)]
fn record_lock(file: &File, kind: libc::c_int) -> io::Result<bool> {
    // SAFETY: a flock structure of zeros is a valid one.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the structure outlives the call.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) };
    if answer == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(error),
    }
}

pub(crate) fn metadata_of(stat: &std::fs::Metadata) -> Metadata {
    Metadata {
        kind: kind_of(stat.file_type()),
        size_bytes: stat.len(),
        allocated_bytes: stat.blocks() * 512,
        inode: stat.ino(),
        device: stat.dev(),
        mtime_ns: stat
            .mtime()
            .saturating_mul(1_000_000_000)
            .saturating_add(stat.mtime_nsec()),
        links: stat.nlink(),
        owner: stat.uid(),
        mode: stat.mode() & 0o7777,
    }
}

pub(crate) fn kind_of(kind: std::fs::FileType) -> NameKind {
    if kind.is_file() {
        NameKind::File
    } else if kind.is_dir() {
        NameKind::Directory
    } else {
        NameKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_lock_ends_here_whoever_else_has_the_file_open() {
        let path = std::env::temp_dir().join(format!("kymo-record-lock-{}", std::process::id()));
        let open = || {
            let mut options = File::options();
            let options = options.create(true).truncate(false).read(true).write(true);
            options.open(&path).unwrap()
        };
        let file = open();
        // As a child has it until its exec: another descriptor of the same open file.
        let inherited = file.try_clone().unwrap();
        let file = RealFile::new(file);
        assert!(file.try_record_lock(RecordLock::Exclusive).unwrap());
        let other = RealFile::new(open());
        assert!(!other.try_record_lock(RecordLock::Exclusive).unwrap());
        drop(file);
        assert!(other.try_record_lock(RecordLock::Exclusive).unwrap());
        drop(inherited);
        std::fs::remove_file(&path).unwrap();
    }
}
