//! The journal's writer: entries are gathered, a commit writes them with one system call.
//!
//! Files are begun whole (zeros, so that a sync need not wait for the file system's own journal), named by a
//! rising sequence and used again. A file that failed to write or to sync is never written again.

use crate::entry::{Entry, Stamps};
use crate::error::{Error, Tried};
use crate::frame::{self, FRAME_HEAD_MAX, FRAMES_OFFSET, FileHead};
use kymo_sys::disk::{Disk, DiskFile, NameKind, OpenMode, is_full};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SPARE: &str = "spare";
const PREFIX: &str = "journal-";
const ZEROS: usize = 1 << 20;

/// The file that is written.
struct Open {
    file: Arc<dyn DiskFile>,
    head: FileHead,
    offset: u64,
    number: u64,
}

/// Where entries go.
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    file_bytes: u64,
    open: Option<Open>,
    /// Files that were followed by others before they were synced.
    unsynced: Vec<Arc<dyn DiskFile>>,
    /// The names in the folder may not be on the disk.
    names_unsynced: bool,
    /// Sequences of the files that are there, the open one too.
    sequences: Vec<u64>,
    last_sequence: u64,
    spare: bool,
    buffer: Vec<u8>,
    stamps: Stamps,
    /// Where the next frame begins, counted over all files.
    pub(crate) position: u64,
    /// What lies before it is on the disk.
    pub(crate) synced: u64,
    pub(crate) bytes_written: u64,
    pub(crate) rotations: u64,
    pub(crate) given_up: u64,
}

/// What a sync has to do, and how far the journal is synced when it is done.
pub(crate) struct SyncWork {
    files: Vec<Arc<dyn DiskFile>>,
    folder: Option<PathBuf>,
    pub(crate) upto: u64,
    sequence: u64,
}

impl SyncWork {
    pub(crate) fn run(&self, disk: &dyn Disk) -> io::Result<()> {
        for file in &self.files {
            file.sync_data()?;
        }
        self.folder
            .iter()
            .try_for_each(|folder| disk.sync_dir(folder))
    }
}

impl Journal {
    /// A journal that goes on behind `sequences` at `position`; it has no file yet.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        folder: &Path,
        file_bytes: u64,
        sequences: Vec<u64>,
        position: u64,
    ) -> Journal {
        let last_sequence = sequences.iter().copied().max().unwrap_or(0);
        Journal {
            disk,
            folder: folder.into(),
            file_bytes,
            open: None,
            unsynced: Vec::new(),
            names_unsynced: true,
            sequences,
            last_sequence,
            spare: false,
            buffer: vec![0; FRAME_HEAD_MAX],
            stamps: Stamps::default(),
            position,
            synced: position,
            bytes_written: 0,
            rotations: 0,
            given_up: 0,
        }
    }

    /// The sequence of the open file.
    pub(crate) fn sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Files that are there.
    pub(crate) fn files_len(&self) -> usize {
        self.sequences.len()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether the next entries should go to another file.
    pub(crate) fn is_used_up(&self) -> bool {
        let reserve = (self.file_bytes / 8).min(1 << 20);
        let open = self.open.as_ref();
        open.is_some_and(|open| open.offset + reserve > self.file_bytes)
    }

    /// Whether a file for the next use should be made now, while nobody waits for it.
    pub(crate) fn wants_spare(&self) -> bool {
        let open = self.open.as_ref();
        !self.spare && open.is_some_and(|open| open.offset > self.file_bytes / 2)
    }

    /// The sequence of the file that was begun with everything before `entries` in it.
    pub(crate) fn begin_file(&mut self, restates: bool, real_ns: i64) -> io::Result<()> {
        if !self.spare {
            make_spare(&*self.disk, &self.folder, self.file_bytes)?;
            self.spare = true;
        }
        let head = FileHead {
            sequence: self.last_sequence + 1,
            generation: generation(real_ns, self.last_sequence + 1),
            base: self.position,
            real_ns,
            restates,
        };
        let spare = self.folder.join(SPARE);
        let file = self.disk.open(&spare, OpenMode::Write)?;
        file.write_at(&head.page(), 0)?;
        self.disk
            .rename(&spare, &self.folder.join(name_of(head.sequence)))?;
        self.spare = false;
        self.names_unsynced = true;
        self.last_sequence = head.sequence;
        self.sequences.push(head.sequence);
        let new = Open {
            file: file.into(),
            head,
            offset: FRAMES_OFFSET,
            number: 0,
        };
        if let Some(old) = self.open.replace(new) {
            self.unsynced.push(old.file);
            self.rotations += 1;
        }
        Ok(())
    }

    /// Where entries are appended.
    pub(crate) fn entries(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Where values are appended, and the stamps before them.
    pub(crate) fn values(&mut self) -> (&mut Vec<u8>, &mut Stamps) {
        (&mut self.buffer, &mut self.stamps)
    }

    pub(crate) fn put(&mut self, entry: &Entry<'_>) {
        entry.put(&mut self.buffer);
    }

    /// Forgets what was gathered.
    pub(crate) fn abandon(&mut self) {
        self.buffer.truncate(FRAME_HEAD_MAX);
        self.buffer.shrink_to(8 << 20);
        self.stamps = Stamps::default();
    }

    /// Whether something was gathered.
    pub(crate) fn has_entries(&self) -> bool {
        self.buffer.len() > FRAME_HEAD_MAX
    }

    /// Writes what was gathered as one frame. On an error nothing of it will ever be read.
    pub(crate) fn commit(&mut self) -> io::Result<u64> {
        let written = self.write();
        self.abandon();
        written.map(|()| self.position)
    }

    fn write(&mut self) -> io::Result<()> {
        if !self.has_entries() {
            return Ok(());
        }
        let open = self.open.as_mut();
        let open = open.ok_or_else(|| io::Error::other("the journal has no file"))?;
        // A frame that failed must not come to life when a shorter one takes its place.
        open.number += 1;
        let start = frame::seal(
            &mut self.buffer,
            &open.head,
            self.position,
            open.number,
            self.synced,
        );
        let frame = &self.buffer[start..];
        match open.file.write_at(frame, open.offset) {
            Ok(()) => {
                open.offset += frame.len() as u64;
                self.position += frame.len() as u64;
                self.bytes_written += frame.len() as u64;
                Ok(())
            }
            Err(error) => {
                if !is_full(&error) {
                    self.give_up();
                }
                Err(error)
            }
        }
    }

    /// The open file, and those before it that are not synced, are never written or trusted again.
    pub(crate) fn give_up(&mut self) {
        self.open = None;
        self.unsynced.clear();
        self.given_up += 1;
    }

    /// What to sync now; `None` when all is.
    pub(crate) fn sync_work(&self) -> Option<SyncWork> {
        if self.synced == self.position && !self.names_unsynced {
            return None;
        }
        let open = self.open.as_ref()?;
        let mut files = self.unsynced.clone();
        files.push(open.file.clone());
        Some(SyncWork {
            files,
            folder: self.names_unsynced.then(|| self.folder.clone()),
            upto: self.position,
            sequence: self.last_sequence,
        })
    }

    /// The work was done.
    pub(crate) fn sync_done(&mut self, work: &SyncWork) {
        self.synced = self.synced.max(work.upto);
        // Files that were followed by others meanwhile are still to be synced: the last of the work is one.
        self.unsynced
            .drain(..(work.files.len() - 1).min(self.unsynced.len()));
        if self.last_sequence == work.sequence {
            self.names_unsynced &= work.folder.is_none();
        }
    }

    /// Takes the files before `sequence` out of use: one is kept as a spare, the others go.
    pub(crate) fn drop_before(&mut self, sequence: u64) -> io::Result<()> {
        let (old, kept) = self.sequences.iter().partition(|&&known| known < sequence);
        self.sequences = kept;
        let old: Vec<u64> = old;
        for &sequence in &old {
            let path = self.folder.join(name_of(sequence));
            if !self.spare && self.is_of_our_size(&path) {
                self.disk.rename(&path, &self.folder.join(SPARE))?;
                self.spare = true;
            } else {
                self.disk.unlink(&path)?;
            }
        }
        match old.is_empty() {
            true => Ok(()),
            // Or a file might come back after a power cut, with a name and a use that do not match.
            false => self.disk.sync_dir(&self.folder),
        }
    }

    fn is_of_our_size(&self, path: &Path) -> bool {
        let stat = self.disk.metadata(path);
        stat.is_ok_and(|stat| stat.size_bytes == self.file_bytes)
    }

    /// A spare was made meanwhile.
    pub(crate) fn spare_made(&mut self) {
        self.spare = true;
    }

    /// For [`make_spare`], which is not called under a lock.
    pub(crate) fn spare_plan(&self) -> (Arc<dyn Disk>, PathBuf, u64) {
        (self.disk.clone(), self.folder.clone(), self.file_bytes)
    }
}

/// Makes a file of zeros for the next use.
pub(crate) fn make_spare(disk: &dyn Disk, folder: &Path, file_bytes: u64) -> io::Result<()> {
    let path = folder.join(SPARE);
    let file = disk.open(&path, OpenMode::Create)?;
    let filled = (|| {
        file.set_len(0)?;
        let zeros = vec![0; ZEROS.min(file_bytes as usize)];
        let mut at = 0;
        while at < file_bytes {
            let piece = zeros.len().min((file_bytes - at) as usize);
            file.write_at(&zeros[..piece], at)?;
            at += piece as u64;
        }
        Ok(())
    })();
    if filled.is_err() {
        // Its room may be what somebody else needs.
        let _still_there = disk.unlink(&path);
    }
    filled
}

/// Journal files in a folder, by sequence; a spare of an earlier life is removed.
pub(crate) fn list(disk: &dyn Disk, folder: &Path) -> Result<Vec<u64>, Error> {
    let (mut sequences, mut spare) = (Vec::new(), false);
    let listed = disk.list(folder, &mut |name, kind| {
        spare |= name == SPARE;
        let digits = name.strip_prefix(PREFIX);
        if kind == NameKind::File
            && let Some(sequence) = digits.and_then(|digits| digits.parse().ok())
        {
            sequences.push(sequence);
        }
    });
    listed.tried("list", folder)?;
    if spare {
        let path = folder.join(SPARE);
        disk.unlink(&path).tried("remove", &path)?;
    }
    sequences.retain(|&sequence| sequence < 1 << 62);
    sequences.sort_unstable();
    Ok(sequences)
}

pub(crate) fn name_of(sequence: u64) -> String {
    format!("{PREFIX}{sequence:012}")
}

fn generation(real_ns: i64, sequence: u64) -> u64 {
    kymo_sys::sim_disk::next_random(&mut ((real_ns as u64) ^ sequence.rotate_left(48)))
}
