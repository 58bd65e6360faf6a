//! A new .rrd from `DS:` and `RRA:` specifications, as `rrdtool create` makes it.

use crate::error::Error;
use crate::rrd::Rrd;

/// What is asked for, after the options of the command line or of the daemon's CREATE are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Create<'a> {
    /// The file's name as given: Holt-Winters archives hash it.
    pub file_name: &'a [u8],
    /// Seconds of a primary data point; 0: the template's, or 300.
    pub step: u64,
    /// The stamp to begin after; `None`: the newest source's, the template's, or ten seconds ago.
    pub start: Option<i64>,
    /// Arguments from `DS:` or `RRA:` on.
    pub definitions: &'a [&'a [u8]],
}

/// Makes a file. `now` in seconds since the epoch; `random` is the state of the generator that says where the
/// rows of each archive begin. `template` lends its definitions, `sources` their data.
pub fn create(
    _request: &Create,
    _now: i64,
    _random: &mut u64,
    _template: Option<&Rrd>,
    _sources: &[&Rrd],
) -> Result<Rrd, Error> {
    Err(Error::new("cannot create: not built yet"))
}
