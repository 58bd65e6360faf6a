//! A file system in memory that fails on command, for crash tests.
//!
//! The state that a reader sees and the state that survives a power cut are kept apart: a write
//! is durable only after `sync_data` of its file, a name only after `sync_dir` of its directory.
//! At a cut each pending operation is kept, dropped or torn by 512-byte sectors, independently of
//! the others. A failed sync loses its writes for ever although they can still be read, as Linux
//! does.

mod tree;

use crate::disk::{Disk, DiskFile, Metadata, NameKind, OpenMode, RecordLock};
use crate::sim_clock::SimClock;
use crate::tree::{Reach, Tree};
use kymo_base::random::next_random;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tree::SimTree;

const SECTOR: usize = 512;
const PAGE: u64 = 4096;

/// Fate of one pending operation at a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The operation reached the disk.
    Keep,
    /// The operation did not reach the disk.
    Drop,
    /// Each of its sectors did or did not, by this seed. A torn name is a dropped one.
    Torn(u64),
}

/// Faults to come. Operations are counted from 1.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Writes numbered from the first up to but not including the second fail with ENOSPC.
    pub full_writes: Option<(u64, u64)>,
    /// This write fails with EIO.
    pub broken_write: Option<u64>,
    /// This sync (of a file or a directory) fails with EIO.
    pub broken_sync: Option<u64>,
    /// Room for all files together, in bytes.
    pub capacity_bytes: Option<u64>,
    /// From this operation on nothing works until [`SimDisk::crash`].
    pub power_off_at: Option<u64>,
    /// Each write takes this long on the clock.
    pub slow_write: Option<(Arc<SimClock>, u64)>,
    /// Another process removes this file as soon as it has been listed.
    pub gone_once_listed: Option<PathBuf>,
}

/// Counts of operations and of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations that change something.
    pub operations: u64,
    /// Writes to files, failed ones too.
    pub writes: u64,
    /// Syncs of files and directories, failed ones too.
    pub syncs: u64,
    /// Faults that came to pass.
    pub faults: u64,
    /// Pending operations dropped or torn at power cuts.
    pub lost_at_cut: u64,
    /// The most bytes that all files together ever took.
    pub allocated_bytes_max: u64,
}

/// The simulated twin of [`crate::disk::RealDisk`]. Clones share one state.
#[derive(Clone)]
pub struct SimDisk(Arc<Mutex<State>>);

#[derive(Clone, Default)]
struct State {
    names: BTreeMap<PathBuf, Node>,
    durable_names: BTreeMap<PathBuf, Node>,
    inodes: BTreeMap<u64, Inode>,
    pending: Vec<Pending>,
    locks: BTreeMap<u64, u64>,
    record_locks: Vec<(u64, u64, RecordLock)>,
    failed: BTreeSet<u64>,
    changes: i64,
    faults: Faults,
    counts: Counts,
    random: u64,
    last_inode: u64,
    last_handle: u64,
    boots: u64,
    /// Power cuts: each is followed by a mount.
    mounts: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    File(u64),
    Link(PathBuf),
}

#[derive(Clone, Default)]
struct Inode {
    seen: Vec<u8>,
    durable: Vec<u8>,
    seen_mtime: i64,
    durable_mtime: i64,
}

#[derive(Clone)]
enum Pending {
    Write(u64, u64, Vec<u8>),
    SetLen(u64, u64),
    Link(PathBuf, Node),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf, Node),
}

impl SimDisk {
    /// An empty disk; `seed` decides what chance decides.
    pub fn new(seed: u64) -> Self {
        let mut state = State {
            random: seed,
            ..State::default()
        };
        state.names.insert(PathBuf::from("/"), Node::Directory);
        state.durable_names = state.names.clone();
        SimDisk(Arc::new(Mutex::new(state)))
    }

    /// A disk with the same content that lives on its own from now on.
    pub fn fork(&self) -> Self {
        SimDisk(Arc::new(Mutex::new(self.state().clone())))
    }

    /// Sets the faults to come; the counts go on.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Counts of operations and of faults so far.
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// How many operations a power cut would put at risk.
    pub fn pending_len(&self) -> usize {
        self.state().pending.len()
    }

    /// Cuts the power: `fate` is asked for each pending operation, oldest first. Open files are
    /// dead afterwards, locks are free, faults are over.
    pub fn crash(&self, fate: &mut dyn FnMut(usize) -> Fate) {
        self.state().crash(fate);
    }

    /// Cuts the power and lets chance decide.
    pub fn crash_by_chance(&self, seed: u64) {
        let mut random = seed;
        self.crash(&mut |_| match next_random(&mut random) % 3 {
            0 => Fate::Keep,
            1 => Fate::Drop,
            _ => Fate::Torn(next_random(&mut random)),
        });
    }

    /// Every process dies, the machine lives: files keep their bytes, locks are free.
    pub fn kill(&self) {
        let mut state = self.state();
        state.locks.clear();
        state.record_locks.clear();
        state.boots += 1;
    }

    /// Makes a symbolic link, durable at once.
    pub fn symlink(&self, target: &Path, path: &Path) {
        let mut state = self.state();
        let node = Node::Link(target.into());
        state.names.insert(path.into(), node.clone());
        state.durable_names.insert(path.into(), node);
    }

    /// Gives a file a second name, durable at once.
    pub fn hard_link(&self, old: &Path, new: &Path) {
        let mut state = self.state();
        if let Some(node) = state.names.get(old).cloned() {
            state.names.insert(new.into(), node.clone());
            state.durable_names.insert(new.into(), node);
        }
    }

    pub(crate) fn link_target(&self, path: &Path) -> Option<PathBuf> {
        match self.state().names.get(path) {
            Some(Node::Link(target)) => Some(target.clone()),
            _ => None,
        }
    }

    /// Metadata of `path`, which may be a directory.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Metadata> {
        let state = self.state();
        let metadata = |kind, inode| Metadata {
            kind,
            ..state.metadata(inode)
        };
        match state.names.get(path) {
            Some(Node::File(inode)) => Ok(metadata(NameKind::File, *inode)),
            Some(Node::Directory) => Ok(metadata(NameKind::Directory, 0)),
            _ => Err(state
                .file(path)
                .err()
                .unwrap_or_else(|| io::ErrorKind::NotFound.into())),
        }
    }

    /// The bytes of a file as a reader sees them.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let inode = state.file(path).ok()?;
        Some(state.inodes[&inode].seen.clone())
    }

    /// Puts `bytes` into a file, durable at once.
    pub fn set_bytes(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.state();
        let inode = state.file(path).unwrap_or_else(|_| state.new_inode());
        state.changes += 1;
        let both = Inode {
            seen: bytes.clone(),
            durable: bytes,
            seen_mtime: state.changes,
            durable_mtime: state.changes,
        };
        state.inodes.insert(inode, both);
        state.names.insert(path.into(), Node::File(inode));
        state.durable_names.insert(path.into(), Node::File(inode));
    }

    /// All files and their lengths.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let state = self.state();
        let mut files = Vec::new();
        for (path, node) in &state.names {
            if let Node::File(inode) = node {
                files.push((path.clone(), state.inodes[inode].seen.len() as u64));
            }
        }
        files
    }

    /// Bytes that all named files together take.
    pub fn allocated_bytes(&self) -> u64 {
        self.state().allocated_bytes()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for SimDisk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        let mut missing: Vec<&Path> = dir
            .ancestors()
            .take_while(|above| !state.names.contains_key(*above))
            .collect();
        while let Some(path) = missing.pop() {
            if path.as_os_str().is_empty() {
                continue;
            }
            state.operation()?;
            state.link(path, Node::Directory);
        }
        Ok(())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        let inode = match (state.file(path), mode) {
            (Ok(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Ok(inode), _) => inode,
            (Err(error), OpenMode::Read | OpenMode::Write) => return Err(error),
            (Err(_), OpenMode::Create | OpenMode::CreateNew) => state.create(path)?,
        };
        state.last_handle += 1;
        Ok(Box::new(SimFile {
            state: self.0.clone(),
            inode,
            mode,
            handle: state.last_handle,
            boots: state.boots,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation()?;
        let node = Node::File(state.file(from)?);
        state.names.remove(from);
        state.names.insert(to.into(), node.clone());
        state
            .pending
            .push(Pending::Rename(from.into(), to.into(), node));
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation()?;
        state.file(path)?;
        state.remove(path);
        Ok(())
    }

    fn rmdir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation()?;
        if state.names.keys().any(|path| path.parent() == Some(dir)) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        match state.names.get(dir) {
            Some(Node::Directory) => {
                state.remove(dir);
                Ok(())
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, dir: &Path, each: &mut dyn FnMut(&str, NameKind)) -> io::Result<()> {
        let names: Vec<(String, Node)> = {
            let state = self.state();
            if state.names.get(dir) != Some(&Node::Directory) {
                return Err(io::ErrorKind::NotFound.into());
            }
            let below = state
                .names
                .iter()
                .filter(|(path, _)| path.parent() == Some(dir));
            below
                .filter_map(|(path, node)| {
                    Some((path.file_name()?.to_str()?.to_string(), node.clone()))
                })
                .collect()
        };
        let mut state = self.state();
        let gone = state
            .faults
            .gone_once_listed
            .take_if(|path| path.parent() == Some(dir));
        if let Some(path) = gone {
            state.names.remove(&path);
            state.durable_names.remove(&path);
        }
        drop(state);
        for (name, node) in names {
            each(&name, kind_of(&node));
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation()?;
        let broken = state.sync_fault();
        for change in state.take_pending(|change| change.directory() == Some(dir)) {
            if !broken {
                state.keep(&change);
            }
        }
        fail_if(broken)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.stat(path)
    }

    fn name_kind(&self, path: &Path) -> io::Result<NameKind> {
        let state = self.state();
        let node = state.names.get(path);
        node.map(kind_of)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_file_system(&self, _path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operation()?;
        let broken = state.sync_fault();
        for change in state.take_pending(|change| !broken || change.inode().is_some()) {
            match change.inode().filter(|_| broken) {
                // Whoever syncs that file next hears of it.
                Some(inode) => {
                    state.failed.insert(inode);
                }
                None => state.keep(&change),
            }
        }
        fail_if(broken)
    }

    fn user(&self) -> u32 {
        0
    }

    fn tree(&self, base: &Path, reach: Reach) -> io::Result<Box<dyn Tree>> {
        Ok(Box::new(SimTree {
            disk: self.clone(),
            base: base.into(),
            reach,
        }))
    }
}

struct SimFile {
    state: Arc<Mutex<State>>,
    inode: u64,
    mode: OpenMode,
    handle: u64,
    boots: u64,
}

impl SimFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.boots == self.boots {
            true => Ok(state),
            false => Err(io::Error::other("the file was open when the power went")),
        }
    }

    fn writable(&self) -> io::Result<MutexGuard<'_, State>> {
        match self.mode {
            OpenMode::Read => Err(io::Error::from_raw_os_error(libc::EBADF)),
            _ => self.state(),
        }
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.state()?;
        let bytes = &state.inodes[&self.inode].seen;
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let count = buffer.len().min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.writable()?;
        state.operation()?;
        state.counts.writes += 1;
        if let Some((clock, ns)) = &state.faults.slow_write {
            clock.advance_ns(*ns);
        }
        if let Some(error) = state.write_fault(self.inode, offset + bytes.len() as u64) {
            // The kernel may have taken a part before it said no.
            let taken = next_random(&mut state.random) as usize % (bytes.len() + 1);
            let fits = state.room_for(self.inode, offset + taken as u64);
            if fits && taken > 0 {
                state.write(self.inode, offset, bytes[..taken].to_vec());
            }
            return Err(error);
        }
        state.write(self.inode, offset, bytes.to_vec());
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.writable()?;
        state.operation()?;
        let inode = self.inode;
        let broken = state.sync_fault() | state.failed.remove(&inode);
        for change in state.take_pending(|change| change.inode() == Some(inode)) {
            if !broken {
                state.keep(&change);
            }
        }
        fail_if(broken)
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        let mut state = self.writable()?;
        state.operation()?;
        if !state.room_for(self.inode, size_bytes) {
            state.counts.faults += 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.change_bytes(self.inode, Pending::SetLen(self.inode, size_bytes));
        Ok(())
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Ok(self.state()?.metadata(self.inode))
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.state()?;
        let holder = *state.locks.entry(self.inode).or_insert(self.handle);
        Ok(holder == self.handle)
    }

    fn try_record_lock(&self, kind: RecordLock) -> io::Result<bool> {
        let mut state = self.state()?;
        let in_the_way = state.record_locks.iter().any(|&(inode, handle, held)| {
            let exclusive = RecordLock::Exclusive;
            inode == self.inode && handle != self.handle && (kind == exclusive || held == exclusive)
        });
        if !in_the_way {
            state.record_locks.retain(|lock| lock.1 != self.handle);
            state.record_locks.push((self.inode, self.handle, kind));
        }
        Ok(!in_the_way)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let Ok(mut state) = self.state() else {
            return;
        };
        if state.locks.get(&self.inode) == Some(&self.handle) {
            state.locks.remove(&self.inode);
        }
        state.record_locks.retain(|lock| lock.1 != self.handle);
    }
}

impl State {
    fn operation(&mut self) -> io::Result<()> {
        self.counts.operations += 1;
        match self.faults.power_off_at {
            Some(at) if self.counts.operations >= at => {
                self.counts.faults += 1;
                Err(io::Error::from_raw_os_error(libc::EIO))
            }
            _ => Ok(()),
        }
    }

    fn write_fault(&mut self, inode: u64, end: u64) -> Option<io::Error> {
        let number = self.counts.writes;
        let full =
            matches!(self.faults.full_writes, Some((from, to)) if from <= number && number < to);
        let error = if full || !self.room_for(inode, end) {
            libc::ENOSPC
        } else if self.faults.broken_write == Some(number) {
            libc::EIO
        } else {
            return None;
        };
        self.counts.faults += 1;
        Some(io::Error::from_raw_os_error(error))
    }

    fn sync_fault(&mut self) -> bool {
        self.counts.syncs += 1;
        let broken = self.faults.broken_sync == Some(self.counts.syncs);
        self.counts.faults += u64::from(broken);
        broken
    }

    fn room_for(&self, inode: u64, size_bytes: u64) -> bool {
        let Some(capacity) = self.faults.capacity_bytes else {
            return true;
        };
        let held = pages(self.inodes[&inode].seen.len() as u64);
        let more = pages(size_bytes).saturating_sub(held);
        more == 0 || self.allocated_bytes() + more <= capacity
    }

    fn allocated_bytes(&self) -> u64 {
        let mut total = 0;
        for node in self.names.values() {
            if let Node::File(inode) = node {
                total += pages(self.inodes[inode].seen.len() as u64);
            }
        }
        total
    }

    fn file(&self, path: &Path) -> io::Result<u64> {
        match self.names.get(path) {
            Some(Node::File(inode)) => Ok(*inode),
            Some(Node::Directory) => Err(io::Error::from_raw_os_error(libc::EISDIR)),
            Some(Node::Link(_)) => Err(io::Error::from_raw_os_error(libc::ELOOP)),
            None if path
                .ancestors()
                .skip(1)
                .any(|above| matches!(self.names.get(above), Some(Node::File(_)))) =>
            {
                Err(io::Error::from_raw_os_error(libc::ENOTDIR))
            }
            None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        }
    }

    /// A change reaches the disk.
    fn keep(&mut self, change: &Pending) {
        match change.inode().and_then(|inode| self.inodes.get_mut(&inode)) {
            Some(inode) => {
                change.apply_bytes(&mut inode.durable, Fate::Keep);
                inode.durable_mtime = inode.seen_mtime;
            }
            None => change.apply_name(&mut self.durable_names),
        }
    }

    fn create(&mut self, path: &Path) -> io::Result<u64> {
        self.operation()?;
        let parent = path.parent().unwrap_or(Path::new("/"));
        if self.names.get(parent) != Some(&Node::Directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inode = self.new_inode();
        self.link(path, Node::File(inode));
        Ok(inode)
    }

    fn new_inode(&mut self) -> u64 {
        self.last_inode += 1;
        self.inodes.insert(self.last_inode, Inode::default());
        self.last_inode
    }

    fn link(&mut self, path: &Path, node: Node) {
        self.names.insert(path.into(), node.clone());
        self.pending.push(Pending::Link(path.into(), node));
    }

    fn remove(&mut self, path: &Path) {
        self.names.remove(path);
        self.pending.push(Pending::Unlink(path.into()));
    }

    fn write(&mut self, inode: u64, offset: u64, bytes: Vec<u8>) {
        self.change_bytes(inode, Pending::Write(inode, offset, bytes));
    }

    fn change_bytes(&mut self, inode: u64, change: Pending) {
        self.changes += 1;
        if let Some(inode) = self.inodes.get_mut(&inode) {
            change.apply_bytes(&mut inode.seen, Fate::Keep);
            inode.seen_mtime = self.changes;
        }
        self.pending.push(change);
        let now = self.allocated_bytes();
        self.counts.allocated_bytes_max = self.counts.allocated_bytes_max.max(now);
    }

    fn metadata(&self, inode: u64) -> Metadata {
        let found = self.inodes.get(&inode);
        let size_bytes = found.map_or(0, |found| found.seen.len() as u64);
        let names = self
            .names
            .values()
            .filter(|node| **node == Node::File(inode));
        Metadata {
            kind: NameKind::File,
            size_bytes,
            allocated_bytes: pages(size_bytes),
            inode,
            // The kernel gives devices other numbers at each mount.
            device: 1 + self.mounts,
            mtime_ns: found.map_or(0, |found| found.seen_mtime),
            links: names.count() as u64,
            owner: 0,
            mode: 0o640,
        }
    }

    fn take_pending(&mut self, wanted: impl Fn(&Pending) -> bool) -> Vec<Pending> {
        let all = std::mem::take(&mut self.pending);
        let (taken, left) = all.into_iter().partition(wanted);
        self.pending = left;
        taken
    }

    fn crash(&mut self, fate: &mut dyn FnMut(usize) -> Fate) {
        for (number, change) in std::mem::take(&mut self.pending).into_iter().enumerate() {
            let fate = fate(number);
            self.counts.lost_at_cut += u64::from(fate != Fate::Keep);
            match change.inode().and_then(|inode| self.inodes.get_mut(&inode)) {
                Some(inode) => change.apply_bytes(&mut inode.durable, fate),
                None if fate == Fate::Keep => change.apply_name(&mut self.durable_names),
                None => {}
            }
        }
        self.drop_orphans();
        self.names = self.durable_names.clone();
        for inode in self.inodes.values_mut() {
            // The time of a change and the changed bytes reach the disk independently.
            if next_random(&mut self.random) & 1 == 1 {
                inode.durable_mtime = inode.seen_mtime;
            }
            inode.seen = inode.durable.clone();
            inode.seen_mtime = inode.durable_mtime;
        }
        self.locks.clear();
        self.record_locks.clear();
        self.failed.clear();
        self.faults = Faults::default();
        self.boots += 1;
        self.mounts += 1;
    }

    fn drop_orphans(&mut self) {
        let names = self.durable_names.clone();
        let rooted = |path: &Path| {
            let mut above = path.ancestors().skip(1);
            above.all(|dir| dir.as_os_str().is_empty() || names.contains_key(dir))
        };
        self.durable_names.retain(|path, _| rooted(path));
    }
}

impl Pending {
    fn inode(&self) -> Option<u64> {
        match self {
            Pending::Write(inode, ..) | Pending::SetLen(inode, _) => Some(*inode),
            _ => None,
        }
    }

    fn directory(&self) -> Option<&Path> {
        match self {
            Pending::Link(path, _) | Pending::Unlink(path) | Pending::Rename(path, ..) => {
                path.parent()
            }
            _ => None,
        }
    }

    fn apply_name(&self, names: &mut BTreeMap<PathBuf, Node>) {
        match self {
            Pending::Link(path, node) => {
                names.insert(path.clone(), node.clone());
            }
            Pending::Unlink(path) => {
                names.remove(path);
            }
            Pending::Rename(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), node.clone());
            }
            Pending::Write(..) | Pending::SetLen(..) => {}
        }
    }

    fn apply_bytes(&self, file: &mut Vec<u8>, fate: Fate) {
        match self {
            Pending::Write(_, offset, bytes) => apply_write(file, *offset as usize, bytes, fate),
            Pending::SetLen(_, size) if fate == Fate::Keep => file.resize(*size as usize, 0),
            _ => {}
        }
    }
}

fn apply_write(file: &mut Vec<u8>, offset: usize, bytes: &[u8], fate: Fate) {
    let mut random = match fate {
        Fate::Drop => return,
        Fate::Keep => 0,
        Fate::Torn(seed) => seed,
    };
    let (mut at, end) = (offset, offset + bytes.len());
    while at < end {
        let next = ((at / SECTOR + 1) * SECTOR).min(end);
        if fate == Fate::Keep || next_random(&mut random) & 1 == 1 {
            if file.len() < next {
                file.resize(next, 0);
            }
            file[at..next].copy_from_slice(&bytes[at - offset..next - offset]);
        }
        at = next;
    }
}

fn pages(size_bytes: u64) -> u64 {
    size_bytes.div_ceil(PAGE) * PAGE
}

fn kind_of(node: &Node) -> NameKind {
    match node {
        Node::Directory => NameKind::Directory,
        Node::File(_) => NameKind::File,
        Node::Link(_) => NameKind::Other,
    }
}

fn fail_if(broken: bool) -> io::Result<()> {
    match broken {
        true => Err(io::Error::from_raw_os_error(libc::EIO)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    fn exercise(disk: &dyn Disk, root: &Path) {
        let dir = root.join("a/b");
        disk.create_dir_all(&dir).unwrap();
        disk.create_dir_all(&dir).unwrap();
        let file = disk.open(&dir.join("f"), OpenMode::CreateNew).unwrap();
        assert!(disk.open(&dir.join("f"), OpenMode::CreateNew).is_err());
        file.write_at(b"hello", 3).unwrap();
        file.sync_data().unwrap();
        let mut buffer = [9; 10];
        assert_eq!(file.read_at(&mut buffer, 2).unwrap(), 6);
        assert_eq!(&buffer[..6], b"\0hello");
        assert!(file.try_lock().unwrap());
        let second = disk.open(&dir.join("f"), OpenMode::Write).unwrap();
        assert!(!second.try_lock().unwrap());
        drop(file);
        // A child that another test is starting still has the first one's descriptor.
        let begun = std::time::Instant::now();
        while !second.try_lock().unwrap() {
            assert!(begun.elapsed().as_secs() < 60, "the lock stays");
            std::thread::yield_now();
        }
        second.write_at(&[7; 10_000], 0).unwrap();
        second.write_zeros(5..9_000).unwrap();
        let mut bytes = [1; 10_001];
        assert_eq!(second.read_at(&mut bytes, 0).unwrap(), 10_000);
        let zeros = |at: &usize| bytes[*at] == 0;
        assert!((0..10_000).filter(zeros).eq(5..9_000));
        second.set_len(4).unwrap();
        assert_eq!(second.metadata().unwrap().size_bytes, 4);
        disk.rename(&dir.join("f"), &dir.join("g")).unwrap();
        disk.sync_dir(&dir).unwrap();
        let mut names = Vec::new();
        disk.list(&dir, &mut |name, kind| names.push((name.to_string(), kind)))
            .unwrap();
        assert_eq!(names, [("g".to_string(), NameKind::File)]);
        assert!(disk.rmdir(&dir).is_err());
        let reader = disk.open(&dir.join("g"), OpenMode::Read).unwrap();
        assert!(reader.write_at(b"x", 0).is_err());
        disk.unlink(&dir.join("g")).unwrap();
        disk.rmdir(&dir).unwrap();
        assert!(disk.open(&dir.join("g"), OpenMode::Read).is_err());
    }

    #[test]
    fn both_disks_do_the_same() {
        exercise(&SimDisk::new(1), Path::new("/"));
        let root = std::env::temp_dir().join(format!("kymo-disk-{}", std::process::id()));
        exercise(&RealDisk, &root);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_real_disk_follows_no_link() {
        let root = std::env::temp_dir().join(format!("kymo-link-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
        assert!(RealDisk.open(&root.join("link"), OpenMode::Read).is_err());
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_power_cut_keeps_what_was_synced() {
        let path = Path::new("/f");
        for (fate, expected) in [
            (Fate::Keep, Some("synced+more")),
            (Fate::Drop, Some("synced")),
        ] {
            let disk = SimDisk::new(1);
            let file = disk.open(path, OpenMode::Create).unwrap();
            file.write_at(b"synced", 0).unwrap();
            file.sync_data().unwrap();
            disk.sync_dir(Path::new("/")).unwrap();
            file.write_at(b"+more", 6).unwrap();
            assert_eq!(disk.pending_len(), 1);
            disk.crash(&mut |_| fate);
            let left = disk
                .bytes(path)
                .map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(left.as_deref(), expected);
            assert!(file.write_at(b"late", 0).is_err());
        }
    }

    #[test]
    fn a_name_that_was_not_synced_is_lost() {
        let disk = SimDisk::new(1);
        let file = disk.open(Path::new("/f"), OpenMode::Create).unwrap();
        file.write_at(b"x", 0).unwrap();
        file.sync_data().unwrap();
        disk.crash(&mut |_| Fate::Drop);
        assert_eq!(disk.bytes(Path::new("/f")), None);
    }

    #[test]
    fn a_failed_sync_loses_its_writes_for_ever() {
        let disk = SimDisk::new(1);
        let file = disk.open(Path::new("/f"), OpenMode::Create).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk.set_faults(Faults {
            broken_sync: Some(2),
            ..Faults::default()
        });
        file.write_at(b"x", 0).unwrap();
        assert!(file.sync_data().is_err());
        assert!(file.sync_data().is_ok());
        assert_eq!(disk.bytes(Path::new("/f")).unwrap(), b"x");
        disk.crash(&mut |_| Fate::Keep);
        assert_eq!(disk.bytes(Path::new("/f")).unwrap(), b"");
        assert_eq!(disk.counts().faults, 1);
    }

    #[test]
    fn capacity_and_full_writes() {
        let disk = SimDisk::new(1);
        let file = disk.open(Path::new("/f"), OpenMode::Create).unwrap();
        disk.set_faults(Faults {
            capacity_bytes: Some(8192),
            full_writes: Some((2, 3)),
            ..Faults::default()
        });
        file.write_at(&[1; 4096], 0).unwrap();
        assert!(crate::disk::is_full(
            &file.write_at(&[2; 4096], 4096).unwrap_err()
        ));
        file.write_at(&[3; 4096], 4096).unwrap();
        assert!(file.write_at(&[4; 1], 8192).is_err());
        assert_eq!(disk.counts().faults, 2);
    }
}
