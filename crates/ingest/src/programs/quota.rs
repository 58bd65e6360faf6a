//! Quotas of users in a folder where all users publish: a number of names, and bytes. The kernel enforces them where
//! tmpfs has quotas (Linux 6.6 and later, CONFIG_TMPFS_QUOTA). Elsewhere the collector, which owns the folder,
//! removes names and files above the quota, the newest names first, then the largest files. So one user can fill the
//! folder for a moment at most.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;

use kymo_base::limits::{SHM_USER_NAMES_MAX, shm_user_bytes};
use rustix::fs::{AtFlags, Dir, FileType, Statx, StatxFlags, fstatvfs, statx, unlinkat};
use rustix::process::geteuid;

/// A user above the quota, and how much the collector could remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Swept {
    pub(super) uid: u32,
    pub(super) removed: usize,
    /// Names that the collector cannot remove: folders that are not empty.
    pub(super) left: usize,
}

/// The outcome of a look at the folder.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    pub(super) users: Vec<Swept>,
    /// Files that have no name in the folder and take room in it.
    pub(super) nameless: u64,
}

/// A name of the folder.
struct NameEntry {
    name: CString,
    inode: u64,
    uid: u32,
    is_folder: bool,
    bytes: u64,
    /// Time at which it was made.
    made: (i64, u32),
}

/// Removes files above the quotas. Names of root and of the collector stay.
pub(super) fn sweep(folder: &OwnedFd) -> Sweep {
    let Ok(dir) = Dir::read_from(folder) else {
        return Sweep::default();
    };
    let mut users = BTreeMap::<u32, Vec<NameEntry>>::new();
    let names = dir.flatten().map(|entry| entry.file_name().to_owned());
    let mut inodes = 1;
    for name in names.filter(|name| !matches!(name.to_bytes(), b"." | b"..")) {
        if let Some(entry) = entry(folder, name) {
            inodes += 1;
            users.entry(entry.uid).or_default().push(entry);
        }
    }
    let own = geteuid().as_raw();
    users.retain(|uid, _| *uid != 0 && *uid != own);
    let bytes_max = shm_user_bytes(room(folder));
    let swept = users.into_iter();
    let swept = swept.filter_map(|(uid, entries)| sweep_user(folder, bytes_max, uid, entries));
    Sweep {
        users: swept.collect(),
        nameless: used_inodes(folder).saturating_sub(inodes),
    }
}

/// Bytes of the folder's file system.
fn room(folder: &OwnedFd) -> u64 {
    fstatvfs(folder).map_or(0, |system| system.f_blocks.saturating_mul(system.f_frsize))
}

/// Inodes in use on the file system that consists of the folder; 0 if the folder shares its file system.
fn used_inodes(folder: &OwnedFd) -> u64 {
    let above = statx(folder, c"..", AtFlags::empty(), StatxFlags::BASIC_STATS);
    let own = statx(folder, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS);
    let device = |found: Statx| (found.stx_dev_major, found.stx_dev_minor);
    match (above.map(device), own.map(device)) {
        (Ok(above), Ok(own)) if above != own => {
            fstatvfs(folder).map_or(0, |system| system.f_files.saturating_sub(system.f_ffree))
        }
        _ => 0,
    }
}

fn sweep_user(
    folder: &OwnedFd,
    bytes_max: u64,
    uid: u32,
    mut entries: Vec<NameEntry>,
) -> Option<Swept> {
    let beyond = beyond(&mut entries, bytes_max);
    if beyond == 0 {
        return None;
    }
    let last = &entries[entries.len() - beyond..];
    let removed = last.iter().filter(|entry| remove(folder, entry)).count();
    Some(Swept {
        uid,
        removed,
        left: beyond - removed,
    })
}

/// Moves the entries beyond a user's quota to the end, and returns their number.
fn beyond(entries: &mut [NameEntry], bytes_max: u64) -> usize {
    entries.sort_by_key(|entry| entry.made);
    let names = entries.len().min(SHM_USER_NAMES_MAX);
    // Among the names that stay, the largest files go first.
    entries[..names].sort_by_key(|entry| entry.bytes);
    let mut bytes = 0_u64;
    let fits = |entry: &&NameEntry| {
        bytes = bytes.saturating_add(entry.bytes);
        bytes <= bytes_max
    };
    entries.len() - entries[..names].iter().take_while(fits).count()
}

/// A name and its size. A lengthened file may be filled later, so its length counts as well as its allocated bytes.
fn entry(folder: &OwnedFd, name: CString) -> Option<NameEntry> {
    let found = look(folder, &name)?;
    let mode = FileType::from_raw_mode(found.stx_mode.into());
    let made = match StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME) {
        true => found.stx_btime,
        false => found.stx_ctime,
    };
    Some(NameEntry {
        name,
        inode: found.stx_ino,
        uid: found.stx_uid,
        is_folder: mode == FileType::Directory,
        bytes: found.stx_size.max(found.stx_blocks.saturating_mul(512)),
        made: (made.tv_sec, made.tv_nsec),
    })
}

fn look(folder: &OwnedFd, name: &CString) -> Option<Statx> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()
}

/// Removes a name if it still stands for the same file.
fn remove(folder: &OwnedFd, entry: &NameEntry) -> bool {
    let is_same = |found: Statx| found.stx_ino == entry.inode && found.stx_uid == entry.uid;
    if !look(folder, &entry.name).is_some_and(is_same) {
        return true;
    }
    let flags = match entry.is_folder {
        true => AtFlags::REMOVEDIR,
        false => AtFlags::empty(),
    };
    unlinkat(folder, &entry.name, flags).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_newest_names_and_the_largest_files_are_beyond() {
        for (what, sizes, want) in [
            ("nothing", vec![], 0),
            ("few", vec![0; 10], 0),
            ("as many as he may", vec![0; SHM_USER_NAMES_MAX], 0),
            ("names", vec![0; SHM_USER_NAMES_MAX + 7], 7),
            ("one large file", vec![100, 64 * MIB, 100], 1),
            ("all that there may be", vec![16 * MIB, 16 * MIB], 0),
            ("a byte more", vec![16 * MIB, 1, 16 * MIB], 1),
            ("a length beyond all", vec![u64::MAX, u64::MAX, 5], 2),
            (
                "both",
                vec![64 * MIB; SHM_USER_NAMES_MAX + 7],
                SHM_USER_NAMES_MAX + 7,
            ),
        ] {
            let entry = |(n, bytes): (i64, u64)| NameEntry {
                name: CString::default(),
                inode: n as u64,
                uid: 1,
                is_folder: false,
                bytes,
                made: (n, 0),
            };
            let mut entries: Vec<NameEntry> = (0..).zip(sizes).map(entry).collect();
            let count = entries.len();
            assert_eq!(beyond(&mut entries, 32 * MIB), want, "{what}");
            if what == "names" {
                let last = entries[count - want..].iter().map(|entry| entry.made.0);
                assert!(last.eq((count - want) as i64..count as i64), "the newest");
            }
            if what == "one large file" {
                assert_eq!(entries[2].made.0, 1, "the largest");
            }
        }
    }

    /// 3,892 empty names, or one file of 64 MiB, once kept all others from publishing. Folders, links and holes had
    /// the same effect.
    #[test]
    fn one_user_fills_no_folder() {
        use std::os::unix::fs::{MetadataExt as _, chown, lchown, symlink};
        if !geteuid().is_root() {
            kymo_sys::skipped::skipped("only root can give files to other users");
            return;
        }
        let path = format!("/dev/shm/kymo-quota-{}", std::process::id());
        let path = std::path::Path::new(&path);
        std::fs::create_dir_all(path).unwrap();
        let victim = path.join("victim");
        std::fs::write(&victim, b"all of it").unwrap();
        chown(&victim, Some(1), None).unwrap();
        let most = SHM_USER_NAMES_MAX;
        let full = (2000 - most) / 2;
        for n in 0..2000 {
            let [name, link, folder] =
                ["name", "link", "folder"].map(|what| path.join(format!("{what}{n}")));
            std::fs::write(&name, b"").unwrap();
            chown(&name, Some(2), None).unwrap();
            symlink(&victim, &link).unwrap();
            lchown(&link, Some(3), None).unwrap();
            std::fs::create_dir(&folder).unwrap();
            // Names made within one tick of the clock are equally new: the full folders must be clearly among the
            // newest.
            if n >= 2000 - full {
                std::fs::write(folder.join("file"), b"").unwrap();
            }
            chown(&folder, Some(4), None).unwrap();
        }
        let hole = path.join("hole");
        std::fs::File::create(&hole)
            .unwrap()
            .set_len(256 << 20)
            .unwrap();
        chown(&hole, Some(5), None).unwrap();
        let opened = rustix::fs::open(path, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
        let opened = opened.unwrap();
        let swept = |uid, removed, left| Swept { uid, removed, left };
        let want = [
            swept(2, 2000 - most, 0),
            swept(3, 2000 - most, 0),
            swept(4, 2000 - most - full, full),
            swept(5, 1, 0),
        ];
        assert_eq!(sweep(&opened).users, want);
        let again = sweep(&opened).users;
        assert_eq!(again, [swept(4, 0, full)], "all removable names are gone");
        assert_eq!(std::fs::read(&victim).unwrap(), b"all of it");
        let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
        let of = |uid| move |entry: &std::fs::DirEntry| entry.metadata().unwrap().uid() == uid;
        assert_eq!(names.filter(of(2)).count(), SHM_USER_NAMES_MAX);
        std::fs::remove_dir_all(path).unwrap();
    }
}
