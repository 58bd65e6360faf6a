//! The folder in which programs publish, docs/formats/shm.md. It is made while there are rights for that, and locked, so
//! that only one `kymo serve` collects there.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use kymo_base::errno::strerror;
use kymo_base::limits::{SHM_USER_NAMES_MAX, shm_user_bytes};
use kymo_base::name::DisplayName;
use kymo_sys::machine;
use kymo_sys::packet_pipe::packet_pipe;
use kymo_sys::privilege::{self, Account};
use kymo_sys::sure_folder::SureFolder;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Gid, Mode, OFlags, RenameFlags, Uid, fchmod, fchown,
    flock, fstat, fstatfs, openat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::commands::serve::guardian::{Keeper, Recorder};

/// The folder for programs of all users, if root runs serve.
const SHARED: &str = "/run/kymo/pub";
/// All users may make files there, and each may remove only its own; files get the folder's group.
const SHARED_MODE: u32 = 0o3777;
const OWN_MODE: u32 = 0o700;
/// One part in ... of the memory is the most that all publishers together may fill.
const MEMORY_PART: u64 = 4;
/// Type of tmpfs in `statfs`.
const TMPFS_MAGIC: i64 = 0x0102_1994;
/// Lock file, held by the collecting process.
const LOCK: &str = "collector.lock";
/// Bytes of the pipe: four samples of the largest size.
const PIPE_BYTES: usize = 1 << 20;
/// Most attempts to get the lock if other files are in its place.
const TRIES: u32 = 16;

/// The folder and its lock.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) lock: OwnedFd,
}

/// Finds or makes the folder, for a collector that runs as `account`, or as this process's user.
pub(super) fn prepare(account: Option<&Account>) -> Result<Folder> {
    let own = Account::own();
    let collector = account.unwrap_or(&own);
    let path = chosen(collector)?;
    let folder = open(&path)?;
    if fstatfs(&folder).is_ok_and(|system| system.f_type != TMPFS_MAGIC) {
        bail!(
            "cannot collect what programs publish in {}: it is not in memory (tmpfs)",
            path.display()
        );
    }
    let lock = lock(&folder, collector).map_err(|why| {
        let path = path.display();
        anyhow!("cannot collect what programs publish in {path}: {why}")
    })?;
    Ok(Folder { path, lock })
}

/// Joins keeper and recorder by a pipe for the activity of programs, if that is collected. Both ends stay open here, so a
/// process that is started again finds the packets that were sent meanwhile.
pub(super) fn record(keeper: &mut Keeper, recorder: &mut Recorder) {
    if keeper.order.programs.is_none() {
        return;
    }
    match packet_pipe(PIPE_BYTES) {
        Ok((read, write)) => {
            let number = read.as_raw_fd().to_string();
            recorder
                .words
                .extend(["--activity-fd".into(), number.into()]);
            recorder.files.push(read);
            keeper.order.activity = Some(write.as_raw_fd());
            keeper.files.push(write);
        }
        Err(error) => {
            let why = strerror(&error);
            keeper
                .notices
                .push(format!("cannot record what programs do: {why}"));
        }
    }
}

/// The folder to use: `$KYMO_DIR`, or root's, or the one that the service manager made for this user, or this user's own.
fn chosen(collector: &Account) -> Result<PathBuf> {
    let named = std::env::var_os("KYMO_DIR").filter(|folder| !folder.is_empty());
    let shared = Path::new(SHARED);
    if let Some(named) = named {
        let path = std::path::absolute(named).context("cannot use $KYMO_DIR")?;
        let mode = match machine::is_root() {
            true => SHARED_MODE,
            false => OWN_MODE,
        };
        make(&path, mode, collector)?;
        return Ok(path);
    }
    if machine::is_root() {
        make_shared(shared, collector)?;
        return Ok(shared.into());
    }
    let is_ours = |path: &Path| {
        let status = open(path).ok().and_then(|folder| fstat(folder).ok());
        status.is_some_and(|status| status.st_uid == collector.uid)
    };
    if is_ours(shared) {
        return Ok(shared.into());
    }
    let path = PathBuf::from(format!("/dev/shm/kymo-{}", collector.uid));
    make(&path, OWN_MODE, collector)?;
    match is_ours(&path) {
        true => Ok(path),
        false => bail!("cannot use {}: it is another user's", path.display()),
    }
}

fn open(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let opened = openat(CWD, path, flags, Mode::empty());
    opened.map_err(|error| cannot("open", path, error))
}

fn cannot(verb: &str, path: &Path, error: Errno) -> anyhow::Error {
    let why = strerror(&io::Error::from(error));
    anyhow!("cannot {verb} {}: {why}", path.display())
}

/// Makes a folder; an existing one stays as it is. True if it was made.
fn make(path: &Path, mode: u32, owner: &Account) -> Result<bool> {
    let failed = |error: io::Error| anyhow!("cannot make {}: {}", path.display(), strerror(&error));
    let folder = SureFolder::make(path, OWN_MODE, &[owner.uid]).map_err(failed)?;
    if folder.is_new() {
        folder.give(owner.uid, owner.gid).map_err(failed)?;
        folder.set_mode(mode).map_err(failed)?;
    }
    Ok(folder.is_new())
}

fn give(path: &Path, mode: u32, owner: &Account) -> Result<()> {
    let folder = open(path)?;
    let failed = |error| cannot("give away", path, error);
    if machine::is_root() {
        let (user, group) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        fchown(&folder, Some(user), Some(group)).map_err(failed)?;
    }
    fchmod(&folder, Mode::from_raw_mode(mode)).map_err(failed)
}

/// Makes the shared folder, on a file system of its own, so that programs fill no other one.
fn make_shared(path: &Path, owner: &Account) -> Result<()> {
    if let Some(above) = path.parent() {
        let failed = |error| anyhow!("cannot use {}: {}", above.display(), strerror(&error));
        let folder = SureFolder::make(above, 0o755, &[]).map_err(failed)?;
        // A link of another user could lead the mount elsewhere.
        folder.trust(&[]).map_err(failed)?;
        if folder.is_new() {
            // Independent of the umask, because programs of all users pass this folder.
            folder.set_mode(0o755).map_err(failed)?;
        }
    }
    let is_new = make(path, SHARED_MODE, owner)?;
    if is_mount_point(path)? {
        return Ok(());
    }
    match mount_tmpfs(path, owner) {
        Ok(()) => give(path, SHARED_MODE, owner),
        // Without the right to mount, the folder is part of the file system above.
        Err(Errno::PERM | Errno::ACCESS) if !is_new => give(path, SHARED_MODE, owner),
        Err(Errno::PERM | Errno::ACCESS) => Ok(()),
        Err(error) => Err(cannot("mount tmpfs on", path, error)),
    }
}

fn is_mount_point(path: &Path) -> Result<bool> {
    let device = |path: &Path| -> Result<u64> {
        let status = fstat(open(path)?).map_err(|error| cannot("look at", path, error))?;
        Ok(status.st_dev)
    };
    let above = path.parent().unwrap_or(path);
    Ok(device(path)? != device(above)?)
}

/// Mounts a tmpfs, with quotas of users if the kernel has them; otherwise the collector removes files beyond the quotas.
fn mount_tmpfs(path: &Path, owner: &Account) -> Result<(), Errno> {
    let bytes = shm_user_bytes(machine::memory_bytes() / MEMORY_PART);
    let quotas = format!(
        ",usrquota,usrquota_block_hardlimit={bytes},usrquota_inode_hardlimit={SHM_USER_NAMES_MAX}"
    );
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let mount_with = |quotas: &str| {
        let options = format!(
            "size={}%,nr_inodes=65536,mode={SHARED_MODE:o},uid={},gid={}{quotas}",
            100 / MEMORY_PART,
            owner.uid,
            owner.gid
        );
        let options = CString::new(options).map_err(|_| Errno::INVAL)?;
        mount("kymo", path, "tmpfs", flags, Some(&*options))
    };
    match mount_with(&quotas) {
        Err(Errno::INVAL) => mount_with(""),
        outcome => outcome,
    }
}

/// Takes the lock, which must be the collector's own file. Files of others in its place are moved away, as the folder's
/// owner may do.
fn lock(folder: &OwnedFd, collector: &Account) -> Result<OwnedFd, String> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut why = String::new();
    for attempt in 0..TRIES {
        match openat(
            folder,
            LOCK,
            flags | OFlags::NONBLOCK,
            Mode::from_raw_mode(0o600),
        ) {
            Ok(file) if is_own(&file, collector) => {
                return match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => Ok(file),
                    Err(Errno::WOULDBLOCK) => Err("another kymo serve does".into()),
                    Err(error) => Err(strerror(&error.into())),
                };
            }
            Ok(_) => why = "its lock is another user's".into(),
            Err(Errno::ROFS) => {
                return Err(
                    "it is read-only; `mount -o remount,rw` on it, then start kymo serve again"
                        .into(),
                );
            }
            Err(error) => why = strerror(&error.into()),
        }
        let away = format!("{LOCK}.{}.{attempt}", std::process::id());
        let moved = renameat_with(folder, LOCK, folder, &away, RenameFlags::NOREPLACE);
        if moved.is_err() {
            break;
        }
        // If this fails, a folder stays under its other name.
        let _left = unlinkat(folder, &away, AtFlags::empty());
    }
    Err(why)
}

fn is_own(file: &OwnedFd, collector: &Account) -> bool {
    let own = privilege::Account::own().uid;
    fstat(file).is_ok_and(|status| {
        FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
            && (status.st_uid == own || status.st_uid == collector.uid)
    })
}

/// Names of users: the collector can no longer read them when it runs.
pub(super) fn users() -> Vec<(u32, String)> {
    let text = std::fs::read("/etc/passwd").unwrap_or_default();
    let users = text.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut words = line.split(|&byte| byte == b':');
        let name = DisplayName(words.next()?).to_string();
        let number = std::str::from_utf8(words.nth(1)?).ok()?;
        Some((number.parse().ok()?, name)).filter(|(_, name)| !name.is_empty())
    });
    users.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    fn scratch(name: &str) -> PathBuf {
        PathBuf::from(format!("/dev/shm/kymo-{name}-{}", std::process::id()))
    }

    #[test]
    fn one_at_a_time_and_what_stands_in_the_way_goes() {
        let path = scratch("lock");
        let own = Account::own();
        assert!(make(&path, OWN_MODE, &own).expect("a folder"));
        let mode = std::fs::metadata(&path).expect("a folder").mode();
        assert_eq!(mode & 0o7777, OWN_MODE);
        assert!(!make(&path, SHARED_MODE, &own).expect("is there"));
        std::fs::create_dir(path.join(LOCK)).expect("a folder in the way");
        let folder = open(&path).expect("opened");
        let held = lock(&folder, &own).expect("locked");
        assert_eq!(
            lock(&folder, &own).expect_err("held"),
            "another kymo serve does"
        );
        drop(held);
        lock(&folder, &own).expect("free");
        let link = path.join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert!(open(&link).is_err(), "no link is followed");
        let permissions = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&path, permissions).expect("chmod");
        std::fs::remove_dir_all(&path).expect("removed");
    }

    #[test]
    fn users_have_names() {
        assert!(users().contains(&(0, "root".into())));
    }
}
