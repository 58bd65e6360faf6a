//! The folder in which programs publish: its names, what is new there, and what was left behind.

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

/// Names that are looked at.
const NAMES_MAX: usize = 65_536;
/// What is still being made is left alone for so long.
const UNFINISHED_S: i64 = 60;
const EVENT_BYTES: usize = 64 << 10;

/// The folder, open.
pub(super) struct Folder {
    opened: OwnedFd,
    /// All users make files there.
    is_shared: bool,
    /// Can be read when a name was made or removed; `None`: it is looked at from time to time only.
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

    /// What can be read when a name was made or removed.
    pub(super) fn watch(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// Forgets what was to be read: the folder is looked at.
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

    /// Whose a file is.
    pub(super) fn owner(&self, name: &OsStr) -> Option<u32> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = statx(&self.opened, name, flags, StatxFlags::UID);
        found.ok().map(|found| found.stx_uid)
    }

    /// One that somebody else has removed is gone as well.
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
        // Names of no publisher and files that grow take room as well.
        what |= WatchFlags::CREATE | WatchFlags::MODIFY;
    }
    inotify::add_watch(&watch, path, what | WatchFlags::ONLYDIR)?;
    Ok(watch)
}
