//! Removes series at an administrator's request; `retention.rs` removes series without values.
//!
//! A kill leaves either all of a series or none of it. First its file gets all its values and is synced; if the journal loses
//! the series now, the file is adopted again when it is touched. Then the removal is synced in the journal, and only after that
//! the file is removed. A series without a file is gone with its journal entry.

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

/// Number of series removed with one write of the journal, during which the store is locked.
const SLICE: usize = 256;
/// Number of attempts to bring a series up to date that receives values all the time.
const TRIES: usize = 20;

/// A series or a file to remove.
struct Victim {
    /// `None` for a file that the store does not know.
    id: Option<u32>,
    path: Vec<u8>,
    has_file: bool,
}

impl Store {
    /// Removes series with their values and .rrd files; later values begin them again. When this returns the removal is on the
    /// disk. Returns for each name if it was removed.
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

    /// Finds the series or file of a name, after writing all its values to the file.
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
        // Waits for threads that write or create the file.
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

    /// Removes the series whose files have all their values; the others need another attempt.
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

    /// Removes the file of a removed series, or one that was never known.
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
        // A value sent meanwhile may have adopted the file; without it, the next value begins the series again.
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

/// Removed and remaining victims, each with the index of its name.
type Parts = (Vec<(usize, Victim)>, Vec<(usize, Victim)>);

/// A copy of an error.
fn same(error: &io::Error) -> io::Error {
    io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(EIO))
}
