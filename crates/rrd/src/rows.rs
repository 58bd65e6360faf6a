//! Access to the rows of archives, in memory or in a file.

use crate::error::Error;

/// The rows of a file, addressed by cell: archive after archive, row after row, a cell for each data source.
/// `Header::cell(archive, row)` is the first cell of a row; `Header::cell_offset` is its place in the file.
pub trait Rows {
    /// Reads cells from `first` on.
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error>;
    /// Writes cells from `first` on.
    fn write(&mut self, first: u64, cells: &[f64]) -> Result<(), Error>;
    /// Writes the next `count` rows of an archive, at most as many as it has: `first`, then `rest` repeatedly.
    fn append(&mut self, tip: Tip, first: &[f64], rest: &[f64], count: u64) -> Result<(), Error> {
        let width = first.len() as u64;
        let most = count.min((CELLS_MAX as u64 / width.max(1)).max(1));
        if count == 1 {
            let row = if tip.cur_row + 1 < tip.row_cnt {
                tip.cur_row + 1
            } else {
                0
            };
            return self.write(tip.base + row * width, first);
        }
        let mut cells = first.to_vec();
        cells.extend_from_slice(&rest.repeat(most as usize - 1));
        let (mut row, mut left) = (tip.cur_row, count);
        while left > 0 {
            row = if row + 1 < tip.row_cnt { row + 1 } else { 0 };
            let run = left.min(most).min(tip.row_cnt - row);
            self.write(tip.base + row * width, &cells[..(run * width) as usize])?;
            // Once the first row is written, all others are equal.
            cells[..first.len()].copy_from_slice(rest);
            row += run - 1;
            left -= run;
        }
        Ok(())
    }
}

/// Most cells of one write, unless a row has more.
const CELLS_MAX: usize = 8192;

/// Position of an archive's next row: behind its current one, or at its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// Index of the archive.
    pub archive: usize,
    /// First cell of the archive.
    pub base: u64,
    /// Number of rows of the archive.
    pub row_cnt: u64,
    /// The row that was written last.
    pub cur_row: u64,
}

/// Rows in memory.
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
