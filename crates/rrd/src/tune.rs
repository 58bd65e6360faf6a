//! What `rrdtool tune` changes: definitions in place, or the whole structure.

use crate::error::Error;
use crate::header::Header;
use crate::rows::Rows;
use crate::rrd::Rrd;

/// The arguments of a tune, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Tune<'a> {
    /// The first argument that is no option.
    pub file_name: &'a [u8],
    /// The address given with `-D`, the last one.
    pub daemon: Option<&'a [u8]>,
    /// Options by their short letter, in order. Where reading stopped at a bad one, `bad` has its error.
    pub options: Vec<(u8, &'a [u8])>,
    /// The error that is due after `options` are applied.
    pub bad: Option<Error>,
    /// What changes the structure: `DEL:`, `DS:`, `RRA:`, `DELRRA:`, `RRA#`.
    pub operations: Vec<&'a [u8]>,
}

impl<'a> Tune<'a> {
    /// Reads the arguments behind the word `tune`, the file's name among them.
    pub fn parse(_args: &[&'a [u8]]) -> Result<Tune<'a>, Error> {
        Err(Error::new("missing file name"))
    }

    /// Whether only the header and rows in place are changed; otherwise [`Tune::restructure`] has to follow.
    pub fn is_in_place(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies the options one by one. The first error stops; what came before it stays, as rrdtool's mapping
    /// of the file has it: write the header back in either case. Rows are touched by `-b` only.
    pub fn apply(&self, _header: &mut Header, _rows: &mut impl Rows) -> Result<(), Error> {
        Ok(())
    }

    /// Applies the operations: the file that replaces the old one, or `None` where there is nothing to do.
    /// `file_name` is hashed into Holt-Winters archives.
    pub fn restructure(&self, _rrd: &Rrd, _file_name: &[u8]) -> Result<Option<Rrd>, Error> {
        Ok(None)
    }
}

/// Options, then operations, on a file in memory.
pub fn tune(rrd: &mut Rrd, tune: &Tune) -> Result<(), Error> {
    tune.apply(&mut rrd.header, &mut rrd.cells)?;
    if let Some(new) = tune.restructure(rrd, tune.file_name)? {
        *rrd = new;
    }
    Ok(())
}
