//! Entries of a journal: appended to a buffer, read from a slice, without files and checksums. Layout:
//! docs/formats/journal.md, "Entries".

use crate::layout::CHUNKS_MAX;
use crate::wal::live::Live;
use std::borrow::Cow;
use std::sync::Arc;

use crate::wal::value::Stamps;
use kymo_base::varint::{put, put_bytes, take, take_bytes};

const SCHEMA: u8 = 1;
const VALUES: u8 = 2;
const SERIES: u8 = 3;
const START: u8 = 4;
const END: u8 = 5;
const FORGET: u8 = 6;
const CHECKPOINT: u8 = 7;
const GONE: u8 = 8;
const NOT_STARTED: u8 = 9;
const PUBLISHED: u8 = 10;
const LIVE: u8 = 11;
const RENAMED: u8 = 12;
/// One value.
pub(crate) const ONE: u8 = 13;
const NEWEST: u8 = 14;
pub(crate) const SAVED: u8 = 15;
/// Flag of an entry with one value; the lower seven bits are the step from the previous series' number.
const NEXT: u8 = 0x80;
/// Largest count of values, which is one byte.
const VALUES_MAX: usize = 127;

/// The longest path or text that is accepted.
const TEXT_MAX: usize = 64 << 20;
/// The longest header or archive that is accepted.
const PACKED_MAX: usize = 128 << 20;

/// Identity of a file when it was last checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size_bytes: u64,
    pub(crate) mtime_ns: i64,
}

impl Identity {
    /// Device and inode, which stay the same while the file system is mounted, even if the file is renamed or changed.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns true if this may be the same file after a reboot: the kernel gives devices other numbers at each mount.
    pub(crate) fn may_be(&self, other: &Identity) -> bool {
        self.inode == other.inode
    }
}

/// Initial state of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Birth {
    /// The chunk in which it is saved.
    pub(crate) chunk: u32,
    pub(crate) slot: u8,
    /// Stamp up to which its file has earlier rows; `None` if it has none.
    pub(crate) base: Option<i64>,
    /// The state, as the schema packs it.
    pub(crate) state: Vec<u64>,
}

/// The state of a series without its many zeros, kept until a block has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packed(Arc<[u8]>);

impl Packed {
    pub(crate) fn of(words: &[u64]) -> Packed {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut packed = Vec::new();
        put_packed(&mut packed, &bytes);
        Packed(packed.into())
    }

    pub(crate) fn words(&self) -> Vec<u64> {
        let bytes = take_packed(&mut &self.0[..]).unwrap_or_default();
        let words = bytes.as_chunks().0.iter();
        words.map(|word| u64::from_le_bytes(*word)).collect()
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record<'a> {
    /// Definitions of the series of this chunk in this journal file.
    Schema { chunk: u32, front: Cow<'a, [u8]> },
    /// A new series and its number, which is never reused.
    Series {
        id: u32,
        path: &'a [u8],
        birth: Birth,
    },
    /// Accepted values; call [`take_value`] for each.
    Values { id: u32, count: u64 },
    /// Readers may see values up to this stamp.
    Published { id: u32, upto: f64 },
    /// Stamp of the newest value of the series, after later ones were refused.
    Newest { id: u32, stamp: f64 },
    /// A write of the series' file up to this stamp begins.
    Start { id: u32, upto: f64 },
    /// The file has all values up to this stamp, and had this identity after the write.
    End {
        id: u32,
        upto: f64,
        identity: Identity,
    },
    /// Checksums of the header after the write of the preceding END.
    Live { id: u32, live: Live },
    /// The series' file has this path from now on.
    Renamed { id: u32, path: &'a [u8] },
    /// The announced write did not begin.
    NotStarted { id: u32 },
    /// The pending values of the series were dropped.
    Forget { id: u32 },
    /// The series was removed.
    Gone { id: u32 },
    /// All file writes before this position are on the disk.
    Checkpoint { position: u64 },
    /// Blocks of this chunk are on the disk up to this position; 0 if it has no blocks any more.
    Saved { chunk: u32, position: u64 },
}

impl Record<'_> {
    /// Appends the entry (for [`Record::Values`] see [`put_values_head`]).
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Record::Schema { chunk, front } => {
                put_head(out, SCHEMA, *chunk);
                put_packed(out, front);
            }
            Record::Series { id, path, birth } => {
                put_head(out, SERIES, *id);
                put_bytes(out, path);
                put(out, u64::from(birth.chunk));
                out.push(birth.slot);
                out.push(u8::from(birth.base.is_some()));
                out.extend_from_slice(&birth.base.unwrap_or(0).to_le_bytes());
                let words = birth.state.iter().flat_map(|word| word.to_le_bytes());
                put_packed(out, &words.collect::<Vec<u8>>());
            }
            Record::Values { id, count } => put_values_head(out, *id, *count),
            Record::Newest { id, stamp } => {
                put_head(out, NEWEST, *id);
                out.extend_from_slice(&stamp.to_le_bytes());
            }
            Record::Published { id, upto } => {
                put_head(out, PUBLISHED, *id);
                out.extend_from_slice(&upto.to_le_bytes());
            }
            Record::Start { id, upto } => {
                put_head(out, START, *id);
                out.extend_from_slice(&upto.to_le_bytes());
            }
            Record::End { id, upto, identity } => {
                put_head(out, END, *id);
                out.extend_from_slice(&upto.to_le_bytes());
                put(out, identity.device);
                put(out, identity.inode);
                put(out, identity.size_bytes);
                out.extend_from_slice(&identity.mtime_ns.to_le_bytes());
            }
            Record::Live { id, live } => {
                put_head(out, LIVE, *id);
                out.extend_from_slice(&live.updated.to_le_bytes());
                out.extend_from_slice(&live.tuned.to_le_bytes());
            }
            Record::Renamed { id, path } => {
                put_head(out, RENAMED, *id);
                put_bytes(out, path);
            }
            Record::Forget { id } => put_head(out, FORGET, *id),
            Record::Checkpoint { position } => {
                out.push(CHECKPOINT);
                put(out, *position);
            }
            Record::Saved { chunk, position } => {
                put_head(out, SAVED, *chunk);
                put(out, *position);
            }
            Record::Gone { id } => put_head(out, GONE, *id),
            Record::NotStarted { id } => put_head(out, NOT_STARTED, *id),
        }
    }

    /// Decodes an entry and removes it from the front. The values of a [`Record::Values`] follow it.
    pub(crate) fn take<'a>(input: &mut &'a [u8]) -> Option<Record<'a>> {
        let (&kind, rest) = input.split_first()?;
        *input = rest;
        if kind == CHECKPOINT {
            let position = take(input)?;
            return Some(Record::Checkpoint { position });
        }
        let id = u32::try_from(take(input)?).ok()?;
        Some(match kind {
            SCHEMA => Record::Schema {
                chunk: id,
                front: Cow::Owned(take_packed(input)?),
            },
            SERIES => take_series(id, input)?,
            NEWEST => Record::Newest {
                id,
                stamp: f64::from_le_bytes(take_array(input)?),
            },
            PUBLISHED => Record::Published {
                id,
                upto: f64::from_le_bytes(take_array(input)?),
            },
            VALUES => Record::Values {
                id,
                count: take(input)?,
            },
            ONE => Record::Values { id, count: 1 },
            START => Record::Start {
                id,
                upto: f64::from_le_bytes(take_array(input)?),
            },
            END => Record::End {
                id,
                upto: f64::from_le_bytes(take_array(input)?),
                identity: Identity {
                    device: take(input)?,
                    inode: take(input)?,
                    size_bytes: take(input)?,
                    mtime_ns: i64::from_le_bytes(take_array(input)?),
                },
            },
            LIVE => Record::Live {
                id,
                live: Live {
                    updated: u32::from_le_bytes(take_array(input)?),
                    tuned: u32::from_le_bytes(take_array(input)?),
                },
            },
            RENAMED => Record::Renamed {
                id,
                path: take_bytes(input, TEXT_MAX)?,
            },
            FORGET => Record::Forget { id },
            SAVED if id < CHUNKS_MAX => Record::Saved {
                chunk: id,
                position: take(input)?,
            },
            GONE => Record::Gone { id },
            NOT_STARTED => Record::NotStarted { id },
            _ => return None,
        })
    }
}

fn put_head(out: &mut Vec<u8>, kind: u8, id: u32) {
    out.push(kind);
    put(out, u64::from(id));
}

fn take_series<'a>(id: u32, input: &mut &'a [u8]) -> Option<Record<'a>> {
    let path = take_bytes(input, TEXT_MAX)?;
    let chunk = u32::try_from(take(input)?).ok()?;
    let [slot, has_base] = take_array(input)?;
    let base = i64::from_le_bytes(take_array(input)?);
    let bytes = take_packed(input)?;
    let words = bytes.as_chunks().0.iter();
    Some(Record::Series {
        id,
        path,
        birth: Birth {
            chunk,
            slot,
            base: (has_base != 0).then_some(base),
            state: words.map(|word| u64::from_le_bytes(*word)).collect(),
        },
    })
}

/// Packs words of eight bytes without the zero words: a mask byte says which of eight words follow. More than half of a
/// header's words are zero.
fn put_packed(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    for eight in bytes.chunks(64) {
        let at = out.len();
        out.push(0);
        for (i, word) in eight.chunks(8).enumerate() {
            if word.iter().any(|&byte| byte != 0) {
                out[at] |= 1 << i;
                out.extend_from_slice(word);
            }
        }
    }
}

fn take_packed(input: &mut &[u8]) -> Option<Vec<u8>> {
    let len = usize::try_from(take(input)?).ok()?;
    // A mask byte stands for 64 bytes at most, so the input limits the allocation.
    if len > PACKED_MAX || len.div_ceil(64) > input.len() {
        return None;
    }
    let mut bytes = Vec::with_capacity(len.min(input.len() * 8));
    while bytes.len() < len {
        let [mask] = take_array(input)?;
        for i in 0..8 {
            let word = (len - bytes.len()).min(8);
            if mask & (1 << i) == 0 {
                bytes.resize(bytes.len() + word, 0);
            } else {
                let (front, rest) = input.split_at_checked(word)?;
                bytes.extend_from_slice(front);
                *input = rest;
            }
        }
    }
    Some(bytes)
}

fn take_array<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(*front)
}

/// Begins a [`Record::Values`]; the caller appends `count` values.
pub(crate) fn put_values_head(out: &mut Vec<u8>, id: u32, count: u64) {
    put_head(out, VALUES, id);
    put(out, count);
}

/// The values of one series being appended. A single value usually needs only one byte before it, since clients send the same
/// series in the same order.
pub(crate) struct ValuesHead {
    id: u32,
    at: usize,
    /// Offset of the first value.
    first_at: usize,
    count: usize,
}

impl ValuesHead {
    /// Begins with the head of a single value.
    pub(crate) fn begin(out: &mut Vec<u8>, stamps: &mut Stamps, id: u32) -> ValuesHead {
        let (at, step) = (out.len(), id.wrapping_sub(stamps.id));
        stamps.id = id;
        match step < u32::from(NEXT) {
            true => out.push(NEXT | step as u8),
            false => put_head(out, ONE, id),
        }
        ValuesHead {
            id,
            at,
            first_at: out.len(),
            count: 1,
        }
    }

    /// Makes room for another value; returns `false` if that needs a head of its own.
    pub(crate) fn another(&mut self, out: &mut Vec<u8>) -> bool {
        if self.count == VALUES_MAX {
            return false;
        }
        if self.count == 1 {
            let first = out.split_off(self.first_at);
            out.truncate(self.at);
            put_values_head(out, self.id, 1);
            self.first_at = out.len();
            out.extend_from_slice(&first);
        }
        self.count += 1;
        // The count is the last byte of the head.
        out[self.first_at - 1] = self.count as u8;
        true
    }
}

/// Removes the head of a single value from the front, if it follows another series'; returns its series.
pub(crate) fn take_next(input: &mut &[u8], stamps: &mut Stamps) -> Option<u32> {
    let (&kind, rest) = input.split_first().filter(|(kind, _)| **kind & NEXT != 0)?;
    *input = rest;
    stamps.id = stamps.id.wrapping_add(u32::from(kind & !NEXT));
    Some(stamps.id)
}

/// Removes the head of a [`ONE`] without the kind from the front; returns its series.
pub(crate) fn take_short(input: &mut &[u8], stamps: &mut Stamps) -> Option<u32> {
    stamps.id = u32::try_from(take(input)?).ok()?;
    Some(stamps.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_and_short_ones_are_refused() {
        let identity = Identity {
            device: 1,
            inode: 2,
            size_bytes: 3,
            mtime_ns: -4,
        };
        for entry in [
            Record::Schema {
                chunk: 1,
                front: Cow::Borrowed(b"RRD and more than eight bytes"),
            },
            Record::Series {
                id: 1,
                path: b"/a",
                birth: Birth {
                    chunk: 7,
                    slot: 255,
                    base: Some(-1),
                    state: vec![1, 0, u64::MAX],
                },
            },
            Record::Published { id: 9, upto: 0.5 },
            Record::Newest { id: 9, stamp: 0.5 },
            Record::Values { id: 2, count: 3 },
            Record::Start { id: 3, upto: 2.5 },
            Record::End {
                id: 4,
                upto: 1.5,
                identity,
            },
            Record::Live {
                id: 4,
                live: Live {
                    updated: 7,
                    tuned: u32::MAX,
                },
            },
            Record::Renamed { id: 8, path: b"/b" },
            Record::Forget { id: 5 },
            Record::Checkpoint { position: 1 << 40 },
            Record::Saved {
                chunk: 3,
                position: 1 << 40,
            },
            Record::Gone { id: 6 },
            Record::NotStarted { id: 7 },
        ] {
            let mut out = Vec::new();
            entry.put(&mut out);
            for len in 0..out.len() {
                assert_eq!(Record::take(&mut &out[..len]), None, "{entry:?}");
            }
            assert_eq!(Record::take(&mut &out[..]), Some(entry));
        }
    }

    #[test]
    fn no_chunk_has_a_number_that_takes_gigabytes() {
        for (chunk, is_known) in [(CHUNKS_MAX - 1, true), (CHUNKS_MAX, false), (!0, false)] {
            let mut out = Vec::new();
            Record::Saved { chunk, position: 1 }.put(&mut out);
            assert_eq!(Record::take(&mut &out[..]).is_some(), is_known, "{chunk}");
        }
    }
}
