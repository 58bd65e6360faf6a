//! Imports many .rrd files into a store without a daemon. A file is first adopted with its rows in place; once its rows
//! are in synced blocks, the series does not need the file. So an import may be interrupted at any time.

use crate::engine::{Inner, Store};
use crate::error::FileError;
use crate::rrd_file::adopt::{Beginning, Cause};
use crate::rrd_file::create::seasons_of;
use crate::rrd_file::header::{identity, open_locked, read_header};
use crate::tools::import::Member;
use crate::wal::record::Identity;
use kymo_base::name::DisplayName;
use kymo_rrd::header::MEMORY_CELLS_MAX;
use kymo_rrd::{Header, Rrd};
use kymo_sys::disk::RecordLock;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;

use crate::names;

/// A loaded file to import.
pub struct WholeFile {
    path: Vec<u8>,
    rrd: Rrd,
    seen: Identity,
}

impl WholeFile {
    /// Number of cells of the file.
    pub fn cell_count(&self) -> u64 {
        self.rrd.cells.len() as u64
    }
}

/// Number, chunk and slot of a series.
#[derive(Clone, Copy)]
struct SeriesAddress {
    id: u32,
    chunk: u32,
    slot: u8,
}

impl Store {
    /// Loads a file for import; `None` if the store has all of it already.
    pub fn read_whole(&self, name: &[u8]) -> Result<Option<WholeFile>, FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        let path = inner.tree.resolve(names::path(&spelled));
        let path = path.map_err(crate::rrd_file::header::open_error)?;
        let path = path.as_os_str().as_bytes().to_vec();
        let file = open_locked(&*inner.tree, &path, RecordLock::Shared)?;
        let file = file.ok_or(FileError::Locked)?;
        let stat = file.metadata().map_err(FileError::Io)?;
        let header = read_header(&*file, stat.size_bytes, &mut Vec::new(), &spelled)?;
        if header.last_up < 1 {
            return Err(FileError::BadStamp);
        }
        let seen = identity(&stat);
        if inner.has_all(name, &spelled, &header, seen) {
            return Ok(None);
        }
        let (count, shown) = (header.cell_count(), DisplayName(&spelled));
        if count > MEMORY_CELLS_MAX {
            let text = format!("'{shown}' has {count} cells, more than {MEMORY_CELLS_MAX}");
            return Err(FileError::Rrd(text));
        }
        let mut bytes = vec![0; header.file_size_bytes() as usize];
        let count = file.read_at(&mut bytes, 0).map_err(FileError::Io)?;
        let rrd = Rrd::parse(&bytes[..count]).map_err(|error| FileError::Rrd(error.text))?;
        Ok(Some(WholeFile { path, rrd, seen }))
    }

    /// Imports files with one sync; returns the error of each file that failed.
    pub fn import(&self, files: &[WholeFile]) -> Vec<Option<FileError>> {
        let inner = &*self.inner;
        let places = files.iter().map(|file| inner.take_over_whole(file));
        let places: Vec<Result<SeriesAddress, FileError>> = places.collect();
        let mut chunks: BTreeMap<u32, Vec<(SeriesAddress, &Rrd)>> = BTreeMap::new();
        for (file, place) in files.iter().zip(&places) {
            if let Ok(place) = place {
                let chunk = chunks.entry(place.chunk).or_default();
                chunk.push((*place, &file.rrd));
            }
        }
        let done = chunks.iter_mut().try_for_each(|(chunk, members)| {
            members.sort_by_key(|(place, _)| place.slot);
            inner.append_chunk(*chunk, members)
        });
        let done = done.and_then(|()| inner.segments.sync());
        let outcome = |place: Result<SeriesAddress, FileError>| match (place, &done) {
            (Ok(place), Ok(())) => {
                inner.stands_alone(place);
                None
            }
            (Ok(_), Err(error)) => {
                let text = format!("cannot write its rows: {error}");
                Some(FileError::Io(io::Error::new(error.kind(), text)))
            }
            (Err(error), _) => Some(error),
        };
        let outcomes = places.into_iter().map(outcome).collect();
        inner.make_room();
        outcomes
    }

    /// Syncs all imported data, which is in blocks when this returns.
    pub fn finish_import(&self) -> io::Result<()> {
        let inner = &*self.inner;
        inner.save_all();
        inner.segments.sync()?;
        inner.checkpoint();
        inner.sync_to(u64::MAX)
    }
}

impl Inner {
    /// Returns true if the store has all that a file has.
    fn has_all(&self, name: &[u8], spelled: &[u8], header: &Header, seen: Identity) -> bool {
        let id = self.any(name, spelled);
        let state = self.lock();
        let series = id.and_then(|id| state.series.get(id));
        series.is_some_and(|series| {
            let same =
                series.file.left() == Some(seen) || header.last_up as f64 <= series.values.newest();
            series.base.is_none() && same
        })
    }

    /// Adopts a file, as when it is touched; returns the place of its series, or of the existing one.
    fn take_over_whole(&self, file: &WholeFile) -> Result<SeriesAddress, FileError> {
        let known = {
            let state = self.lock();
            let id = state.series.by_path(&file.path);
            let left = |id| state.series.get(id).and_then(|series| series.file.left());
            id.filter(|&id| left(id) == Some(file.seen))
        };
        let id = match known {
            Some(id) => id,
            None => {
                let header = &file.rrd.header;
                let beginning = Beginning {
                    base: Some(header.last_up),
                    seen: Some(file.seen),
                    ..Beginning::of(Cause::Found)
                };
                self.adopt_as(&file.path, header, seasons_of(&file.rrd), beginning)?
            }
        };
        let state = self.lock();
        let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
        Ok(SeriesAddress {
            id,
            chunk: series.chunk,
            slot: series.slot,
        })
    }

    fn append_chunk(&self, chunk: u32, members: &[(SeriesAddress, &Rrd)]) -> io::Result<()> {
        let schema = self
            .lock()
            .chunks
            .get(chunk)
            .map(|chunk| chunk.schema.clone());
        let schema = schema.ok_or_else(|| io::Error::other("its chunk is gone"))?;
        let files = members.iter().map(|(at, rrd)| (at.slot, *rrd, None));
        let files: Vec<Member<'_>> = files.collect();
        self.append_rows(chunk, &schema, &files)
    }

    /// Notes that the rows of a series are in synced blocks; the next block of its chunk records this.
    fn stands_alone(&self, place: SeriesAddress) {
        let now_ns = self.clock.mono_ns();
        let mut state = self.lock();
        let sequence = state.journal.sequence();
        if let Some(series) = state.series.get_mut(place.id) {
            series.base = None;
        }
        if let Some(chunk) = state.chunks.get_mut(place.chunk) {
            chunk.touch(sequence, now_ns);
        }
    }

    /// Keeps the journal shorter than all states together.
    fn make_room(&self) {
        let long = self.lock().journal.files_len() > self.settings.journal_files;
        if long {
            self.save_all();
            self.checkpoint();
        }
    }
}
