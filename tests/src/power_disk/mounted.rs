//! The FUSE side of the file system: answers the kernel's requests from the tree.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::MutexGuard;
use std::time::{Duration, Instant, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use super::cut::dice;
use super::names::{Inode, Kind};
use super::{Shared, State, lock};

/// Only the kernel changes the file system, so its cache stays true.
const KNOWN_FOR: Duration = Duration::from_secs(3600);
const BLOCK: u64 = 4096;
/// Room of the file system: 4 GiB.
const BLOCKS: u64 = 1 << 20;

pub(super) struct Mounted(pub(super) Shared);

/// An operation's need for free space.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Room,
    Nothing,
}

impl State {
    fn is_on(&self) -> Result<(), Errno> {
        self.off_since.map_or(Ok(()), |_| Err(Errno::EIO))
    }

    /// Counts an operation that changes something, or makes it durable. Fails if the power goes with it or the disk is full.
    fn operation(&mut self, takes: Takes) -> Result<(), Errno> {
        self.is_on()?;
        self.counts.operations += 1;
        let number = self.counts.operations;
        if self.faults.cut_at == Some(number) {
            self.off_since = Some(Instant::now());
            return Err(Errno::EIO);
        }
        let full = self
            .faults
            .full
            .is_some_and(|(first, end)| (first..end).contains(&number));
        if full && takes == Takes::Room {
            self.counts.faults += 1;
            return Err(Errno::ENOSPC);
        }
        Ok(())
    }

    /// Time until the disk continues, before the next operation.
    fn stalls_for(&mut self) -> Option<Duration> {
        let next = self.counts.operations + 1;
        if let Some((_, length)) = self.faults.stall.take_if(|(at, _)| *at <= next) {
            self.counts.faults += 1;
            self.stalled_until = Some(Instant::now() + length);
        }
        let left = self.stalled_until?.checked_duration_since(Instant::now());
        left.filter(|left| !left.is_zero())
    }

    /// Counts a sync; true if it is the one to fail.
    fn sync_breaks(&mut self) -> bool {
        self.counts.syncs += 1;
        let breaks = self.faults.broken_sync == Some(self.counts.syncs);
        self.counts.faults += u64::from(breaks);
        breaks
    }

    fn inode(&mut self, number: INodeNo) -> Result<&mut Inode, Errno> {
        self.is_on()?;
        self.tree.inodes.get_mut(&number.0).ok_or(Errno::ENOENT)
    }

    fn attributes(&mut self, number: u64) -> Result<FileAttr, Errno> {
        let inode = self.inode(INodeNo(number))?;
        let size = inode.content.seen.len() as u64;
        let kind = kind_of(inode);
        Ok(FileAttr {
            ino: INodeNo(number),
            size,
            blocks: size.div_ceil(BLOCK) * BLOCK / 512,
            atime: inode.mtime,
            mtime: inode.mtime,
            ctime: inode.mtime,
            crtime: inode.mtime,
            kind,
            perm: inode.mode as u16,
            nlink: inode.links,
            uid: inode.owner.0,
            gid: inode.owner.1,
            rdev: 0,
            blksize: BLOCK as u32,
            flags: 0,
        })
    }

    /// Makes a file, folder or link with a name.
    fn make(
        &mut self,
        request: &Request,
        (folder, name): (INodeNo, &OsStr),
        kind: Kind,
        mode: u32,
    ) -> Result<FileAttr, Errno> {
        self.operation(Takes::Room)?;
        if self.tree.find(folder.0, name).is_some() {
            return Err(Errno::EEXIST);
        }
        let number = self.tree.make(kind, mode, (request.uid(), request.gid()));
        self.tree.link(folder.0, name, number);
        self.attributes(number)
    }

    fn remove(&mut self, folder: INodeNo, name: &OsStr) -> Result<(), Errno> {
        self.operation(Takes::Nothing)?;
        let number = self.tree.find(folder.0, name).ok_or(Errno::ENOENT)?;
        if !self.inode(INodeNo(number))?.names.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.tree.unlink(folder.0, name);
        Ok(())
    }

    fn rename(
        &mut self,
        from: (INodeNo, &OsStr),
        to: (INodeNo, &OsStr),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        self.operation(Takes::Nothing)?;
        self.tree.find(from.0.0, from.1).ok_or(Errno::ENOENT)?;
        let there = self.tree.find(to.0.0, to.1);
        if there.is_some() && flags.contains(RenameFlags::RENAME_NOREPLACE) {
            return Err(Errno::EEXIST);
        }
        if flags.contains(RenameFlags::RENAME_EXCHANGE) {
            return Err(Errno::EINVAL);
        }
        self.tree.rename((from.0.0, from.1), (to.0.0, to.1));
        Ok(())
    }

    fn write(&mut self, number: INodeNo, offset: usize, bytes: &[u8]) -> Result<(), Errno> {
        self.counts.writes += 1;
        // Overwriting needs free space, too: some file systems write to another place.
        self.operation(Takes::Room)?;
        if self.faults.broken_write == Some(self.counts.writes) {
            self.counts.faults += 1;
            return Err(Errno::EIO);
        }
        let inode = self.inode(number)?;
        inode.content.write(offset, bytes);
        inode.mtime = SystemTime::now();
        Ok(())
    }

    fn set_len(&mut self, number: INodeNo, len: u64) -> Result<(), Errno> {
        self.operation(Takes::Nothing)?;
        let inode = self.inode(number)?;
        inode.content.set_len(len as usize);
        inode.mtime = SystemTime::now();
        Ok(())
    }

    fn sync(&mut self, number: INodeNo) -> Result<(), Errno> {
        self.operation(Takes::Nothing)?;
        let breaks = self.sync_breaks();
        let mut random = self.random;
        let content = &mut self.inode(number)?.content;
        if breaks {
            content.lose_pending(&mut |below| dice(&mut random, below));
            self.random = random;
            return Err(Errno::EIO);
        }
        content.sync();
        let name = self.inode(number)?.name.clone();
        self.syncs.push((Instant::now(), name));
        Ok(())
    }

    fn sync_folder(&mut self, number: INodeNo) -> Result<(), Errno> {
        self.operation(Takes::Nothing)?;
        if self.sync_breaks() {
            return Err(Errno::EIO);
        }
        self.tree.sync_folder(number.0);
        Ok(())
    }

    /// The names of a folder, with `.` and `..`.
    fn list(&mut self, number: INodeNo) -> Result<Vec<(u64, FileType, OsString)>, Errno> {
        let names = self.inode(number)?.names.clone();
        let mut rows = vec![
            (number.0, FileType::Directory, ".".into()),
            (number.0, FileType::Directory, "..".into()),
        ];
        for (name, number) in names {
            rows.push((number, kind_of(self.inode(INodeNo(number))?), name));
        }
        Ok(rows)
    }
}

fn kind_of(inode: &Inode) -> FileType {
    match inode.kind {
        Kind::File => FileType::RegularFile,
        Kind::Folder => FileType::Directory,
        Kind::Link(_) => FileType::Symlink,
        Kind::Special(mode) if mode & libc::S_IFMT == libc::S_IFSOCK => FileType::Socket,
        Kind::Special(_) => FileType::NamedPipe,
    }
}

impl Mounted {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Waits for a stalled disk, before an operation that changes something or makes it durable. Reads and look-ups
    /// do not wait: the kernel has their answers in its cache.
    fn changing(&self) -> MutexGuard<'_, State> {
        loop {
            let mut state = lock(&self.0);
            let Some(left) = state.stalls_for() else {
                return state;
            };
            drop(state);
            std::thread::sleep(left);
        }
    }
}

fn entry(reply: ReplyEntry, made: Result<FileAttr, Errno>) {
    match made {
        Ok(attributes) => reply.entry(&KNOWN_FOR, &attributes, Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn empty(reply: ReplyEmpty, done: Result<(), Errno>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Mounted {
    fn lookup(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut state = self.state();
        let number = state.tree.find(folder.0, name).ok_or(Errno::ENOENT);
        entry(
            reply,
            state
                .is_on()
                .and(number)
                .and_then(|number| state.attributes(number)),
        );
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.state().attributes(number.0) {
            Ok(attributes) => reply.attr(&KNOWN_FOR, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = self.changing();
        let mut set = || {
            if let Some(size) = size {
                state.set_len(number, size)?;
            }
            let inode = state.inode(number)?;
            inode.mode = mode.map_or(inode.mode, |mode| mode & 0o7777);
            inode.owner = (uid.unwrap_or(inode.owner.0), gid.unwrap_or(inode.owner.1));
            inode.mtime = match mtime {
                Some(TimeOrNow::SpecificTime(time)) => time,
                Some(TimeOrNow::Now) => SystemTime::now(),
                None => inode.mtime,
            };
            state.attributes(number.0)
        };
        match set() {
            Ok(attributes) => reply.attr(&KNOWN_FOR, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match self.state().inode(number).map(|inode| &inode.kind) {
            Ok(Kind::Link(target)) => reply.data(target.as_os_str().as_bytes()),
            Ok(_) => reply.error(Errno::EINVAL),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        folder: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let kind = match mode & libc::S_IFMT {
            libc::S_IFREG => Kind::File,
            _ => Kind::Special(mode),
        };
        entry(
            reply,
            self.changing().make(request, (folder, name), kind, mode),
        );
    }

    fn mkdir(
        &self,
        request: &Request,
        folder: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        entry(
            reply,
            self.state()
                .make(request, (folder, name), Kind::Folder, mode),
        );
    }

    fn symlink(
        &self,
        request: &Request,
        folder: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let kind = Kind::Link(target.into());
        entry(
            reply,
            self.changing().make(request, (folder, name), kind, 0o777),
        );
    }

    fn link(&self, _: &Request, number: INodeNo, folder: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut state = self.changing();
        let linked = state.operation(Takes::Room).and_then(|()| {
            state.tree.link(folder.0, name, number.0);
            state.attributes(number.0)
        });
        entry(reply, linked);
    }

    fn unlink(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.changing().remove(folder, name));
    }

    fn rmdir(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.changing().remove(folder, name));
    }

    fn rename(
        &self,
        _: &Request,
        folder: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        empty(
            reply,
            self.changing().rename((folder, name), (to, new), flags),
        );
    }

    fn create(
        &self,
        request: &Request,
        folder: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let made = self
            .changing()
            .make(request, (folder, name), Kind::File, mode);
        let keep = FopenFlags::FOPEN_KEEP_CACHE;
        match made {
            Ok(attributes) => {
                reply.created(&KNOWN_FOR, &attributes, Generation(0), FileHandle(0), keep);
            }
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.state().inode(number).map(|_| ()) {
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.state().inode(number) {
            Ok(inode) => {
                let bytes = &inode.content.seen;
                let from = bytes.len().min(offset as usize);
                let to = bytes.len().min(from + size as usize);
                reply.data(&bytes[from..to]);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut state = self.changing();
        let mut done = state.write(number, offset as usize, bytes);
        if flags.0 & (libc::O_SYNC | libc::O_DSYNC) != 0 {
            done = done.and_then(|()| state.sync(number));
        }
        match done {
            Ok(()) => reply.written(bytes.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closing a file does not sync it.
        reply.ok();
    }

    fn fsync(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(reply, self.changing().sync(number));
    }

    fn fsyncdir(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(reply, self.changing().sync_folder(number));
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        match self.state().list(number) {
            Ok(rows) => {
                for (index, (number, kind, name)) in
                    rows.into_iter().enumerate().skip(offset as usize)
                {
                    if reply.add(INodeNo(number), index as u64 + 1, kind, name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(error) => reply.error(error),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let state = lock(&self.0);
        let sizes = state
            .tree
            .inodes
            .values()
            .map(|inode| inode.content.seen.len() as u64);
        let taken: u64 = sizes.map(|size| size.div_ceil(BLOCK)).sum();
        let free = BLOCKS.saturating_sub(taken);
        reply.statfs(
            BLOCKS,
            free,
            free,
            1 << 20,
            1 << 19,
            BLOCK as u32,
            255,
            BLOCK as u32,
        );
    }
}
