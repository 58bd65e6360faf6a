//! The RPN of a COMPUTE data source as text: into the 80 bytes that the header keeps, and back.

use crate::error::Error;
use crate::header::{DsDef, Univals};

/// Compiles. `known` are the data sources before this one.
pub fn compile(_text: &[u8], _known: &[DsDef]) -> Result<Univals, Error> {
    Err(Error::new("failed to parse computed data source"))
}

/// The text, appended.
pub fn print(_par: &Univals, _ds: &[DsDef], _out: &mut Vec<u8>) {}
