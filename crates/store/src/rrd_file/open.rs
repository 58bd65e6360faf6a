//! Requests for a file by its name: making it known, flushing, reading.

use crate::consolidation::apply::Applier;
use crate::engine::{Inner, Store};
use crate::error::FileError;
use crate::folder::fence;
use crate::memtable::state::State;
use crate::names;
use crate::read::rows::{FileRows, Opened, RowSource, SeriesRows};
use crate::rrd_file::header::{identity, open_error, open_locked, read_header};
use crate::rrd_file::lock::LOCK_PAUSE;
use crate::rrd_file::placeholder::is_hollow;
use crate::rrd_file::write_back::Worker;
use crate::settings::Files;
use crate::wal::record::{Identity, Record};
use kymo_base::errno::strerror;
use kymo_rrd::header::MEMORY_CELLS_MAX;
use kymo_rrd::{Header, Rrd};
use kymo_sys::disk::{DiskFile, Metadata, NameKind, RecordLock};
use kymo_sys::tree::Access;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Publishing of pending values before a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// Publishes pending values first (FETCH, DUMP).
    Flushed,
    /// Reads published values only (INFO, FIRST, LAST).
    AsIs,
}

/// Result of FLUSH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// `Successfully flushed %s.`: the file is current (or its series is suspended).
    Done,
    /// `Nothing to flush: %s.`: the file exists, and no series is known for it.
    Nothing,
}

/// An existing file.
struct Found {
    /// Path without links.
    path: PathBuf,
    stat: Metadata,
    file: Box<dyn DiskFile>,
    header: Header,
}

impl Store {
    /// Makes a file known: checks stat, access and header. Then a batch's `update` accepts its values.
    pub fn touch(&self, name: &[u8]) -> Result<(), FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        if inner.is_without_files() {
            let id = inner.any(name, &spelled).ok_or(FileError::NoSuchFile)?;
            inner.remember(id);
            inner.lock().series.spell(id, name);
            return Ok(());
        }
        let found = match inner.found(&spelled) {
            Err(FileError::NoSuchFile) => {
                // The series may be known, with a file that was never requested or was removed.
                inner.miss_view(name, &spelled);
                let id = inner.without_file(name, &spelled);
                let id = id.ok_or(FileError::NoSuchFile)?;
                inner.remember(id);
                inner.miss_view(name, &spelled);
                inner.lock().series.spell(id, name);
                return Ok(());
            }
            found => found?,
        };
        let Found {
            path,
            stat,
            file,
            header,
        } = found;
        if header.last_up < 1 {
            return Err(FileError::BadStamp);
        }
        let seen = identity(&stat);
        let path = path.as_os_str().as_bytes();
        let known = match inner.other_name(&stat, path) {
            Some(id) => Some(id),
            None => inner.lock().series.by_path(path),
        };
        let id = match known {
            Some(id) => inner.returned(id, seen)?,
            None => inner.adopt(path, &header, &*file, seen)?,
        };
        inner.lock().series.spell(id, name);
        Ok(())
    }

    /// Returns true if a name is allowed; requests for other names are answered as not permitted.
    pub fn admits(&self, name: &[u8]) -> bool {
        !matches!(self.inner.checked(name), Err(FileError::Outside))
    }

    /// Type of the file with a name, after following links.
    pub fn kind(&self, name: &[u8]) -> Result<NameKind, FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        let stat = inner.tree.stat(names::path(&spelled)).map_err(stat_error)?;
        Ok(stat.kind)
    }

    /// FLUSH: when this returns, the file on the disk is current.
    pub fn flush(&self, name: &[u8]) -> Result<Flushed, FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        if let Some(id) = inner.any(name, &spelled) {
            let known = inner.lock().series.is_known(id);
            let flushed = inner.flush_id(id);
            if matches!(flushed, Err(FileError::NoSuchFile)) && known {
                // No client waits for these values any more; they are kept in case the file returns.
                inner.publish(id).map_err(FileError::Journal)?;
            }
            // The client of a forgotten series needs nothing but the file.
            return match known {
                true => flushed.map(|()| Flushed::Done),
                false => flushed.map(|()| Flushed::Nothing),
            };
        }
        if inner.is_without_files() {
            return Err(FileError::NoSuchFile);
        }
        match inner.tree.stat(names::path(&spelled)) {
            Ok(stat) if stat.kind == NameKind::File => Ok(Flushed::Nothing),
            _ => Err(FileError::NoSuchFile),
        }
    }

    /// Opens a file for FETCH, INFO, FIRST and LAST.
    pub fn read(&self, name: &[u8], fresh: Fresh) -> Result<Opened, FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        if let Some(id) = inner.any(name, &spelled) {
            return inner
                .read_id(id, fresh)
                .map_err(|error| opening(&spelled, error));
        }
        let file = inner.locked(&spelled, RecordLock::Shared);
        let file = file.map_err(|error| opening(&spelled, error))?;
        let size_bytes = file.metadata().map_err(FileError::Io)?.size_bytes;
        let header = read_header(&*file, size_bytes, &mut Vec::new(), &spelled)?;
        let offset = header.size_bytes();
        Ok(Opened {
            header,
            rows: SeriesRows(RowSource::File(FileRows { file, offset })),
        })
    }

    /// Opens a file after a flush, for DUMP and as a template of CREATE.
    pub fn open_flushed(&self, name: &[u8]) -> Result<Opened, FileError> {
        // A program that reads the file afterwards must find the same. An error of the flush shows up in the read.
        let _current = self.flush(name);
        self.read(name, Fresh::Flushed)
    }

    /// Loads a whole file after a flush.
    pub fn load(&self, name: &[u8]) -> Result<Rrd, FileError> {
        self.load_at_most(name, MEMORY_CELLS_MAX)
    }

    /// Loads a file of at most `cells_max` cells, as a source of CREATE.
    pub fn load_at_most(&self, name: &[u8], cells_max: u64) -> Result<Rrd, FileError> {
        let opened = self.open_flushed(name)?;
        let count = opened.header.cell_count();
        if count > cells_max {
            return Err(FileError::Large(count));
        }
        let mut cells = vec![0.0; opened.header.cell_count() as usize];
        let mut rows = opened.rows;
        kymo_rrd::Rows::read(&mut rows, 0, &mut cells)
            .map_err(|error| FileError::Rrd(error.text))?;
        Ok(Rrd {
            header: opened.header,
            cells,
        })
    }
}

impl Inner {
    /// The file with a name; a file without content counts as missing.
    fn found(&self, spelled: &[u8]) -> Result<Found, FileError> {
        let path = self
            .tree
            .resolve(names::path(spelled))
            .map_err(stat_error)?;
        let stat = self.tree.stat(&path).map_err(stat_error)?;
        if stat.kind != NameKind::File {
            return Err(FileError::NotRegular);
        }
        let file = self.tree.open(&path, Access::Write).map_err(open_error)?;
        let header = read_header(&*file, stat.size_bytes, &mut Vec::new(), spelled);
        if header.is_err() && is_hollow(&*file, stat.size_bytes) {
            return Err(FileError::NoSuchFile);
        }
        Ok(Found {
            header: header?,
            path,
            stat,
            file,
        })
    }

    /// Converts a name to a path. Names outside of the base and of the store's own files are refused here for every
    /// request, whether or not they exist.
    pub(crate) fn checked(&self, name: &[u8]) -> Result<Vec<u8>, FileError> {
        if !names::allowed(&self.settings, name) {
            return Err(FileError::Outside);
        }
        let spelled = names::spelled(&self.settings, name);
        if let Some(number) = names::refused(&spelled) {
            return Err(FileError::Name(number));
        }
        if self.lock().series.find(name, || spelled.clone()).is_some() {
            // The path was checked when the series became known; later changes of its links do not count.
            return Ok(spelled);
        }
        let path = names::path(&spelled);
        let is_outside = |error: io::Error| error.raw_os_error() == Some(fence::OUTSIDE);
        // For dangling links only the second call reports a path outside of the base.
        let outside = self.tree.resolve(path).is_err_and(is_outside)
            || self.tree.stat(path).is_err_and(is_outside);
        match outside {
            true => Err(FileError::Outside),
            false => Ok(spelled),
        }
    }

    /// The series of a name, including names under which it was not touched, and forgotten series.
    pub(crate) fn any(&self, name: &[u8], spelled: &[u8]) -> Option<u32> {
        let found = self.lock().series.find(name, || spelled.to_vec());
        if found.is_some() || self.is_without_files() {
            return found;
        }
        let path = names::path(spelled);
        let stat = self.tree.stat(path).ok()?;
        let path = self.tree.resolve(path).ok()?;
        let path = path.as_os_str().as_bytes();
        let by_path = self.lock().series.by_path(path);
        match by_path {
            Some(id) => Some(id),
            None => self.other_name(&stat, path),
        }
    }

    /// The series of a file that is known by another of its names, or by its previous name.
    fn other_name(&self, stat: &Metadata, path: &[u8]) -> Option<u32> {
        let (device, inode) = (stat.device, stat.inode);
        let (id, known) = {
            let state = self.lock();
            let id = state.series.by_inode(device, inode)?;
            (id, state.series.get(id)?.path.clone())
        };
        if *known == *path {
            return Some(id);
        }
        match self.tree.stat(names::path(&known)) {
            // The inode may be another file's by now.
            Ok(now) => ((now.device, now.inode) == (device, inode)).then_some(id),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let taken = self.lock().series.by_path(path).is_some();
                (!taken && self.moved(id, path, identity(stat)).unwrap_or(false)).then_some(id)
            }
            Err(_) => None,
        }
    }

    pub(crate) fn flush_id(&self, id: u32) -> Result<(), FileError> {
        let deadline = self.lock_deadline();
        let mut worker = Worker::default();
        let mut id = id;
        loop {
            if self.is_without_files() {
                return self.publish(id).map_err(FileError::Journal);
            }
            id = self.verified_soon(id)?;
            let path = {
                let mut state = self.lock();
                let Some(series) = state.series.get_mut(id) else {
                    return Ok(());
                };
                let is_busy = series.file.is_busy();
                if !is_busy && (series.suspended || series.is_current()) {
                    return Ok(());
                }
                if is_busy {
                    if self.clock.mono_ns() >= deadline {
                        return Err(FileError::Locked);
                    }
                    drop(self.wait(state));
                    continue;
                }
                series.path.clone()
            };
            // Tests the lock first, so that not each failed attempt is written to the journal.
            let probe = open_locked(&*self.tree, &path, RecordLock::Exclusive);
            let error = match probe {
                Ok(None) => Some(FileError::Locked),
                _ => {
                    drop(probe);
                    let outcome = self.write_files(&mut worker, &[id]).pop();
                    match outcome {
                        Some((_, None)) => return Ok(()),
                        Some((_, error)) => error,
                        None => continue,
                    }
                }
            };
            match error {
                Some(FileError::Locked) if self.clock.mono_ns() < deadline => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                error => {
                    let mut state = self.lock();
                    state.stats.locks_met += u64::from(matches!(error, Some(FileError::Locked)));
                    state.queue(id);
                    return error.map_or(Ok(()), Err);
                }
            }
        }
    }

    /// [`Inner::verified`], but waits for a lock as long as FLUSH does.
    pub(crate) fn verified_soon(&self, id: u32) -> Result<u32, FileError> {
        let deadline = self.lock_deadline();
        loop {
            match self.verified(id) {
                Err(FileError::Locked) if self.clock.mono_ns() < deadline => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                verified => return verified,
            }
        }
    }

    /// Makes all values of a series visible to readers. If the journal cannot take this, it is lost at the next start,
    /// as it is for values published by their age (`-w`); nothing else depends on it.
    fn publish(&self, id: u32) -> io::Result<()> {
        self.show_with(&mut self.lock(), id)
    }

    pub(crate) fn show_with(&self, state: &mut State, id: u32) -> io::Result<()> {
        let Some(series) = state.series.get_mut(id).filter(|series| !series.suspended) else {
            return Ok(());
        };
        if series.values.is_published() {
            return Ok(());
        }
        let now_ns = self.clock.mono_ns();
        series.values.publish(now_ns, &mut state.stats);
        let upto = series.values.published;
        state.prepare(&*self.clock)?;
        state.put(id, &Record::Published { id, upto }, now_ns);
        state.journal.commit().map(drop)
    }

    /// [`Inner::verified`] for readers, which ignores locks of other processes and a full disk.
    pub(crate) fn verified_for_reading(&self, id: u32) -> Result<u32, FileError> {
        match self.verified(id) {
            Err(FileError::Locked | FileError::Journal(_)) => Ok(id),
            verified => verified,
        }
    }

    /// Opens a series with all values, or with the published ones.
    pub(crate) fn read_id(&self, id: u32, fresh: Fresh) -> Result<Opened, FileError> {
        let id = self.verified_for_reading(id)?;
        if fresh == Fresh::Flushed {
            let _full = self.publish(id);
        }
        let snapshot = {
            let state = self.lock();
            let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
            self.snapshot(&state, series, series.values.published)
        };
        let snapshot = snapshot.ok_or(FileError::NoSuchFile)?;
        let base = self.base_of(&snapshot)?;
        let mut applier = Applier::default();
        let view = snapshot.view(&mut applier, self.rrd_now(), base)?;
        Ok(Opened {
            header: view.state.header.clone(),
            rows: SeriesRows(RowSource::Blocks(Box::new(view))),
        })
    }

    /// Remembers the series of a file that was touched, and takes in changes of the file.
    fn returned(&self, id: u32, seen: Identity) -> Result<u32, FileError> {
        let other = {
            let state = self.lock();
            let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
            series.file.is_at_rest() && series.file.left() != Some(seen)
        };
        let id = match other {
            true => match self.take_in(&mut Worker::default(), id) {
                // The next check will find the changes.
                Err(FileError::Locked) => id,
                taken => taken?,
            },
            false => id,
        };
        self.remember(id);
        Ok(id)
    }

    /// Notes that the file of this name is missing, in a store that creates files on request; its series continues.
    fn miss_view(&self, name: &[u8], spelled: &[u8]) {
        let id = self.lock().series.find(name, || spelled.to_vec());
        if let Some(id) = id.filter(|_| self.settings.files == Files::OnDemand) {
            self.miss_file(id);
        }
    }

    /// Makes a forgotten series known again.
    fn remember(&self, id: u32) {
        let mut state = self.lock();
        let Some(series) = state.series.get_mut(id) else {
            return;
        };
        if series.forgotten {
            series.forgotten = false;
            // Truncated, as for a client that reads the file's header.
            series.values.last = series.values.newest().trunc();
            series.values.published_ns = self.clock.mono_ns();
        }
        series.file.look();
    }
}

fn stat_error(error: io::Error) -> FileError {
    match error.raw_os_error() {
        Some(fence::OUTSIDE) => FileError::Outside,
        Some(2) => FileError::NoSuchFile,
        Some(number) => FileError::Stat(number),
        None if error.kind() == io::ErrorKind::NotFound => FileError::NoSuchFile,
        None => FileError::Io(error),
    }
}

/// The message of rrd_open for a file that it cannot open.
pub(crate) fn opening(spelled: &[u8], error: FileError) -> FileError {
    let cause = match &error {
        FileError::NoSuchFile => "No such file or directory".to_string(),
        FileError::NotRegular => "Is a directory".to_string(),
        FileError::Access(error) | FileError::Io(error) => strerror(error),
        _ => return error,
    };
    let shown = String::from_utf8_lossy(spelled);
    FileError::Rrd(format!("opening '{shown}': {cause}"))
}
