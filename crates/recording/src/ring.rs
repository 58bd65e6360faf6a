//! The blocks of one host over all its boots, oldest first, and their allocated bytes.
//!
//! The oldest block is the one with the lowest sequence number, whatever
//! its wall times: a clock that was wrong for an hour must not decide
//! which data is removed. Memory holds only the next few blocks to remove.

use crate::error::{Error, Result, Tried};
use crate::folder::{self, BlockName};
use kymo_sys::disk::Disk;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

const CANDIDATES_MAX: usize = 64;

/// A block's name and folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) folder: PathBuf,
    pub(crate) name: BlockName,
}

impl Placed {
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(self.name.format())
    }
}

/// The blocks of one host as a ring that removes its oldest block.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    dir: PathBuf,
    host: String,
    pub(crate) bytes: u64,
    pub(crate) newest: Option<Placed>,
    next_to_go: BTreeMap<u64, Placed>,
}

impl Ring {
    /// Lists the host's blocks and adds up their bytes.
    pub(crate) fn load(disk: &dyn Disk, dir: &Path, host: &str) -> Result<Self> {
        let mut ring = Ring {
            dir: dir.into(),
            host: host.into(),
            ..Ring::default()
        };
        ring.list(disk, &mut |ring, placed| {
            let path = placed.path();
            ring.bytes += disk.metadata(&path).map_or(0, |stat| stat.allocated_bytes);
            let newest = ring.newest.as_ref();
            if newest.is_none_or(|newest| newest.name < placed.name) {
                ring.newest = Some(placed.clone());
            }
        })?;
        Ok(ring)
    }

    fn list(&mut self, disk: &dyn Disk, each: &mut dyn FnMut(&mut Self, &Placed)) -> Result<()> {
        for folder in folder::boot_folders_of(disk, &self.dir, &self.host)? {
            for &name in &*folder::blocks(disk, &folder)? {
                let placed = Placed {
                    folder: folder.clone(),
                    name,
                };
                each(self, &placed);
                self.consider(placed);
            }
        }
        Ok(())
    }

    fn consider(&mut self, placed: Placed) {
        self.next_to_go.insert(placed.name.first_seq, placed);
        if self.next_to_go.len() > CANDIDATES_MAX {
            self.next_to_go.pop_last();
        }
    }

    /// Registers a new block.
    pub(crate) fn add(&mut self, placed: Placed, allocated_bytes: u64) {
        self.bytes += allocated_bytes;
        self.newest = Some(placed);
    }

    /// The oldest block, if there is one.
    pub(crate) fn oldest(&mut self, disk: &dyn Disk) -> Result<Option<Placed>> {
        if self.next_to_go.is_empty() && self.bytes > 0 {
            self.list(disk, &mut |_, _| {})?;
        }
        Ok(self
            .next_to_go
            .first_key_value()
            .map(|(_, placed)| placed.clone()))
    }

    /// Removes the oldest block; returns `false` when there is none.
    pub(crate) fn remove_oldest(&mut self, disk: &dyn Disk, keep_folder: &Path) -> Result<bool> {
        let Some(placed) = self.oldest(disk)? else {
            return Ok(false);
        };
        let path = placed.path();
        let bytes = disk.metadata(&path).map_or(0, |stat| stat.allocated_bytes);
        match disk.unlink(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &path, cause));
            }
            _ => {}
        }
        self.next_to_go.pop_first();
        self.bytes = self.bytes.saturating_sub(bytes);
        if placed.folder != keep_folder {
            let _not_empty_yet = disk.rmdir(&placed.folder);
        }
        Ok(true)
    }
}

/// Removes the files that a recorder left unfinished in `folder`.
pub(crate) fn remove_unfinished(disk: &dyn Disk, folder: &Path) -> Result<()> {
    let mut names = Vec::new();
    disk.list(folder, &mut |name, _| {
        if name.ends_with(folder::UNFINISHED_SUFFIX) {
            names.push(name.to_string());
        }
    })
    .tried("list", folder)?;
    for name in names {
        let path = folder.join(name);
        disk.unlink(&path).tried("remove", &path)?;
    }
    Ok(())
}
