//! The folder in which programs publish: its names, notices of changes, and left-over files.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use kymo_shm::epoch_of;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, Statx, StatxFlags, flock, fstat, openat,
    statx, unlinkat,
};
use rustix::io::Errno;

use super::quota::{self, Sweep};

/// Most names that are looked at.
const NAMES_MAX: usize = 65_536;
/// Seconds for which an unfinished file is left alone.
const UNFINISHED_S: i64 = 60;
const EVENT_BYTES: usize = 64 << 10;

/// The open folder.
pub(super) struct Folder {
    opened: OwnedFd,
    /// True if all users may make files there.
    is_shared: bool,
    /// Becomes readable when a name is made or removed; `None`: the collector looks from time to
    /// time only.
    watch: Option<OwnedFd>,
}

impl Folder {
    pub(super) fn open(path: &Path) -> Result<Folder, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let opened = openat(CWD, path, flags, Mode::empty())?;
        let is_shared = fstat(&opened)?.st_mode & 0o002 != 0;
        Ok(Folder {
            watch: watch(path, is_shared).ok(),
            opened,
            is_shared,
        })
    }

    /// Removes files above the quotas, if several users share the folder.
    pub(super) fn sweep(&self) -> Sweep {
        match self.is_shared {
            true => quota::sweep(&self.opened),
            false => Sweep::default(),
        }
    }

    /// A file that becomes readable when a name is made or removed.
    pub(super) fn watch(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// Discards notices, before a look at the folder.
    pub(super) fn forget_news(&self) {
        let mut events = vec![0; EVENT_BYTES];
        while let Some(watch) = &self.watch
            && rustix::io::read(watch, &mut events[..]).is_ok()
        {}
    }

    /// Names of publishers' files.
    pub(super) fn names(&self) -> Result<Vec<OsString>, Errno> {
        let dir = Dir::read_from(&self.opened)?;
        let names = dir.take(NAMES_MAX).filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().to_bytes();
            epoch_of(name).map(|_| OsStr::from_bytes(name).to_os_string())
        });
        let mut names: Vec<OsString> = names.collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Removes files that programs began and did not finish.
    pub(super) fn remove_unfinished(&self, now_s: i64) {
        let Ok(dir) = Dir::read_from(&self.opened) else {
            return;
        };
        for entry in dir.take(NAMES_MAX).flatten() {
            let name = entry.file_name().to_bytes();
            if name.strip_suffix(b".new").and_then(epoch_of).is_none() {
                continue;
            }
            let name = OsStr::from_bytes(name);
            if self.age_s(name, now_s) > UNFINISHED_S && self.is_free(name) {
                self.remove(name);
            }
        }
    }

    fn age_s(&self, name: &OsStr, now_s: i64) -> i64 {
        let found = statx(
            &self.opened,
            name,
            AtFlags::SYMLINK_NOFOLLOW,
            StatxFlags::BASIC_STATS,
        );
        found.map_or(0, |found: Statx| {
            now_s.saturating_sub(found.stx_ctime.tv_sec)
        })
    }

    fn is_free(&self, name: &OsStr) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.opened, name, flags, Mode::empty());
        file.is_ok_and(|file| flock(file, FlockOperation::NonBlockingLockShared).is_ok())
    }

    /// Owner of a file.
    pub(super) fn owner(&self, name: &OsStr) -> Option<u32> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = statx(&self.opened, name, flags, StatxFlags::UID);
        found.ok().map(|found| found.stx_uid)
    }

    /// Removes a name. True if it is gone, also if somebody else removed it.
    pub(super) fn remove(&self, name: &OsStr) -> bool {
        matches!(
            unlinkat(&self.opened, name, AtFlags::empty()),
            Ok(()) | Err(Errno::NOENT)
        )
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.opened.as_fd()
    }
}

fn watch(path: &Path, is_shared: bool) -> Result<OwnedFd, Errno> {
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let mut what = WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM | WatchFlags::DELETE;
    if is_shared {
        // In a shared folder other names and growing files need room as well.
        what |= WatchFlags::CREATE | WatchFlags::MODIFY;
    }
    inotify::add_watch(&watch, path, what | WatchFlags::ONLYDIR)?;
    Ok(watch)
}
