//! A file as XML, byte for byte as rrdtool 1.7.2 to 1.9 dump it.

use std::io;

use jiff::tz::TimeZone;

use crate::error::Error;
use crate::header::Header;
use crate::rows::Rows;

/// What the document begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DumpHead {
    /// Nothing but a comment (`-h none`, `-n`).
    None,
    /// A document type (`-h dtd`, the default).
    #[default]
    Dtd,
    /// A schema (`-h xsd`).
    Xsd,
}

/// Writes the document. Comments give the times in `zone`.
pub fn dump(
    _header: &Header,
    _rows: &mut impl Rows,
    _head: DumpHead,
    _zone: &TimeZone,
    _out: &mut impl io::Write,
) -> Result<(), Error> {
    Err(Error::new("cannot dump: not built yet"))
}
