//! The recordings in a backup: blocks, which are never written again, and what tails have so far.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kymo_backup::{InMemory, Source, Version, Writing};
use kymo_recording::folder::{blocks as list_blocks, boot_folders};
use kymo_recording::tail::{self, recorded_end};
use kymo_sys::disk::{Disk, OpenMode};

use super::{Backup, TRIES, found};

/// The folders of the recordings, one a boot.
pub(super) fn folders(disk: &dyn Disk, dir: &Path) -> Result<Vec<PathBuf>> {
    Ok(boot_folders(disk, dir)?)
}

/// Backs up the records of tails.
pub(super) fn tails(backup: &mut Backup<'_>, folders: &[PathBuf]) -> Result<()> {
    for folder in folders {
        for name in tail::NAMES {
            let place = folder.join(name);
            if let Some(read) = read_tail(backup, &place)? {
                let path = below(backup, &place)?;
                backup.in_memory(&path, place, read)?;
            }
        }
    }
    Ok(())
}

/// A tail up to its last record. A recorder may begin to use it again meanwhile.
fn read_tail(backup: &Backup<'_>, place: &Path) -> Result<Option<InMemory>> {
    let cannot = || format!("cannot read {}", place.display());
    for _ in 0..TRIES {
        let Some(file) = found(backup.disk.open(place, OpenMode::Read), place)? else {
            return Ok(None);
        };
        let Some((epoch, end)) = recorded_end(&*file).with_context(cannot)? else {
            return Ok(None);
        };
        let read = InMemory::prefix(&*file, end).with_context(cannot)?;
        let after = recorded_end(&*file).with_context(cannot)?;
        if after.is_some_and(|(after, _)| after == epoch) && read.is_some() {
            return Ok(read);
        }
    }
    bail!("cannot read {}: it changes too fast", place.display())
}

/// Backs up the blocks. One that goes meanwhile is older than the ring is long.
pub(super) fn blocks(backup: &mut Backup<'_>, folders: &[PathBuf]) -> Result<()> {
    for folder in folders {
        for name in &*list_blocks(&*backup.disk, folder)? {
            let place = folder.join(name.format());
            let Some(file) = found(backup.disk.open(&place, OpenMode::Read), &place)? else {
                continue;
            };
            let stat = file.metadata();
            let stat = stat.with_context(|| format!("cannot read {}", place.display()))?;
            let source = Source {
                path: below(backup, &place)?,
                place,
                bytes: stat.size_bytes,
                file,
                version: Version {
                    inode: stat.inode,
                    mtime_ns: stat.mtime_ns,
                },
                writing: Writing::Sealed,
            };
            backup.add(&source)?;
        }
    }
    Ok(())
}

/// Path below the data folder.
fn below(backup: &Backup<'_>, place: &Path) -> Result<String> {
    let below = place.strip_prefix(&backup.dir)?;
    let text = below.to_str();
    Ok(text
        .with_context(|| format!("cannot name {}", place.display()))?
        .to_string())
}
