//! REMOVE: removes series with their values and files. ERASE: removes values of series.

use super::NAMES_MAX;
use super::body::{Put, Take};

/// Appends the body.
pub(super) fn put(names: &[Vec<u8>], out: &mut Vec<u8>) {
    out.u16(names.len());
    names.iter().for_each(|name| out.text(name));
}

/// Reads the body.
pub(super) fn take(body: &mut Take) -> Option<Vec<Vec<u8>>> {
    let count = body.count(NAMES_MAX)?;
    let names = (0..count).map(|_| body.text().map(<[u8]>::to_vec));
    names.collect()
}

/// Values of series to be removed.
#[derive(Clone, Debug, PartialEq)]
pub struct Erased {
    /// Names of series, as in [`super::Answer::Series`].
    pub names: Vec<Vec<u8>>,
    /// First second, since 1970.
    pub from: i64,
    /// Last second, since 1970; included.
    pub thru: i64,
}

impl Erased {
    /// Appends the body.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.i64(self.from);
        out.i64(self.thru);
        put(&self.names, out);
    }

    /// Reads the body.
    pub(super) fn take(body: &mut Take) -> Option<Erased> {
        let (from, thru) = (body.i64()?, body.i64()?);
        let names = take(body)?;
        Some(Erased { names, from, thru })
    }
}
