//! Files that are not as we left them: what others tuned is merged into the group, anything else is a file that counts as
//! it is.

use crate::adopt::{Beginning, Cause};
use crate::drum::view::row_of;
use crate::drum::{Placed, fill, shape};
use crate::edits::{self, Edits, Found};
use crate::entry::{Entry, Identity};
use crate::error::FileError;
use crate::files::{Job, Worker, base_of, is_ours, not_done, write_rows};
use crate::names;
use crate::rrd_file::{identity, open_error, open_locked, read_cells, read_header, seasons};
use crate::store::Inner;
use kymo_rrd::Header;
use kymo_sys::disk::{DiskFile, RecordLock};
use std::path::Path;
use std::sync::Arc;

/// Cells of a file that are compared at once.
const PIECE: u64 = 1 << 16;

/// A chunk that nobody saves until this is dropped.
struct Held<'a> {
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

/// A file that others changed, and the group that it was.
struct Changed {
    id: u32,
    path: Arc<[u8]>,
    file: Box<dyn DiskFile>,
    /// Nobody else has a lock on it.
    exclusive: bool,
    seen: Identity,
    theirs: shape::Group,
}

impl Inner {
    /// Whether a group's file is the one we left; if others changed it, that is taken in. The group that counts.
    pub(crate) fn verified(&self, id: u32) -> Result<u32, FileError> {
        let (path, left) = {
            let state = self.lock();
            let Some(group) = state.groups.get(id) else {
                return Ok(id);
            };
            if group.busy || group.redo || self.settings.files.is_none() {
                return Ok(id);
            }
            (group.path.clone(), group.left)
        };
        let stat = self.tree.stat(names::path(&path)).map_err(open_error);
        if left.is_none() {
            // It never had one: what may be there is none of its own.
            return Ok(id);
        }
        if let (Err(FileError::NoSuchFile), Some(group)) = (&stat, self.lock().groups.get_mut(id)) {
            group.gone_since.get_or_insert(self.clock.mono_ns());
        }
        let stat = stat?;
        if left == Some(identity(&stat)) {
            return Ok(id);
        }
        let state = self.lock();
        let moved = state
            .groups
            .get(id)
            .is_none_or(|group| group.busy || group.left != left);
        drop(state);
        if moved {
            return Ok(id);
        }
        self.take_in(&mut Worker::default(), id)
    }

    /// A file that is no longer as we left it. The group that counts.
    pub(crate) fn take_in(&self, worker: &mut Worker, id: u32) -> Result<u32, FileError> {
        let Some(reserved) = self.reserve(id)? else {
            return Err(FileError::NoSuchFile);
        };
        let path = self.lock().groups.get(id).map(|group| group.path.clone());
        let changed = self.changed(id, path.ok_or(FileError::NoSuchFile)?)?;
        let taken = match self.what_changed(&changed)? {
            Found::Same => self.note_left(&changed).map(|()| id),
            Found::Tuned(edits) if changed.exclusive => self.take_edits(worker, &changed, &edits),
            Found::Tuned(_) => Err(FileError::Locked),
            Found::Other => {
                let header = &changed.theirs.header;
                self.adopt(&changed.path, header, &*changed.file, changed.seen)
            }
        };
        if let (Ok(new), mut state) = (&taken, self.lock())
            && let Some(group) = state.groups.get_mut(*new)
        {
            group.busy = false;
        }
        drop(reserved);
        taken
    }

    /// The group whose file was renamed and is at this path now: what was its path names nothing, and this is what we left
    /// there. A number of a file that is gone may be another's.
    pub(crate) fn moved(&self, id: u32, path: &[u8], seen: Identity) -> Result<bool, FileError> {
        let Some(_reserved) = self.reserve(id)? else {
            return Ok(false);
        };
        let left = self.lock().groups.get(id).and_then(|group| group.left);
        if left != Some(seen) {
            let changed = self.changed(id, path.into())?;
            if self.what_changed(&changed)? == Found::Other {
                return Ok(false);
            }
        }
        let mut state = self.lock();
        state.prepare(&*self.clock).map_err(FileError::Journal)?;
        let now_ns = self.clock.mono_ns();
        state.put(id, &Entry::Renamed { id, path }, now_ns);
        state.journal.commit().map_err(FileError::Journal)?;
        state.groups.rename_file(id, path);
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
            theirs: shape::Group { header, seasons },
        })
    }

    fn what_changed(&self, changed: &Changed) -> Result<Found, FileError> {
        let (shape, slot, blocks, live, torn) = {
            let state = self.lock();
            let group = state.groups.get(changed.id).ok_or(FileError::NoSuchFile)?;
            let chunk = state.chunks.get(group.chunk).ok_or(FileError::NoSuchFile)?;
            let torn = group.redo && is_ours(group.left, group.writing, &changed.seen);
            let blocks = self.drum.blocks(group.chunk);
            (chunk.shape.clone(), group.slot, blocks, group.live, torn)
        };
        let found = edits::look(&shape, live, &changed.theirs, torn);
        if torn || found == Found::Other {
            return Ok(found);
        }
        let header = &changed.theirs.header;
        match has_rows(&blocks, &shape, slot, &*changed.file, header)? {
            true => Ok(found),
            false => Ok(Found::Other),
        }
    }

    /// Others left it as it was, or put the same in its place.
    fn note_left(&self, changed: &Changed) -> Result<(), FileError> {
        let mut state = self.lock();
        let Some(group) = state.groups.get(changed.id) else {
            return Ok(());
        };
        let (upto, live) = (group.upto, group.live);
        state.prepare(&*self.clock).map_err(FileError::Journal)?;
        state.put_end(changed.id, upto, changed.seen, live);
        state.journal.commit().map_err(FileError::Journal)?;
        state.groups.leave(changed.id, changed.seen);
        if let Some(group) = state.groups.get_mut(changed.id) {
            group.gone_since = None;
        }
        Ok(())
    }

    /// The file is brought to what blocks have of its group, with its new definitions, and a group begins there.
    fn take_edits(
        &self,
        worker: &mut Worker,
        changed: &Changed,
        edits: &Edits,
    ) -> Result<u32, FileError> {
        let id = changed.id;
        let chunk = self.lock().groups.get(id).map(|group| group.chunk);
        // What is on its way into a block now would be nowhere.
        let held = self.hold(chunk.ok_or(FileError::NoSuchFile)?);
        let mut job = {
            let state = self.lock();
            let group = state.groups.get(id).ok_or(FileError::NoSuchFile)?;
            // What is in the file was there when it was tuned.
            let until = group.applied.max(group.upto);
            Job::new(id, group, self.snapshot(&state, group, until), until)
        };
        let announced = self.announce(std::slice::from_mut(&mut job));
        let written = announced
            .map_err(FileError::Journal)
            .and_then(|()| self.write_merged(worker, &mut job, changed, edits));
        let mut state = self.lock();
        if let Some(epoch) = job.started {
            state.cycles[(epoch & 1) as usize] -= 1;
        }
        let (group, seen) = match written {
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
            base: Some(group.header.last_up),
            seen: Some(seen),
            cause: Cause::Tuned,
            has: job.target,
        };
        let begun = self.adopt_as(&changed.path, &group.header, group.seasons, beginning);
        drop(held);
        begun
    }

    fn write_merged(
        &self,
        worker: &mut Worker,
        job: &mut Job,
        changed: &Changed,
        edits: &Edits,
    ) -> Result<(shape::Group, Identity), FileError> {
        let snapshot = job.snapshot.take().ok_or(FileError::NoSuchFile)?;
        let base = base_of(&snapshot, &job.path, self)?;
        let mut view = snapshot.view(&mut worker.applier, self.rrd_now(), base)?;
        let theirs = &changed.theirs.header;
        let merged = edits.apply(&mut view.group, theirs);
        merged.map_err(|error| FileError::Rrd(error.text))?;
        write_rows(worker, &mut view, &*changed.file, job.from, None)?;
        // From now on it has what no block has.
        changed.file.sync_data().map_err(FileError::Io)?;
        let folder = names::path(&job.path).parent().unwrap_or(Path::new("/"));
        self.disk.sync_dir(folder).map_err(FileError::Io)?;
        let stat = changed.file.metadata().map_err(FileError::Io)?;
        Ok((view.group, identity(&stat)))
    }

    /// Waits until nobody saves a chunk.
    fn hold(&self, chunk: u32) -> Held<'_> {
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

/// Whether a file has the rows that blocks have up to its last update.
fn has_rows(
    blocks: &[Placed],
    shape: &shape::Shape,
    slot: u8,
    file: &dyn DiskFile,
    header: &Header,
) -> Result<bool, FileError> {
    let (offset, width) = (header.size_bytes(), shape.width as u64);
    let archives = shape.archives.iter().enumerate();
    for (archive, about) in archives.filter(|(_, about)| !about.seasonal) {
        let newest = shape.newest(archive, header.last_up);
        let mut at = (newest + 1).saturating_sub(about.row_cnt);
        while at <= newest {
            let row = row_of(at, newest, header.cur_row[archive], about.row_cnt);
            let run = (newest + 1 - at).min(about.row_cnt - row);
            let run = run.min((PIECE / width.max(1)).max(1));
            let mut theirs = vec![0.0; (run * width) as usize];
            read_cells(file, offset, about.base + row * width, &mut theirs)
                .map_err(|error| FileError::Rrd(error.text))?;
            // Rows that no block has stay what they are.
            let mut ours = theirs.clone();
            fill(blocks, shape, (slot, archive), at, &mut ours).map_err(FileError::Io)?;
            let mut cells = ours.iter().zip(&theirs);
            if cells.any(|(ours, theirs)| ours.to_bits() != theirs.to_bits()) {
                return Ok(false);
            }
            at += run;
        }
    }
    Ok(true)
}
