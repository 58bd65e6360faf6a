//! `rrdtool update`: values into primary data points, those into rows.

use crate::error::Error;
use crate::header::Header;
use crate::rows::Rows;

/// What the clock says: `N` and negative stamps are counted from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Seconds since the epoch.
    pub sec: i64,
    /// Microseconds.
    pub usec: i64,
}

/// The stamp of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Seconds since the epoch.
    pub sec: i64,
    /// Microseconds; 0 in files before version 3.
    pub usec: i64,
}

/// What the text before an `@` means: seconds since the epoch, `None` if it is relative to "start" or "end"
/// (refused here), or rrd_parsetime's complaint.
pub type AtTime<'a> = &'a dyn Fn(&[u8]) -> Result<Option<i64>, String>;

/// How arguments are understood.
#[derive(Clone, Copy)]
pub struct Update<'a> {
    /// Stands in front of errors as `name: `; from outside. Empty: nothing is put in front.
    pub file_name: &'a [u8],
    /// `--template`: data sources in the arguments' order.
    pub template: Option<&'a [u8]>,
    /// `--skip-past-updates`: stamps that are not newer are passed over, without an error.
    pub skip_past: bool,
    /// The clock.
    pub now: Now,
    /// Understands at-style times.
    pub at_time: AtTime<'a>,
}

/// A cell written, as updatev tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written {
    /// The row's stamp as updatev shows it.
    pub time: i64,
    /// Which archive.
    pub archive: usize,
    /// Which data source.
    pub source: usize,
    /// The value.
    pub value: f64,
}

/// What an update works with; keep it to save allocations from file to file.
#[derive(Default)]
pub struct Scratch {}

/// Applies the arguments one by one. The first error stops; what was done before it stays done, so header and
/// rows are to be written even then (as in rrdtool; [`check`] first, to have none). `seen` hears of each cell written.
pub fn update(
    header: &mut Header,
    rows: &mut impl Rows,
    how: &Update<'_>,
    args: &[&[u8]],
    seen: Option<&mut Vec<Written>>,
) -> Result<(), Error> {
    update_with(&mut Scratch::default(), header, rows, how, args, seen)
}

/// [`update`], with memory that is used again.
pub fn update_with(
    _scratch: &mut Scratch,
    _header: &mut Header,
    _rows: &mut impl Rows,
    _how: &Update<'_>,
    _args: &[&[u8]],
    _seen: Option<&mut Vec<Written>>,
) -> Result<(), Error> {
    Err(Error::new("cannot update: not there yet"))
}

/// Would this argument be accepted as the next one? Its stamp, or the error that [`update`] would give. Nothing is changed.
pub fn check(_header: &Header, _how: &Update<'_>, _arg: &[u8]) -> Result<Stamp, Error> {
    Err(Error::new("cannot update: not there yet"))
}
