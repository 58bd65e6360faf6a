//! The names frame of a block: the series of the chunk and the state of their files. Layout:
//! docs/formats/store.md, "Names".

use crate::memtable::buffer::Pending;
use crate::wal::live::Live;
use crate::wal::record::Identity;
use kymo_base::varint::{put, put_bytes, take, take_bytes};

const FORGOTTEN: u8 = 1;
const BASE: u8 = 2;
const LEFT: u8 = 4;
const HELD: u8 = 8;
const CREATE_UNSYNCED: u8 = 16;
const LIVE: u8 = 32;

/// The longest path or definition that is accepted.
const TEXT_MAX: usize = 64 << 20;

/// The entry of a series in a catalog.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) slot: u8,
    pub(crate) id: u32,
    pub(crate) path: Vec<u8>,
    pub(crate) forgotten: bool,
    /// The store created its file, which may not be on the disk.
    pub(crate) create_unsynced: bool,
    /// The stamp of its state, and the stamp up to which readers may see values.
    pub(crate) applied: f64,
    pub(crate) published: f64,
    pub(crate) base: Option<i64>,
    /// Identity of its file after the last write, the stamp up to which the file has values, and the
    /// stamp up to which these are on the disk.
    pub(crate) left: Option<(Identity, f64, f64)>,
    /// Checksums of its header after the last write.
    pub(crate) live: Option<Live>,
    /// Values that were not applied because the series was suspended.
    pub(crate) held: Pending,
}

/// The head of a catalog, which applies to all series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CatalogHead {
    /// Definitions, as at the start of a file's header.
    pub(crate) front: Vec<u8>,
    /// Number of slots that have been given to series, including removed ones.
    pub(crate) slots: u16,
    /// The number of the next new series.
    pub(crate) next_id: u32,
}

/// Encodes and appends a catalog.
pub(crate) fn put_catalog(out: &mut Vec<u8>, about: &CatalogHead, lines: &[Line]) {
    put_bytes(out, &about.front);
    put(out, u64::from(about.slots));
    put(out, u64::from(about.next_id));
    put(out, lines.len() as u64);
    for line in lines {
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        out.push(line.slot);
        out.push(
            flag(line.forgotten, FORGOTTEN)
                | flag(line.create_unsynced, CREATE_UNSYNCED)
                | flag(line.base.is_some(), BASE)
                | flag(line.left.is_some(), LEFT)
                | flag(!line.held.is_empty(), HELD)
                | flag(line.live.is_some(), LIVE),
        );
        put(out, u64::from(line.id));
        put_bytes(out, &line.path);
        out.extend_from_slice(&line.applied.to_le_bytes());
        out.extend_from_slice(&line.published.to_le_bytes());
        if let Some(base) = line.base {
            out.extend_from_slice(&base.to_le_bytes());
        }
        if let Some((left, upto, safe)) = &line.left {
            put(out, left.device);
            put(out, left.inode);
            put(out, left.size_bytes);
            out.extend_from_slice(&left.mtime_ns.to_le_bytes());
            out.extend_from_slice(&upto.to_le_bytes());
            out.extend_from_slice(&safe.to_le_bytes());
        }
        if let Some(live) = line.live {
            out.extend_from_slice(&live.updated.to_le_bytes());
            out.extend_from_slice(&live.tuned.to_le_bytes());
        }
        if !line.held.is_empty() {
            put(out, line.held.len() as u64);
            put_bytes(out, line.held.raw());
        }
    }
}

/// Decodes a catalog encoded by [`put_catalog`].
pub(crate) fn take_catalog(mut input: &[u8]) -> Option<(CatalogHead, Vec<Line>)> {
    let about = CatalogHead {
        front: take_bytes(&mut input, TEXT_MAX)?.to_vec(),
        slots: u16::try_from(take(&mut input)?).ok()?,
        next_id: u32::try_from(take(&mut input)?).ok()?,
    };
    let count = take(&mut input)?;
    let mut lines = Vec::new();
    for _ in 0..count {
        lines.push(take_line(&mut input)?);
    }
    input.is_empty().then_some((about, lines))
}

fn take_line(input: &mut &[u8]) -> Option<Line> {
    let [slot, flags] = take_array(input)?;
    let id = u32::try_from(take(input)?).ok()?;
    let path = take_bytes(input, TEXT_MAX)?.to_vec();
    let applied = f64::from_le_bytes(take_array(input)?);
    let published = f64::from_le_bytes(take_array(input)?);
    let base = match flags & BASE {
        0 => None,
        _ => Some(i64::from_le_bytes(take_array(input)?)),
    };
    let left = match flags & LEFT {
        0 => None,
        _ => Some((
            Identity {
                device: take(input)?,
                inode: take(input)?,
                size_bytes: take(input)?,
                mtime_ns: i64::from_le_bytes(take_array(input)?),
            },
            f64::from_le_bytes(take_array(input)?),
            f64::from_le_bytes(take_array(input)?),
        )),
    };
    let live = match flags & LIVE {
        0 => None,
        _ => Some(Live {
            updated: u32::from_le_bytes(take_array(input)?),
            tuned: u32::from_le_bytes(take_array(input)?),
        }),
    };
    let held = match flags & HELD {
        0 => Pending::default(),
        _ => {
            let count = take(input)?;
            Pending::from_raw(take_bytes(input, usize::MAX)?, count)?
        }
    };
    Some(Line {
        slot,
        id,
        path,
        forgotten: flags & FORGOTTEN != 0,
        create_unsynced: flags & CREATE_UNSYNCED != 0,
        applied,
        published,
        base,
        left,
        live,
        held,
    })
}

fn take_array<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(*front)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_comes_back_and_a_short_one_is_refused() {
        let identity = Identity {
            device: 1,
            inode: 2,
            size_bytes: 3,
            mtime_ns: -4,
        };
        let mut held = Pending::default();
        held.push(b"1000000010:1");
        let line = |slot: u8, base, left, held: &Pending| Line {
            slot,
            id: 7,
            path: b"/a.rrd".to_vec(),
            forgotten: slot == 0,
            create_unsynced: slot != 0,
            applied: 1.5,
            published: 2.5,
            base,
            left,
            live: left.map(|_| Live {
                updated: 5,
                tuned: 6,
            }),
            held: held.clone(),
        };
        let lines = [
            line(0, None, None, &Pending::default()),
            line(255, Some(-3), Some((identity, 3.5, 4.5)), &held),
        ];
        let mut bytes = Vec::new();
        let about = CatalogHead {
            front: b"front".to_vec(),
            slots: 256,
            next_id: 1 << 20,
        };
        put_catalog(&mut bytes, &about, &lines);
        let (back, again) = take_catalog(&bytes).unwrap();
        assert_eq!(back, about);
        assert_eq!(format!("{again:?}"), format!("{lines:?}"));
        for len in 0..bytes.len() {
            assert!(take_catalog(&bytes[..len]).is_none(), "{len}");
        }
    }
}
