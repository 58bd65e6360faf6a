//! An .rrd file opened for reading: FETCH, INFO, FIRST and LAST look at it.

use kymo_rrd::{Header, Rows};
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
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), kymo_rrd::Error> {
        let mut bytes = vec![0; 8 * cells.len()];
        let wanted = bytes.len();
        match self.file.read_at(&mut bytes, self.offset + 8 * first) {
            Ok(count) if count == wanted => {}
            Ok(_) => return Err(kymo_rrd::Error::new("a row lies outside the file")),
            Err(cause) => return Err(kymo_rrd::Error::new(format!("cannot read rows: {cause}"))),
        }
        for (cell, bytes) in cells.iter_mut().zip(bytes.chunks_exact(8)) {
            *cell = f64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        }
        Ok(())
    }

    fn write(&mut self, _first: u64, _cells: &[f64]) -> Result<(), kymo_rrd::Error> {
        Err(kymo_rrd::Error::new("the file was opened for reading"))
    }
}
