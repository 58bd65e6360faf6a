//! Files that belong to others, opened by names from outside: the only place where such a name becomes a path.
//!
//! With [`Reach::Beneath`] nothing outside of the base is opened, whatever `..` or a link says, even one that
//! is put there this moment: the kernel itself refuses (`openat2`, RESOLVE_BENEATH).

use crate::disk_file::{DiskFile, Metadata, NameKind, RealFile, metadata_of};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Uid};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Permission bits of a new file.
const MODE: Mode = Mode::from_raw_mode(0o644);

/// Flags of a new file whose name must be free.
const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Names stay below the folder they begin at, and follow no link of the kernel's own.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// How far names reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Anywhere, links are followed.
    Anywhere,
    /// Beneath the base; links are followed as long as they stay there.
    Beneath,
}

/// How a file of a tree is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
    /// Reading and writing; reading updates no access time, which would cost as much as reading, where the file is the
    /// caller's own.
    Update,
}

/// Treatment of a file that has the name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The new file replaces it, and takes its permission bits.
    Replace,
    /// As [`Existing::Replace`]; the new file also takes its owner and its group, as far as that is allowed. Without it a new file
    /// has the permission bits that the umask leaves.
    Succeed,
    /// The file stays: `AlreadyExists`.
    Keep,
}

/// Durability of a file that is put in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safe {
    /// Bytes and name are on the disk when the call returns.
    Synced,
    /// Whenever the kernel likes.
    Unsynced,
}

/// Files below a base, by absolute path. What leads outside is `EXDEV`.
pub trait Tree: Send + Sync {
    /// `stat`, following links.
    fn stat(&self, path: &Path) -> io::Result<Metadata>;
    /// Opens an existing regular file.
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>>;
    /// The path without links, `.` and `..`, of something that exists.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;
    /// The path without links that a new file of this name gets, in a folder that exists.
    fn place(&self, path: &Path) -> io::Result<PathBuf> {
        let folder = self.resolve(path.parent().unwrap_or(Path::new("/")))?;
        Ok(folder.join(path.file_name().ok_or(Errno::ISDIR)?))
    }
    /// Puts a file with these bytes in place: a fresh inode, mode 0644, named by one rename. Returns the metadata of the
    /// new file.
    fn put(
        &self,
        path: &Path,
        bytes: &[u8],
        existing: Existing,
        safe: Safe,
    ) -> io::Result<Metadata> {
        self.put_pieces(path, &mut |out| out.write_all(bytes), existing, safe)
    }
    /// Puts a file in place as [`Tree::put`] does; `write` writes its bytes in any number of pieces.
    fn put_pieces(
        &self,
        path: &Path,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
        existing: Existing,
        safe: Safe,
    ) -> io::Result<Metadata>;
    /// Puts an empty file in place, mode 0644; fails if the name is taken.
    fn put_empty(&self, path: &Path) -> io::Result<()> {
        let nothing = &mut |_: &mut dyn Write| Ok(());
        self.put_pieces(path, nothing, Existing::Keep, Safe::Unsynced)?;
        Ok(())
    }
    /// Puts a file in place, and gives the one that had the name before the name `before` in the same folder: both are whole at any
    /// moment. Where the file system cannot exchange two names, the first one is missing for a moment. Permissions and owner are those
    /// of [`Existing::Succeed`].
    fn roll(&self, path: &Path, before: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Removes a file's name, durably when this returns. A link is removed, not its target.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder and missing folders above it, mode 0755.
    fn make_folders(&self, path: &Path) -> io::Result<()>;
    /// Every name in a folder, links followed, in no order; names that cannot be read are left out.
    fn list(&self, path: &Path, each: &mut dyn FnMut(&[u8], NameKind)) -> io::Result<()>;
}

/// The machine's own files.
pub(crate) struct RealTree {
    base: PathBuf,
    folder: Option<OwnedFd>,
    /// A file was another user's: with these O_NOATIME is not tried any more.
    has_foreign: AtomicBool,
}

impl RealTree {
    pub(crate) fn open(base: &Path, reach: Reach) -> io::Result<RealTree> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = match reach {
            Reach::Anywhere => None,
            Reach::Beneath => Some(rustix::fs::open(base, flags, Mode::empty())?),
        };
        Ok(RealTree {
            base: base.into(),
            folder,
            has_foreign: AtomicBool::new(false),
        })
    }

    fn open_flags(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags
            | OFlags::CLOEXEC
            | match flags.contains(OFlags::PATH) {
                true => OFlags::empty(),
                // A FIFO that has taken a file's place must not stop a worker.
                false => OFlags::NONBLOCK | OFlags::NOCTTY,
            };
        let Some(folder) = &self.folder else {
            return Ok(rustix::fs::open(path, flags, Mode::empty())?);
        };
        let inside = self.inside(path)?;
        loop {
            match rustix::fs::openat2(folder, inside, flags, Mode::empty(), BENEATH) {
                // A rename somewhere made the kernel unsure.
                Err(Errno::AGAIN) => {}
                Err(Errno::NOSYS) => {
                    return self.open_without_openat2(folder.as_fd(), inside, flags);
                }
                answer => return Ok(answer?),
            }
        }
    }

    /// Kernels before 5.6, and sandboxes that do not know the call: no link at all is followed.
    fn open_without_openat2(
        &self,
        folder: BorrowedFd<'_>,
        inside: &Path,
        flags: OFlags,
    ) -> io::Result<OwnedFd> {
        let mut names = inside.iter().peekable();
        let mut at: Option<OwnedFd> = None;
        while let Some(name) = names.next() {
            if name == ".." {
                return Err(Errno::XDEV.into());
            }
            let step = match names.peek() {
                Some(_) => OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                None => flags,
            };
            let from = at.as_ref().map_or(folder, |fd| fd.as_fd());
            let next = rustix::fs::openat(from, name, step | OFlags::NOFOLLOW, Mode::empty())?;
            at = Some(next);
        }
        at.ok_or_else(|| Errno::ISDIR.into())
    }

    fn open_update(&self, path: &Path) -> io::Result<OwnedFd> {
        if !self.has_foreign.load(Ordering::Relaxed) {
            let opened = self.open_flags(path, OFlags::RDWR | OFlags::NOATIME);
            let is_foreign = |error: &io::Error| error.raw_os_error() == Some(libc::EPERM);
            if !opened.as_ref().is_err_and(is_foreign) {
                return opened;
            }
            self.has_foreign.store(true, Ordering::Relaxed);
        }
        self.open_flags(path, OFlags::RDWR)
    }

    fn inside<'a>(&self, path: &'a Path) -> io::Result<&'a Path> {
        match path.strip_prefix(&self.base) {
            Ok(inside) if inside.as_os_str().is_empty() => Ok(Path::new(".")),
            Ok(inside) => Ok(inside),
            Err(_) => Err(Errno::XDEV.into()),
        }
    }

    fn parent(&self, path: &Path) -> io::Result<OwnedFd> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        self.open_flags(parent, OFlags::PATH | OFlags::DIRECTORY)
    }
}

impl Tree for RealTree {
    fn stat(&self, path: &Path) -> io::Result<Metadata> {
        match &self.folder {
            None => Ok(metadata_of(&std::fs::metadata(path)?)),
            Some(_) => {
                let file = File::from(self.open_flags(path, OFlags::PATH)?);
                Ok(metadata_of(&file.metadata()?))
            }
        }
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let opened = match access {
            Access::Read => self.open_flags(path, OFlags::RDONLY)?,
            Access::Write => self.open_flags(path, OFlags::RDWR)?,
            Access::Update => self.open_update(path)?,
        };
        Ok(Box::new(RealFile::new(File::from(opened))))
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let resolved = match plain(path) {
            Some(resolved) => resolved?,
            None => std::fs::canonicalize(path)?,
        };
        match self.folder.is_some() && !resolved.starts_with(&self.base) {
            true => Err(Errno::XDEV.into()),
            false => Ok(resolved),
        }
    }

    fn put_pieces(
        &self,
        path: &Path,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
        existing: Existing,
        safe: Safe,
    ) -> io::Result<Metadata> {
        let folder = self.parent(path)?;
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        let old = file_stat(&folder, name)?;
        if old.is_some() && existing == Existing::Keep {
            return Err(Errno::EXIST.into());
        }
        let (mut file, unfinished) = unfinished_file(&folder, name.as_bytes())?;
        let mut put = || {
            write(&mut file)?;
            give_access(&file, old.as_ref(), existing)?;
            if safe == Safe::Synced {
                file.sync_all()?;
            }
            let stat = metadata_of(&file.metadata()?);
            rustix::fs::renameat(&folder, &unfinished[..], &folder, name)?;
            Ok(stat)
        };
        let written = put();
        if written.is_err() {
            let _nothing_more_to_do =
                rustix::fs::unlinkat(&folder, &unfinished[..], AtFlags::empty());
        } else if safe == Safe::Synced {
            sync_folder(&folder)?;
        }
        written
    }

    /// An empty file has no half that a reader could see, so it gets its name at once: a third of a rename's cost.
    fn put_empty(&self, path: &Path) -> io::Result<()> {
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        let mode = Mode::from_raw_mode(0o600);
        let file = match &self.folder {
            None => rustix::fs::open(path, NEW, mode)?,
            Some(folder) => {
                let inside = self.inside(path)?;
                match rustix::fs::openat2(folder, inside, NEW, mode, BENEATH) {
                    Err(Errno::AGAIN | Errno::NOSYS) => {
                        rustix::fs::openat(self.parent(path)?, name, NEW, mode)?
                    }
                    answer => answer?,
                }
            }
        };
        Ok(rustix::fs::fchmod(file, MODE)?)
    }

    fn roll(&self, path: &Path, before: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = self.parent(path)?;
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        let before = before.file_name().ok_or(Errno::ISDIR)?;
        let old = file_stat(&folder, name)?;
        let (mut file, unfinished) = unfinished_file(&folder, name.as_bytes())?;
        let rolled = file
            .write_all(bytes)
            .and_then(|()| give_access(&file, old.as_ref(), Existing::Succeed))
            .and_then(|()| match old {
                None => Ok(rustix::fs::renameat(
                    &folder,
                    &unfinished[..],
                    &folder,
                    name,
                )?),
                Some(_) => roll_names(&folder, &unfinished, name, before),
            });
        if rolled.is_err() {
            let _nothing_more_to_do =
                rustix::fs::unlinkat(&folder, &unfinished[..], AtFlags::empty());
        }
        rolled
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let folder = self.parent(path)?;
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        rustix::fs::unlinkat(&folder, name, AtFlags::empty())?;
        sync_folder(&folder)
    }

    fn make_folders(&self, path: &Path) -> io::Result<()> {
        let Some(base) = &self.folder else {
            return std::fs::create_dir_all(path);
        };
        let inside = self.inside(path)?;
        let mut above = self.base.clone();
        let mut at = rustix::fs::openat(base, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        for name in inside.iter().filter(|name| *name != ".") {
            match rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            above.push(name);
            at = self.open_flags(&above, OFlags::PATH | OFlags::DIRECTORY)?;
        }
        Ok(())
    }

    fn list(&self, path: &Path, each: &mut dyn FnMut(&[u8], NameKind)) -> io::Result<()> {
        let folder = self.open_flags(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::RegularFile => NameKind::File,
                FileType::Directory => NameKind::Directory,
                _ => match rustix::fs::statat(&folder, entry.file_name(), AtFlags::empty()) {
                    Ok(stat) => kind_of(FileType::from_raw_mode(stat.st_mode)),
                    Err(_) => continue,
                },
            };
            each(name, kind);
        }
        Ok(())
    }
}

/// A path that has no link and no `..` in it, by one system call; `None` if that does not tell.
fn plain(path: &Path) -> Option<io::Result<PathBuf>> {
    let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(is_plain) {
        return None;
    }
    let (flags, resolve) = (OFlags::PATH | OFlags::CLOEXEC, ResolveFlags::NO_SYMLINKS);
    match rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), resolve) {
        Ok(_) => Some(Ok(path.components().collect())),
        // A link; a kernel before 5.6.
        Err(Errno::LOOP | Errno::NOSYS | Errno::AGAIN) => None,
        Err(errno) => Some(Err(errno.into())),
    }
}

/// Permissions and owner of a file that exists; anything but a file is refused.
fn file_stat(folder: &OwnedFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(folder, name, AtFlags::empty()) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            Ok(Some(stat))
        }
        Ok(_) => Err(Errno::INVAL.into()),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives a new file the permissions of the old one, and perhaps its owner, or else those of new files.
fn give_access(file: &File, old: Option<&Stat>, existing: Existing) -> io::Result<()> {
    let mode = match (old, existing) {
        (Some(old), Existing::Replace | Existing::Succeed | Existing::Keep) => {
            Mode::from_raw_mode(old.st_mode)
        }
        (None, Existing::Succeed) => Mode::from_raw_mode(0o666) - umask(),
        (None, Existing::Replace | Existing::Keep) => MODE,
    };
    if let Some(old) = old.filter(|_| existing == Existing::Succeed) {
        let new = rustix::fs::fstat(file)?;
        let (user, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        // Only root gives files away; others may give them to their groups.
        let is_done = (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid)
            || rustix::fs::fchown(file, Some(user), Some(group)).is_ok();
        if !is_done {
            let _is_kept_otherwise = rustix::fs::fchown(file, None, Some(group));
        }
    }
    Ok(rustix::fs::fchmod(file, mode)?)
}

/// Permission bits that the process takes from new files. They are read once, as that changes them for a moment, to narrow ones.
fn umask() -> Mode {
    static UMASK: OnceLock<Mode> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let own = rustix::process::umask(Mode::from_raw_mode(0o077));
        rustix::process::umask(own);
        own
    })
}

/// Names the unfinished file `name`, and the file of that name `before`.
fn roll_names(folder: &OwnedFd, unfinished: &[u8], name: &OsStr, before: &OsStr) -> io::Result<()> {
    let exchange = RenameFlags::EXCHANGE;
    match rustix::fs::renameat_with(folder, unfinished, folder, name, exchange) {
        Ok(()) => Ok(rustix::fs::renameat(folder, unfinished, folder, before)?),
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::renameat(folder, name, folder, before)?;
            Ok(rustix::fs::renameat(folder, unfinished, folder, name)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Puts names of a folder on the disk.
fn sync_folder(folder: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(folder, ".", flags, Mode::empty())?;
    Ok(rustix::fs::fsync(folder)?)
}

/// A new file beside `name`, for a rename.
fn unfinished_file(folder: &OwnedFd, name: &[u8]) -> io::Result<(File, Vec<u8>)> {
    for _ in 0..100 {
        let mut random = [0; 4];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        // mkstemp's six letters are beyond NAME_MAX for the longest names; these take the name's end then.
        let mut unfinished = name[..name.len().min(246)].to_vec();
        unfinished.extend_from_slice(format!(".{:08x}", u32::from_le_bytes(random)).as_bytes());
        match rustix::fs::openat(folder, &unfinished[..], NEW, Mode::from_raw_mode(0o600)) {
            Err(Errno::EXIST) => {}
            answer => return Ok((File::from(answer?), unfinished)),
        }
    }
    Err(Errno::EXIST.into())
}

fn kind_of(kind: FileType) -> NameKind {
    match kind {
        FileType::RegularFile => NameKind::File,
        FileType::Directory => NameKind::Directory,
        _ => NameKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, RealDisk, RecordLock};
    use crate::sim_disk::SimDisk;

    fn errno<T>(answer: io::Result<T>) -> i32 {
        answer
            .err()
            .and_then(|error| error.raw_os_error())
            .unwrap_or(0)
    }

    /// `root/base` is the base, `root/base/out` a link to `root`, `root/base/in` one to `root/base/d`.
    fn exercise(disk: &dyn Disk, root: &Path) {
        let base = root.join("base");
        let beneath = disk.tree(&base, Reach::Beneath).unwrap();
        let anywhere = disk.tree(&base, Reach::Anywhere).unwrap();
        anywhere
            .put(&root.join("secret"), b"s", Existing::Keep, Safe::Synced)
            .unwrap();
        beneath.make_folders(&base.join("d/e")).unwrap();
        beneath
            .put(&base.join("d/f.rrd"), b"one", Existing::Keep, Safe::Synced)
            .unwrap();
        let again = beneath.put(&base.join("d/f.rrd"), b"two", Existing::Keep, Safe::Synced);
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let before = beneath.stat(&base.join("d/f.rrd")).unwrap();
        beneath
            .put(
                &base.join("d/f.rrd"),
                b"three",
                Existing::Replace,
                Safe::Unsynced,
            )
            .unwrap();
        let after = beneath.stat(&base.join("in/f.rrd")).unwrap();
        assert_eq!((after.size_bytes, after.kind), (5, NameKind::File));
        assert_ne!(before.inode, after.inode);
        let empty = base.join("d/empty.rrd");
        beneath.put_empty(&empty).unwrap();
        assert_eq!(beneath.stat(&empty).unwrap().size_bytes, 0);
        let again = beneath.put_empty(&empty).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(errno(beneath.put_empty(&root.join("e"))), libc::EXDEV);
        for outside in ["out/secret", "../secret", "d/../../secret"] {
            let path = base.join(outside);
            assert_eq!(
                errno(beneath.open(&path, Access::Read)),
                libc::EXDEV,
                "{outside}"
            );
            assert_eq!(errno(beneath.stat(&path)), libc::EXDEV, "{outside}");
            assert!(anywhere.open(&path, Access::Read).is_ok(), "{outside}");
        }
        assert_eq!(
            errno(beneath.open(&root.join("secret"), Access::Read)),
            libc::EXDEV
        );
        assert_eq!(errno(beneath.stat(&base.join("d/f.rrd/x"))), libc::ENOTDIR);
        assert_eq!(errno(beneath.stat(&base.join("d/none"))), libc::ENOENT);
        let mut names = Vec::new();
        beneath
            .list(&base, &mut |name, kind| names.push((name.to_vec(), kind)))
            .unwrap();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        let names: Vec<&[u8]> = names.iter().map(|(name, _)| &name[..]).collect();
        assert!(names.starts_with(&[b"d", b"in"]), "{names:?}");
        let path = beneath.resolve(&base.join("in/./f.rrd")).unwrap();
        assert_eq!(path, base.join("d/f.rrd"));
        let [one, two, three] = [Access::Read, Access::Read, Access::Write]
            .map(|access| beneath.open(&path, access).unwrap());
        assert!(one.try_record_lock(RecordLock::Shared).unwrap());
        assert!(two.try_record_lock(RecordLock::Shared).unwrap());
        assert!(!three.try_record_lock(RecordLock::Exclusive).unwrap());
        drop((one, two));
        assert!(three.try_record_lock(RecordLock::Exclusive).unwrap());
        let late = beneath.open(&path, Access::Update).unwrap();
        assert!(!late.try_record_lock(RecordLock::Shared).unwrap());
        let (log, old) = (base.join("d/h.log"), base.join("d/h.old"));
        let content = |path: &Path| {
            let file = beneath.open(path, Access::Read).ok()?;
            let mut bytes = [0; 8];
            let read = file.read_at(&mut bytes, 0).ok()?;
            Some(bytes[..read].to_vec())
        };
        for (bytes, before) in [("one", None), ("two", Some("one")), ("three", Some("two"))] {
            beneath.roll(&log, &old, bytes.as_bytes()).unwrap();
            assert_eq!(content(&log).as_deref(), Some(bytes.as_bytes()));
            assert_eq!(content(&old).as_deref(), before.map(str::as_bytes));
        }
        assert_eq!(
            errno(beneath.roll(&base.join("d/e"), &old, b"")),
            libc::EINVAL
        );
        disk.sync_file_system(&base).unwrap();
        beneath
            .put(&base.join("d/g.rrd"), b"g", Existing::Keep, Safe::Unsynced)
            .unwrap();
        beneath.unlink(&base.join("d/g.rrd")).unwrap();
        for (name, number) in [
            ("d/g.rrd", libc::ENOENT),
            ("d/e", libc::EISDIR),
            ("out/secret", libc::EXDEV),
        ] {
            assert_eq!(errno(beneath.unlink(&base.join(name))), number, "{name}");
        }
    }

    #[test]
    fn both_trees_do_the_same() {
        let disk = SimDisk::new(1);
        let root = Path::new("/root");
        disk.create_dir_all(&root.join("base")).unwrap();
        disk.symlink(Path::new("d"), &root.join("base/in"));
        disk.symlink(Path::new(".."), &root.join("base/out"));
        exercise(&disk, root);
        let root = std::env::temp_dir().join(format!("kymo-tree-{}", std::process::id()));
        std::fs::create_dir_all(root.join("base")).unwrap();
        let root = root.canonicalize().unwrap();
        std::os::unix::fs::symlink("d", root.join("base/in")).unwrap();
        std::os::unix::fs::symlink("..", root.join("base/out")).unwrap();
        exercise(&RealDisk, &root);
        let inside = root.join("base/d/f.rrd");
        let old = RealTree::open(&root.join("base"), Reach::Beneath).unwrap();
        let folder = old.folder.as_ref().unwrap().as_fd();
        for (name, allowed) in [
            ("d/f.rrd", true),
            ("in/f.rrd", false),
            ("d/../d/f.rrd", false),
        ] {
            let opened = old.open_without_openat2(folder, Path::new(name), OFlags::RDONLY);
            assert_eq!(opened.is_ok(), allowed, "{name}");
        }
        assert!(inside.exists());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
