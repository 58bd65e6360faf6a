//! `rrdtool resize`: rows are added to an archive or taken from it.

use crate::error::Error;
use crate::rrd::Rrd;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resize {
    /// Which archive.
    pub archive: i64,
    /// Rows more, or fewer if negative; never 0.
    pub rows: i64,
}

impl Resize {
    /// Reads what follows the word `resize`: file, archive, `GROW` or `SHRINK`, rows.
    pub fn parse(_args: &[&[u8]]) -> Result<Resize, Error> {
        Err(Error::new("wrong number of parameters"))
    }
}

/// The resized file, which rrdtool writes to `resize.rrd`.
pub fn resize(_rrd: &Rrd, _how: Resize) -> Result<Rrd, Error> {
    Err(Error::new("cannot resize: not built yet"))
}
