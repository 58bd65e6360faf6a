//! Series that are removed: by an administrator; those that go of themselves: `retention.rs`.
//!
//! A kill leaves all of a series or nothing: its file gets all that it has first, on the disk for certain, so that a file
//! whose series the journal has forgotten is the series, and is taken over when it is touched. Only then the journal
//! says that it is gone, on the disk, and only then the file goes. A series without a file goes with its record.

use crate::engine::{Inner, Store};
use crate::error::FileError;
use crate::memtable::series::Series;
use crate::memtable::state::EIO;
use crate::names;
use crate::rrd_file::header::open_error;
use kymo_base::label_set;
use kymo_sys::disk::{NameKind, RecordLock};
use kymo_sys::tree::Access;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// Series that go with one write of the journal: the store is locked meanwhile.
const SLICE: usize = 256;
/// How often a series is brought up to date that gets values all the time.
const TRIES: usize = 20;

/// What is to go.
struct Victim {
    /// `None`: a file that the store does not know.
    id: Option<u32>,
    path: Vec<u8>,
    has_file: bool,
}

impl Store {
    /// Removes series: their values and their .rrd files. What is sent for them afterwards begins again. When this returns that
    /// is on the disk; for each whether it went, or why not.
    pub fn remove(&self, names: &[Vec<u8>]) -> Vec<Result<(), FileError>> {
        let slices = names.chunks(SLICE);
        slices.flat_map(|names| self.inner.remove(names)).collect()
    }
}

impl Inner {
    fn remove(&self, names: &[Vec<u8>]) -> Vec<Result<(), FileError>> {
        let mut outcomes: Vec<Result<(), FileError>> = Vec::new();
        outcomes.resize_with(names.len(), || Err(FileError::Locked));
        let (mut left, mut gone): (Vec<usize>, _) = ((0..names.len()).collect(), Vec::new());
        for _ in 0..TRIES {
            let mut victims = Vec::new();
            for at in std::mem::take(&mut left) {
                match self.victim(&names[at]) {
                    Ok(victim) => victims.push((at, victim)),
                    Err(error) => outcomes[at] = Err(error),
                }
            }
            let (ready, others) = match self.forget_ready(victims) {
                Ok(parts) => parts,
                Err((victims, error)) => {
                    for (at, _) in victims {
                        outcomes[at] = Err(FileError::Journal(same(&error)));
                    }
                    break;
                }
            };
            gone.extend(ready);
            left.extend(others.iter().map(|(at, _)| *at));
            if left.is_empty() {
                break;
            }
        }
        let synced = self.sync_to(u64::MAX);
        for (at, victim) in gone {
            outcomes[at] = match &synced {
                Ok(()) => self.unlink(&victim),
                Err(error) => Err(FileError::Journal(same(error))),
            };
        }
        outcomes
    }

    /// What a name stands for; its file, if there is one, has all that is known by now.
    fn victim(&self, name: &[u8]) -> Result<Victim, FileError> {
        let id = match label_set::is_set(name) {
            true => Some(
                self.lock()
                    .series
                    .by_path(name)
                    .ok_or(FileError::NoSuchFile)?,
            ),
            false => self.any(name, &self.checked(name)?),
        };
        let Some(id) = id else {
            let spelled = self.checked(name)?;
            let missing = |_| FileError::NoSuchFile;
            let path = self.tree.resolve(names::path(&spelled)).map_err(missing)?;
            return match self.tree.stat(&path).map_err(missing)?.kind {
                NameKind::File => Ok(Victim {
                    id: None,
                    path: path.as_os_str().as_bytes().to_vec(),
                    has_file: true,
                }),
                _ => Err(FileError::NotRegular),
            };
        };
        // Whoever writes its file, or makes one, has done then.
        drop(self.reserve(id)?);
        let (path, has_file) = {
            let state = self.lock();
            let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
            (series.path.to_vec(), self.has_file(series))
        };
        if has_file {
            match self.flush_id(id).and_then(|()| self.sync_file(&path)) {
                Ok(()) | Err(FileError::NoSuchFile) => {}
                Err(error) => return Err(error),
            }
        }
        let id = Some(id);
        Ok(Victim { id, path, has_file })
    }

    fn has_file(&self, series: &Series) -> bool {
        !self.needs_no_file(series)
    }

    fn sync_file(&self, path: &[u8]) -> Result<(), FileError> {
        let file = self.tree.open(names::path(path), Access::Write);
        file.map_err(open_error)?.sync_data().map_err(FileError::Io)
    }

    /// Forgets series whose files have all that they have; the others are to be tried again.
    fn forget_ready(
        &self,
        victims: Vec<(usize, Victim)>,
    ) -> Result<Parts, (Vec<(usize, Victim)>, io::Error)> {
        let mut state = self.lock();
        let is_ready = |victim: &Victim| {
            let Some(id) = victim.id else { return true };
            state.series.get(id).is_some_and(|series| {
                let file = &series.file;
                let is_saved =
                    file.gone_since().is_some() || series.suspended || series.is_current();
                let has_file = self.has_file(series);
                !file.is_busy() && has_file == victim.has_file && (!has_file || is_saved)
            })
        };
        let (ready, others): Parts = victims
            .into_iter()
            .partition(|(_, victim)| is_ready(victim));
        let ids: Vec<u32> = ready.iter().filter_map(|(_, victim)| victim.id).collect();
        match self.forget(&mut state, &ids, self.clock.mono_ns()) {
            Ok(()) => Ok((ready, others)),
            Err(error) => Err((ready.into_iter().chain(others).collect(), error)),
        }
    }

    /// Removes the file of a series that is forgotten, or one that was never known.
    fn unlink(&self, victim: &Victim) -> Result<(), FileError> {
        if let Some(id) = victim.id {
            drop(self.recent.take(id));
        }
        if !victim.has_file {
            self.remove_placeholder(&victim.path);
            return Ok(());
        }
        let unlinked = self
            .locked(&victim.path, RecordLock::Exclusive)
            .and_then(|_lock| {
                let unlinked = self.tree.unlink(names::path(&victim.path));
                unlinked.map_err(FileError::Io)
            });
        // Whoever sent a value in between took the file over: without it the next value begins again.
        let mut state = self.lock();
        let heir = state.series.by_path(&victim.path);
        if let Some(series) = heir.and_then(|id| state.series.get_mut(id)) {
            series.file.miss(self.clock.mono_ns());
        }
        match unlinked {
            Err(FileError::NoSuchFile) => Ok(()),
            unlinked => unlinked,
        }
    }
}

/// Those that went, and the others, with the numbers of their names.
type Parts = (Vec<(usize, Victim)>, Vec<(usize, Victim)>);

/// One error for several.
fn same(error: &io::Error) -> io::Error {
    io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(EIO))
}
