//! The store's face for worker threads: what opens files, waits for locks and disks.

use crate::entry::{Begin, Entry, Identity};
use crate::error::{Error, FileError};
use crate::files::File;
use crate::names;
use crate::read::{FileRows, Opened};
use crate::recover;
use crate::rrd_file::{identity, open_error, open_locked, read_header};
use crate::settings::Settings;
use crate::state::State;
use crate::turn::{Position, Turn};
use crate::write::Worker;
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
    state: Mutex<State>,
    /// A file is no longer busy, a sync or a checkpoint ended.
    pub(crate) changed: Condvar,
    /// FLUSHALL came.
    pub(crate) flushes: Condvar,
    /// Locked as long as the store is open.
    _lock: Box<dyn DiskFile>,
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
struct Reserved<'a> {
    inner: &'a Inner,
    id: u32,
    unique: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        if let Some(file) = state.files.get_mut(self.id)
            && file.unique == self.unique
        {
            file.busy = false;
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
        state: State,
        lock: Box<dyn DiskFile>,
    ) -> Store {
        Store {
            inner: Arc::new(Inner {
                settings,
                disk,
                clock,
                tree,
                state: Mutex::new(state),
                changed: Condvar::new(),
                flushes: Condvar::new(),
                _lock: lock,
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
        let now_ns = inner.clock.mono_ns();
        let other = inner.other_name(&stat);
        let mut state = inner.lock();
        let flushed_ns = state.flushed_at(now_ns, inner.settings.jitter);
        let id = match other {
            Some(id) => id,
            None => state.files.insert(path.as_os_str().as_bytes()),
        };
        if stat.links > 1 {
            state.files.set_inode(stat.device, stat.inode, id);
        }
        if let Some(file) = state.files.get_mut(id) {
            if file.forgotten {
                file.forgotten = false;
                file.last = header.last_up as f64;
                file.upto = header.last_up as f64 + header.last_up_usec as f64 / 1e6;
                file.flushed_ns = flushed_ns;
            }
            file.gone_since = None;
        }
        state.files.spell(id, name);
        Ok(())
    }

    /// FLUSH: the file on disk is current when this returns.
    pub fn flush(&self, name: &[u8]) -> Result<Flushed, FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        if let Some(id) = inner.known(name, &spelled) {
            return inner.flush_id(id).map(|()| Flushed::Done);
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
        if fresh == Fresh::Flushed
            && let Some(id) = inner.known(name, &spelled)
        {
            match inner.flush_id(id) {
                // What is wrong is said by the open below.
                Ok(()) | Err(FileError::NoSuchFile) => {}
                Err(error) => return Err(error),
            }
        }
        let file = inner.locked(&spelled, RecordLock::Shared);
        let file = file.map_err(|error| opening(&spelled, error))?;
        let size_bytes = file.metadata().map_err(FileError::Io)?.size_bytes;
        let header = read_header(&*file, size_bytes, &mut Vec::new(), &spelled)?;
        let offset = header.size_bytes();
        Ok(Opened {
            header,
            rows: FileRows { file, offset },
        })
    }

    /// The whole file, flushed, for DUMP and as a source or template of CREATE.
    pub fn load(&self, name: &[u8]) -> Result<Rrd, FileError> {
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
        let reserved = inner.known(name, &spelled).map(|id| inner.reserve(id));
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
        let blank = blank.then(|| (rrd, identity(&seen)));
        inner.put_in_place(&resolved, blank, reserved.as_ref())
    }

    /// TUNE: `edit` makes another file of the file, under its lock; pending values stay pending.
    pub fn rewrite(
        &self,
        name: &[u8],
        edit: &mut dyn FnMut(Rrd) -> Result<Rrd, kymo_rrd::Error>,
    ) -> Result<(), FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        let reserved = inner.known(name, &spelled).map(|id| inner.reserve(id));
        let reserved = reserved.transpose()?.flatten();
        let resolved = inner.tree.resolve(names::path(&spelled));
        let resolved = resolved.map_err(|error| opening(&spelled, open_error(error)))?;
        let path = resolved.as_os_str().as_bytes();
        let file = inner.locked(path, RecordLock::Exclusive);
        let file = file.map_err(|error| opening(&spelled, error))?;
        let stat = file.metadata().map_err(FileError::Io)?;
        read_header(&*file, stat.size_bytes, &mut Vec::new(), &spelled)?;
        let mut bytes = vec![0; stat.size_bytes as usize];
        let count = file.read_at(&mut bytes, 0).map_err(FileError::Io)?;
        let rrd = Rrd::parse(&bytes[..count]).map_err(|error| FileError::Rrd(error.text))?;
        let rrd = edit(rrd).map_err(|error| FileError::Rrd(error.text))?;
        let bytes = rrd.to_bytes();
        let written = match stat.links > 1 && bytes.len() as u64 == stat.size_bytes {
            // Another name of it must go on to be the same file.
            true => file.write_at(&bytes, 0).and_then(|()| file.sync_data()),
            false => inner
                .tree
                .put(&resolved, &bytes, Existing::Replace, Safe::Synced)
                .map(drop),
        };
        written.map_err(FileError::Io)?;
        inner.put_in_place(&resolved, None, reserved.as_ref())
    }

    /// LIST: what rrd_list_r says of a path (already joined to the base).
    pub fn list(&self, path: &[u8], recursive: bool) -> io::Result<Vec<Vec<u8>>> {
        crate::list::list(&*self.inner.tree, path, recursive)
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
    fn checked(&self, name: &[u8]) -> Result<Vec<u8>, FileError> {
        if !names::allowed(&self.settings, name) {
            return Err(FileError::Outside);
        }
        let spelled = names::spelled(&self.settings, name);
        match names::refused(&spelled) {
            Some(number) => Err(FileError::Name(number)),
            None => Ok(spelled),
        }
    }

    /// The file a name stands for, also by a name it was not touched by.
    fn known(&self, name: &[u8], spelled: &[u8]) -> Option<u32> {
        let found = self.lock().files.find(name, || spelled.to_vec());
        if found.is_some() {
            return found;
        }
        let path = names::path(spelled);
        let stat = self.tree.stat(path).ok()?;
        let path = self.tree.resolve(path).ok()?;
        let by_path = self.lock().files.by_path(path.as_os_str().as_bytes());
        let id = match by_path {
            Some(id) => id,
            None => self.other_name(&stat)?,
        };
        let state = self.lock();
        state
            .files
            .get(id)
            .filter(|file| !file.forgotten)
            .map(|_| id)
    }

    /// The file that is known by another of its names.
    fn other_name(&self, stat: &Metadata) -> Option<u32> {
        if stat.links < 2 {
            return None;
        }
        let (device, inode) = (stat.device, stat.inode);
        let (id, path) = {
            let state = self.lock();
            let is_left = |file: &File| {
                let left = file.identity.as_ref();
                left.is_some_and(|left| (left.device, left.inode) == (device, inode))
            };
            let left = || state.files.iter().find(|(_, file)| is_left(file));
            let known = state.files.by_inode(device, inode);
            let id = known.or_else(|| left().map(|(id, _)| id))?;
            (id, state.files.get(id)?.path.clone())
        };
        // The number may be another file's by now.
        let now = self.tree.stat(names::path(&path)).ok()?;
        ((now.device, now.inode) == (device, inode)).then_some(id)
    }

    fn flush_id(&self, id: u32) -> Result<(), FileError> {
        let deadline = self.lock_deadline();
        let mut worker = Worker::default();
        loop {
            let path = {
                let mut state = self.lock();
                let Some(file) = state.files.get_mut(id) else {
                    return Ok(());
                };
                let nothing = file.values.is_empty() && file.redo.is_none();
                if !file.busy && (file.suspended || nothing) {
                    return Ok(());
                }
                if file.busy {
                    if self.clock.mono_ns() >= deadline {
                        return Err(FileError::Locked);
                    }
                    drop(self.wait(state));
                    continue;
                }
                file.path.clone()
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
    fn reserve(&self, id: u32) -> Result<Option<Reserved<'_>>, FileError> {
        let deadline = self.lock_deadline();
        let mut state = self.lock();
        loop {
            let Some(file) = state.files.get_mut(id) else {
                return Ok(None);
            };
            if !file.busy {
                file.busy = true;
                return Ok(Some(Reserved {
                    inner: self,
                    id,
                    unique: file.unique,
                }));
            }
            if self.clock.mono_ns() >= deadline {
                return Err(FileError::Locked);
            }
            state = self.wait(state);
        }
    }

    /// A file of ours took the place of another, or of none. `blank`: all its cells are unknown, and it is
    /// not on the disk yet.
    fn put_in_place(
        &self,
        resolved: &Path,
        blank: Option<(&Rrd, Identity)>,
        reserved: Option<&Reserved<'_>>,
    ) -> Result<(), FileError> {
        let mut state = self.lock();
        state.prepare(&*self.clock).map_err(FileError::Journal)?;
        let epoch = state.epoch;
        let sequence = state.journal.sequence();
        let known = match reserved {
            Some(reserved) => Some(reserved.id),
            None => state.files.by_path(resolved.as_os_str().as_bytes()),
        };
        let id = match (known, blank) {
            (Some(id), _) => id,
            (None, Some(_)) => state.files.insert(resolved.as_os_str().as_bytes()),
            (None, None) => return Ok(()),
        };
        let Some(file) = state.files.get_mut(id) else {
            return Ok(());
        };
        file.identity = None;
        file.begun = 0;
        file.redo = None;
        file.gone_since = None;
        if let Some((rrd, seen)) = blank {
            let begin = blank_begin(rrd, &seen);
            let stamp = begin.upto;
            let pending = !file.values.is_empty();
            file.identity = Some(seen);
            file.begun = epoch;
            file.upto = stamp;
            file.taken_since = if pending {
                file.pending_since
            } else {
                sequence
            };
            state.put(id, &Entry::Edited { id });
            state.put(id, &Entry::Begin { id, begin });
            let (upto, identity) = (stamp, seen);
            state.put(id, &Entry::End { id, upto, identity });
        } else {
            state.put(id, &Entry::Edited { id });
        }
        if let Err(error) = state.journal.commit() {
            state.forget_introductions();
            if let Some(file) = state.files.get_mut(id) {
                file.begun = 0;
                file.identity = None;
            }
            return Err(FileError::Journal(error));
        }
        Ok(())
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

/// How a file that was just made can be made once more.
fn blank_begin(rrd: &Rrd, seen: &Identity) -> Begin {
    let (mut bytes, cut) = (Vec::new(), rrd.header.live_offset() as usize);
    rrd.header.encode(&mut bytes);
    Begin {
        fresh: true,
        after: f64::NEG_INFINITY,
        upto: rrd.header.last_up as f64 + rrd.header.last_up_usec as f64 / 1e6,
        device: seen.device,
        inode: seen.inode,
        live: bytes.split_off(cut),
        front: bytes,
        cells: Vec::new(),
    }
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
fn opening(spelled: &[u8], error: FileError) -> FileError {
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
