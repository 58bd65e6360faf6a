//! PIN: the files of the store with their lengths, for a backup that copies them while the keeper goes on.

use super::body::{Put, Take};
use super::put_flag;

/// A file of the store's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinnedPart {
    /// Name in the folder, or, of a file with rows from before the store, its path below the base.
    pub name: Vec<u8>,
    /// Bytes from the file's beginning that belong to the pin; 0: the file is copied as it is.
    pub bytes: u64,
    /// Use of the file from now on.
    pub kind: PinnedKind,
}

/// Use of a pinned file from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PinnedKind {
    /// The store appends to it, or uses it again once the pin has ended.
    #[default]
    Open,
    /// Never written again.
    Sealed,
    /// An .rrd file below the base, which is written in place.
    Rrd,
}

impl PinnedKind {
    const ALL: [PinnedKind; 3] = [PinnedKind::Open, PinnedKind::Sealed, PinnedKind::Rrd];
}

pub(super) fn put(pin: &u64, parts: &[PinnedPart], more: &bool, out: &mut Vec<u8>) {
    put_flag(more, out);
    out.u64(*pin);
    out.length(parts.len());
    for part in parts {
        out.text(&part.name);
        out.u64(part.bytes);
        let kind = PinnedKind::ALL.iter().position(|kind| *kind == part.kind);
        out.u8(kind.and_then(|kind| u8::try_from(kind).ok()).unwrap_or(0));
    }
}

pub(super) fn take(body: &mut Take) -> Option<(u64, Vec<PinnedPart>, bool)> {
    let more = body.flag()?;
    let (pin, count) = (body.u64()?, body.u32()?);
    let parts = (0..count).map(|_| {
        Some(PinnedPart {
            name: body.text()?.to_vec(),
            bytes: body.u64()?,
            kind: *PinnedKind::ALL.get(usize::from(body.u8()?))?,
        })
    });
    let parts = parts.collect::<Option<_>>()?;
    Some((pin, parts, more))
}

pub(super) fn put_pin(pin: &u64, out: &mut Vec<u8>) {
    out.u64(*pin);
}

pub(super) fn take_pin(body: &mut Take) -> Option<u64> {
    body.u64()
}
