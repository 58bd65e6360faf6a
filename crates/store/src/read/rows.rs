//! A series opened for reading by FETCH, INFO, FIRST and LAST.

use crate::read::view::View;
use kymo_rrd::{Error, Header, Rows};
use kymo_sys::disk::DiskFile;

/// An open series in its present state.
pub struct Opened {
    /// The header.
    pub header: Header,
    /// The rows, which are read at need.
    pub rows: SeriesRows,
}

/// Rows of a series.
pub struct SeriesRows(pub(crate) RowSource);

/// Source of rows.
pub(crate) enum RowSource {
    /// A file without a known series, locked
    /// for reading until this is dropped.
    File(FileRows),
    /// In blocks.
    Blocks(Box<View>),
}

impl Rows for SeriesRows {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        match &mut self.0 {
            RowSource::File(rows) => rows.read(first, cells),
            RowSource::Blocks(view) => view.read(first, cells),
        }
    }

    fn write(&mut self, _first: u64, _cells: &[f64]) -> Result<(), Error> {
        Err(Error::read_only())
    }
}

/// Rows of a file; writing is refused.
pub struct FileRows {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) offset: u64,
}

impl Rows for FileRows {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        read_cells(&*self.file, self.offset, first, cells)
    }

    fn write(&mut self, _first: u64, _cells: &[f64]) -> Result<(), Error> {
        Err(Error::read_only())
    }
}

/// Reads cells from their positions in a file.
pub(crate) fn read_cells(
    file: &dyn DiskFile,
    offset: u64,
    first: u64,
    cells: &mut [f64],
) -> Result<(), Error> {
    let mut bytes = vec![0; 8 * cells.len()];
    match file.read_at(&mut bytes, offset + 8 * first) {
        Ok(count) if count == bytes.len() => {}
        Ok(_) => return Err(Error::new("a row lies outside the file")),
        Err(cause) => return Err(Error::new(format!("cannot read rows: {cause}"))),
    }
    for (cell, bytes) in cells.iter_mut().zip(bytes.as_chunks().0) {
        *cell = f64::from_le_bytes(*bytes);
    }
    Ok(())
}
