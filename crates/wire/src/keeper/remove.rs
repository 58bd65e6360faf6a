//! REMOVE: series that are to go, with their values and files.

use super::NAMES_MAX;
use super::body::{Put, Take};

/// Appends the body.
pub(super) fn put(out: &mut Vec<u8>, names: &[Vec<u8>]) {
    out.u16(names.len());
    names.iter().for_each(|name| out.text(name));
}

/// Reads the body.
pub(super) fn take(body: &mut Take) -> Option<Vec<Vec<u8>>> {
    let count = body.count(NAMES_MAX)?;
    let names = (0..count).map(|_| body.text().map(<[u8]>::to_vec));
    names.collect()
}
