//! A file of records that outlives the process, docs/formats/kept.md. Every byte that counts has a checksum, and a
//! damaged record costs itself alone. A file of a newer version is neither read nor written. `kept_file/frame.rs` has
//! the bytes.

mod frame;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, OpenMode, is_full};
pub use frame::{Records, parse};

/// A kind of such files.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The first eight bytes.
    pub magic: [u8; 8],
    /// The version that is written; older ones are read.
    pub version: u32,
    /// Longer files are refused.
    pub bytes_max: u64,
    /// The form of versions before.
    pub old: Old,
}

/// Versions before: records have a length and one checksum, and there is one head.
#[derive(Clone, Copy, Debug)]
pub struct Old {
    /// The first seven bytes; a digit, the version, follows.
    pub magic: [u8; 7],
    /// The newest of these versions.
    pub newest: u32,
    /// True if a generation and a checksum follow the signature.
    pub has_generation: bool,
}

/// The bytes of a file, and the state of each part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// Version of the file.
    pub version: u32,
    /// Generation of the file; 0: unreadable.
    pub generation: u64,
    /// Whole records, in their order.
    pub records: Vec<Range<usize>>,
    /// Damaged places.
    pub damage: Vec<Range<usize>>,
    /// Begin of a record whose write was interrupted.
    pub cut: Option<usize>,
}

impl Contents {
    /// The bodies of records.
    pub fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        self.records
            .iter()
            .filter_map(|at| self.bytes.get(at.clone()))
    }

    /// True if there is no damage.
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty() && self.cut.is_none()
    }

    /// The damage in words.
    fn faults(&self) -> String {
        let bytes: usize = self.damage.iter().map(Range::len).sum();
        match (self.damage.first(), self.cut) {
            (Some(first), _) => format!(
                "{bytes} bytes are damaged, the first at byte {}",
                first.start
            ),
            (None, Some(cut)) => {
                format!("its last record, at byte {cut}, was not written to its end")
            }
            (None, None) => "a record is not understood".to_string(),
        }
    }
}

/// Result of opening a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is no file.
    Missing,
    /// The file has this version, which is newer than the program's.
    Newer(u32),
    /// The file is readable, apart from its damage.
    Read(Contents),
}

/// Reads a file. Nothing is changed, and somebody may be writing.
pub fn read(disk: &dyn Disk, path: &Path, kind: &Kind) -> io::Result<Found> {
    let file = match disk.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Missing),
        Err(error) => return Err(error),
    };
    let size_bytes = file.metadata()?.size_bytes;
    if size_bytes > kind.bytes_max {
        let why = format!("it is longer than {} bytes", kind.bytes_max);
        return Err(io::Error::other(why));
    }
    let mut bytes = vec![0; usize::try_from(size_bytes).unwrap_or(0)];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    Ok(parse(bytes, kind))
}

/// Replaces the file of this name by a whole new one: after a crash there is the one or the other. With [`Sync::Now`] the new
/// file is on the disk when this returns.
pub fn replace(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    sync: Sync,
) -> io::Result<Box<dyn DiskFile>> {
    let new = with_suffix(path, ".new");
    let written = || -> io::Result<Box<dyn DiskFile>> {
        let file = disk.open(&new, OpenMode::Create)?;
        file.set_len(0)?;
        file.write_at(bytes, 0)?;
        // Also where its name may wait: else a power cut leaves the new name with nothing behind it.
        file.sync_data()?;
        disk.rename(&new, path)?;
        Ok(file)
    };
    let file = written().inspect_err(|_: &io::Error| {
        // Half a file takes room, and is worth nothing.
        let _missing = disk.unlink(&new);
    })?;
    if sync == Sync::Now {
        disk.sync_dir(path.parent().unwrap_or(Path::new("/")))?;
    }
    Ok(file)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// When bytes reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Sync before the call returns.
    Now,
    /// A loss of power may take it.
    Later,
}

/// A file that a program reads at a start and appends to. Before the first append it writes a damaged or older file
/// again, and keeps a damaged one as `NAME.bad`, in place of an earlier `NAME.bad`.
pub struct KeptFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    kind: Kind,
    open: Option<Writing>,
    generation: u64,
    /// The version of a file that is left alone.
    newer: Option<u32>,
    /// Bytes to keep as `NAME.bad` before the file goes.
    damaged: Option<Vec<u8>>,
}

struct Writing {
    file: Box<dyn DiskFile>,
    end: usize,
    begun: usize,
}

impl KeptFile {
    /// Reads the file.
    pub fn open(
        disk: Arc<dyn Disk>,
        path: PathBuf,
        kind: Kind,
    ) -> io::Result<(KeptFile, Contents)> {
        let found = read(&*disk, &path, &kind)?;
        let mut kept = KeptFile {
            disk,
            path,
            kind,
            open: None,
            generation: 0,
            newer: None,
            damaged: None,
        };
        let contents = match found {
            Found::Missing => Contents::default(),
            Found::Newer(version) => {
                kept.newer = Some(version);
                Contents::default()
            }
            Found::Read(contents) => contents,
        };
        kept.generation = contents.generation;
        if !contents.is_whole() {
            kept.distrust(&contents);
        } else if contents.version == kind.version {
            let (file, end) = (
                kept.disk.open(&kept.path, OpenMode::Write)?,
                contents.bytes.len(),
            );
            let begun = end;
            kept.open = Some(Writing { file, end, begun });
        }
        Ok((kept, contents))
    }

    /// Marks the file as damaged. For callers that cannot understand a record with a correct checksum.
    pub fn distrust(&mut self, contents: &Contents) {
        self.open = None;
        self.damaged = Some(contents.bytes.clone());
    }

    /// A message for the administrator about the file, if there is one.
    pub fn notice(&self, contents: &Contents) -> Option<String> {
        let path = self.path.display();
        if let Some(version) = self.newer {
            let known = self.kind.version;
            return Some(format!(
                "cannot use {path}: it is of version {version}, and this kymo knows version {known}; it is left as it is"
            ));
        }
        self.damaged.as_ref()?;
        let faults = contents.faults();
        Some(format!(
            "{path}: {faults}; what can be read counts, and the file is kept as {path}.bad"
        ))
    }

    /// True if the file is of a newer version, so that nothing may be written.
    pub fn is_newer(&self) -> bool {
        self.newer.is_some()
    }

    /// Generation of the file.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Bytes of the file now and at its begin; `None`: [`KeptFile::replace`] must come before appends.
    pub fn size(&self) -> Option<(usize, usize)> {
        self.open.as_ref().map(|open| (open.end, open.begun))
    }

    /// Refuses appends until [`KeptFile::replace`] has written correct contents.
    pub fn give_up(&mut self) {
        self.open = None;
    }

    /// Replaces the file by one with the records that `fill` puts.
    pub fn replace(
        &mut self,
        generation: u64,
        fill: &mut dyn FnMut(&mut Records),
        sync: Sync,
    ) -> io::Result<()> {
        if let Some(version) = self.newer {
            let why = format!("{} is of version {version}", self.path.display());
            return Err(io::Error::other(why));
        }
        if let Some(bytes) = &self.damaged {
            replace(
                &*self.disk,
                &with_suffix(&self.path, ".bad"),
                bytes,
                Sync::Now,
            )?;
            self.damaged = None;
        }
        self.open = None;
        let mut records = Records::whole(&self.kind, generation);
        fill(&mut records);
        let file = replace(&*self.disk, &self.path, &records.bytes, sync)?;
        let end = records.bytes.len();
        let begun = end;
        self.generation = generation;
        self.open = Some(Writing { file, end, begun });
        Ok(())
    }

    /// An empty list of records to append.
    pub fn records(&self) -> Records {
        Records::at(
            self.generation,
            self.open.as_ref().map_or(0, |open| open.end),
        )
    }

    /// Appends. After an error other than for want of room the file is not appended to any more.
    pub fn append(&mut self, records: &Records, sync: Sync) -> io::Result<()> {
        let Some(open) = self.open.as_mut().filter(|open| records.follow(open.end)) else {
            return Err(io::Error::other("the file is to be written again first"));
        };
        let offset = u64::try_from(open.end).unwrap_or(u64::MAX);
        let written = open.file.write_at(&records.bytes, offset);
        let synced = written.and_then(|()| match sync {
            Sync::Now => open.file.sync_data(),
            Sync::Later => Ok(()),
        });
        match synced {
            Ok(()) => open.end += records.bytes.len(),
            Err(error) => {
                // A write cut short for want of room can be cut off; after any other error the contents are unknown.
                let is_cut =
                    is_full(&error) && sync == Sync::Later && open.file.set_len(offset).is_ok();
                if !is_cut {
                    self.open = None;
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
