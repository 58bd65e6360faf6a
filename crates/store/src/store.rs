//! The store's face for worker threads: what opens files, waits for locks and disks.

use crate::adopt::{Beginning, Cause};
use crate::drum::Drum;
use crate::drum::apply::Applier;
use crate::entry::{Entry, Identity};
use crate::error::{Error, FileError};
use crate::files::{Worker, base_of, whole};
use crate::groups::Group;
use crate::names;
use crate::read::{FileRows, Opened, SeriesRows, Source};
use crate::recent::Recent;
use crate::recover;
use crate::rrd_file::{identity, open_error, open_locked, read_header, rrd_error};
use crate::settings::Settings;
use crate::state::State;
use crate::turn::{Position, Turn};
use kymo_rrd::header::MEMORY_CELLS_MAX;
use kymo_rrd::{Rrd, UNKNOWN};
use kymo_sys::clock::Clock;
use kymo_sys::disk::{Disk, DiskFile, Metadata, NameKind, RecordLock};
use kymo_sys::tree::{Access, Existing, Safe, Tree};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Between two looks at a lock that somebody else holds.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The journal, what it holds, and the files. Clones are the same store.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

/// What the threads of a store share.
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tree: Box<dyn Tree>,
    pub(crate) drum: Drum,
    pub(crate) recent: Recent,
    state: Mutex<State>,
    /// A file is no longer busy, a sync or a checkpoint ended.
    pub(crate) changed: Condvar,
    /// FLUSHALL came.
    pub(crate) flushes: Condvar,
    /// Locked as long as the store is open: its folder, and the base.
    _locks: Vec<Box<dyn DiskFile>>,
}

/// What was found at start, for the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Values taken back into memory.
    pub values: u64,
    /// Files they belong to.
    pub files: u64,
    /// Files that were written once more because a write may have been cut short.
    pub redone: u64,
    /// Lines for the log: damage, refused journals of a stock daemon and why.
    pub notices: Vec<String>,
}

/// Numbers for STATS; the daemon adds those of the requests it saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Files that are due.
    pub queue_length: u64,
    /// Writes of files.
    pub updates_written: u64,
    /// Values in them.
    pub data_sets_written: u64,
    /// Files known.
    pub files: u64,
    /// Bytes written to the journal.
    pub journal_bytes: u64,
    /// Journal files begun after the first.
    pub journal_rotate: u64,
    /// Values that were acknowledged but that the file's definition does not take; said in the log.
    pub values_refused: u64,
    /// Writes put off because somebody else held the file's lock.
    pub locks_met: u64,
    /// Journal files given up after a failed write or sync.
    pub journals_given_up: u64,
}

/// Whether a file must be brought up to date before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// Pending values are written first (FETCH, DUMP).
    Flushed,
    /// The file as it is (INFO, FIRST, LAST).
    AsIs,
}

/// What FLUSH found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// `Successfully flushed %s.`: the file is current (or suspended).
    Done,
    /// `Nothing to flush: %s.`: it exists, and nothing is known of it.
    Nothing,
}

/// A file that is reserved for one thread until this is dropped.
pub(crate) struct Reserved<'a> {
    inner: &'a Inner,
    id: u32,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        if let Some(group) = state.groups.get_mut(self.id) {
            group.busy = false;
        }
        self.inner.changed.notify_all();
    }
}

impl Store {
    /// Opens the store: takes its lock, replays journals, redoes what a crash may have torn.
    pub fn open(
        settings: Settings,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Store, Replayed), Error> {
        recover::open(settings, disk, clock)
    }

    pub(crate) fn new(
        settings: Settings,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        tree: Box<dyn Tree>,
        drum: Drum,
        state: State,
        locks: Vec<Box<dyn DiskFile>>,
    ) -> Store {
        Store {
            inner: Arc::new(Inner {
                settings,
                disk,
                clock,
                tree,
                drum,
                recent: Recent::default(),
                state: Mutex::new(state),
                changed: Condvar::new(),
                flushes: Condvar::new(),
                _locks: locks,
            }),
        }
    }

    /// Takes the lock for a turn.
    pub fn turn(&self) -> Turn<'_> {
        Turn::new(&self.inner)
    }

    /// A name as replies show it: base + `/` + name, or the name if it is absolute.
    pub fn spelled(&self, name: &[u8]) -> Vec<u8> {
        names::spelled(&self.inner.settings, name)
    }

    /// `-B`'s look at the text of a name, as rrdcached does it; links are checked when the file is opened.
    pub fn allowed(&self, name: &[u8]) -> bool {
        names::allowed(&self.inner.settings, name)
    }

    /// Makes a file known: stat, access, header. After this a turn's `update` takes its values.
    pub fn touch(&self, name: &[u8]) -> Result<(), FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        if inner.settings.files.is_none() {
            let id = inner.any(name, &spelled).ok_or(FileError::NoSuchFile)?;
            inner.remember(id);
            inner.lock().groups.spell(id, name);
            return Ok(());
        }
        let path = inner
            .tree
            .resolve(names::path(&spelled))
            .map_err(stat_error)?;
        let stat = inner.tree.stat(&path).map_err(stat_error)?;
        if stat.kind != NameKind::File {
            return Err(FileError::NotRegular);
        }
        let file = inner.tree.open(&path, Access::Write).map_err(open_error)?;
        let header = read_header(&*file, stat.size_bytes, &mut Vec::new(), &spelled)?;
        if header.last_up < 1 {
            return Err(FileError::BadStamp);
        }
        let seen = identity(&stat);
        let path = path.as_os_str().as_bytes();
        let known = match inner.other_name(&stat, path) {
            Some(id) => Some(id),
            None => inner.lock().groups.by_path(path),
        };
        let id = match known {
            Some(id) => inner.returned(id, seen)?,
            None => inner.adopt(path, &header, &*file, seen)?,
        };
        inner.lock().groups.spell(id, name);
        Ok(())
    }

    /// FLUSH: the file on disk is current when this returns.
    pub fn flush(&self, name: &[u8]) -> Result<Flushed, FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        if let Some(id) = inner.any(name, &spelled) {
            let known = inner.lock().groups.is_known(id);
            let flushed = inner.flush_id(id);
            // Of a forgotten one nobody waits for more than the file.
            return match known {
                true => flushed.map(|()| Flushed::Done),
                false => flushed.map(|()| Flushed::Nothing),
            };
        }
        if inner.settings.files.is_none() {
            return Err(FileError::NoSuchFile);
        }
        match inner.tree.stat(names::path(&spelled)) {
            Ok(stat) if stat.kind == NameKind::File => Ok(Flushed::Nothing),
            _ => Err(FileError::NoSuchFile),
        }
    }

    /// Opens a file for FETCH, INFO, FIRST, LAST.
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
            rows: SeriesRows(Source::File(FileRows { file, offset })),
        })
    }

    /// The whole file, flushed, for DUMP and as a source or template of CREATE.
    pub fn load(&self, name: &[u8]) -> Result<Rrd, FileError> {
        // Whoever looks at the file afterwards finds the same; what is wrong with it is said by the reading.
        let _current = self.flush(name);
        let opened = self.read(name, Fresh::Flushed)?;
        let mut cells = vec![0.0; opened.header.cell_count() as usize];
        let mut rows = opened.rows;
        kymo_rrd::Rows::read(&mut rows, 0, &mut cells)
            .map_err(|error| FileError::Rrd(error.text))?;
        Ok(Rrd {
            header: opened.header,
            cells,
        })
    }

    /// CREATE's first step: the folder is there, or may be made (`-R`).
    pub fn make_folder(&self, name: &[u8], may: bool) -> Result<(), FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        let cut = spelled.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        let folder = &spelled[..cut.max(1)];
        match inner.tree.stat(names::path(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            _ => return Ok(()),
        }
        if !may {
            return Err(FileError::NoFolder(folder.to_vec()));
        }
        let made = inner.tree.make_folders(names::path(&names::normal(folder)));
        made.map_err(|error| FileError::MakeFolder(folder.to_vec(), error))
    }

    /// CREATE's last step: puts the file in place with one rename. `overwrite` as without `-O`.
    pub fn install(&self, name: &[u8], rrd: &Rrd, overwrite: bool) -> Result<(), FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        let reserved = inner.any(name, &spelled).map(|id| inner.reserve(id));
        let reserved = reserved.transpose()?.flatten();
        let blank = rrd
            .cells
            .iter()
            .all(|cell| cell.to_bits() == UNKNOWN.to_bits());
        let (existing, safe) = (
            if overwrite {
                Existing::Replace
            } else {
                Existing::Keep
            },
            if blank { Safe::Unsynced } else { Safe::Synced },
        );
        let path = names::path(&spelled);
        if inner.settings.files.is_none() {
            return inner.install_without(&spelled, rrd, overwrite);
        }
        let bytes = match blank {
            // A third of what a new file costs would be its unknown cells, one by one.
            true => {
                let mut bytes = Vec::with_capacity(rrd.header.file_size_bytes() as usize);
                rrd.header.encode(&mut bytes);
                bytes.extend_from_slice(&UNKNOWN.to_le_bytes().repeat(rrd.cells.len()));
                bytes
            }
            false => rrd.to_bytes(),
        };
        let put = inner.tree.put(path, &bytes, existing, safe);
        let seen = put.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => FileError::Exists,
            _ => match error.raw_os_error() {
                Some(18) => FileError::Outside,
                _ => FileError::Io(error),
            },
        })?;
        // Its name is no link: the new file has taken its place.
        let (folder, last) = (path.parent(), path.file_name());
        let folder = inner.tree.resolve(folder.unwrap_or(Path::new("/")));
        let resolved = folder.map_err(open_error)?.join(last.unwrap_or_default());
        inner.take_over(&resolved, rrd, (blank, Cause::Created), &seen, reserved)
    }

    /// TUNE: `edit` makes another file of the file, under its lock; pending values stay pending.
    pub fn rewrite(
        &self,
        name: &[u8],
        edit: &mut dyn FnMut(Rrd) -> Result<Rrd, kymo_rrd::Error>,
    ) -> Result<(), FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        let known = inner.any(name, &spelled);
        if inner.settings.files.is_none() {
            return inner.rewrite_without(known.ok_or(FileError::NoSuchFile), edit);
        }
        let is_behind = |id| inner.lock().groups.get(id).is_some_and(Group::is_behind);
        let known = match known {
            Some(id) => {
                // Others may have changed it, and what counts as written must be in it.
                let id = inner.verified_soon(id)?;
                if is_behind(id) {
                    inner.flush_id(id)?;
                }
                inner.any(name, &spelled)
            }
            None => None,
        };
        let reserved = known.map(|id| inner.reserve(id));
        let reserved = reserved.transpose()?.flatten();
        if known.is_some_and(is_behind) {
            let text = "its file is behind, and it is suspended: RESUME it first";
            return Err(FileError::Rrd(text.into()));
        }
        let resolved = inner.tree.resolve(names::path(&spelled));
        let resolved = resolved.map_err(|error| opening(&spelled, open_error(error)))?;
        let path = resolved.as_os_str().as_bytes();
        let file = inner.locked(path, RecordLock::Exclusive);
        let file = file.map_err(|error| opening(&spelled, error))?;
        let stat = file.metadata().map_err(FileError::Io)?;
        let header = read_header(&*file, stat.size_bytes, &mut Vec::new(), &spelled)?;
        if header.cell_count() > MEMORY_CELLS_MAX {
            let text = format!("has more than {MEMORY_CELLS_MAX} cells");
            return Err(rrd_error(&spelled, &text));
        }
        let mut bytes = vec![0; header.file_size_bytes() as usize];
        let count = file.read_at(&mut bytes, 0).map_err(FileError::Io)?;
        let rrd = Rrd::parse(&bytes[..count]).map_err(|error| FileError::Rrd(error.text))?;
        let rrd = edit(rrd).map_err(|error| FileError::Rrd(error.text))?;
        let bytes = rrd.to_bytes();
        let seen = match stat.links > 1 && bytes.len() as u64 == stat.size_bytes {
            // Another name of it must go on to be the same file.
            true => inner.write_over(reserved.as_ref().map(|group| group.id), &*file, &bytes)?,
            false => inner
                .tree
                .put(&resolved, &bytes, Existing::Replace, Safe::Synced)
                .map_err(FileError::Io)?,
        };
        match known {
            Some(_) => inner.take_over(&resolved, &rrd, (false, Cause::Tuned), &seen, reserved),
            None => Ok(()),
        }
    }

    /// Whether a name stands for a series that has no file, because none has.
    pub fn has(&self, name: &[u8]) -> bool {
        let inner = &*self.inner;
        self.is_without_files()
            && inner
                .any(name, &names::spelled(&inner.settings, name))
                .is_some()
    }

    /// Whether there are no .rrd files.
    pub fn is_without_files(&self) -> bool {
        self.inner.settings.files.is_none()
    }

    /// LIST: what rrd_list_r says of a path (already joined to the base).
    pub fn list(&self, path: &[u8], recursive: bool) -> io::Result<Vec<Vec<u8>>> {
        match self.is_without_files() {
            true => Ok(self
                .inner
                .lock()
                .groups
                .below(&names::normal(path), recursive)),
            false => crate::list::list(&*self.inner.tree, path, recursive),
        }
    }

    /// Waits until everything before `position` is on the disk: group commit, whoever comes first syncs.
    pub fn durable(&self, position: Position) -> io::Result<()> {
        self.inner.sync_to(position.0)
    }

    /// Ends the store's work: `flush` writes everything first (`-F`, USR1). The journal is synced in any case.
    pub fn shutdown(&self, flush: bool) -> io::Result<()> {
        if flush {
            let mut turn = self.turn();
            turn.resume_all();
            turn.flush_all();
            turn.commit()?;
            self.flush_due();
            self.inner.save_all();
            self.inner.checkpoint();
        }
        self.inner.sync_to(u64::MAX)
    }
}

impl Inner {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, Duration::from_millis(100));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// A name as a path that may be asked for.
    pub(crate) fn checked(&self, name: &[u8]) -> Result<Vec<u8>, FileError> {
        if !names::allowed(&self.settings, name) {
            return Err(FileError::Outside);
        }
        let spelled = names::spelled(&self.settings, name);
        match names::refused(&spelled) {
            Some(number) => Err(FileError::Name(number)),
            None => Ok(spelled),
        }
    }

    /// The group a name stands for, also by a name it was not touched by; forgotten ones, too.
    pub(crate) fn any(&self, name: &[u8], spelled: &[u8]) -> Option<u32> {
        let found = self.lock().groups.find(name, || spelled.to_vec());
        if found.is_some() || self.settings.files.is_none() {
            return found;
        }
        let path = names::path(spelled);
        let stat = self.tree.stat(path).ok()?;
        let path = self.tree.resolve(path).ok()?;
        let path = path.as_os_str().as_bytes();
        let by_path = self.lock().groups.by_path(path);
        match by_path {
            Some(id) => Some(id),
            None => self.other_name(&stat, path),
        }
    }

    /// The file that is known by another of its names, or by the one that it had before.
    fn other_name(&self, stat: &Metadata, path: &[u8]) -> Option<u32> {
        let (device, inode) = (stat.device, stat.inode);
        let (id, known) = {
            let state = self.lock();
            let id = state.groups.by_inode(device, inode)?;
            (id, state.groups.get(id)?.path.clone())
        };
        if *known == *path {
            return Some(id);
        }
        match self.tree.stat(names::path(&known)) {
            // The number may be another file's by now.
            Ok(now) => ((now.device, now.inode) == (device, inode)).then_some(id),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let taken = self.lock().groups.by_path(path).is_some();
                (!taken && self.moved(id, path, identity(stat)).unwrap_or(false)).then_some(id)
            }
            Err(_) => None,
        }
    }

    fn flush_id(&self, id: u32) -> Result<(), FileError> {
        let deadline = self.lock_deadline();
        let mut worker = Worker::default();
        let mut id = id;
        loop {
            if self.settings.files.is_none() {
                return self.show(id);
            }
            id = self.verified_soon(id)?;
            let path = {
                let mut state = self.lock();
                let Some(group) = state.groups.get_mut(id) else {
                    return Ok(());
                };
                if !group.busy && (group.suspended || group.is_current()) {
                    return Ok(());
                }
                if group.busy {
                    if self.clock.mono_ns() >= deadline {
                        return Err(FileError::Locked);
                    }
                    drop(self.wait(state));
                    continue;
                }
                group.path.clone()
            };
            // A probe: the journal need not hear of each look at a lock.
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

    /// [`Inner::verified`], waiting for a lock as long as a FLUSH does.
    fn verified_soon(&self, id: u32) -> Result<u32, FileError> {
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

    /// All values of a group count as written from now on, and the journal knows.
    fn show(&self, id: u32) -> Result<(), FileError> {
        self.show_with(&mut self.lock(), id)
    }

    pub(crate) fn show_with(&self, state: &mut State, id: u32) -> Result<(), FileError> {
        let Some(group) = state.groups.get_mut(id).filter(|group| !group.suspended) else {
            return Ok(());
        };
        if group.last <= group.shown {
            return Ok(());
        }
        let now_ns = self.clock.mono_ns();
        group.show(now_ns, &mut state.stats);
        let upto = group.shown;
        state.prepare(&*self.clock).map_err(FileError::Journal)?;
        state.put(id, &Entry::Shown { id, upto }, now_ns);
        state.journal.commit().map(drop).map_err(FileError::Journal)
    }

    /// A group as it is now, or as far as it counts as written.
    fn read_id(&self, id: u32, fresh: Fresh) -> Result<Opened, FileError> {
        let id = match self.verified(id) {
            // Whoever reads does not wait.
            Err(FileError::Locked) => id,
            verified => verified?,
        };
        if fresh == Fresh::Flushed {
            self.show(id)?;
        }
        let snapshot = {
            let state = self.lock();
            let group = state.groups.get(id).ok_or(FileError::NoSuchFile)?;
            self.snapshot(&state, group, group.shown)
        };
        let snapshot = snapshot.ok_or(FileError::NoSuchFile)?;
        let base = base_of(&snapshot, &snapshot.path, self)?;
        let mut applier = Applier::default();
        let view = snapshot.view(&mut applier, self.rrd_now(), base)?;
        Ok(Opened {
            header: view.group.header.clone(),
            rows: SeriesRows(Source::Drum(Box::new(view))),
        })
    }

    /// A file that was touched and whose group is known: it counts again, and maybe it is another file.
    fn returned(&self, id: u32, seen: Identity) -> Result<u32, FileError> {
        let other = {
            let state = self.lock();
            let group = state.groups.get(id).ok_or(FileError::NoSuchFile)?;
            !group.busy && !group.redo && group.left != Some(seen)
        };
        let id = match other {
            true => match self.take_in(&mut Worker::default(), id) {
                // The next look will find it.
                Err(FileError::Locked) => id,
                taken => taken?,
            },
            false => id,
        };
        self.remember(id);
        Ok(id)
    }

    /// A group counts again for clients.
    fn remember(&self, id: u32) {
        let mut state = self.lock();
        let Some(group) = state.groups.get_mut(id) else {
            return;
        };
        if group.forgotten {
            group.forgotten = false;
            // As one who reads the file's header would know it.
            group.last = group.newest().trunc();
            group.shown_ns = self.clock.mono_ns();
        }
        group.gone_since = None;
    }

    fn lock_deadline(&self) -> u64 {
        self.clock.mono_ns() + self.settings.lock_wait.as_nanos() as u64
    }

    /// Opens and locks a file, waiting as long as a FLUSH does.
    fn locked(&self, path: &[u8], lock: RecordLock) -> Result<Box<dyn DiskFile>, FileError> {
        let deadline = self.lock_deadline();
        loop {
            if let Some(file) = open_locked(&*self.tree, path, lock)? {
                return Ok(file);
            }
            if self.clock.mono_ns() >= deadline {
                return Err(FileError::Locked);
            }
            std::thread::sleep(LOCK_PAUSE);
        }
    }

    /// Waits until nobody writes a file and keeps others from it; `None`: it is no longer known.
    pub(crate) fn reserve(&self, id: u32) -> Result<Option<Reserved<'_>>, FileError> {
        let deadline = self.lock_deadline();
        let mut state = self.lock();
        loop {
            let Some(group) = state.groups.get_mut(id) else {
                return Ok(None);
            };
            if !group.busy {
                group.busy = true;
                return Ok(Some(Reserved { inner: self, id }));
            }
            if self.clock.mono_ns() >= deadline {
                return Err(FileError::Locked);
            }
            state = self.wait(state);
        }
    }

    /// A file of ours took the place of another, or of none. `blank`: all its cells are unknown, and it is not on the
    /// disk yet.
    fn take_over(
        &self,
        resolved: &Path,
        rrd: &Rrd,
        (blank, cause): (bool, Cause),
        seen: &Metadata,
        reserved: Option<Reserved<'_>>,
    ) -> Result<(), FileError> {
        let path = resolved.as_os_str().as_bytes();
        let base = (!blank).then_some(rrd.header.last_up);
        let seasons = seasons_of(rrd);
        let path = match &reserved {
            // By whatever name it was reserved.
            Some(reserved) => self
                .lock()
                .groups
                .get(reserved.id)
                .map(|group| group.path.to_vec()),
            None => None,
        }
        .unwrap_or_else(|| path.to_vec());
        let beginning = Beginning {
            base,
            seen: Some(identity(seen)),
            cause,
            has: f64::NEG_INFINITY,
        };
        let id = self.adopt_as(&path, &rrd.header, seasons, beginning)?;
        if let Some(group) = self.lock().groups.get_mut(id) {
            group.busy = false;
        }
        drop(reserved);
        Ok(())
    }

    /// CREATE where there are no files.
    fn install_without(&self, spelled: &[u8], rrd: &Rrd, overwrite: bool) -> Result<(), FileError> {
        let path = names::normal(spelled);
        let known = self.lock().groups.by_path(&path).is_some();
        if known && !overwrite {
            return Err(FileError::Exists);
        }
        self.import(&path, rrd, Cause::Created).map(drop)
    }

    /// TUNE where there are no files.
    fn rewrite_without(
        &self,
        id: Result<u32, FileError>,
        edit: &mut dyn FnMut(Rrd) -> Result<Rrd, kymo_rrd::Error>,
    ) -> Result<(), FileError> {
        let id = id?;
        let path = self.lock().groups.get(id).map(|group| group.path.clone());
        let path = path.ok_or(FileError::NoSuchFile)?;
        let mut opened = self.read_id(id, Fresh::AsIs)?;
        let Source::Drum(view) = &mut opened.rows.0 else {
            return Err(FileError::NoSuchFile);
        };
        let rrd = edit(whole(view)?).map_err(|error| FileError::Rrd(error.text))?;
        self.import(&path, &rrd, Cause::Tuned).map(drop)
    }

    /// Syncs the journal until everything before `position` is on the disk.
    pub(crate) fn sync_to(&self, position: u64) -> io::Result<()> {
        const TRIES: usize = 3;
        let mut failures = 0;
        let mut state = self.lock();
        loop {
            if state.journal.synced >= position {
                return Ok(());
            }
            if state.syncing {
                state = self.wait(state);
                continue;
            }
            state.prepare(&*self.clock)?;
            let Some(work) = state.journal.sync_work() else {
                return Ok(());
            };
            state.syncing = true;
            drop(state);
            let done = work.run(&*self.disk);
            state = self.lock();
            state.syncing = false;
            self.changed.notify_all();
            match done {
                Ok(()) => {
                    state.journal.sync_done(&work);
                    if position == u64::MAX {
                        return Ok(());
                    }
                }
                Err(error) => {
                    state.notice(format!(
                        "cannot sync the journal: {error}; a new file is begun"
                    ));
                    state.journal.give_up();
                    failures += 1;
                    if failures == TRIES {
                        return Err(error);
                    }
                }
            }
        }
    }
}

/// The archives that updates change in place.
pub(crate) fn seasons_of(rrd: &Rrd) -> Vec<Vec<f64>> {
    let seasonal = rrd.header.rra.iter().enumerate();
    let seasonal = seasonal.filter(|(_, rra)| matches!(rra.cf(), b"SEASONAL" | b"DEVSEASONAL"));
    let width = rrd.header.ds.len();
    seasonal
        .map(|(archive, rra)| {
            let first = rrd.header.cell(archive, 0) as usize;
            rrd.cells[first..first + rra.row_cnt as usize * width].to_vec()
        })
        .collect()
}

fn stat_error(error: io::Error) -> FileError {
    match error.raw_os_error() {
        Some(18) => FileError::Outside,
        Some(2) => FileError::NoSuchFile,
        Some(number) => FileError::Stat(number),
        None if error.kind() == io::ErrorKind::NotFound => FileError::NoSuchFile,
        None => FileError::Io(error),
    }
}

/// What rrd_open says of a file that it can't open.
pub(crate) fn opening(spelled: &[u8], error: FileError) -> FileError {
    let cause = match &error {
        FileError::NoSuchFile => "No such file or directory".to_string(),
        FileError::NotRegular => "Is a directory".to_string(),
        FileError::Access(cause) | FileError::Io(cause) => {
            let text = cause.to_string();
            text.split(" (os error")
                .next()
                .unwrap_or_default()
                .to_string()
        }
        _ => return error,
    };
    let shown = String::from_utf8_lossy(spelled);
    FileError::Rrd(format!("opening '{shown}': {cause}"))
}
