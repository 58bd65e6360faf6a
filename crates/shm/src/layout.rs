//! Offsets and lengths of version 1.1, as `docs/formats/shm.md` has them, and where the sections of a file are.

use kymo_base::limits::{SHM_FILE_MAX, SHM_METRICS_MAX};

pub(crate) const MAGIC: [u8; 8] = *b"kymo-shm";
pub(crate) const MAJOR: u16 = 1;
pub(crate) const MINOR: u16 = 1;

pub(crate) const HEADER_BYTES: usize = 1024;
pub(crate) const SECTIONS_AT: usize = 512;
pub(crate) const SECTION_BYTES: usize = 32;
pub(crate) const SECTIONS: usize = 6;
pub(crate) const SECTIONS_MAX: usize = 16;
pub(crate) const LIVE_BYTES: usize = 64;
pub(crate) const HEAD_BYTES: usize = 64;
pub(crate) const HEAD_WORDS: usize = HEAD_BYTES / 8;
pub(crate) const TEXT_FIXED: usize = 32;
pub(crate) const IDENTITY_FIXED: usize = 32;
pub(crate) const LABEL_BYTES: usize = 64;
pub(crate) const METRIC_FIXED: usize = 40;
pub(crate) const PAGE: usize = 4096;
/// A line of the cache, to which sections and records are aligned.
const LINE: usize = 64;

pub(crate) const CREATED_AT: usize = 72;
pub(crate) const NAME_AT: usize = 128;
pub(crate) const NAME_BYTES: usize = 64;
pub(crate) const LABEL_NAMES_AT: usize = 192;
pub(crate) const LABEL_NAME_BYTES: usize = 32;

/// Kinds of sections.
pub(crate) const LIVE: u32 = 1;
pub(crate) const CELLS: u32 = 2;
pub(crate) const HEADS: u32 = 3;
pub(crate) const TEXTS: u32 = 4;
pub(crate) const IDENTITIES: u32 = 5;
pub(crate) const METRICS: u32 = 6;

/// Words of the live section.
pub(crate) const LIVE_METRICS: usize = 0;
pub(crate) const LIVE_SLOTS: usize = 1;
pub(crate) const LIVE_CLOSED: usize = 2;
pub(crate) const LIVE_LAST_LIFE: usize = 3;

/// Words of a head.
pub(crate) const OWNER: usize = 0;
pub(crate) const GENERATION: usize = 1;
pub(crate) const STATE: usize = 2;
pub(crate) const IDENTITY: usize = 3;
pub(crate) const TAKEN_AT: usize = 4;
pub(crate) const START: usize = 5;
pub(crate) const IDENTITY_AT: usize = 6;
pub(crate) const LIFE: usize = 7;

/// Sizes that a new file has to have room for.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) slots: usize,
    pub(crate) cells: usize,
    /// A multiple of 8.
    pub(crate) text_bytes: usize,
    pub(crate) labels: usize,
    /// Bytes of descriptions of metrics.
    pub(crate) described: usize,
}

/// Where the sections of a new file are: offsets, strides and lengths in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) cells: usize,
    pub(crate) heads: usize,
    pub(crate) texts: usize,
    pub(crate) identities: usize,
    pub(crate) metrics: usize,
    pub(crate) cell_stride: usize,
    /// Bytes of both buffers of a slot.
    pub(crate) text_stride: usize,
    pub(crate) identity_stride: usize,
    pub(crate) metrics_room: usize,
    pub(crate) length: usize,
}

impl Layout {
    /// `None` if the file would be longer than a reader takes. The numbers of `room` have their own limits.
    pub(crate) fn of(room: &Room) -> Option<Layout> {
        let cell_stride = (room.cells * 8).next_multiple_of(LINE);
        let text_stride = 2 * (TEXT_FIXED + room.text_bytes).next_multiple_of(LINE);
        let identity_stride =
            2 * (IDENTITY_FIXED + room.labels * LABEL_BYTES).next_multiple_of(LINE);
        let cells = HEADER_BYTES + LIVE_BYTES;
        let heads = cells + room.slots * cell_stride;
        let texts = heads + room.slots * HEAD_BYTES;
        let identities = texts + room.slots * text_stride;
        let metrics = identities + room.slots * identity_stride;
        let length = (metrics + room.described).next_multiple_of(PAGE);
        (length <= SHM_FILE_MAX).then_some(Layout {
            cells,
            heads,
            texts,
            identities,
            metrics,
            cell_stride,
            text_stride,
            identity_stride,
            metrics_room: (length - metrics).min(SHM_METRICS_MAX),
            length,
        })
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// `N` bytes; zeros where there are fewer.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    if let Some(found) = bytes.get(at..at + N) {
        array.copy_from_slice(found);
    }
    array
}
