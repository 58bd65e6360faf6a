//! Handles files that other programs changed: changes by tune are merged
//! into the series; after any other change the file is adopted as it is.

use crate::consolidation::schema;
use crate::engine::Inner;
use crate::error::FileError;
use crate::names;
use crate::read::rows::read_cells;
use crate::read::snapshot::Snapshot;
use crate::read::view::row_of;
use crate::rrd_file::adopt::{Beginning, Cause};
use crate::rrd_file::diff;
use crate::rrd_file::diff::{Difference, Edits};
use crate::rrd_file::header::{identity, open_error, open_locked, read_header, seasons};
use crate::rrd_file::write_back::{FileJob, Worker, not_done};
use crate::segment::placed::Placed;
use crate::segment::set::fill;
use crate::settings::Files;
use crate::wal::record::{Identity, Record};
use kymo_rrd::Header;
use kymo_sys::disk::{DiskFile, RecordLock};
use std::path::Path;
use std::sync::Arc;

/// Number of cells of a file that are compared at once.
const PIECE: u64 = 1 << 16;

/// A chunk that no thread saves until this is dropped.
pub(crate) struct Held<'a> {
    inner: &'a Inner,
    chunk: u32,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(chunk) = self.inner.lock().chunks.get_mut(self.chunk) {
            chunk.saving = false;
        }
        self.inner.changed.notify_all();
    }
}

/// A changed file and the series that it belonged to.
struct Changed {
    id: u32,
    path: Arc<[u8]>,
    file: Box<dyn DiskFile>,
    /// True if no other process holds a lock on it.
    exclusive: bool,
    seen: Identity,
    theirs: schema::SeriesState,
}

impl Inner {
    /// Checks if a series' file is as the store left it, and takes in changes. Returns the series that is valid afterwards.
    pub(crate) fn verified(&self, id: u32) -> Result<u32, FileError> {
        let (path, left) = {
            let state = self.lock();
            let Some(series) = state.series.get(id) else {
                return Ok(id);
            };
            let is_without = self.is_without_files() || !series.may_have_file();
            if is_without || !series.file.is_at_rest() {
                return Ok(id);
            }
            (series.path.clone(), series.file.left())
        };
        if left.is_none() {
            // The series never had a file, so a file of that name is not its own.
            return Ok(id);
        }
        let stat = self.tree.stat(names::path(&path)).map_err(open_error);
        let is_missing = match &stat {
            Err(FileError::NoSuchFile) => true,
            // An empty file is a placeholder.
            Ok(stat) => stat.size_bytes == 0 && self.settings.files == Files::OnDemand,
            Err(_) => false,
        };
        if is_missing && self.miss_file(id) {
            return Ok(id);
        }
        let stat = stat?;
        if left == Some(identity(&stat)) {
            return Ok(id);
        }
        let state = self.lock();
        let moved = state
            .series
            .get(id)
            .is_none_or(|series| series.file.is_busy() || series.file.left() != left);
        drop(state);
        if moved {
            return Ok(id);
        }
        self.take_in(&mut Worker::default(), id)
    }

    /// Notes that a series' file is missing. Returns true if the
    /// series continues without; the file is created again on request.
    pub(crate) fn miss_file(&self, id: u32) -> bool {
        let mut state = self.lock();
        let Some(series) = state.series.get_mut(id) else {
            return false;
        };
        if series.file.left().is_none() {
            return true;
        }
        series.file.miss(self.clock.mono_ns());
        let goes_on = self.outlives_file(series);
        if goes_on {
            series.file.remove();
        }
        goes_on
    }

    /// Takes in the changes of a file. Returns the series that is valid afterwards.
    pub(crate) fn take_in(&self, worker: &mut Worker, id: u32) -> Result<u32, FileError> {
        let Some(reserved) = self.reserve(id)? else {
            return Err(FileError::NoSuchFile);
        };
        let path = self.lock().series.get(id).map(|series| series.path.clone());
        let changed = self.changed(id, path.ok_or(FileError::NoSuchFile)?)?;
        let taken = match self.what_changed(&changed)? {
            Difference::Same => self.note_left(&changed).map(|()| id),
            Difference::Tuned(edits) if changed.exclusive => {
                self.take_edits(worker, &changed, &edits)
            }
            Difference::Tuned(_) => Err(FileError::Locked),
            Difference::Other => {
                let header = &changed.theirs.header;
                self.adopt(&changed.path, header, &*changed.file, changed.seen)
            }
        };
        if let (Ok(new), mut state) = (&taken, self.lock())
            && let Some(series) = state.series.get_mut(*new)
        {
            series.file.release();
        }
        drop(reserved);
        taken
    }

    /// Moves a series whose file was renamed: its old path does not exist, and the file at this path is the one that the
    /// store left. The identity alone is not enough, since the inode may be reused.
    pub(crate) fn moved(&self, id: u32, path: &[u8], seen: Identity) -> Result<bool, FileError> {
        let Some(_reserved) = self.reserve(id)? else {
            return Ok(false);
        };
        let left = self
            .lock()
            .series
            .get(id)
            .and_then(|series| series.file.left());
        if left != Some(seen) {
            let changed = self.changed(id, path.into())?;
            if self.what_changed(&changed)? == Difference::Other {
                return Ok(false);
            }
        }
        let mut state = self.lock();
        state.prepare(&*self.clock).map_err(FileError::Journal)?;
        let now_ns = self.clock.mono_ns();
        state.put(id, &Record::Renamed { id, path }, now_ns);
        state.journal.commit().map_err(FileError::Journal)?;
        state.series.rename_file(id, path);
        Ok(true)
    }

    fn changed(&self, id: u32, path: Arc<[u8]>) -> Result<Changed, FileError> {
        let mut file = match open_locked(&*self.tree, &path, RecordLock::Exclusive) {
            Err(FileError::Access(_)) => None,
            file => file?,
        };
        let exclusive = file.is_some();
        if file.is_none() {
            file = open_locked(&*self.tree, &path, RecordLock::Shared)?;
        }
        let file = file.ok_or(FileError::Locked)?;
        let stat = file.metadata().map_err(FileError::Io)?;
        let header = read_header(&*file, stat.size_bytes, &mut Vec::new(), &path)?;
        let seasons = seasons(&*file, &header)?;
        Ok(Changed {
            id,
            path,
            file,
            exclusive,
            seen: identity(&stat),
            theirs: schema::SeriesState { header, seasons },
        })
    }

    fn what_changed(&self, changed: &Changed) -> Result<Difference, FileError> {
        let (schema, slot, blocks, file) = {
            let state = self.lock();
            let series = state.series.get(changed.id).ok_or(FileError::NoSuchFile)?;
            let chunk = state
                .chunks
                .get(series.chunk)
                .ok_or(FileError::NoSuchFile)?;
            let blocks = self.segments.blocks(series.chunk);
            (chunk.schema.clone(), series.slot, blocks, series.file)
        };
        let torn = file.was_cut_short(&changed.seen);
        let found = diff::look(&schema, file.live(), &changed.theirs, torn);
        if torn || found == Difference::Other {
            return Ok(found);
        }
        let header = &changed.theirs.header;
        match has_rows(&blocks, &schema, slot, &*changed.file, header)? {
            true => Ok(found),
            false => Ok(Difference::Other),
        }
    }

    /// Notes the new identity of a file whose content is as the store left it.
    fn note_left(&self, changed: &Changed) -> Result<(), FileError> {
        let mut state = self.lock();
        let Some(series) = state.series.get(changed.id) else {
            return Ok(());
        };
        let (upto, live) = (series.file.upto(), series.file.live());
        state.prepare(&*self.clock).map_err(FileError::Journal)?;
        state.put_end(changed.id, upto, changed.seen, live);
        state.journal.commit().map_err(FileError::Journal)?;
        state.series.confirm(changed.id, changed.seen);
        Ok(())
    }

    /// Brings a tuned file up to date from blocks, with its new definitions, and begins a new series for it.
    fn take_edits(
        &self,
        worker: &mut Worker,
        changed: &Changed,
        edits: &Edits,
    ) -> Result<u32, FileError> {
        let id = changed.id;
        let chunk = self.lock().series.get(id).map(|series| series.chunk);
        // Values that are being saved now would be in neither series.
        let held = self.hold(chunk.ok_or(FileError::NoSuchFile)?);
        let mut job = {
            let state = self.lock();
            let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
            // These values were in the file when it was tuned.
            let until = series.values.applied.max(series.file.upto());
            FileJob::new(id, series, self.snapshot(&state, series, until), until)
        };
        let announced = self.announce(std::slice::from_mut(&mut job));
        let written = announced
            .map_err(FileError::Journal)
            .and_then(|()| self.write_merged(worker, &mut job, changed, edits));
        let mut state = self.lock();
        if let Some(epoch) = job.started {
            state.epochs.end_write(epoch);
        }
        let (series, seen) = match written {
            Ok(written) => written,
            Err(error) => {
                let _full = state.prepare(&*self.clock);
                not_done(&mut state, &job, &error, self.clock.mono_ns());
                let _the_next_start_looks_again = state.journal.commit();
                return Err(error);
            }
        };
        drop(state);
        let beginning = Beginning {
            base: Some(series.header.last_up),
            seen: Some(seen),
            has: job.target,
            ..Beginning::of(Cause::Tuned)
        };
        let begun = self.adopt_as(&changed.path, &series.header, series.seasons, beginning);
        drop(held);
        begun
    }

    fn write_merged(
        &self,
        worker: &mut Worker,
        job: &mut FileJob,
        changed: &Changed,
        edits: &Edits,
    ) -> Result<(schema::SeriesState, Identity), FileError> {
        let snapshot = job.snapshot.take().ok_or(FileError::NoSuchFile)?;
        let base = self.base_of(&snapshot)?;
        let mut view = snapshot.view(&mut worker.applier, self.rrd_now(), base)?;
        let theirs = &changed.theirs.header;
        let merged = edits.apply(&mut view.state, theirs);
        merged.map_err(|error| FileError::Rrd(error.text))?;
        let (file, from) = (&*changed.file, job.file.from());
        worker.rows.write(&mut view, file, from, None)?;
        // From now on the file has rows that no block has.
        changed.file.sync_data().map_err(FileError::Io)?;
        let folder = names::path(&job.path).parent().unwrap_or(Path::new("/"));
        self.disk.sync_dir(folder).map_err(FileError::Io)?;
        let stat = changed.file.metadata().map_err(FileError::Io)?;
        Ok((view.state, identity(&stat)))
    }

    /// Waits until no thread saves a chunk, and holds it.
    pub(crate) fn hold(&self, chunk: u32) -> Held<'_> {
        let mut state = self.lock();
        while let Some(known) = state.chunks.get_mut(chunk) {
            if !known.saving {
                known.saving = true;
                break;
            }
            state = self.wait(state);
        }
        Held { inner: self, chunk }
    }
}

impl Snapshot {
    /// Returns true if the file has the same rows as the blocks, up to the file's last update.
    pub(crate) fn has_rows_of(
        &self,
        file: &dyn DiskFile,
        header: &Header,
    ) -> Result<bool, FileError> {
        has_rows(self.blocks(), self.schema(), self.slot(), file, header)
    }
}

/// Returns true if the file has the same rows as the blocks, up to the file's last update.
fn has_rows(
    blocks: &[Placed],
    schema: &schema::Schema,
    slot: u8,
    file: &dyn DiskFile,
    header: &Header,
) -> Result<bool, FileError> {
    let (offset, width) = (header.size_bytes(), schema.width as u64);
    let archives = schema.archives.iter().enumerate();
    for (archive, about) in archives.filter(|(_, about)| !about.seasonal) {
        let newest = schema.newest(archive, header.last_up);
        let mut at = (newest + 1).saturating_sub(about.row_cnt);
        while at <= newest {
            let row = row_of(at, newest, header.cur_row[archive], about.row_cnt);
            let run = (newest + 1 - at).min(about.row_cnt - row);
            let run = run.min((PIECE / width.max(1)).max(1));
            let mut theirs = vec![0.0; (run * width) as usize];
            read_cells(file, offset, about.base + row * width, &mut theirs)
                .map_err(|error| FileError::Rrd(error.text))?;
            // Rows that no block has keep the file's values.
            let mut ours = theirs.clone();
            fill(blocks, schema, (slot, archive), at, &mut ours).map_err(FileError::Io)?;
            let mut cells = ours.iter().zip(&theirs);
            if cells.any(|(ours, theirs)| ours.to_bits() != theirs.to_bits()) {
                return Ok(false);
            }
            at += run;
        }
    }
    Ok(true)
}
