//! An .rrd file opened for reading: FETCH, INFO, FIRST and LAST look at it.

use crate::rows::read_cells;
use kymo_rrd::{Error, Header, Rows};
use kymo_sys::disk::DiskFile;

/// A file, locked for reading until it is dropped.
pub struct Opened {
    /// Everything before the rows.
    pub header: Header,
    /// The rows, read when asked for.
    pub rows: FileRows,
}

/// Rows read from a file where they lie; writing is refused.
pub struct FileRows {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) offset: u64,
}

impl Rows for FileRows {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        read_cells(&*self.file, self.offset, first, cells)
    }

    fn write(&mut self, _first: u64, _cells: &[f64]) -> Result<(), Error> {
        Err(Error::new("the file was opened for reading"))
    }
}
