//! One of the two tails: its file, the state of its content, and the operations on it. The
//! caller makes all decisions and gets every error of the disk.

use super::PAGE;
use crate::error::{Error, Result, Tried};
use crate::tail::{PIECE, TailHeader};
use kymo_sys::disk::{Disk, DiskFile, OpenMode};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    Free,
    Active,
    Unsealed,
}

pub(super) struct Slot {
    pub(super) path: PathBuf,
    pub(super) file: Option<Box<dyn DiskFile>>,
    pub(super) state: SlotState,
    /// Set after a failed write or sync; the file is never written again.
    pub(super) distrusted: bool,
    pub(super) header: Option<TailHeader>,
    /// Offset of the end of the records.
    pub(super) used: u64,
    /// Offset of the end of the room for records.
    pub(super) size: u64,
    /// Bytes that the file occupies, or will occupy when its room is used.
    pub(super) allocated_bytes: u64,
    pub(super) first_mono_ns: Option<u64>,
    pub(super) unsynced_since_ns: Option<u64>,
}

impl Slot {
    pub(super) fn new(folder: &Path, name: &str) -> Self {
        Slot {
            path: folder.join(name),
            file: None,
            state: SlotState::Free,
            distrusted: false,
            header: None,
            used: 0,
            size: 0,
            allocated_bytes: 0,
            first_mono_ns: None,
            unsynced_since_ns: None,
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.header.as_ref().map_or(0, |header| header.epoch)
    }

    pub(super) fn first_seq(&self) -> Option<u64> {
        Some(self.header.as_ref()?.first_seq)
    }

    /// Number of bytes of records.
    pub(super) fn held_bytes(&self) -> u64 {
        let start = self.header.as_ref().map_or(0, |h| h.records_offset);
        self.used - start
    }

    /// Reads the size of a file that an earlier recorder of this boot left; 0 if there is none.
    pub(super) fn look(&mut self, disk: &dyn Disk) {
        let held = disk.metadata(&self.path).ok();
        self.size = held.map_or(0, |stat| stat.size_bytes);
        self.allocated_bytes = held.map_or(0, |stat| stat.allocated_bytes);
    }

    /// Opens an unsealed tail of an earlier recorder.
    pub(super) fn adopt(&mut self, disk: &dyn Disk, header: TailHeader) -> Result<()> {
        let file = disk.open(&self.path, OpenMode::Write);
        self.file = Some(file.tried("open", &self.path)?);
        self.look(disk);
        self.used = self.size;
        self.header = Some(header);
        self.state = SlotState::Unsealed;
        Ok(())
    }

    /// Bytes that the file would need in addition to grow to `size`.
    pub(super) fn missing_bytes(&self, size: u64) -> u64 {
        size.saturating_sub(self.size).next_multiple_of(PAGE)
    }

    /// Creates the file, or extends it with zeros, up
    /// to `size`; returns the number of bytes written.
    pub(super) fn provide(&mut self, disk: &dyn Disk, folder: &Path, size: u64) -> Result<u64> {
        if self.file.is_none() {
            let file = disk.open(&self.path, OpenMode::Create);
            let file = file.tried("open", &self.path)?;
            disk.sync_dir(folder).tried("sync", folder)?;
            self.file = Some(file);
        } else if size <= self.size {
            return Ok(0);
        }
        self.look(disk);
        let from = self.size;
        let filled = match &self.file {
            Some(file) => fill_with_zeros(&**file, from, size).tried("fill", &self.path),
            None => Ok(()),
        };
        self.look(disk);
        filled.map(|()| size.saturating_sub(from))
    }

    /// Begins a new use: syncs the header before any
    /// record is written, so that no epoch is used twice.
    pub(super) fn begin(&mut self, header: TailHeader) -> Result<u64> {
        let bytes = header.encode();
        if let Some(file) = &self.file {
            file.write_at(&bytes, 0).tried("write", &self.path)?;
            file.sync_data().tried("sync", &self.path)?;
        }
        self.used = header.records_offset;
        self.header = Some(header);
        self.first_mono_ns = None;
        self.unsynced_since_ns = None;
        self.state = SlotState::Active;
        Ok(bytes.len() as u64)
    }

    /// Appends whole records.
    pub(super) fn write(&mut self, run: &[u8], now_mono_ns: u64) -> io::Result<()> {
        match &self.file {
            Some(file) => file.write_at(run, self.used)?,
            None => return Err(io::ErrorKind::NotFound.into()),
        }
        self.used += run.len() as u64;
        self.unsynced_since_ns.get_or_insert(now_mono_ns);
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<()> {
        if let Some(file) = &self.file {
            file.sync_data().tried("sync", &self.path)?;
        }
        self.unsynced_since_ns = None;
        Ok(())
    }

    /// Frees the tail after all of it is in a block. A tail that grew is truncated to
    /// `tail_bytes`; a distrusted one is removed.
    pub(super) fn free(&mut self, disk: &dyn Disk, tail_bytes: u64) {
        self.state = SlotState::Free;
        self.unsynced_since_ns = None;
        if self.distrusted {
            let _tried_again_at_next_use = self.remove(disk);
        } else if self.size > tail_bytes
            && let Some(file) = &self.file
            && file.set_len(tail_bytes).is_ok()
        {
            self.look(disk);
        }
    }

    pub(super) fn remove(&mut self, disk: &dyn Disk) -> Result<()> {
        self.file = None;
        match disk.unlink(&self.path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", &self.path, cause))
            }
            _ => {
                self.distrusted = false;
                (self.size, self.allocated_bytes) = (0, 0);
                Ok(())
            }
        }
    }
}

fn fill_with_zeros(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; PIECE];
    let mut at = from;
    while at < to {
        let piece = zeros.len().min((to - at) as usize);
        file.write_at(&zeros[..piece], at)?;
        at += piece as u64;
    }
    Ok(())
}
