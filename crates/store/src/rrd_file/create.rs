//! Creates and recreates files for clients: CREATE and TUNE.

use crate::engine::{Inner, Store};
use crate::error::FileError;
use crate::folder::fence;
use crate::names;
use crate::read::rows::RowSource;
use crate::rrd_file::adopt::{Beginning, Cause};
use crate::rrd_file::header::{identity, open_error, read_header, require_modest};
use crate::rrd_file::lock::Reserved;
use crate::rrd_file::open::{Fresh, opening};
use crate::rrd_file::pieces::{Cells, write_blank, write_file};
use kymo_rrd::header::{MEMORY_CELLS_MAX, RraDef};
use kymo_rrd::{Header, Rrd, UNKNOWN};
use kymo_sys::disk::{Metadata, RecordLock};
use kymo_sys::tree::{Existing, Safe};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Writes the content of a file.
type Write<'a> = Box<dyn FnMut(&mut dyn io::Write) -> io::Result<()> + 'a>;
/// The header of a created file, and its cells unless all are unknown.
type Made<'a> = (&'a Header, Option<&'a [f64]>);

impl Store {
    /// First step of CREATE: checks that the folder exists, or creates it if allowed (`-R`).
    pub fn make_folder(&self, name: &[u8], may: bool) -> Result<(), FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        let folder = names::folder_of(&spelled);
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

    /// Last step of CREATE: puts the file in place with one rename. `overwrite` is the effect of a missing `-O`.
    pub fn install(&self, name: &[u8], rrd: &Rrd, overwrite: bool) -> Result<(), FileError> {
        let known = |cell: &f64| cell.to_bits() != UNKNOWN.to_bits();
        let cells = rrd.cells.iter().any(known).then_some(&rrd.cells[..]);
        self.install_cells(name, &rrd.header, cells, overwrite)
    }

    /// Does the same for a file whose cells are all unknown.
    pub fn install_blank(
        &self,
        name: &[u8],
        header: &Header,
        overwrite: bool,
    ) -> Result<(), FileError> {
        self.install_cells(name, header, None, overwrite)
    }

    fn install_cells(
        &self,
        name: &[u8],
        header: &Header,
        cells: Option<&[f64]>,
        overwrite: bool,
    ) -> Result<(), FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        require_modest(header)?;
        let reserved = inner.any(name, &spelled).map(|id| inner.reserve(id));
        let reserved = reserved.transpose()?.flatten();
        if inner.is_without_files() {
            return inner.install_without(&spelled, header, cells, overwrite);
        }
        if !overwrite && inner.without_file(name, &spelled).is_some() {
            return Err(FileError::Exists);
        }
        let existing = match overwrite {
            true => Existing::Replace,
            false => Existing::Keep,
        };
        let mut write: Write = match cells {
            None => Box::new(|out| write_blank(header, out)),
            Some(cells) => {
                let mut rows = Cells(cells);
                Box::new(move |out| write_file(header, &mut rows, out))
            }
        };
        let placed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => FileError::Exists,
            _ => match error.raw_os_error() {
                Some(fence::OUTSIDE) => FileError::Outside,
                _ => FileError::Io(error),
            },
        };
        let place = inner.tree.place(names::path(&spelled)).map_err(placed)?;
        // Syncs unless no data can be lost: after a power cut, either the old file's rows or the new file must be there.
        let stat = inner.tree.stat(&place);
        let replaces = overwrite && stat.is_ok_and(|stat| stat.size_bytes > 0);
        let safe = match cells.is_none() && !replaces {
            true => Safe::Unsynced,
            false => Safe::Synced,
        };
        let existing = inner.existing_at(&place, existing);
        let put = inner.tree.put_pieces(&place, &mut *write, existing, safe);
        let seen = put.map_err(placed)?;
        let about = (cells.is_none(), Cause::Created);
        inner.take_over(&place, (header, cells), about, &seen, reserved)
    }

    /// TUNE: replaces the file by the result of `edit`, under the file's lock; pending values stay pending.
    pub fn rewrite(
        &self,
        name: &[u8],
        edit: &mut dyn FnMut(Rrd) -> Result<Rrd, kymo_rrd::Error>,
    ) -> Result<(), FileError> {
        self.rewrite_at_most(name, MEMORY_CELLS_MAX, edit)
    }

    /// Does the same for a file of at most `cells_max` cells, all of which are in memory.
    pub fn rewrite_at_most(
        &self,
        name: &[u8],
        cells_max: u64,
        edit: &mut dyn FnMut(Rrd) -> Result<Rrd, kymo_rrd::Error>,
    ) -> Result<(), FileError> {
        let inner = &*self.inner;
        let spelled = inner.checked(name)?;
        let known = inner.any(name, &spelled);
        if inner.is_without_files() {
            return inner.rewrite_without(known.ok_or(FileError::NoSuchFile), cells_max, edit);
        }
        let is_behind = |id| {
            let state = inner.lock();
            let series = state.series.get(id);
            series.is_some_and(|series| series.is_behind() || series.file.left().is_none())
        };
        let known = match known {
            Some(id) => {
                // Another program may have changed the file, and it must have all values that readers may see.
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
        if header.cell_count() > cells_max {
            return Err(FileError::Large(header.cell_count()));
        }
        let mut bytes = vec![0; header.file_size_bytes() as usize];
        let count = file.read_at(&mut bytes, 0).map_err(FileError::Io)?;
        let rrd = Rrd::parse(&bytes[..count]).map_err(|error| FileError::Rrd(error.text))?;
        // Files may be large, so keep only one copy in memory.
        drop(bytes);
        let rrd = edit(rrd).map_err(|error| FileError::Rrd(error.text))?;
        if known.is_some() {
            require_modest(&rrd.header)?;
        }
        let bytes = rrd.to_bytes();
        let seen = match stat.links > 1 && bytes.len() as u64 == stat.size_bytes {
            // The file has further names, which must stay names of the same file, so write in place.
            true => inner.write_over(reserved.as_ref().map(|series| series.id), &*file, &bytes)?,
            false => inner
                .tree
                .put(&resolved, &bytes, Existing::Replace, Safe::Synced)
                .map_err(FileError::Io)?,
        };
        match known {
            Some(_) => {
                let made = (&rrd.header, Some(&rrd.cells[..]));
                inner.take_over(&resolved, made, (false, Cause::Tuned), &seen, reserved)
            }
            None => Ok(()),
        }
    }
}

impl Inner {
    /// Begins a series for a file that the store has put in place. `blank`
    /// means that all its cells are unknown and that it is not synced.
    fn take_over(
        &self,
        resolved: &Path,
        (header, cells): Made,
        (blank, cause): (bool, Cause),
        seen: &Metadata,
        reserved: Option<Reserved<'_>>,
    ) -> Result<(), FileError> {
        let path = resolved.as_os_str().as_bytes();
        let base = (!blank).then_some(header.last_up);
        let seasons = seasons_in(header, cells);
        let path = match &reserved {
            // The reserved series keeps its name.
            Some(reserved) => self
                .lock()
                .series
                .get(reserved.id)
                .map(|series| series.path.to_vec()),
            None => None,
        }
        .unwrap_or_else(|| path.to_vec());
        let beginning = Beginning {
            base,
            seen: Some(identity(seen)),
            ..Beginning::of(cause)
        };
        let id = self.adopt_as(&path, header, seasons, beginning)?;
        if let Some(series) = self.lock().series.get_mut(id) {
            series.file.release();
        }
        drop(reserved);
        Ok(())
    }

    /// CREATE in a store without files.
    fn install_without(
        &self,
        spelled: &[u8],
        header: &Header,
        cells: Option<&[f64]>,
        overwrite: bool,
    ) -> Result<(), FileError> {
        let path = names::normal(spelled);
        let known = self.lock().series.by_path(&path).is_some();
        if known && !overwrite {
            return Err(FileError::Exists);
        }
        if let Some(cells) = cells {
            let rrd = Rrd {
                header: header.clone(),
                cells: cells.to_vec(),
            };
            return self.import(&path, rrd, Cause::Created).map(drop);
        }
        // Unknown rows are not stored.
        let beginning = Beginning::of(Cause::Created);
        self.adopt_as(&path, header, seasons_in(header, None), beginning)
            .map(drop)
    }

    /// TUNE in a store without files.
    fn rewrite_without(
        &self,
        id: Result<u32, FileError>,
        cells_max: u64,
        edit: &mut dyn FnMut(Rrd) -> Result<Rrd, kymo_rrd::Error>,
    ) -> Result<(), FileError> {
        let id = id?;
        let path = self.lock().series.get(id).map(|series| series.path.clone());
        let path = path.ok_or(FileError::NoSuchFile)?;
        let mut opened = self.read_id(id, Fresh::AsIs)?;
        let RowSource::Blocks(view) = &mut opened.rows.0 else {
            return Err(FileError::NoSuchFile);
        };
        let count = view.state.header.cell_count();
        if count > cells_max {
            return Err(FileError::Large(count));
        }
        let rrd = edit(view.whole()?).map_err(|error| FileError::Rrd(error.text))?;
        require_modest(&rrd.header)?;
        self.import(&path, rrd, Cause::Tuned).map(drop)
    }
}

/// The cells of the archives that updates change in place.
pub(crate) fn seasons_of(rrd: &Rrd) -> Vec<Vec<f64>> {
    seasons_in(&rrd.header, Some(&rrd.cells))
}

pub(crate) fn seasons_in(header: &Header, cells: Option<&[f64]>) -> Vec<Vec<f64>> {
    let seasonal = header.rra.iter().enumerate();
    let seasonal = seasonal.filter(|(_, rra)| rra.is_seasonal());
    let of = |(archive, rra): (usize, &RraDef)| {
        let first = header.cell(archive, 0) as usize;
        let count = rra.row_cnt as usize * header.ds.len();
        match cells {
            Some(cells) => cells[first..first + count].to_vec(),
            None => vec![UNKNOWN; count],
        }
    };
    seasonal.map(of).collect()
}
