//! Makes a publisher's file: in which folder, and in which order, so that who sees its name sees all of it.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use kymo_base::limits::{
    SHM_ENDED_MAX, SHM_ENDED_REMOVED, SHM_ENDED_YOUNG_MAX, SHM_ENDED_YOUNG_NS,
};
use rustix::fs::{
    Access, AtFlags, CWD, Dir, FallocateFlags, FileType, FlockOperation, Mode, OFlags, accessat,
    fallocate, fchmod, flock, fstat, fstatfs, lstat, mkdir, openat, renameat, unlinkat,
};
use rustix::io::{Errno, pread};
use rustix::process::{getegid, geteuid, getgid, getuid};

use super::{CreateError, Origin, Schema, hidden};
use crate::layout::{
    CELLS, CREATED_AT, HEAD_BYTES, HEADER_BYTES, HEADS, IDENTITIES, IDENTITY_FIXED, LABEL_BYTES,
    LABEL_NAME_BYTES, LABEL_NAMES_AT, LIVE, LIVE_BYTES, LIVE_METRICS, Layout, MAGIC, MAJOR,
    METRIC_FIXED, METRICS, MINOR, NAME_AT, Room, SECTION_BYTES, SECTIONS, SECTIONS_AT, TEXT_FIXED,
    TEXTS,
};
use crate::mapping::{Mapping, Rights};
use crate::reader::{epoch_of, file_name};
use crate::version::Word;

/// Type of tmpfs, by `statfs`.
const TMPFS_MAGIC: i64 = 0x0102_1994;
const MODE: Mode = Mode::from_raw_mode(0o640);

/// The mapped file and its path.
pub(super) fn create(
    schema: &Schema,
    room: &Room,
    layout: &Layout,
    table: &[u8],
) -> Result<(Mapping, OpenFile, PathBuf), CreateError> {
    let folder = schema.folder.clone().map_or_else(usual_folder, Ok)?;
    let failed = |verb| {
        let path = folder.clone();
        move |cause| CreateError::System { verb, path, cause }
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let opened = openat(CWD, &folder, flags, Mode::empty()).map_err(failed("open folder"))?;
    let system = fstatfs(&opened).map_err(failed("look at folder"))?;
    if system.f_type != TMPFS_MAGIC {
        let cause = "it is not in memory (tmpfs)";
        return Err(CreateError::Folder { folder, cause });
    }
    let own = Origin::own().map_err(failed("find random bytes for"))?;
    remove_oldest(&opened, own.created_ns);
    let origin = schema.origin.unwrap_or(own);
    let name = file_name(&origin.epoch);
    let new = hidden(&name);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = openat(&opened, &new, flags, MODE).map_err(failed("make a file in"))?;
    let filled =
        fill(&file, schema, room, layout, table, &origin).map_err(failed("allocate a file in"));
    let named = filled.and_then(|mapping| {
        let renamed = renameat(&opened, &new, &opened, &name).map_err(failed("name a file in"));
        renamed.map(|()| mapping)
    });
    // The mapping holds the open file, and with it the lock, until the last process that inherited it has ended.
    match named {
        // The path stays right when the process changes its folder.
        Ok(mapping) => {
            let path = folder.join(name);
            let file = OpenFile::new(file).map_err(failed("look at a file in"))?;
            Ok((mapping, file, std::path::absolute(&path).unwrap_or(path)))
        }
        Err(error) => {
            remove(&opened, &new);
            Err(error)
        }
    }
}

/// The file of a publisher, for who asks for locks.
pub(super) struct OpenFile {
    opened: Option<OwnedFd>,
    /// Device and inode number of the file.
    inode: (u64, u64),
}

impl OpenFile {
    fn new(file: OwnedFd) -> Result<OpenFile, Errno> {
        Ok(OpenFile {
            inode: inode(&file)?,
            opened: Some(file),
        })
    }

    /// The file as it was opened first, or a second time if the program has closed that, as one in the background does.
    pub(super) fn open(&self, path: &Path) -> Option<OwnedFd> {
        match self.is_still_open() {
            true => self.opened.as_ref()?.try_clone().ok(),
            false => self.again(path),
        }
    }

    /// Opened a second time, for a lock that is not shared with a parent; `None` where it cannot be reached any more.
    pub(super) fn again(&self, path: &Path) -> Option<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = openat(CWD, path, flags, Mode::empty()).ok()?;
        (inode(&file) == Ok(self.inode)).then_some(file)
    }

    fn is_still_open(&self) -> bool {
        let opened = self.opened.as_ref();
        opened.is_some_and(|file| inode(file) == Ok(self.inode))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if !self.is_still_open() {
            // The inode number is another file's.
            std::mem::forget(self.opened.take());
        }
    }
}

fn inode(file: impl AsFd) -> Result<(u64, u64), Errno> {
    fstat(file).map(|found| (found.st_dev, found.st_ino))
}

fn remove(folder: &OwnedFd, name: &OsStr) {
    // A file that stays is not locked any more, and the collector removes it.
    let _left = unlinkat(folder, name, AtFlags::empty());
}

/// Removes the oldest files of this user's ended programs if there are more than a folder keeps: a program that is started again and
/// again must not fill the memory while none collects.
fn remove_oldest(folder: &OwnedFd, now_ns: u64) {
    let Ok(entries) = Dir::read_from(folder) else {
        return;
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_owned());
    let ours = names.filter(|name| epoch_of(name.to_bytes()).is_some());
    let ended = ours.filter_map(|name| Some((ended(folder, &name)?, name)));
    let mut ended: Vec<(u64, CString)> = ended.collect();
    ended.sort();
    let young_ns = now_ns.saturating_sub(SHM_ENDED_YOUNG_NS);
    for (at, (created_ns, name)) in ended.iter().enumerate().take(SHM_ENDED_REMOVED) {
        let most = match *created_ns >= young_ns {
            true => SHM_ENDED_YOUNG_MAX,
            false => SHM_ENDED_MAX,
        };
        if ended.len() - at < most {
            return;
        }
        remove(folder, OsStr::from_bytes(name.to_bytes()));
    }
}

/// When the program of a file made it, if the file is this user's and the program has ended.
fn ended(folder: &OwnedFd, name: &CStr) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = openat(folder, name, flags, Mode::empty()).ok()?;
    let status = fstat(&file).ok()?;
    let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    if !is_file || status.st_uid != geteuid().as_raw() {
        return None;
    }
    flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
    let mut created = [0; 8];
    let length = pread(&file, &mut created, CREATED_AT as u64).ok()?;
    (length == created.len()).then_some(u64::from_le_bytes(created))
}

/// Allocates all of a new file and writes its constant parts.
fn fill(
    file: &OwnedFd,
    schema: &Schema,
    room: &Room,
    layout: &Layout,
    table: &[u8],
    origin: &Origin,
) -> Result<Mapping, Errno> {
    flock(file, FlockOperation::NonBlockingLockExclusive)?;
    fchmod(file, MODE)?;
    // All of it now: a hole that a full file system cannot fill would be a SIGBUS later.
    fallocate(file, FallocateFlags::empty(), 0, layout.length as u64)?;
    let mapping = Mapping::new(file, layout.length, Rights::ReadWrite)?;
    let mut bytes = vec![0; HEADER_BYTES];
    put_header(&mut bytes, schema, room, layout, origin);
    put_table(&mut bytes, room, layout);
    store(&mapping, 0, &bytes);
    store(&mapping, layout.metrics, table);
    mapping.words()[HEADER_BYTES / 8 + LIVE_METRICS].publish(table.len() as u64);
    Ok(mapping)
}

fn store(mapping: &Mapping, at: usize, bytes: &[u8]) {
    let words = mapping.words()[at / 8..].iter();
    for (word, bytes) in words.zip(bytes.as_chunks::<8>().0) {
        word.put(u64::from_le_bytes(*bytes));
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// A number that has been checked against its limit.
fn u32_of(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes()
}

fn put_header(bytes: &mut [u8], schema: &Schema, room: &Room, layout: &Layout, origin: &Origin) {
    put(bytes, 0, &MAGIC);
    put(bytes, 8, &MAJOR.to_le_bytes());
    put(bytes, 10, &MINOR.to_le_bytes());
    put(bytes, 12, &u32_of(HEADER_BYTES));
    put(bytes, 16, &(layout.length as u64).to_le_bytes());
    put(bytes, 24, &origin.pid.to_le_bytes());
    put(bytes, 32, &origin.start.to_le_bytes());
    put(bytes, 40, &origin.boot);
    put(bytes, 56, &origin.epoch);
    put(bytes, CREATED_AT, &origin.created_ns.to_le_bytes());
    put(bytes, 80, &u32_of(room.slots));
    put(bytes, 84, &u32_of(room.cells));
    put(bytes, 88, &u32_of(room.text_bytes));
    put(bytes, 92, &u32_of(room.labels));
    put(bytes, 96, &schema.stamp_clock.number().to_le_bytes());
    put(bytes, 100, &u32_of(SECTIONS));
    put(bytes, 104, &u32_of(LABEL_BYTES));
    put(bytes, NAME_AT, schema.name.as_bytes());
    for (number, label) in schema.labels.iter().enumerate() {
        put(
            bytes,
            LABEL_NAMES_AT + number * LABEL_NAME_BYTES,
            label.as_bytes(),
        );
    }
}

fn put_table(bytes: &mut [u8], room: &Room, layout: &Layout) {
    let slots = room.slots;
    let sections = [
        (LIVE, LIVE_BYTES, HEADER_BYTES, LIVE_BYTES, 1),
        (
            CELLS,
            room.cells * 8,
            layout.cells,
            layout.cell_stride,
            slots,
        ),
        (HEADS, HEAD_BYTES, layout.heads, HEAD_BYTES, slots),
        (TEXTS, TEXT_FIXED, layout.texts, layout.text_stride, slots),
        (
            IDENTITIES,
            IDENTITY_FIXED,
            layout.identities,
            layout.identity_stride,
            slots,
        ),
        (
            METRICS,
            METRIC_FIXED,
            layout.metrics,
            0,
            layout.metrics_room,
        ),
    ];
    for (number, (kind, record, offset, stride, count)) in sections.into_iter().enumerate() {
        let at = SECTIONS_AT + number * SECTION_BYTES;
        put(bytes, at, &kind.to_le_bytes());
        put(bytes, at + 4, &u32_of(record));
        for (word, value) in [offset, stride, count].into_iter().enumerate() {
            put(bytes, at + 8 + word * 8, &(value as u64).to_le_bytes());
        }
    }
}

/// Where files go: `$KYMO_DIR` (not in set-user-id programs), `/run/kymo/pub` where it can be written, else this user's folder in
/// `/dev/shm`, which is made if it is missing.
fn usual_folder() -> Result<PathBuf, CreateError> {
    let is_plain = getuid() == geteuid() && getgid() == getegid();
    let chosen = std::env::var_os("KYMO_DIR").filter(|folder| is_plain && !folder.is_empty());
    if let Some(folder) = chosen {
        return Ok(folder.into());
    }
    let shared = Path::new("/run/kymo/pub");
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    match accessat(CWD, shared, wanted, AtFlags::EACCESS) {
        Ok(()) => Ok(shared.to_path_buf()),
        // A file elsewhere would not be collected.
        Err(cause @ Errno::ROFS) => Err(CreateError::System {
            verb: "publish in",
            path: shared.to_path_buf(),
            cause,
        }),
        Err(_) => own_folder(Path::new("/dev/shm")),
    }
}

/// The folder of this user alone beneath another one.
fn own_folder(parent: &Path) -> Result<PathBuf, CreateError> {
    let user = geteuid();
    let folder = parent.join(format!("kymo-{}", user.as_raw()));
    let failed = |verb| {
        let path = folder.clone();
        move |cause| CreateError::System { verb, path, cause }
    };
    match mkdir(&folder, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(cause) => return Err(failed("make folder")(cause)),
    }
    let status = lstat(&folder).map_err(failed("look at folder"))?;
    let is_folder = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
    if !is_folder || status.st_uid != user.as_raw() || status.st_mode & 0o077 != 0 {
        let cause = "it is no folder of this user alone";
        return Err(CreateError::Folder { folder, cause });
    }
    Ok(folder)
}
