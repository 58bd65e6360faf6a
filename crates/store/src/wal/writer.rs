//! The journal's writer: it collects entries, and a commit writes them with one system call, or with none if the file is mapped.
//!
//! Journal files are filled with zeros ahead of the frames (so that most syncs need not wait for the file system's own journal),
//! named by a rising sequence and used again. A file that failed to write or to sync is never written again.

use crate::bell::Bell;
use crate::error::{Error, Tried};
use crate::names;
use crate::wal::frame;
use crate::wal::frame::{FRAME_HEAD_MAX, FRAMES_OFFSET, FileHead};
use crate::wal::record::Record;
use crate::wal::tailed;
use crate::wal::tailed::{FilePlace, JournalFile, JournalFiles, TailedFile};
use crate::wal::value::Stamps;
use kymo_sys::clock::Stamp;
use kymo_sys::disk::{Disk, DiskFile, NameKind, OpenMode, is_full};
use std::collections::VecDeque;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of old files kept for reuse: with only one, two files that become free at once would cost a new file.
const SPARES: [&str; 2] = ["spare", "spare-2"];
/// Largest number of frames in a row without the synced position.
const FRAMES_WITHOUT_MAX: u32 = 15;
const PREFIX: &str = "journal-";
/// Zeros are written in such pieces, ahead of frames by at least half of one.
const ZEROS: u64 = 1 << 20;
/// Alignment of mappings, a multiple of any page size.
const PAGE: u64 = 64 << 10;

/// The journal file that is being written.
struct OpenFile {
    file: Arc<dyn DiskFile>,
    head: FileHead,
    offset: u64,
    /// Number of frames since the last one with the synced position.
    frames_without: u32,
    /// Position after the last frame with entries.
    entries_end: u64,
    /// Offset up to which the file has been written before.
    filled: u64,
}

impl OpenFile {
    /// Maps the part ahead, so that frames need no system calls.
    fn map(&self) {
        self.file.map(self.offset / PAGE * PAGE..self.filled);
    }
}

/// The journal.
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// Folder below which names of series are stored without it.
    pub(crate) base: Arc<[u8]>,
    file_bytes: u64,
    open: Option<OpenFile>,
    /// The files have all that memory holds and no block has, so that the next file need not begin with it.
    is_whole: bool,
    /// JournalFiles that were followed by others before they were synced.
    unsynced: Vec<Arc<dyn DiskFile>>,
    /// The names in the folder may not be on the disk.
    names_unsynced: bool,
    /// Sequence numbers of the existing files, including the open one.
    sequences: Vec<u64>,
    /// JournalFiles that tails can read.
    pub(crate) files: JournalFiles,
    last_sequence: u64,
    spares: [bool; SPARES.len()],
    buffer: Vec<u8>,
    stamps: Stamps,
    /// Newest stamp of the last frame with values, in seconds since 1970; 0 if there is none.
    newest_s: u32,
    /// Position of the next frame, counted over all files.
    pub(crate) position: u64,
    /// Position up to which the journal is on the disk.
    pub(crate) synced: u64,
    /// The last synced position that a frame of the open file has.
    synced_written: u64,
    pub(crate) bytes_written: u64,
    pub(crate) rotations: u64,
    /// Rings after a write that needs a sync.
    pub(crate) written: Bell,
    /// There was no room for something.
    lacks_room: bool,
    /// Rings when more of it is on the disk.
    pub(crate) durable: Bell,
    pub(crate) given_up: u64,
}

/// The work of a sync, and the position up to which the journal is then synced.
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
    /// Creates a journal in `folder`, with names below `base`, that
    /// continues after `sequences` at `position`; it has no open file yet.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        (folder, base): (&Path, &Path),
        file_bytes: u64,
        sequences: Vec<u64>,
        position: u64,
    ) -> Journal {
        let last_sequence = sequences.iter().copied().max().unwrap_or(0);
        Journal {
            disk,
            folder: folder.into(),
            base: base.as_os_str().as_bytes().into(),
            file_bytes,
            open: None,
            is_whole: false,
            unsynced: Vec::new(),
            names_unsynced: true,
            sequences,
            files: JournalFiles::default(),
            last_sequence,
            spares: [false; SPARES.len()],
            buffer: vec![0; FRAME_HEAD_MAX],
            stamps: Stamps::default(),
            newest_s: 0,
            position,
            synced: position,
            synced_written: u64::MAX,
            bytes_written: 0,
            rotations: 0,
            written: Bell::default(),
            lacks_room: false,
            durable: Bell::default(),
            given_up: 0,
        }
    }

    /// Sets the position at which it continues. `is_whole` means that its files have all that memory holds.
    pub(crate) fn go_on_at(&mut self, position: u64, is_whole: bool) {
        self.position = position;
        self.synced = position;
        self.is_whole = is_whole;
    }

    /// Sequence number of the open file.
    pub(crate) fn sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Sequence number of the oldest file.
    pub(crate) fn oldest(&self) -> u64 {
        self.sequences
            .first()
            .copied()
            .unwrap_or(self.last_sequence)
    }

    /// JournalFiles that are there.
    pub(crate) fn files_len(&self) -> usize {
        self.sequences.len()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns true if the next entries should go to a new file.
    pub(crate) fn is_used_up(&self) -> bool {
        let reserve = (self.file_bytes / 8).min(1 << 20);
        let open = self.open.as_ref();
        open.is_some_and(|open| open.offset + reserve > self.file_bytes)
    }

    /// Writes zeros ahead of the next frame. If the disk is full, there may still be space for frames.
    pub(crate) fn fill_ahead(&mut self) {
        let file_bytes = self.file_bytes;
        let Some(open) = &mut self.open else {
            return;
        };
        if open.offset + ZEROS / 2 > open.filled && open.filled < file_bytes {
            let from = open.filled.max(open.offset);
            let to = from + ZEROS.min(file_bytes.saturating_sub(from));
            let _full = open.file.write_zeros(from..to);
            open.filled = to;
            open.map();
        }
    }

    /// JournalFiles of an earlier life, by sequence, and those that only tails need.
    pub(crate) fn go_on_behind(&mut self, journal: Vec<JournalFile>, tailed: VecDeque<TailedFile>) {
        let newest = tailed.back().map_or(0, |file| file.head.sequence);
        self.last_sequence = self.last_sequence.max(newest);
        self.files.journal = journal;
        self.files.tailed = tailed;
    }

    /// Begins a file. Whether everything that memory holds has to be put into it first.
    pub(crate) fn begin_file(&mut self, now: Stamp) -> io::Result<bool> {
        let real_ns = now.real_ns;
        let carries_over = !self.is_whole;
        let head = FileHead {
            sequence: self.last_sequence + 1,
            generation: generation(real_ns, self.last_sequence + 1),
            base: self.position,
            real_ns,
            carries_over,
            stamp_s: match self.newest_s {
                0 => u32::try_from(real_ns / 1_000_000_000).unwrap_or(0),
                newest_s => newest_s,
            },
        };
        let which = self.spares.iter().position(|&there| there).unwrap_or(0);
        let spare = self.folder.join(SPARES[which]);
        let file = self.disk.open(&spare, OpenMode::Create)?;
        self.spares[which] = true;
        file.write_at(&head.page(), 0)?;
        let filled = file.metadata()?.size_bytes.max(FRAMES_OFFSET);
        self.disk
            .rename(&spare, &self.folder.join(name_of(head.sequence)))?;
        self.spares[which] = false;
        self.names_unsynced = true;
        self.last_sequence = head.sequence;
        self.sequences.push(head.sequence);
        self.files.begin(head, now.mono_ns.cast_signed());
        let new = OpenFile {
            file: file.into(),
            head,
            offset: FRAMES_OFFSET,
            frames_without: 0,
            entries_end: self.position,
            filled,
        };
        new.map();
        if let Some(old) = self.open.replace(new) {
            self.unsynced.push(old.file);
            self.rotations += 1;
        }
        self.begin_stamps();
        self.synced_written = u64::MAX;
        self.is_whole = true;
        self.written.ring();
        Ok(carries_over)
    }

    /// The buffer for entries.
    pub(crate) fn records(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// The buffer for values, and the previous stamps.
    pub(crate) fn values(&mut self) -> (&mut Vec<u8>, &mut Stamps) {
        (&mut self.buffer, &mut self.stamps)
    }

    pub(crate) fn put(&mut self, entry: &Record<'_>) {
        match entry {
            Record::Series { id, path, birth } => {
                let (id, path) = (*id, &names::stored(&self.base, path));
                let birth = birth.clone();
                Record::Series { id, path, birth }.put(&mut self.buffer);
            }
            Record::Renamed { id, path } => {
                let (id, path) = (*id, &names::stored(&self.base, path));
                Record::Renamed { id, path }.put(&mut self.buffer);
            }
            entry => entry.put(&mut self.buffer),
        }
    }

    /// Discards the collected entries.
    pub(crate) fn abandon(&mut self) {
        self.buffer.truncate(FRAME_HEAD_MAX);
        self.buffer.shrink_to(8 << 20);
        self.begin_stamps();
    }

    fn begin_stamps(&mut self) {
        let open = self.open.as_ref();
        self.stamps = Stamps::at(open.map_or(0, |open| open.head.stamp_s));
    }

    /// Returns true if there are collected entries.
    pub(crate) fn has_records(&self) -> bool {
        self.buffer.len() > FRAME_HEAD_MAX
    }

    /// Writes the collected entries as one frame. After an error no reader will ever see them.
    pub(crate) fn commit(&mut self) -> io::Result<u64> {
        let written = self.write();
        if written.is_ok() {
            let at = self.open.as_ref().map_or(0, |open| open.head.stamp_s);
            self.newest_s = self.stamps.newest_s(at).unwrap_or(self.newest_s);
        }
        self.abandon();
        written.map(|()| self.position)
    }

    fn write(&mut self) -> io::Result<()> {
        if !self.has_records() {
            return Ok(());
        }
        let frames_without = self.open.as_ref().map_or(0, |open| open.frames_without);
        // Includes the synced position if it has changed, and from time to time in case the frame with it is damaged.
        let tells = self.synced_written != self.synced || frames_without >= FRAMES_WITHOUT_MAX;
        self.write_frame(tells, &[])?;
        if let Some(open) = &mut self.open {
            open.entries_end = self.position;
        }
        self.written.ring();
        Ok(())
    }

    /// Writes a frame with the collected entries, even if there are
    /// none, followed by the bytes `behind`, which are no part of it.
    fn write_frame(&mut self, tells: bool, behind: &[u8]) -> io::Result<()> {
        let open = self.open.as_mut();
        let open = open.ok_or_else(|| io::Error::other("the journal has no file"))?;
        let synced = tells.then_some(self.synced);
        let start = frame::seal(&mut self.buffer, &open.head, self.position, synced);
        let len = (self.buffer.len() - start) as u64;
        self.buffer.extend_from_slice(behind);
        match open.file.write_at(&self.buffer[start..], open.offset) {
            Ok(()) => {
                self.synced_written = self.synced;
                open.frames_without = if tells { 0 } else { open.frames_without + 1 };
                open.offset += len;
                self.position += len;
                self.bytes_written += len;
                Ok(())
            }
            Err(error) if is_full(&error) => {
                self.miss_room();
                Err(error)
            }
            Err(error) => {
                self.give_up();
                Err(error)
            }
        }
    }

    /// There is no room: files that only tails need are to make some.
    pub(crate) fn miss_room(&mut self) {
        self.lacks_room = true;
        self.written.ring();
    }

    /// True if files that only tails need are to make room.
    pub(crate) fn lacks_room_for_tails(&self) -> bool {
        self.lacks_room && !self.files.tailed.is_empty()
    }

    /// There may be room again.
    pub(crate) fn has_room(&mut self) {
        self.lacks_room = false;
    }

    /// True if a sync has work; a frame with nothing but the synced position does not count.
    pub(crate) fn is_behind(&self) -> bool {
        let entries_end = self.open.as_ref().map_or(u64::MAX, |open| open.entries_end);
        self.names_unsynced || self.synced < entries_end
    }

    /// Writes a frame with the synced position if no frame has it, so that a replay recognizes later damage before it.
    pub(crate) fn write_synced_position(&mut self) {
        let entries_end = self.open.as_ref().map(|open| open.entries_end);
        let synced_written = self.synced_written != u64::MAX
            && entries_end.is_some_and(|entries_end| self.synced_written >= entries_end);
        if entries_end.is_none() || synced_written || self.is_behind() || self.has_records() {
            return;
        }
        // After damage, a frame is accepted only if it is followed by another one or by a zero.
        let _no_room = self.write_frame(true, &[0]);
        self.abandon();
    }

    /// Gives up the open file and the earlier unsynced ones; they are never written or trusted again.
    pub(crate) fn give_up(&mut self) {
        self.open = None;
        self.is_whole = false;
        self.unsynced.clear();
        self.given_up += 1;
    }

    /// The work to do for a sync; `None` if all is synced.
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

    /// Notes that the work was done.
    pub(crate) fn sync_done(&mut self, work: &SyncWork) {
        self.synced = self.synced.max(work.upto);
        self.durable.ring();
        // JournalFiles that were followed by others meanwhile are still to be synced: the last of the work is one.
        self.unsynced
            .drain(..(work.files.len() - 1).min(self.unsynced.len()));
        if self.last_sequence == work.sequence {
            self.names_unsynced &= work.folder.is_none();
        }
    }

    /// Takes the files before `sequence` out of use: those that tails need get another name, a few are kept as spares, the others
    /// go.
    pub(crate) fn drop_before(&mut self, sequence: u64) -> io::Result<()> {
        let (old, kept) = self.sequences.iter().partition(|&&known| known < sequence);
        self.sequences = kept;
        let old: Vec<u64> = old;
        for &sequence in &old {
            let path = self.folder.join(name_of(sequence));
            if let Some(mut file) = self.files.leave_to_tails(sequence) {
                file.size_bytes = self.disk.metadata(&path)?.size_bytes;
                let tailed = self.folder.join(tailed::name_of(sequence));
                self.disk.rename(&path, &tailed)?;
                self.files.tailed.push_back(file);
                continue;
            }
            match self.spares.iter().position(|there| !there) {
                Some(which) if self.is_of_use(&path) => {
                    self.disk.rename(&path, &self.folder.join(SPARES[which]))?;
                    self.spares[which] = true;
                }
                _ => self.disk.unlink(&path)?,
            }
        }
        match old.is_empty() {
            true => Ok(()),
            // Without the sync, a power cut could bring a file back whose name and content do not match.
            false => self.disk.sync_dir(&self.folder),
        }
    }

    /// Removes files that no tail needs any more.
    pub(crate) fn drop_needless(&mut self) -> io::Result<()> {
        for file in self.files.take_needless() {
            self.remove_tailed(&file)?;
        }
        Ok(())
    }

    /// Removes a file that tails have to do without.
    pub(crate) fn remove_tailed(&mut self, file: &TailedFile) -> io::Result<()> {
        self.files
            .tailed
            .retain(|known| known.head.sequence != file.head.sequence);
        self.disk
            .unlink(&self.folder.join(tailed::name_of(file.head.sequence)))
    }

    /// Where a file is that a tail reads.
    pub(crate) fn path_of(&self, place: &FilePlace) -> PathBuf {
        self.folder.join(match place.is_tailed {
            true => tailed::name_of(place.head.sequence),
            false => name_of(place.head.sequence),
        })
    }

    fn is_of_use(&self, path: &Path) -> bool {
        let stat = self.disk.metadata(path);
        stat.is_ok_and(|stat| stat.size_bytes <= 2 * self.file_bytes)
    }
}

/// Sequence numbers of the journal files in a folder; removes spare files of earlier processes.
pub(crate) fn list(disk: &dyn Disk, folder: &Path) -> Result<Vec<u64>, Error> {
    let (mut sequences, mut spares) = (Vec::new(), Vec::<&str>::new());
    let listed = disk.list(folder, &mut |name, kind| {
        spares.extend(SPARES.iter().find(|&&spare| name == spare));
        sequences.extend(sequence_of(name).filter(|_| kind == NameKind::File));
    });
    listed.tried("list", folder)?;
    for spare in spares {
        let path = folder.join(spare);
        disk.unlink(&path).tried("remove", &path)?;
    }
    sequences.retain(|&sequence| sequence < 1 << 62);
    sequences.sort_unstable();
    Ok(sequences)
}

/// The sequence of a file with this name.
pub(crate) fn sequence_of(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

pub(crate) fn name_of(sequence: u64) -> String {
    format!("{PREFIX}{sequence:012}")
}

fn generation(real_ns: i64, sequence: u64) -> u64 {
    kymo_base::random::next_random(&mut ((real_ns as u64) ^ sequence.rotate_left(48)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::value::Value;
    use kymo_sys::sim_disk::SimDisk;

    /// For values of long ago the first stamp of a frame is as short as for current ones.
    #[test]
    fn a_file_is_begun_near_the_newest_values() {
        let (disk, folder) = (SimDisk::new(1), Path::new("/j"));
        disk.create_dir_all(folder).unwrap();
        let sizes = Arc::new(disk.clone());
        let mut journal = Journal::new(sizes, (folder, folder), 1 << 20, Vec::new(), 0);
        let now_s = 1_800_000_000;
        for (sequence, text, stamp_s) in [
            (1, "1700000000.123456:1", now_s),
            (2, "1700000010:1", 1_700_000_000),
            (3, "1690000010.500000:1", 1_700_000_010),
            (4, "no value", 1_690_000_010),
            (5, "1700000020:1", 1_690_000_010),
        ] {
            let now = Stamp {
                real_ns: i64::from(now_s) * 1_000_000_000,
                ..Stamp::default()
            };
            journal.begin_file(now).unwrap();
            let bytes = disk.bytes(&folder.join(name_of(sequence))).unwrap();
            let head = FileHead::parse(&bytes, sequence).unwrap().unwrap();
            assert_eq!(head.stamp_s, stamp_s, "{sequence}");
            let mut value = Value::default();
            value.read(text.as_bytes());
            let (out, stamps) = journal.values();
            value.put(out, stamps);
            journal.commit().unwrap();
        }
    }
}
