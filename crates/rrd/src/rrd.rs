//! A whole .rrd in memory, used by create, tune, resize, dump and restore.

use crate::error::Error;
use crate::header::Header;

/// A header and all its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Rrd {
    /// The file before its rows.
    pub header: Header,
    /// The cells in the file's order; `header.cell_count()` of them.
    pub cells: Vec<f64>,
}

impl Rrd {
    /// Parses a file. As in rrdtool, bytes behind the last row are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Rrd, Error> {
        let header = Header::parse(bytes)?;
        let rows = &bytes[header.size_bytes() as usize..];
        let count = header.cell_count() as usize;
        if rows.len() / 8 < count {
            let needed = header.file_size_bytes();
            return Err(Error::new(format!(
                "is too small (should be {needed} bytes)"
            )));
        }
        let cells = rows[..count * 8].chunks_exact(8);
        let cells = cells.map(|cell| f64::from_le_bytes(std::array::from_fn(|i| cell[i])));
        Ok(Rrd {
            header,
            cells: cells.collect(),
        })
    }

    /// Encodes the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.header.file_size_bytes() as usize);
        self.header.encode(&mut out);
        let rows = out.len();
        out.resize(rows + 8 * self.cells.len(), 0);
        let places = out[rows..].as_chunks_mut().0;
        for (place, cell) in places.iter_mut().zip(&self.cells) {
            *place = cell.to_le_bytes();
        }
        out
    }
}
