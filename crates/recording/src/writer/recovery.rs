//! Recovery after earlier recorders: counts their blocks, seals their tails, also those of
//! earlier boots, and finds the next sequence number.

use super::{SEQ_LEAP, Writer};
use crate::block;
use crate::error::{Error, Result, Tried};
use crate::folder;
use crate::ring::{self, Ring};
use crate::seal;
use crate::tail::{self, TailHeader};
use kymo_sys::disk::{Disk, OpenMode};
use std::io;
use std::path::{Path, PathBuf};

impl Writer {
    /// Seals the tails of earlier recorders, also of earlier boots, and finds the next sequence
    /// number. `append` and `tick` call it if it has not run yet.
    pub fn recover(&mut self) -> Result<()> {
        if self.recovered {
            return Ok(());
        }
        let folders = folder::boot_folders_of(&*self.disk, &self.dir, &self.host)?;
        for folder in &folders {
            ring::remove_unfinished(&*self.disk, folder)?;
        }
        self.ring = Ring::load(&*self.disk, &self.dir, &self.host)?;
        if let Some(newest) = self.ring.newest.clone() {
            self.next_seq = block::last_seq(&*self.disk, &newest.path())
                .map_or(newest.name.first_seq.saturating_add(SEQ_LEAP), |last| {
                    last.saturating_add(1)
                });
        }
        self.adopt_tails(&folders)?;
        self.recovered = true;
        let now = self.clock.now();
        self.hold_cap(0).unwrap_or_else(|error| self.notice(&error));
        self.seal_waiting(now);
        Ok(())
    }

    fn adopt_tails(&mut self, folders: &[PathBuf]) -> Result<()> {
        let mut found = Vec::new();
        for folder in folders {
            for name in tail::NAMES {
                let path = folder.join(name);
                if let Some(header) = self.look_at_tail(&path)? {
                    found.push((header, path));
                } else if *folder != self.folder {
                    self.remove_leftover(&path)?;
                }
            }
        }
        for slot in &mut self.slots {
            slot.look(&*self.disk);
        }
        found.sort_by_key(|(header, _)| header.first_seq);
        for (header, path) in found {
            match self.slots.iter().position(|slot| slot.path == path) {
                Some(index) => self.slots[index].adopt(&*self.disk, header)?,
                None => self.leftovers.push(path),
            }
        }
        Ok(())
    }

    /// Returns the header of a tail if it has records that are in no block, and moves the next
    /// sequence number and the last epoch past the tail's own.
    fn look_at_tail(&mut self, path: &Path) -> Result<Option<TailHeader>> {
        let file = match self.disk.open(path, OpenMode::Read) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.tried("open", path)?,
        };
        let Ok(header) = TailHeader::read(&*file).tried("read", path)? else {
            return Ok(None);
        };
        self.last_epoch = self.last_epoch.max(header.epoch);
        let size = file.metadata().tried("stat", path)?.size_bytes;
        let scan = seal::scan(&*file, &header, size);
        if scan.records == 0 {
            return Ok(None);
        }
        self.next_seq = self.next_seq.max(scan.last_seq.saturating_add(1));
        let folder = path.parent().unwrap_or(&self.folder);
        let sealed = is_sealed(&*self.disk, folder, scan.first_seq, scan.last_seq)?;
        Ok((!sealed).then_some(header))
    }

    pub(super) fn seal_leftover(&mut self, path: &Path) -> Result<()> {
        let file = self.disk.open(path, OpenMode::Write).tried("open", path)?;
        let folder = path.parent().unwrap_or(&self.folder).to_path_buf();
        if let Ok(header) = TailHeader::read(&*file).tried("read", path)? {
            let size = file.metadata().tried("stat", path)?.size_bytes;
            self.seal_file(&*file, &header, size, &folder)?;
        }
        match folder == self.folder {
            true => Ok(()),
            false => self.remove_leftover(path),
        }
    }

    fn remove_leftover(&mut self, path: &Path) -> Result<()> {
        match self.disk.unlink(path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", path, cause));
            }
            _ => {}
        }
        if let Some(folder) = path.parent() {
            let _not_empty = self.disk.rmdir(folder);
        }
        Ok(())
    }
}

/// Returns true if a block of `folder` holds the records from `first_seq` to `last_seq`.
fn is_sealed(disk: &dyn Disk, folder: &Path, first_seq: u64, last_seq: u64) -> Result<bool> {
    let names = folder::blocks(disk, folder)?;
    let same = names.iter().rfind(|name| name.first_seq == first_seq);
    let last = same.and_then(|name| block::last_seq(disk, &folder.join(name.format())));
    Ok(last.is_some_and(|last| last >= last_seq))
}
