//! How far each tail has got, in memory and in the file `tails`.

mod file;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_sys::disk::Disk;

use file::TailsFile;

pub use file::{TAILS_FILE, TAILS_NAME, is_tail};

/// Tails at most: each may keep files.
pub(crate) const TAILS_MAX: usize = 16;
/// Bytes of a tail's name at most.
pub(crate) const NAME_MAX: usize = 64;

/// A tail that the store keeps files for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailState {
    /// Name of the tail.
    pub name: String,
    /// The tail has everything before this position of the journal.
    pub position: u64,
    /// Values that it has missed since it is there, because it was too far behind.
    pub missed: u64,
}

/// All tails with names.
pub(crate) struct Tails(Mutex<TailTable>);

pub(crate) struct TailTable {
    pub(crate) tails: Vec<TailState>,
    /// `None`: the file cannot be used.
    file: Option<TailsFile>,
}

impl Tails {
    /// Reads the tails of a store.
    pub(crate) fn open(disk: &Arc<dyn Disk>, folder: &Path, notices: &mut Vec<String>) -> Tails {
        let mut tails = Vec::new();
        let file = TailsFile::open(disk.clone(), folder, &mut tails, notices);
        Tails(Mutex::new(TailTable { tails, file }))
    }

    /// No tails, of a store that nothing is written to.
    pub(crate) fn none() -> Tails {
        Tails(Mutex::new(TailTable {
            tails: Vec::new(),
            file: None,
        }))
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, TailTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The journal from this position on is needed by a tail; `u64::MAX`: there is none.
    pub(crate) fn pinned(&self) -> u64 {
        let table = self.table();
        let positions = table.tails.iter().map(|tail| tail.position);
        positions.min().unwrap_or(u64::MAX)
    }
}

impl TailTable {
    /// Changes a tail; it counts when it is on the disk.
    pub(crate) fn put(&mut self, tail: TailState) -> io::Result<()> {
        let file = self.file.as_mut();
        let file = file.ok_or_else(|| io::Error::other("its file cannot be used"))?;
        let place = self.tails.iter().position(|known| known.name == tail.name);
        let before = match place {
            Some(place) => Some(std::mem::replace(&mut self.tails[place], tail)),
            None => {
                self.tails.push(tail);
                None
            }
        };
        let place = place.unwrap_or(self.tails.len() - 1);
        file.put(&self.tails, place).inspect_err(|_| match before {
            Some(before) => self.tails[place] = before,
            None => drop(self.tails.pop()),
        })
    }

    /// Forgets a tail. `false`: there is none of that name.
    pub(crate) fn forget(&mut self, name: &str) -> io::Result<bool> {
        let Some(place) = self.tails.iter().position(|tail| tail.name == name) else {
            return Ok(false);
        };
        let file = self.file.as_mut();
        let file = file.ok_or_else(|| io::Error::other("its file cannot be used"))?;
        let gone = self.tails.remove(place);
        match file.rewrite(&self.tails) {
            Ok(()) => Ok(true),
            Err(error) => {
                self.tails.insert(place, gone);
                Err(error)
            }
        }
    }
}
