//! A series opened for reading: FETCH, INFO, FIRST and LAST look at it.

use crate::drum::view::View;
use crate::rrd_file::read_cells;
use kymo_rrd::{Error, Header, Rows};
use kymo_sys::disk::DiskFile;

/// A series as it is now.
pub struct Opened {
    /// Everything before the rows.
    pub header: Header,
    /// The rows, read when asked for.
    pub rows: SeriesRows,
}

/// Rows of a series.
pub struct SeriesRows(pub(crate) Source);

/// Where they are.
pub(crate) enum Source {
    /// In a file that is not known, locked for reading until this is dropped.
    File(FileRows),
    /// In the drum.
    Drum(Box<View>),
}

impl Rows for SeriesRows {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        match &mut self.0 {
            Source::File(rows) => rows.read(first, cells),
            Source::Drum(view) => view.read(first, cells),
        }
    }

    fn write(&mut self, _first: u64, _cells: &[f64]) -> Result<(), Error> {
        Err(Error::new("the file was opened for reading"))
    }
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
