//! A tail: the file that records are appended to, and the walk over its valid records.
//!
//! The file is filled with zeros once and then overwritten in place, so the last record is followed by
//! zeros or by records of an earlier use. The epoch in each checksum and the rising sequence numbers tell
//! these apart. This module does not write files. Layout: docs/formats/recording.md, "Tail".

use crate::record::{self, ALIGN, HEAD_LEN, RawHead, RecordType, u32_at, u64_at};
use kymo_sys::clock::Stamp;
use kymo_sys::disk::DiskFile;
use std::io;

/// Largest length of a context, in bytes.
pub const CONTEXT_MAX: usize = 256 << 10;
/// The first eight bytes of a tail.
pub const MAGIC: &[u8; 8] = b"KYMOTAIL";
/// Version of the format; readers refuse others.
pub const VERSION: u32 = 0;
/// The names of the two tails of a boot.
pub const NAMES: [&str; 2] = ["tail-A", "tail-B"];

/// Largest length of one read, in bytes.
pub(crate) const PIECE: usize = 64 << 10;
const FIXED_LEN: usize = 64;
/// Offset of the copy of the fixed part, which is in another sector.
const COPY_OFFSET: usize = 2048;
const PAGE: usize = 4096;
/// Largest gap between sequence numbers; a larger one is damage.
const SEQ_LEAP_MAX: u64 = 1 << 32;

/// Header of a tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailHeader {
    /// Number of this use of the file, which no other use has.
    pub epoch: u64,
    /// Lower bound of the sequence numbers of this use.
    pub first_seq: u64,
    /// Time at which this use began.
    pub stamp: Stamp,
    /// "key=value" lines about the host; `None` if they are damaged.
    pub context: Option<String>,
    /// Offset of the first record.
    pub records_offset: u64,
}

impl TailHeader {
    /// A header with this context.
    pub fn new(epoch: u64, first_seq: u64, stamp: Stamp, context: &str) -> Self {
        TailHeader {
            epoch,
            first_seq,
            stamp,
            context: Some(context.to_string()),
            records_offset: records_offset(context.len()),
        }
    }

    /// Encodes the bytes before the first record.
    pub fn encode(&self) -> Vec<u8> {
        let context = self.context.as_deref().unwrap_or("");
        let fixed = self.encode_fixed(context);
        let mut bytes = vec![0; self.records_offset as usize];
        bytes[..FIXED_LEN].copy_from_slice(&fixed);
        bytes[COPY_OFFSET..COPY_OFFSET + FIXED_LEN].copy_from_slice(&fixed);
        bytes[PAGE..PAGE + context.len()].copy_from_slice(context.as_bytes());
        bytes
    }

    fn encode_fixed(&self, context: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED_LEN);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&self.first_seq.to_le_bytes());
        bytes.extend_from_slice(&self.stamp.real_ns.to_le_bytes());
        bytes.extend_from_slice(&self.stamp.mono_ns.to_le_bytes());
        bytes.extend_from_slice(&self.stamp.boot_ns.to_le_bytes());
        bytes.extend_from_slice(&(context.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(context.as_bytes()).to_le_bytes());
        let crc = crc32c::crc32c(&bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the header of `file`; the inner error says why it has none.
    pub fn read(file: &dyn DiskFile) -> io::Result<Result<Self, &'static str>> {
        let mut page = vec![0; PAGE];
        let count = file.read_at(&mut page, 0)?;
        page.truncate(count);
        let fixed = match (fixed_at(&page, 0), fixed_at(&page, COPY_OFFSET)) {
            (Ok(fixed), _) | (Err(_), Ok(fixed)) => fixed,
            (Err(cause), Err(_)) => return Ok(Err(cause)),
        };
        let length = u32_at(fixed, 56) as usize;
        let mut context = vec![0; length];
        let whole = file.read_at(&mut context, PAGE as u64)? == length;
        let right = whole && crc32c::crc32c(&context) == u32_at(fixed, 60);
        Ok(Ok(TailHeader {
            epoch: u64_at(fixed, 16),
            first_seq: u64_at(fixed, 24),
            stamp: Stamp {
                real_ns: u64_at(fixed, 32) as i64,
                mono_ns: u64_at(fixed, 40),
                boot_ns: u64_at(fixed, 48),
            },
            context: right.then(|| String::from_utf8_lossy(&context).into_owned()),
            records_offset: records_offset(length),
        }))
    }
}

/// Offset of the first record after a context of this length.
pub fn records_offset(context_len: usize) -> u64 {
    (PAGE + context_len).next_multiple_of(PAGE) as u64
}

fn fixed_at(page: &[u8], at: usize) -> Result<&[u8], &'static str> {
    let fixed = page.get(at..at + FIXED_LEN).ok_or("cut short")?;
    if &fixed[..8] != MAGIC {
        return Err("bad magic");
    }
    if u32_at(fixed, 8) != VERSION {
        return Err("unknown version");
    }
    if crc32c::crc32c(&fixed[16..]) != u32_at(fixed, 12) {
        return Err("bad checksum");
    }
    let (context_len, first_seq) = (u32_at(fixed, 56) as usize, u64_at(fixed, 24));
    match context_len > CONTEXT_MAX || first_seq > record::SEQ_MAX {
        true => Err("number too large"),
        false => Ok(fixed),
    }
}

/// A file that is read through one buffer of [`PIECE`] bytes. Unreadable parts read as zeros, so that a bad
/// sector loses only the records in it.
pub(crate) struct Window<'a> {
    file: &'a dyn DiskFile,
    buffer: Vec<u8>,
    start: u64,
    pub(crate) end: u64,
    pub(crate) bytes_read: u64,
    pub(crate) read_errors: u64,
}

impl<'a> Window<'a> {
    pub(crate) fn new(file: &'a dyn DiskFile, end: u64) -> Self {
        Window {
            file,
            buffer: Vec::new(),
            start: 0,
            end,
            bytes_read: 0,
            read_errors: 0,
        }
    }

    /// Creates a window from the buffer of another window of the same file.
    pub(crate) fn resume(file: &'a dyn DiskFile, end: u64, read: (u64, Vec<u8>)) -> Self {
        let mut window = Window::new(file, end);
        (window.start, window.buffer) = read;
        window
    }

    /// Returns the buffer for [`Window::resume`].
    pub(crate) fn into_read(self) -> (u64, Vec<u8>) {
        (self.start, self.buffer)
    }

    /// Discards the buffer, since the file may have changed.
    pub(crate) fn forget(&mut self) {
        self.buffer.clear();
    }

    /// Returns `length` bytes from `offset`, at most [`PIECE`]; fewer at the end of the file.
    pub(crate) fn get(&mut self, offset: u64, length: usize) -> &[u8] {
        let length = length.min(self.end.saturating_sub(offset) as usize);
        let held = self.start + self.buffer.len() as u64;
        if offset < self.start || offset + length as u64 > held {
            self.fill(offset);
        }
        let from = ((offset - self.start) as usize).min(self.buffer.len());
        let to = (from + length).min(self.buffer.len());
        &self.buffer[from..to]
    }

    /// Returns true if the range is within the file and all zeros.
    fn is_zeros(&mut self, offset: u64, length: usize) -> bool {
        let bytes = self.get(offset, length);
        bytes.len() == length && bytes.iter().all(|&byte| byte == 0)
    }

    fn fill(&mut self, offset: u64) {
        let wanted = PIECE.min(self.end.saturating_sub(offset) as usize);
        self.start = offset;
        self.buffer.resize(wanted, 0);
        match self.file.read_at(&mut self.buffer, offset) {
            Ok(count) => {
                self.bytes_read += count as u64;
                self.buffer.truncate(count);
            }
            Err(_) => self.fill_readable(offset),
        }
    }

    fn fill_readable(&mut self, offset: u64) {
        self.read_errors += 1;
        for (number, page) in self.buffer.chunks_mut(PAGE).enumerate() {
            page.fill(0);
            let _unreadable_is_zeros = self.file.read_at(page, offset + (number * PAGE) as u64);
        }
    }

    /// Calls `each` with the bytes of a range, piece by piece.
    pub(crate) fn pieces(&mut self, offset: u64, length: usize, each: &mut dyn FnMut(&[u8])) {
        let (mut at, end) = (offset, offset + length as u64);
        while at < end {
            let piece = self.get(at, PIECE.min((end - at) as usize));
            if piece.is_empty() {
                return;
            }
            each(piece);
            at += piece.len() as u64;
        }
    }

    /// Returns true if the checksum of the record at `offset`, whose head is `raw`, matches.
    fn check_whole(&mut self, offset: u64, raw: RawHead, epoch: u64) -> bool {
        if raw.length as u64 > self.end.saturating_sub(offset) {
            return false;
        }
        let (mut crc, mut seen) = (record::crc_start(epoch, raw.length), 0);
        self.pieces(offset + 8, raw.length - 8, &mut |piece| {
            crc = crc32c::crc32c_append(crc, piece);
            seen += piece.len();
        });
        crc == raw.crc && seen == raw.length - 8
    }
}

/// The use of a tail, and the offset behind its last record: a copy of the bytes before that is this tail as it is now. `None`: the
/// file has no header.
pub fn recorded_end(file: &dyn DiskFile) -> io::Result<Option<(u64, u64)>> {
    let Ok(header) = TailHeader::read(file)? else {
        return Ok(None);
    };
    let mut window = Window::new(file, file.metadata()?.size_bytes);
    let mut walk = Walk::new(&header);
    while !matches!(walk.step(&mut window), Step::End) {}
    Ok(Some((header.epoch, walk.offset)))
}

/// Result of [`Walk::step`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A valid record at this offset that depends on no missing record.
    Record(u64, RawHead),
    /// A damaged range, or a record that depends on a missing one.
    Damage { from: u64, to: u64 },
    /// No more records for now.
    End,
}

/// A walk over the records of one use of a tail, which can continue after the file has grown.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    epoch: u64,
    pub(crate) offset: u64,
    pub(crate) last_seq: u64,
    need_key: bool,
    searched: bool,
}

impl Walk {
    pub(crate) fn new(header: &TailHeader) -> Self {
        Walk {
            epoch: header.epoch,
            offset: header.records_offset,
            last_seq: header.first_seq.wrapping_sub(1),
            need_key: true,
            searched: false,
        }
    }

    /// Returns the next record. A sample that is no key counts as damage unless the record directly before
    /// it in sequence is known.
    pub(crate) fn step(&mut self, window: &mut Window<'_>) -> Step {
        loop {
            match self.accept(window, self.offset) {
                Some(raw) if self.usable(&raw) => return self.take(raw),
                Some(raw) => {
                    let from = self.offset;
                    self.skip(raw);
                    return Step::Damage {
                        from,
                        to: self.offset,
                    };
                }
                None if self.searched => {
                    window.forget();
                    return Step::End;
                }
                None => {
                    let from = self.offset;
                    match self.search(window) {
                        Some(to) => return self.jump(from, to),
                        None if self.offset == from && self.searched => return Step::End,
                        None => {}
                    }
                }
            }
        }
    }

    fn accept(&self, window: &mut Window<'_>, offset: u64) -> Option<RawHead> {
        let raw = record::peek(window.get(offset, HEAD_LEN))?;
        let ahead = raw.head.seq.wrapping_sub(self.last_seq);
        let fits = ahead != 0 && ahead <= SEQ_LEAP_MAX;
        (fits && window.check_whole(offset, raw, self.epoch)).then_some(raw)
    }

    fn usable(&self, raw: &RawHead) -> bool {
        let follows = !self.need_key && raw.head.seq == self.last_seq.wrapping_add(1);
        raw.head.record_type != RecordType::Sample || raw.head.key || follows
    }

    fn take(&mut self, raw: RawHead) -> Step {
        let at = self.offset;
        if raw.head.record_type == RecordType::Sample {
            self.need_key = false;
        } else if raw.head.seq != self.last_seq.wrapping_add(1) {
            self.need_key = true;
        }
        self.skip(raw);
        Step::Record(at, raw)
    }

    fn skip(&mut self, raw: RawHead) {
        self.need_key |= raw.head.record_type == RecordType::Sample
            && !raw.head.key
            && raw.head.seq != self.last_seq.wrapping_add(1);
        self.offset += raw.length as u64;
        self.last_seq = raw.head.seq;
        self.searched = false;
    }

    fn jump(&mut self, from: u64, to: u64) -> Step {
        self.need_key = true;
        self.offset = to;
        Step::Damage { from, to }
    }

    /// Searches for a valid record after `self.offset`, where there is none. `None` with `searched` set
    /// means that there is none; with `searched` unset, that one has appeared at `self.offset` meanwhile.
    fn search(&mut self, window: &mut Window<'_>) -> Option<u64> {
        // Each candidate needs a checksum; the budget keeps a hostile file from making that quadratic.
        let mut budget = 4 * window.end + PIECE as u64;
        let mut at = self.offset + ALIGN as u64;
        self.searched = true;
        while at + HEAD_LEN as u64 <= window.end {
            // Most of a tail is zeros that no record has overwritten yet, and no record begins with zeros.
            // Checking every eighth byte of them took a sixth of the time of serving an open page.
            if at.is_multiple_of(PAGE as u64) && window.is_zeros(at, PAGE) {
                at += PAGE as u64;
                continue;
            }
            if let Some(raw) = self.candidate(window, at) {
                budget = budget.checked_sub(raw.length as u64)?;
                if window.check_whole(at, raw, self.epoch) {
                    return self.confirm(window, at);
                }
            }
            at += ALIGN as u64;
        }
        window.forget();
        None
    }

    fn candidate(&self, window: &mut Window<'_>, at: u64) -> Option<RawHead> {
        let raw = record::peek(window.get(at, HEAD_LEN))?;
        let ahead = raw.head.seq.wrapping_sub(self.last_seq);
        (ahead != 0 && ahead <= SEQ_LEAP_MAX).then_some(raw)
    }

    /// Checks again for the missing record, which a recorder may have written after the first check.
    fn confirm(&mut self, window: &mut Window<'_>, found: u64) -> Option<u64> {
        window.forget();
        self.searched = self.accept(window, self.offset).is_none();
        self.searched.then_some(found)
    }
}
