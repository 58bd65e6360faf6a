//! Exports all series as .rrd files, for use without the store.

use crate::consolidation::apply::Applier;
use crate::engine::{Inner, Store};
use crate::error::FileError;
use crate::names;
use crate::rrd_file::write_back::Worker;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// An exported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Content of the file.
    pub bytes: Vec<u8>,
    /// Number of unreadable frames, whose rows are unknown.
    pub damaged: u64,
}

/// A series and its path.
type Ready = (u32, Arc<[u8]>);

impl Store {
    /// The absolute paths of all files in the store, including forgotten ones, sorted.
    pub fn paths(&self) -> Vec<Vec<u8>> {
        let state = self.inner.lock();
        let series = state.series.iter();
        let found = series.filter(|(id, series)| state.series.by_path(&series.path) == Some(*id));
        let mut paths: Vec<Vec<u8>> = found.map(|(_, series)| series.path.to_vec()).collect();
        paths.sort_unstable();
        paths
    }

    /// The file of this name with all accepted values.
    pub fn export(&self, name: &[u8]) -> Result<Exported, FileError> {
        let inner = &*self.inner;
        let id = inner.exported(name)?;
        let id = match inner.is_missing(id)? {
            true => id,
            false => inner.verified_for_reading(id)?,
        };
        inner.exported_whole(id)
    }

    /// The series with archives of this number as a file with all accepted values, also if it is named by a label set.
    pub fn export_known(&self, id: u32) -> Result<Exported, FileError> {
        self.inner.exported_whole(id)
    }

    /// Updates the files of these names in place, and creates missing ones; returns the error of each.
    pub fn export_in_place(&self, names: &[&[u8]]) -> Vec<Option<FileError>> {
        let inner = &*self.inner;
        let ready = names.iter().map(|name| inner.make_ready(name));
        let ready: Vec<Result<Ready, FileError>> = ready.collect();
        let ids = ready.iter().filter_map(|file| file.as_ref().ok());
        let ids: Vec<u32> = ids.map(|(id, _)| *id).collect();
        // A file that another program changed belongs to another series now, so errors are matched by path.
        let outcomes = inner.write_files(&mut Worker::default(), &ids).into_iter();
        let state = inner.lock();
        let path = |id: u32| state.series.get(id).map(|series| series.path.clone());
        let errors = outcomes.filter_map(|(id, error)| Some((path(id)?, error?)));
        let mut errors: HashMap<Arc<[u8]>, FileError> = errors.collect();
        let each = ready.into_iter().map(|file| match file {
            Ok((_, path)) => errors.remove(&path),
            Err(error) => Some(error),
        });
        each.collect()
    }
}

impl Inner {
    fn exported_whole(&self, id: u32) -> Result<Exported, FileError> {
        let snapshot = {
            let state = self.lock();
            let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
            let until = match series.forgotten {
                true => series.values.published,
                false => f64::INFINITY,
            };
            self.snapshot(&state, series, until)
        };
        let snapshot = snapshot.ok_or(FileError::NoSuchFile)?;
        let base = self.base_of(&snapshot)?;
        let mut view = snapshot.view(&mut Applier::default(), self.rrd_now(), base)?;
        let bytes = view.whole()?.to_bytes();
        let damaged = view.damaged;
        Ok(Exported { bytes, damaged })
    }

    fn exported(&self, name: &[u8]) -> Result<u32, FileError> {
        let spelled = self.checked(name)?;
        self.any(name, &spelled).ok_or(FileError::NoSuchFile)
    }

    /// Returns true if a series' file is missing.
    fn is_missing(&self, id: u32) -> Result<bool, FileError> {
        let path = self.lock().series.get(id).map(|series| series.path.clone());
        let path = path.ok_or(FileError::NoSuchFile)?;
        match self.tree.stat(names::path(&path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Ok(stat) if stat.size_bytes == 0 => Ok(true),
            stat => stat.map(|_| false).map_err(FileError::Io),
        }
    }

    /// Prepares a series for the write of its file, with the checks that are possible before.
    fn make_ready(&self, name: &[u8]) -> Result<Ready, FileError> {
        let id = self.exported(name)?;
        let missing = self.is_missing(id)?;
        let path = {
            let mut state = self.lock();
            let series = state.series.get_mut(id).ok_or(FileError::NoSuchFile)?;
            match (missing, series.base, series.file.left()) {
                // The series would be replaced by this file.
                (false, _, None) => return Err(FileError::Exists),
                (false, _, Some(_)) => return Ok((id, series.path.clone())),
                // Some of its rows were nowhere else.
                (true, Some(_), _) => return Err(FileError::NoSuchFile),
                (true, None, _) => series.file.make_again(),
            }
            series.path.clone()
        };
        self.make_parent(names::path(&path))
            .map_err(FileError::Io)?;
        Ok((id, path))
    }

    fn make_parent(&self, path: &std::path::Path) -> io::Result<()> {
        match path.parent() {
            Some(folder) if self.tree.stat(folder).is_err() => self.tree.make_folders(folder),
            _ => Ok(()),
        }
    }
}
