//! Files that clients make, or make anew: CREATE and TUNE.

use crate::adopt::{Beginning, Cause};
use crate::ask::{Fresh, opening};
use crate::error::FileError;
use crate::files::whole;
use crate::groups::Group;
use crate::names;
use crate::read::Source;
use crate::reserve::Reserved;
use crate::rrd_file::{identity, open_error, read_header, rrd_error};
use crate::store::{Inner, Store};
use kymo_rrd::header::MEMORY_CELLS_MAX;
use kymo_rrd::{Rrd, UNKNOWN};
use kymo_sys::disk::{Metadata, RecordLock};
use kymo_sys::tree::{Existing, Safe};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl Store {
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
}

impl Inner {
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
