//! The rows of one archive of a stripe: a head with the series and their row numbers, then the cells. Layout:
//! docs/formats/store.md, "Rows". Cells lie series after series; laid out row after row they need the same or up to 3 %
//! more (`sizes.rs`, 2026-11-22).

use crate::consolidation::row_sink::{NewRows, Part};
use crate::layout::STRIPE;
use kymo_base::varint::{put, take, unzigzag, zigzag};

/// The rows of a series in a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowsEntry {
    /// The series' member number in the stripe.
    pub(crate) member: u8,
    /// Number of its first row.
    pub(crate) first: u64,
    pub(crate) parts: Vec<Part>,
}

impl RowsEntry {
    /// Number of rows whose cells are stored, which the length of a decoded column limits.
    fn stored(&self) -> u64 {
        self.parts.iter().map(|part| part.stored()).sum()
    }
}

/// A column being encoded.
#[derive(Debug, Default)]
pub(crate) struct Column {
    head: Vec<u8>,
    cells: Vec<u8>,
    entries: u64,
    last_first: u64,
    /// The newest row of all series.
    pub(crate) newest: u64,
}

impl Column {
    /// Empties the column and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.cells.clear();
        (self.entries, self.last_first, self.newest) = (0, 0, 0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Adds rows of a series, the newest of which has the number `newest`.
    pub(crate) fn push(&mut self, member: u8, newest: u64, rows: &NewRows) {
        let count = rows.len();
        if count == 0 {
            return;
        }
        let entry = (newest + 1).saturating_sub(count);
        self.entry(member, entry, &rows.parts, newest);
        self.cells
            .extend(rows.cells.iter().flat_map(|cell| cell.to_le_bytes()));
    }

    /// Adds rows whose cells are encoded already.
    pub(crate) fn push_raw(&mut self, member: u8, first: u64, parts: &[Part], cells: &[u8]) {
        let count: u64 = parts.iter().map(|part| part.rows()).sum();
        self.entry(member, first, parts, (first + count).saturating_sub(1));
        self.cells.extend_from_slice(cells);
    }

    fn entry(&mut self, member: u8, first: u64, parts: &[Part], newest: u64) {
        self.head.push(member);
        put(&mut self.head, zigzag(first, self.last_first));
        put(&mut self.head, parts.len() as u64);
        for part in parts {
            put(
                &mut self.head,
                match part {
                    Part::Rows(count) => count << 1,
                    Part::Run(count) => count << 1 | 1,
                },
            );
        }
        self.entries += 1;
        self.last_first = first;
        self.newest = self.newest.max(newest);
    }

    /// Appends the encoded column.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.entries);
        out.extend_from_slice(&self.head);
        out.extend_from_slice(&self.cells);
    }
}

/// A decoded column.
#[derive(Debug)]
pub(crate) struct ReadRows<'a> {
    pub(crate) entries: Vec<RowsEntry>,
    cells: &'a [u8],
    width: usize,
}

/// Removes the next entry of a column's head up to its parts; returns member, first row and number of parts.
fn take_entry(head: &mut &[u8], last_first: &mut u64) -> Option<(u8, u64, u64)> {
    let (&member, rest) = head.split_first()?;
    *head = rest;
    if usize::from(member) >= STRIPE {
        return None;
    }
    *last_first = unzigzag(take(head)?, *last_first);
    Some((member, *last_first, take(head)?))
}

fn take_part(head: &mut &[u8]) -> Option<Part> {
    let part = take(head)?;
    Some(match part & 1 {
        0 => Part::Rows(part >> 1),
        _ => Part::Run(part >> 1),
    })
}

/// Decodes a column's head. `each` gets member, number of the first row, and part. Returns the bytes after the head.
fn walk(mut head: &[u8], mut each: impl FnMut(u8, u64, Part) -> Option<()>) -> Option<&[u8]> {
    let count = take(&mut head)?;
    let mut last_first = 0;
    for _ in 0..count {
        let (member, mut first, parts) = take_entry(&mut head, &mut last_first)?;
        for _ in 0..parts {
            let part = take_part(&mut head)?;
            each(member, first, part)?;
            first = first.checked_add(part.rows())?;
        }
    }
    Some(head)
}

/// Fills `out` with a column's rows `from..` of a series; `None`, with `out` unchanged, if the column is damaged.
pub(crate) fn fill_member(
    column: &[u8],
    width: usize,
    member: u8,
    from: u64,
    out: &mut [f64],
) -> Option<()> {
    let bytes_of = |part: Part| usize::try_from(part.stored()).ok()?.checked_mul(8 * width);
    let mut stored = 0usize;
    let mut left = walk(column, |_, _, part| {
        stored = stored.checked_add(bytes_of(part)?)?;
        Some(())
    })?;
    if stored != left.len() {
        return None;
    }
    walk(column, |whose, first, part| {
        let (bytes, rest) = left.split_at_checked(bytes_of(part)?)?;
        left = rest;
        if whose == member {
            fill_part(part, first, bytes, width, from, out);
        }
        Some(())
    })
    .map(drop)
}

/// Fills `out` with a part's rows from `from` on.
fn fill_part(part: Part, first: u64, bytes: &[u8], width: usize, from: u64, out: &mut [f64]) {
    let row_bytes = 8 * width;
    let to = from + (out.len() / width.max(1)) as u64;
    for row in first.max(from)..(first + part.rows()).min(to) {
        let source = match part {
            Part::Rows(_) => (row - first) as usize * row_bytes,
            Part::Run(_) => 0,
        };
        let cells = &mut out[(row - from) as usize * width..][..width];
        let bytes = bytes[source..source + row_bytes].as_chunks().0;
        for (cell, bytes) in cells.iter_mut().zip(bytes) {
            *cell = f64::from_le_bytes(*bytes);
        }
    }
}

impl<'a> ReadRows<'a> {
    /// Decodes a column whose rows have `width` cells.
    pub(crate) fn parse(mut bytes: &'a [u8], width: usize) -> Option<ReadRows<'a>> {
        let count = take(&mut bytes)?;
        let (mut entries, mut last_first, mut stored) = (Vec::new(), 0, 0u64);
        for _ in 0..count {
            let (member, first, parts) = take_entry(&mut bytes, &mut last_first)?;
            let mut entry = RowsEntry {
                member,
                first,
                parts: Vec::new(),
            };
            for _ in 0..parts {
                entry.parts.push(take_part(&mut bytes)?);
            }
            let mut rows = entry.parts.iter().map(|part| part.rows());
            rows.try_fold(entry.first, u64::checked_add)?;
            let mut cells = entry.parts.iter().map(|part| part.stored());
            stored = cells.try_fold(stored, u64::checked_add)?;
            entries.push(entry);
        }
        let needed = stored.checked_mul(8 * width as u64)?;
        (needed == bytes.len() as u64).then_some(ReadRows {
            entries,
            cells: bytes,
            width,
        })
    }

    /// Calls `each` with the parts of a series' rows: number of the first row, part, and bytes of the cells.
    pub(crate) fn parts(&self, member: u8, each: &mut dyn FnMut(u64, Part, &[u8])) {
        let row_bytes = 8 * self.width;
        let mut at = 0;
        for entry in &self.entries {
            if entry.member != member {
                at += entry.stored() as usize * row_bytes;
                continue;
            }
            let mut first = entry.first;
            for &part in &entry.parts {
                let len = part.stored() as usize * row_bytes;
                each(first, part, &self.cells[at..at + len]);
                at += len;
                first += part.rows();
            }
        }
    }
}

/// Fills `out` as [`fill_member`] does, from rows in memory, the newest of which has the number `newest`.
pub(crate) fn fill_from(rows: &NewRows, newest: u64, width: usize, from: u64, out: &mut [f64]) {
    let to = from + (out.len() / width.max(1)) as u64;
    let mut first = (newest + 1).saturating_sub(rows.len());
    let mut at = 0;
    for part in &rows.parts {
        for row in first.max(from)..(first + part.rows()).min(to) {
            let source = match part {
                Part::Rows(_) => at + (row - first) as usize * width,
                Part::Run(_) => at,
            };
            out[(row - from) as usize * width..][..width]
                .copy_from_slice(&rows.cells[source..source + width]);
        }
        at += part.stored() as usize * width;
        first += part.rows();
    }
}
