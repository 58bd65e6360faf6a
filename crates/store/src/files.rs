//! The files that are known, and what memory holds of each.

use crate::entry::{Begin, Identity};
use crate::names;
use crate::values::Values;
use std::collections::HashMap;
use std::sync::Arc;

/// Other spellings of one file that are remembered; more are found again by looking at the disk.
const SPELLINGS_MAX: usize = 8;

/// What is known of one file.
#[derive(Debug)]
pub(crate) struct File {
    /// Absolute, without links and dots.
    pub(crate) path: Arc<[u8]>,
    /// Tells this use of the slot from others.
    pub(crate) unique: u64,
    /// Accepted and not yet handed to the file.
    pub(crate) values: Values,
    /// Handed to a write that is not done.
    pub(crate) taken: Option<Arc<Values>>,
    /// Newest stamp, of a value or of the file.
    pub(crate) last: f64,
    /// Newest stamp of what the file has.
    pub(crate) upto: f64,
    /// Monotonic nanoseconds from which on the write interval counts.
    pub(crate) flushed_ns: u64,
    /// FORGET came, or a turn that knows better: nobody sees the file until it is touched again.
    pub(crate) forgotten: bool,
    pub(crate) suspended: bool,
    pub(crate) queued: bool,
    /// Somebody writes, reads or replaces it.
    pub(crate) busy: bool,
    /// Since when it is missing, monotonic.
    pub(crate) gone_since: Option<u64>,
    /// The journal file in which its id was introduced.
    pub(crate) introduced: u64,
    /// The journal file that has the oldest of `values`.
    pub(crate) pending_since: u64,
    /// The journal file that has the oldest value written since `begun` began.
    pub(crate) taken_since: u64,
    /// The epoch in which the journal got its BEGIN; 0: none.
    pub(crate) begun: u32,
    /// How we left it.
    pub(crate) identity: Option<Identity>,
    /// A write may have been cut short: the next one starts from here.
    pub(crate) redo: Option<Box<Begin>>,
    /// The turn that last changed it.
    pub(crate) turn: u64,
    spellings: Vec<Box<[u8]>>,
}

/// All of them; ids are places in a table.
#[derive(Debug, Default)]
pub(crate) struct Files {
    slots: Vec<Option<File>>,
    free: Vec<u32>,
    by_name: HashMap<Box<[u8]>, u32>,
    by_path: HashMap<Arc<[u8]>, u32>,
    /// Files with several names, by device and inode.
    by_inode: HashMap<(u64, u64), u32>,
    uniques: u64,
}

impl Files {
    pub(crate) fn get(&self, id: u32) -> Option<&File> {
        self.slots.get(id as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut File> {
        self.slots.get_mut(id as usize)?.as_mut()
    }

    /// The file that a client's name stands for, if it is known by that name.
    pub(crate) fn by_name(&self, name: &[u8]) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn by_path(&self, path: &[u8]) -> Option<u32> {
        self.by_path.get(path).copied()
    }

    pub(crate) fn by_inode(&self, device: u64, inode: u64) -> Option<u32> {
        self.by_inode.get(&(device, inode)).copied()
    }

    pub(crate) fn set_inode(&mut self, device: u64, inode: u64, id: u32) {
        self.by_inode.insert((device, inode), id);
    }

    /// The file of this path; a new slot if there is none.
    pub(crate) fn insert(&mut self, path: &[u8]) -> u32 {
        if let Some(&id) = self.by_path.get(path) {
            return id;
        }
        self.uniques += 1;
        let path: Arc<[u8]> = path.into();
        let file = File {
            path: path.clone(),
            unique: self.uniques,
            values: Values::default(),
            taken: None,
            last: f64::NEG_INFINITY,
            upto: f64::NEG_INFINITY,
            flushed_ns: 0,
            forgotten: true,
            suspended: false,
            queued: false,
            busy: false,
            gone_since: None,
            introduced: 0,
            pending_since: 0,
            taken_since: 0,
            begun: 0,
            identity: None,
            redo: None,
            turn: 0,
            spellings: Vec::new(),
        };
        let id = self.free.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(id as usize) {
            Some(slot) => *slot = Some(file),
            None => self.slots.push(Some(file)),
        }
        self.by_path.insert(path, id);
        id
    }

    /// Another name for a file.
    pub(crate) fn spell(&mut self, id: u32, name: &[u8]) {
        if self.by_name.get(name) == Some(&id) {
            return;
        }
        let Some(file) = self.slots.get_mut(id as usize).and_then(Option::as_mut) else {
            return;
        };
        if file.spellings.len() == SPELLINGS_MAX {
            self.by_name.remove(&file.spellings.remove(0));
        }
        file.spellings.push(name.into());
        let before = self.by_name.insert(name.into(), id);
        if let Some(file) = before.and_then(|id| self.slots.get_mut(id as usize)?.as_mut()) {
            file.spellings.retain(|spelling| **spelling != *name);
        }
    }

    pub(crate) fn remove(&mut self, id: u32) {
        let Some(file) = self.slots.get_mut(id as usize).and_then(Option::take) else {
            return;
        };
        for spelling in &file.spellings {
            self.by_name.remove(spelling);
        }
        self.by_path.remove(&file.path);
        self.by_inode.retain(|_, known| *known != id);
        self.free.push(id);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &File)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(id, slot)| Some((id as u32, slot.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut File)> {
        let slots = self.slots.iter_mut().enumerate();
        slots.filter_map(|(id, slot)| Some((id as u32, slot.as_mut()?)))
    }

    /// The file a name stands for as far as its text tells.
    pub(crate) fn find(&self, name: &[u8], spelled: impl FnOnce() -> Vec<u8>) -> Option<u32> {
        let id = self
            .by_name(name)
            .or_else(|| self.by_path(&names::normal(&spelled())))?;
        self.get(id).filter(|file| !file.forgotten).map(|_| id)
    }
}

impl File {
    /// Whether nothing would be lost if it were no longer known.
    pub(crate) fn is_idle(&self) -> bool {
        self.values.is_empty() && self.taken.is_none() && !self.busy && self.redo.is_none()
    }
}
