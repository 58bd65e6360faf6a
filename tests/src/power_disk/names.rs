//! Folders and their entries: names as readers see them, names on the disk, and the changes between the two.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::SystemTime;

use super::content::Content;

/// FUSE's inode number of the top folder.
pub(crate) const ROOT: u64 = 1;

/// Kinds of files.
pub(crate) enum Kind {
    File,
    Folder,
    Link(PathBuf),
    /// A socket or a pipe, by the bits of its mode.
    Special(u32),
}

pub(crate) struct Inode {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) mtime: SystemTime,
    pub(crate) links: u32,
    /// The latest name.
    pub(crate) name: OsString,
    pub(crate) content: Content,
    pub(crate) names: BTreeMap<OsString, u64>,
    pub(crate) durable_names: BTreeMap<OsString, u64>,
}

/// A change of names that is not on the disk for certain: folder, name, number.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Change {
    Link(u64, OsString, u64),
    Unlink(u64, OsString, u64),
    Rename((u64, OsString), (u64, OsString), u64),
}

impl Change {
    fn touches(&self, folder: u64) -> bool {
        match self {
            Change::Link(at, ..) | Change::Unlink(at, ..) => *at == folder,
            Change::Rename((from, _), (to, _), _) => *from == folder || *to == folder,
        }
    }

    /// Folder and name that the change creates.
    fn gives(&self) -> Option<(u64, &OsStr)> {
        match self {
            Change::Link(folder, name, _) | Change::Rename(_, (folder, name), _) => {
                Some((*folder, name))
            }
            Change::Unlink(..) => None,
        }
    }
}

/// All files and folders.
pub(crate) struct Tree {
    pub(crate) inodes: BTreeMap<u64, Inode>,
    pub(super) pending: Vec<Change>,
    last: u64,
}

impl Tree {
    pub(crate) fn new() -> Tree {
        let mut tree = Tree {
            inodes: BTreeMap::new(),
            pending: Vec::new(),
            last: 0,
        };
        tree.make(Kind::Folder, 0o755, (0, 0));
        tree
    }

    /// Makes an inode without a name; returns its number.
    pub(crate) fn make(&mut self, kind: Kind, mode: u32, owner: (u32, u32)) -> u64 {
        self.last += 1;
        let inode = Inode {
            links: if matches!(kind, Kind::Folder) { 2 } else { 0 },
            kind,
            mode: mode & 0o7777,
            owner,
            mtime: SystemTime::now(),
            name: OsString::new(),
            content: Content::default(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
        };
        self.inodes.insert(self.last, inode);
        self.last
    }

    pub(crate) fn find(&self, folder: u64, name: &OsStr) -> Option<u64> {
        self.inodes.get(&folder)?.names.get(name).copied()
    }

    pub(crate) fn link(&mut self, folder: u64, name: &OsStr, number: u64) {
        self.insert(folder, name, number);
        self.pending.push(Change::Link(folder, name.into(), number));
    }

    pub(crate) fn unlink(&mut self, folder: u64, name: &OsStr) {
        if let Some(number) = self.take(folder, name) {
            self.pending
                .push(Change::Unlink(folder, name.into(), number));
        }
    }

    pub(crate) fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) {
        let Some(number) = self.find(from.0, from.1) else {
            return;
        };
        if self.find(to.0, to.1) == Some(number) {
            return;
        }
        self.take(to.0, to.1);
        self.take(from.0, from.1);
        self.insert(to.0, to.1, number);
        let (from, to) = ((from.0, from.1.into()), (to.0, to.1.into()));
        self.pending.push(Change::Rename(from, to, number));
    }

    fn insert(&mut self, folder: u64, name: &OsStr, number: u64) {
        if let Some(folder) = self.inodes.get_mut(&folder) {
            folder.names.insert(name.into(), number);
            folder.mtime = SystemTime::now();
        }
        if let Some(inode) = self.inodes.get_mut(&number) {
            inode.links += 1;
            inode.name = name.into();
        }
    }

    fn take(&mut self, folder: u64, name: &OsStr) -> Option<u64> {
        let folder = self.inodes.get_mut(&folder)?;
        let number = folder.names.remove(name)?;
        folder.mtime = SystemTime::now();
        if let Some(inode) = self.inodes.get_mut(&number) {
            inode.links = inode.links.saturating_sub(1);
        }
        Some(number)
    }

    /// Puts the names of a folder on the disk.
    pub(crate) fn sync_folder(&mut self, folder: u64) {
        let pending = std::mem::take(&mut self.pending);
        let (synced, mut left): (Vec<_>, Vec<_>) = pending
            .into_iter()
            .partition(|change| change.touches(folder));
        for change in synced {
            self.keep(&change);
            // A file that has certainly moved to another folder must not return under its old name later.
            if let Change::Rename((at, name), ..) = &change {
                left.retain(|earlier| earlier.gives() != Some((*at, name)));
            }
        }
        self.pending = left;
    }

    /// Puts all changes on the disk.
    pub(crate) fn settle(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            self.keep(&change);
        }
        for inode in self.inodes.values_mut() {
            inode.content.sync();
        }
    }

    /// Puts one change on the disk; a rename is never split.
    pub(super) fn keep(&mut self, change: &Change) {
        match change {
            Change::Link(folder, name, number) => self.keep_name(*folder, name, *number),
            Change::Unlink(folder, name, number) => self.drop_name(*folder, name, *number),
            Change::Rename(from, to, number) => {
                self.drop_name(from.0, &from.1, *number);
                self.keep_name(to.0, &to.1, *number);
            }
        }
    }

    fn keep_name(&mut self, folder: u64, name: &OsStr, number: u64) {
        if let Some(folder) = self.inodes.get_mut(&folder) {
            folder.durable_names.insert(name.into(), number);
        }
    }

    fn drop_name(&mut self, folder: u64, name: &OsStr, number: u64) {
        if let Some(folder) = self.inodes.get_mut(&folder)
            && folder.durable_names.get(name) == Some(&number)
        {
            folder.durable_names.remove(name);
        }
    }

    /// Forgets everything that is not on the disk. No process may have a file open.
    pub(super) fn start_from_disk(&mut self) {
        let mut reached = BTreeSet::from([ROOT]);
        let mut next = vec![ROOT];
        let mut links = BTreeMap::new();
        while let Some(number) = next.pop() {
            let Some(inode) = self.inodes.get_mut(&number) else {
                continue;
            };
            inode.names.clone_from(&inode.durable_names);
            for below in inode.names.values() {
                *links.entry(*below).or_insert(0) += 1;
                if reached.insert(*below) {
                    next.push(*below);
                }
            }
        }
        self.inodes.retain(|number, _| reached.contains(number));
        for (number, inode) in &mut self.inodes {
            let own = u32::from(matches!(inode.kind, Kind::Folder));
            inode.links = own + links.get(number).copied().unwrap_or(own);
        }
    }
}
