//! Folders in which root works, though other users may own some of them. Root opens each part of the path on its own,
//! and follows no link that another user could have put there. It changes owners and modes by open descriptors,
//! because a name may stand for another file by then. For other users the path is not checked: they gain nothing by a
//! link.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid, chmodat, chownat, fchmod, fchown, fstat,
    mkdirat, openat, readlinkat,
};
use rustix::io::Errno;

use crate::machine::{self, ROOT};

/// The kernel's own limit.
const LINKS_MAX: usize = 40;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Refuses a path that leads through a link of another user. A folder that is missing is none.
pub fn refuse_links(folder: &Path) -> io::Result<()> {
    match SureFolder::open(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A folder that is open.
#[derive(Debug)]
pub struct SureFolder {
    folder: OwnedFd,
    path: PathBuf,
    /// Users other than root who own a part of the path, this folder included, and that part.
    owners: Vec<(u32, PathBuf)>,
    /// The folder above lets its group put another one in the place of this.
    is_shared: bool,
    is_new: bool,
}

/// Treatment of missing folders.
#[derive(Clone, Copy)]
enum Missing {
    Refused,
    Made { mode: u32 },
}

impl SureFolder {
    /// Opens a folder.
    pub fn open(path: &Path) -> io::Result<SureFolder> {
        Walk::begin(path)?.go(path, Missing::Refused)
    }

    /// Opens a folder; it and those above it are made where they are missing. None is made in a folder of another user, unless he is
    /// one of `trusted`.
    pub fn make(path: &Path, mode: u32, trusted: &[u32]) -> io::Result<SureFolder> {
        let mut walk = Walk::begin(path)?;
        walk.trusted = trusted.to_vec();
        walk.go(path, Missing::Made { mode })
    }

    /// Fails unless only root, this user and these users could have replaced the folder.
    pub fn trust(&self, users: &[u32]) -> io::Result<()> {
        trust(&self.owners, users)
    }

    /// The folder's metadata.
    pub fn metadata(&self) -> io::Result<Metadata> {
        File::from(self.folder.try_clone()?).metadata()
    }

    /// True if the folder has no entries.
    pub fn is_empty(&self) -> io::Result<bool> {
        for entry in rustix::fs::Dir::new(self.readable()?)? {
            if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// True if this process made the folder.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// A path by which the kernel finds this very folder, for as long as it is open.
    pub fn own_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }

    /// Gives it to a user and a group, if this is root.
    pub fn give(&self, user: u32, group: u32) -> io::Result<()> {
        if !machine::is_root() {
            return Ok(());
        }
        if self.is_shared && self.metadata()?.uid() != user && !self.is_empty()? {
            let text = format!(
                "others than its owner may write the folder above {}",
                self.path.display()
            );
            return Err(io::Error::other(text));
        }
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        Ok(fchown(self.readable()?, Some(user), Some(group))?)
    }

    /// Sets its permission bits.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        Ok(fchmod(self.readable()?, Mode::from_raw_mode(mode))?)
    }

    fn readable(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.folder, ".", flags, Mode::empty())?))
    }
}

impl AsFd for SureFolder {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

/// If this is root, gives an open file to a user and a group. The user may own the folder, and may have put a second
/// name of a foreign file there.
pub fn give_file(file: &File, user: u32, group: u32) -> io::Result<()> {
    if !machine::is_root() {
        return Ok(());
    }
    let stat = file.metadata()?;
    let is_ours = stat.uid() == user || stat.uid() == ROOT;
    if !stat.is_file() || stat.nlink() != 1 || !is_ours {
        return Err(io::Error::other(
            "it is another user's, or has another name, too",
        ));
    }
    Ok(fchown(
        file,
        Some(Uid::from_raw(user)),
        Some(Gid::from_raw(group)),
    )?)
}

/// The name of a socket that this process has bound. Opening it follows no link, and fails for anything but this user's own
/// socket.
#[derive(Debug)]
pub struct SocketName(OwnedFd);

impl SocketName {
    /// Opens it.
    pub fn open(path: &Path) -> io::Result<SocketName> {
        let (above, name) = (path.parent(), path.file_name());
        let above = above.filter(|above| !above.as_os_str().is_empty());
        let folder = SureFolder::open(above.unwrap_or(Path::new(".")))?;
        let name = step(&folder, Path::new(name.ok_or(Errno::ISDIR)?))?;
        let stat = fstat(&name)?;
        let is_socket = FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
        match is_socket && stat.st_nlink == 1 && stat.st_uid == machine::user() {
            true => Ok(SocketName(name)),
            false => Err(io::Error::other("something else is there by now")),
        }
    }

    /// Gives it to a group.
    pub fn give_to_group(&self, group: u32) -> io::Result<()> {
        Ok(chownat(
            &self.0,
            "",
            None,
            Some(Gid::from_raw(group)),
            AtFlags::EMPTY_PATH,
        )?)
    }

    /// Sets its permission bits.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        // fchmod takes no descriptor of this kind; the kernel's own link leads to it, and to nothing else.
        let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        Ok(chmodat(
            CWD,
            path,
            Mode::from_raw_mode(mode),
            AtFlags::empty(),
        )?)
    }
}

/// A walk from folder to folder.
struct Walk {
    folder: OwnedFd,
    so_far: PathBuf,
    owners: Vec<(u32, PathBuf)>,
    trusted: Vec<u32>,
    is_shared: bool,
    is_new: bool,
    links: usize,
}

impl Walk {
    fn begin(path: &Path) -> io::Result<Walk> {
        let start = match path.is_absolute() {
            true => PathBuf::from("/"),
            false => std::env::current_dir()?,
        };
        let mut walk = Walk {
            folder: step(CWD, Path::new("/"))?,
            so_far: PathBuf::from("/"),
            owners: Vec::new(),
            trusted: Vec::new(),
            is_shared: false,
            is_new: false,
            links: 0,
        };
        walk.down(&start, Missing::Refused)?;
        Ok(walk)
    }

    fn go(mut self, path: &Path, missing: Missing) -> io::Result<SureFolder> {
        self.down(path, missing)?;
        Ok(SureFolder {
            folder: self.folder,
            path: self.so_far,
            owners: self.owners,
            is_shared: self.is_shared,
            is_new: self.is_new,
        })
    }

    fn down(&mut self, path: &Path, missing: Missing) -> io::Result<()> {
        for part in path.components() {
            match part {
                Component::RootDir => {
                    self.folder = step(CWD, Path::new("/"))?;
                    self.so_far = PathBuf::from("/");
                }
                Component::Prefix(_) | Component::CurDir => {}
                Component::ParentDir => {
                    self.folder = step(&self.folder, Path::new(".."))?;
                    self.so_far.pop();
                }
                Component::Normal(name) => self.step_down(Path::new(name), missing)?,
            }
        }
        Ok(())
    }

    fn step_down(&mut self, name: &Path, missing: Missing) -> io::Result<()> {
        let above = fstat(&self.folder)?;
        self.is_new = false;
        let next = match (step(&self.folder, name), missing) {
            (Err(Errno::NOENT), Missing::Made { mode }) => self.make(name, mode)?,
            (next, _) => next?,
        };
        let stat = fstat(&next)?;
        let path = self.so_far.join(name);
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            self.judge_link(&above, &stat, &path)?;
            let target = readlinkat(&next, "", Vec::new())?.into_bytes();
            let target = PathBuf::from(std::ffi::OsString::from_vec(target));
            return self.down(&target, missing);
        }
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Err(Errno::NOTDIR.into());
        }
        self.is_shared |= above.st_mode & GROUP_WRITES != 0
            && above.st_mode & STICKY == 0
            && above.st_gid != ROOT;
        if above.st_mode & OTHERS_WRITE != 0 && above.st_mode & STICKY == 0 {
            refuse(&self.so_far, "everybody may write it")?;
        }
        if is_foreign(stat.st_uid) {
            self.owners.push((stat.st_uid, path.clone()));
        }
        (self.folder, self.so_far) = (next, path);
        Ok(())
    }

    fn make(&mut self, name: &Path, mode: u32) -> io::Result<OwnedFd> {
        trust(&self.owners, &self.trusted)?;
        match mkdirat(&self.folder, name, Mode::from_raw_mode(mode)) {
            Ok(()) => self.is_new = true,
            // Another was faster; it is judged as any other.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(step(&self.folder, name)?)
    }

    /// The owner of a link, and the owner of its folder, choose its target.
    fn judge_link(&mut self, above: &Stat, link: &Stat, path: &Path) -> io::Result<()> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        let is_sticky = above.st_mode & STICKY != 0;
        let others_write = above.st_mode & (GROUP_WRITES | OTHERS_WRITE) != 0 && !is_sticky;
        match is_foreign(link.st_uid) || is_foreign(above.st_uid) || others_write {
            true => refuse(path, "it is a link, and another user may have put it there"),
            false => Ok(()),
        }
    }
}

/// True if this is root and the user is another one.
fn is_foreign(user: u32) -> bool {
    machine::is_root() && user != ROOT
}

fn trust(owners: &[(u32, PathBuf)], users: &[u32]) -> io::Result<()> {
    let other = owners.iter().find(|(owner, _)| !users.contains(owner));
    match other {
        Some((_, path)) => refuse(path, "it belongs to another user"),
        None => Ok(()),
    }
}

/// An error, if this is root.
fn refuse(path: &Path, why: &str) -> io::Result<()> {
    match machine::is_root() {
        true => Err(io::Error::other(format!(
            "root does not work below {}: {why}",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// Opens a folder, or a link itself.
fn step(folder: impl AsFd, name: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
    use std::os::unix::net::UnixListener;

    const OTHER: u32 = 1;

    /// `own/` is root's, `theirs/` another user's; he has links to `own` there, and so has root.
    fn scratch(name: &str) -> Option<PathBuf> {
        let top = PathBuf::from(format!("/run/kymo-sure-{name}-{}", std::process::id()));
        if !machine::is_root() || fs::create_dir(&top).is_err() {
            crate::skipped::skipped("not root");
            return None;
        }
        for name in ["own", "own/in", "theirs", "theirs/in"] {
            fs::create_dir(top.join(name)).unwrap();
        }
        for name in ["theirs", "theirs/in"] {
            chown(top.join(name), Some(OTHER), Some(OTHER)).unwrap();
        }
        for (name, owner) in [
            ("theirs/link", OTHER),
            ("theirs/roots", 0),
            ("link", 0),
            ("foreign", OTHER),
        ] {
            symlink(top.join("own"), top.join(name)).unwrap();
            lchown(top.join(name), Some(owner), None).unwrap();
        }
        Some(top)
    }

    #[test]
    fn no_link_of_others_is_followed_and_nothing_made_for_them() {
        let Some(top) = scratch("way") else { return };
        for (path, trusted, opens) in [
            ("own/in", &[][..], true),
            ("link/in", &[], true),
            ("own/../link/in", &[], true),
            ("own/new/deep", &[], true),
            ("foreign/in", &[OTHER], false),
            ("theirs/in", &[], false),
            ("theirs/in", &[OTHER], true),
            ("theirs/link", &[OTHER], false),
            ("theirs/link/in", &[OTHER], false),
            ("theirs/roots/in", &[OTHER], false),
            ("theirs/new", &[], false),
            ("theirs/new", &[OTHER], true),
        ] {
            let made = SureFolder::make(&top.join(path), 0o750, trusted);
            let made = made.and_then(|folder| folder.trust(trusted).map(|()| folder));
            assert_eq!(made.is_ok(), opens, "{path}: {made:?}");
        }
        assert!(!top.join("own/link").exists());
        fs::set_permissions(top.join("own"), Permissions::from_mode(0o777)).unwrap();
        assert!(
            SureFolder::open(&top.join("own/in")).is_err(),
            "everybody's"
        );
        fs::set_permissions(top.join("own"), Permissions::from_mode(0o1777)).unwrap();
        assert!(SureFolder::open(&top.join("own/in")).is_ok(), "sticky");
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn owners_and_modes_are_of_the_opened_file() {
        let Some(top) = scratch("give") else { return };
        let folder = SureFolder::make(&top.join("theirs/new"), 0o750, &[OTHER]).unwrap();
        assert!(folder.is_new() && folder.is_empty().unwrap());
        fs::rename(top.join("theirs/new"), top.join("theirs/old")).unwrap();
        symlink(top.join("own"), top.join("theirs/new")).unwrap();
        folder.give(OTHER, OTHER).unwrap();
        folder.set_mode(0o2700).unwrap();
        let stat = |name: &str| fs::metadata(top.join(name)).unwrap();
        assert_eq!((stat("own").uid(), stat("own").mode() & 0o7777), (0, 0o755));
        assert_eq!(
            (stat("theirs/old").uid(), stat("theirs/old").mode() & 0o7777),
            (OTHER, 0o2700)
        );
        assert_eq!(
            folder.own_path().canonicalize().unwrap(),
            top.join("theirs/old")
        );
        let file = File::create(top.join("own/file")).unwrap();
        fs::hard_link(top.join("own/file"), top.join("theirs/file")).unwrap();
        let second = File::open(top.join("theirs/file")).unwrap();
        assert!(
            give_file(&second, OTHER, OTHER).is_err(),
            "it has two names"
        );
        fs::remove_file(top.join("theirs/file")).unwrap();
        give_file(&file, OTHER, OTHER).unwrap();
        assert_eq!(stat("own/file").uid(), OTHER);
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn a_name_is_the_sockets_or_is_left_alone() {
        let top = std::env::temp_dir().join(format!("kymo-socket-name-{}", std::process::id()));
        fs::create_dir(&top).unwrap();
        let _socket = UnixListener::bind(top.join("socket")).unwrap();
        fs::write(top.join("file"), "").unwrap();
        symlink("socket", top.join("link")).unwrap();
        for (name, opens) in [
            ("socket", true),
            ("file", false),
            ("link", false),
            ("none", false),
        ] {
            assert_eq!(SocketName::open(&top.join(name)).is_ok(), opens, "{name}");
        }
        let name = SocketName::open(&top.join("socket")).unwrap();
        name.set_mode(0o620).unwrap();
        name.give_to_group(crate::privilege::own_group()).unwrap();
        let mode = fs::metadata(top.join("socket")).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o620);
        fs::remove_dir_all(top).unwrap();
    }
}
