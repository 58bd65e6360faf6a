//! Where the rows of archives are: in memory, or behind a file.

use crate::error::Error;

/// The rows of one .rrd, addressed by cell: archive after archive, row after row, a cell for each data source.
/// `Header::cell(archive, row)` says which cell a row begins at; `Header::cell_offset` where that is in the file.
pub trait Rows {
    /// Fills `cells` from `first` on.
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error>;
    /// Writes `cells` from `first` on.
    fn write(&mut self, first: u64, cells: &[f64]) -> Result<(), Error>;
}

/// All rows in memory.
impl Rows for Vec<f64> {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        let from = slice_of(self, first, cells.len())?;
        cells.copy_from_slice(from);
        Ok(())
    }

    fn write(&mut self, first: u64, cells: &[f64]) -> Result<(), Error> {
        slice_of(self, first, cells.len())?.copy_from_slice(cells);
        Ok(())
    }
}

fn slice_of(all: &mut [f64], first: u64, len: usize) -> Result<&mut [f64], Error> {
    usize::try_from(first)
        .ok()
        .and_then(|first| all.get_mut(first..first.checked_add(len)?))
        .ok_or_else(|| Error::new("a row lies outside the file"))
}
