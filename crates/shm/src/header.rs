//! The header: what a file is, and where its sections are. Whoever made it may have lied in each byte.

use kymo_base::limits::{
    SHM_CELLS_MAX, SHM_FILE_MAX, SHM_SLOT_LABELS_MAX, SHM_SLOTS_MAX, SHM_TEXT_MAX,
};

use crate::head::StampClock;
use crate::layout::{
    CELLS, CREATED_AT, HEAD_BYTES, HEADER_BYTES, HEADS, IDENTITIES, IDENTITY_FIXED, LABEL_BYTES,
    LABEL_NAME_BYTES, LABEL_NAMES_AT, LIVE, LIVE_BYTES, MAGIC, MAJOR, METRIC_FIXED, METRICS,
    NAME_AT, NAME_BYTES, SECTION_BYTES, SECTIONS, SECTIONS_AT, SECTIONS_MAX, TEXT_FIXED, TEXTS,
    array_at, u16_at, u32_at, u64_at,
};

/// Why a file is not one that this version reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// No publisher made it.
    #[error("it does not begin with kymo-shm")]
    Magic,
    /// A newer publisher made it.
    #[error("its version is {major}.{minor}, and 1 is read")]
    Version {
        /// The number that says what can be read.
        major: u16,
        /// Minor version, which grows with appended fields.
        minor: u16,
    },
    /// The file is shorter or longer than it says.
    #[error("it says that it has {declared} bytes, and has {found}")]
    Length {
        /// By the header.
        declared: u64,
        /// By the file system.
        found: u64,
    },
    /// A number is beyond its limit.
    #[error("its {0} is beyond the limit")]
    Limit(&'static str),
    /// A section is missing, or not where it can be.
    #[error("its section {0} is missing or makes no sense")]
    Section(u32),
}

/// Where a section is, checked: `offset + stride * records` is within the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// Bytes of a record, or of its fixed part.
    pub(crate) record: u64,
    pub(crate) offset: u64,
    pub(crate) stride: u64,
}

/// A publisher's description of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Appended fields; those of version 1.0 are known here.
    pub minor: u16,
    /// The publisher's first process, in its own namespace.
    pub pid: u32,
    /// Start of that process in clock ticks from boot; 0: unknown.
    pub start: u64,
    /// The boot that it was made in.
    pub boot: [u8; 16],
    /// Random bits, in the name of the file as well.
    pub epoch: [u8; 16],
    /// When the file was made, in nanoseconds since 1970-01-01 UTC.
    pub created_ns: u64,
    /// The name of the program: bytes, 1 to 63.
    pub name: Vec<u8>,
    /// The names of the labels of a slot: bytes, 0 to 31 each.
    pub label_names: Vec<Vec<u8>>,
    /// Places for processes or threads.
    pub slots: usize,
    /// Cells of a slot.
    pub cells: usize,
    /// Most bytes of a command's text.
    pub text_bytes: usize,
    /// The clock of its stamps.
    pub stamp_clock: StampClock,
    pub(crate) live: u64,
    pub(crate) cell_section: Section,
    pub(crate) heads: Section,
    pub(crate) texts: Section,
    pub(crate) identities: Section,
    pub(crate) metrics: u64,
    /// Bytes of the table of metrics.
    pub(crate) metrics_room: u64,
}

impl Header {
    /// Reads the first bytes of a file of `length` bytes.
    pub fn parse(bytes: &[u8; HEADER_BYTES], length: u64) -> Result<Header, FormatError> {
        check_file(bytes, length)?;
        let (slots, cells) = (u32_at(bytes, 80), u32_at(bytes, 84));
        let (text_bytes, labels) = (u32_at(bytes, 88), u32_at(bytes, 92));
        let slots = limited(slots, 1, SHM_SLOTS_MAX, "number of slots")?;
        let cells = limited(cells, 0, SHM_CELLS_MAX, "number of cells")?;
        let text_bytes = limited(text_bytes, 8, SHM_TEXT_MAX, "length of texts")?;
        let labels = limited(labels, 0, SHM_SLOT_LABELS_MAX, "number of labels")?;
        if text_bytes % 8 != 0 {
            return Err(FormatError::Limit("length of texts"));
        }
        if u32_at(bytes, 104) != LABEL_BYTES as u32 {
            return Err(FormatError::Limit("length of labels"));
        }
        let name = until_nul(&bytes[NAME_AT..NAME_AT + NAME_BYTES]);
        if name.is_empty() || name.len() == NAME_BYTES {
            return Err(FormatError::Limit("name"));
        }
        let table = SectionTable {
            bytes,
            length,
            slots: slots as u64,
        };
        let live = table.section(LIVE, LIVE_BYTES, 1, |record| record)?;
        let cell_section = table.section(CELLS, cells * 8, table.slots, |record| record)?;
        if live.offset + LIVE_BYTES as u64 != cell_section.offset {
            return Err(FormatError::Section(CELLS));
        }
        let label_bytes = (labels * LABEL_BYTES) as u64;
        let (metrics, metrics_room) = table.metrics()?;
        Ok(Header {
            minor: u16_at(bytes, 10),
            pid: u32_at(bytes, 24),
            start: u64_at(bytes, 32),
            boot: array_at(bytes, 40),
            epoch: array_at(bytes, 56),
            created_ns: u64_at(bytes, CREATED_AT),
            name,
            label_names: label_names(bytes, labels),
            slots,
            cells,
            text_bytes,
            stamp_clock: StampClock::of(u32_at(bytes, 96)),
            live: live.offset,
            cell_section,
            heads: table.section(HEADS, HEAD_BYTES, table.slots, |record| record)?,
            texts: table.section(TEXTS, TEXT_FIXED, table.slots, |fixed| {
                2 * (fixed + text_bytes as u64)
            })?,
            identities: table.section(IDENTITIES, IDENTITY_FIXED, table.slots, |fixed| {
                2 * (fixed + label_bytes)
            })?,
            metrics,
            metrics_room,
        })
    }
}

fn check_file(bytes: &[u8; HEADER_BYTES], length: u64) -> Result<(), FormatError> {
    if bytes[..MAGIC.len()] != MAGIC {
        return Err(FormatError::Magic);
    }
    let (major, minor) = (u16_at(bytes, 8), u16_at(bytes, 10));
    if major != MAJOR {
        return Err(FormatError::Version { major, minor });
    }
    let declared = u64_at(bytes, 16);
    if declared != length || length < u64::from(u32_at(bytes, 12)) {
        return Err(FormatError::Length {
            declared,
            found: length,
        });
    }
    if length > SHM_FILE_MAX as u64 {
        return Err(FormatError::Limit("length"));
    }
    if usize::try_from(u32_at(bytes, 12)).is_ok_and(|header| header < HEADER_BYTES) {
        return Err(FormatError::Limit("header"));
    }
    Ok(())
}

fn limited(
    number: u32,
    least: usize,
    most: usize,
    what: &'static str,
) -> Result<usize, FormatError> {
    usize::try_from(number)
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or(FormatError::Limit(what))
}

fn until_nul(bytes: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .copied()
        .take_while(|byte| *byte != 0)
        .collect()
}

fn label_names(bytes: &[u8; HEADER_BYTES], labels: usize) -> Vec<Vec<u8>> {
    let fields = bytes[LABEL_NAMES_AT..].chunks_exact(LABEL_NAME_BYTES);
    fields
        .take(labels)
        .map(|field| until_nul(&field[..LABEL_NAME_BYTES - 1]))
        .collect()
}

/// The section table of a file.
struct SectionTable<'a> {
    bytes: &'a [u8; HEADER_BYTES],
    length: u64,
    slots: u64,
}

impl SectionTable<'_> {
    fn entry(&self, kind: u32) -> Result<&[u8], FormatError> {
        let count = limited(
            u32_at(self.bytes, 100),
            SECTIONS,
            SECTIONS_MAX,
            "number of sections",
        )?;
        let mut entries = self.bytes[SECTIONS_AT..]
            .chunks_exact(SECTION_BYTES)
            .take(count);
        entries
            .find(|entry| u32_at(entry, 0) == kind)
            .ok_or(FormatError::Section(kind))
    }

    /// A section of `records` records of at least `least` bytes, each of which has `room(its bytes)` to itself.
    fn section(
        &self,
        kind: u32,
        least: usize,
        records: u64,
        room: impl Fn(u64) -> u64,
    ) -> Result<Section, FormatError> {
        let wrong = FormatError::Section(kind);
        let entry = self.entry(kind)?;
        let (record, offset) = (u64::from(u32_at(entry, 4)), u64_at(entry, 8));
        let (stride, count) = (u64_at(entry, 16), u64_at(entry, 24));
        let end = stride
            .checked_mul(records)
            .and_then(|bytes| bytes.checked_add(offset));
        let aligned = offset % 64 == 0 && stride % 64 == 0 && record % 8 == 0;
        let fits = record >= least as u64
            && room(record) <= stride
            && end.is_some_and(|end| end <= self.length);
        if count != records || !aligned || !fits || offset < HEADER_BYTES as u64 {
            return Err(wrong);
        }
        Ok(Section {
            record,
            offset,
            stride,
        })
    }

    /// Offset and bytes of the table of metrics.
    fn metrics(&self) -> Result<(u64, u64), FormatError> {
        let entry = self.entry(METRICS)?;
        let (offset, room) = (u64_at(entry, 8), u64_at(entry, 24));
        let end = offset.checked_add(room).filter(|end| *end <= self.length);
        let aligned = offset % 64 == 0 && offset >= HEADER_BYTES as u64;
        if end.is_none()
            || !aligned
            || usize::try_from(u32_at(entry, 4)).is_ok_and(|fixed| fixed < METRIC_FIXED)
        {
            return Err(FormatError::Section(METRICS));
        }
        Ok((offset, room))
    }
}
