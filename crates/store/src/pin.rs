//! Pins: a backup copies the store's files while the store goes on. Segments are only appended to, and an open file outlives
//! its name, so that they need nothing. Journal files are used again, so none is taken out of use while a pin holds.

use crate::engine::Store;
use crate::error::{Error, Tried};
use crate::folder::read_only::ReadOnly;
use crate::memtable::state::State;
use crate::names;
use crate::segment::file::{self, Numbers};
use crate::segment::set::SegmentSet;
use crate::wal::frame::{self, FRAMES_OFFSET, FileHead};
use crate::wal::writer;
use kymo_sys::disk::{Disk, OpenMode};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file of the store's folder, as far as it belongs to a pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedFile {
    /// Name in the folder.
    pub name: String,
    /// Bytes from the file's beginning that belong to the pin.
    pub bytes: u64,
    /// The file is never written again.
    pub sealed: bool,
}

/// The store at one moment: its files, with their lengths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    /// Number of the pin; 0 if nothing holds the files, as no daemon runs.
    pub pin: u64,
    /// Segments, then journal files, in their order.
    pub files: Vec<PinnedFile>,
}

impl Store {
    /// Pins the store as it is now, for an hour or until [`Store::unpin`].
    pub fn pin(&self) -> Result<Pinned, Error> {
        let inner = &*self.inner;
        let pin = {
            let mut state = inner.lock();
            state.pins.hold(inner.clock.mono_ns())
        };
        // Segments come first: the journal must have all that blocks lack.
        let segments = inner.segments.pinned_files();
        let segments = segments.tried("read", &inner.settings.folder);
        let mut files = segments.inspect_err(|_| {
            self.unpin(pin);
        })?;
        files.extend(journal_files(&inner.lock()));
        Ok(Pinned { pin, files })
    }

    /// Ends a pin; false if it has ended before.
    pub fn unpin(&self, pin: u64) -> bool {
        let released = self.inner.lock().pins.release(pin);
        let state = self.inner.lock();
        state.tasks.work.ring();
        released
    }

    /// Names of the series that have rows in their files alone, from before the store knew them.
    pub fn adopted(&self) -> Vec<Vec<u8>> {
        let state = self.inner.lock();
        let series = state.series.iter().map(|(_, series)| series);
        let adopted = series.filter(|series| {
            let has_file = series.file.left().is_some() && series.file.gone_since().is_none();
            series.base.is_some() && has_file
        });
        let mut names: Vec<Vec<u8>> = adopted
            .map(|series| names::below(&state.journal.base, &series.path))
            .collect();
        names.sort_unstable();
        names
    }

    /// The files of the store in `folder`, its own folder, while no daemon runs. Nothing holds them.
    pub fn pin_at_rest(disk: Arc<dyn Disk>, folder: &Path) -> Result<Pinned, Error> {
        let disk = ReadOnly(disk);
        let mut files = Vec::new();
        for numbers in file::list(&disk, folder).tried("list", folder)? {
            let path = file::path_of(folder, numbers);
            let stat = disk.metadata(&path).tried("read", &path)?;
            files.push(PinnedFile {
                name: name_of(numbers),
                bytes: stat.size_bytes,
                sealed: true,
            });
        }
        for sequence in writer::list(&disk, folder)? {
            let name = writer::name_of(sequence);
            let path = folder.join(&name);
            let bytes = frames_end(&disk, &path, sequence).tried("read", &path)?;
            files.push(PinnedFile {
                name,
                bytes,
                sealed: false,
            });
        }
        Ok(Pinned { pin: 0, files })
    }
}

fn name_of(numbers: Numbers) -> String {
    let path = file::path_of(Path::new(""), numbers);
    path.to_string_lossy().into_owned()
}

impl SegmentSet {
    fn pinned_files(&self) -> io::Result<Vec<PinnedFile>> {
        let writer = self.writer();
        let open = writer.open.as_ref().map(|open| open.segment.numbers);
        let index = self.index();
        let files = index.segments.iter().map(|segment| {
            Ok(PinnedFile {
                name: name_of(segment.numbers),
                bytes: segment.file.metadata()?.size_bytes,
                sealed: open != Some(segment.numbers),
            })
        });
        files.collect()
    }
}

/// The journal's files. A later file voids what one before it has at or behind its base.
fn journal_files(state: &State) -> Vec<PinnedFile> {
    let journal = &state.journal.files.journal;
    let ends = journal.iter().skip(1).map(|next| next.head.base);
    let ends = ends.chain([state.journal.position]);
    let files = journal.iter().zip(ends).map(|(file, end)| PinnedFile {
        name: writer::name_of(file.head.sequence),
        bytes: FRAMES_OFFSET + end.saturating_sub(file.head.base),
        sealed: false,
    });
    files.collect()
}

/// Offset behind a journal file's last frame; the file's length if it has no head.
fn frames_end(disk: &dyn Disk, path: &Path, sequence: u64) -> io::Result<u64> {
    let file = disk.open(path, OpenMode::Read)?;
    let size = usize::try_from(file.metadata()?.size_bytes).unwrap_or(usize::MAX);
    let mut bytes = vec![0; size];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    let whole = u64::try_from(count).unwrap_or(u64::MAX);
    let Ok(Some(head)) = FileHead::parse(&bytes, sequence) else {
        return Ok(whole);
    };
    let frames = frame::walk(&bytes, &head);
    let end = frames.last().map_or(head.base, |frame| frame.end);
    Ok(whole.min(FRAMES_OFFSET + end.saturating_sub(head.base)))
}
