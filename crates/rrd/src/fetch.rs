//! Rows between two times, from the archive that rrdtool would choose.

use crate::error::Error;
use crate::header::Header;
use crate::rows::Rows;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// One step before the first row's stamp.
    pub start: i64,
    /// The last row's stamp.
    pub end: i64,
    /// Seconds a row.
    pub step: u64,
    /// Names of the columns.
    pub names: Vec<Vec<u8>>,
    /// Row after row, a cell for each name; the first row is stamped `start + step`.
    pub rows: Vec<f64>,
}

/// Rows of the consolidation function `cf` from `start` to `end`, with a step near `step`.
pub fn fetch(
    _header: &Header,
    _rows: &mut impl Rows,
    _cf: &[u8],
    _start: i64,
    _end: i64,
    _step: u64,
) -> Result<Fetched, Error> {
    Err(Error::new("cannot fetch: not built yet"))
}

/// Stamp of the last update.
pub fn last(header: &Header) -> i64 {
    header.last_up
}

/// Stamp of the first row of an archive.
pub fn first(_header: &Header, _archive: i64) -> Result<i64, Error> {
    Err(Error::new("invalid rraindex number"))
}

/// The table that `rrdtool fetch` prints.
pub fn print(_fetched: &Fetched, _out: &mut Vec<u8>) {}
