//! One record as it lies in a tail: a fixed head, then sections of opaque bytes.
//!
//! The builder appends to the caller's buffer and leaves out the checksum, since the writer
//! assigns epoch and sequence number (`seal`). Layout: docs/formats/recording.md, "Record".

use kymo_sys::clock::Stamp;

/// Bytes before the first section.
pub const HEAD_LEN: usize = 48;
/// Bytes before a section's payload: kind, cost, length.
pub const SECTION_HEAD_LEN: usize = 6;
/// The longest record that is written, and that a reader accepts.
pub const RECORD_MAX: usize = 32 << 20;
/// Alignment of the start and the end of every record, in bytes.
pub const ALIGN: usize = 8;

/// The highest sequence number that a reader accepts; adding one to it never overflows.
pub const SEQ_MAX: u64 = 1 << 62;

const FLAG_KEY: u8 = 1;

/// Type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordType {
    /// A sample: one or more sections for each kind of source.
    Sample = 1,
    /// An event: one line for people, such as a step of the clock or a lost file.
    Event = 2,
    /// A context: "key=value" lines about the host, which replace the previous context.
    Context = 3,
}

impl RecordType {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(RecordType::Sample),
            2 => Some(RecordType::Event),
            3 => Some(RecordType::Context),
            _ => None,
        }
    }
}

/// The head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Sequence number, which orders the recording; 0 until the writer assigns it.
    pub seq: u64,
    /// Time at which the sample began.
    pub stamp: Stamp,
    /// Type of the record.
    pub record_type: RecordType,
    /// Set if the sections can be read without any earlier record.
    pub key: bool,
    /// Number of ticks without a sample directly before this record.
    pub missed: u32,
}

impl Head {
    /// Returns the head of a sample, without a sequence number.
    pub fn sample(stamp: Stamp, key: bool, missed: u32) -> Self {
        Head {
            seq: 0,
            stamp,
            record_type: RecordType::Sample,
            key,
            missed,
        }
    }

    fn text(stamp: Stamp, record_type: RecordType) -> Self {
        Head {
            seq: 0,
            stamp,
            record_type,
            key: false,
            missed: 0,
        }
    }
}

/// One section of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// The kind of source; this crate does not interpret it.
    pub kind: u8,
    /// Cost of reading the source, on the sampler's logarithmic scale.
    pub cost: u8,
    /// Content of the section.
    pub bytes: &'a [u8],
}

/// Begins a record at the end of `out`; [`Open::end`] completes it.
pub fn begin<'a>(out: &'a mut Vec<u8>, head: &Head) -> Open<'a> {
    let start = out.len();
    out.resize(start + 8, 0);
    out.extend_from_slice(&head.seq.to_le_bytes());
    out.extend_from_slice(&head.stamp.real_ns.to_le_bytes());
    out.extend_from_slice(&head.stamp.mono_ns.to_le_bytes());
    out.extend_from_slice(&head.stamp.boot_ns.to_le_bytes());
    out.push(head.record_type as u8);
    out.push(if head.key { FLAG_KEY } else { 0 });
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&head.missed.to_le_bytes());
    Open {
        out,
        start,
        sections: 0,
        section_start: 0,
    }
}

/// A record being built. Dropping it without `end` leaves an incomplete record in the buffer,
/// which no writer accepts; [`Open::abandon`] removes it.
pub struct Open<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    sections: u16,
    section_start: usize,
}

impl Open<'_> {
    /// Appends one section; `fill` appends its bytes.
    pub fn section(&mut self, kind: u8, cost: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        fill(self.begin_section(kind));
        self.end_section(cost);
    }

    /// Begins a section; append its bytes to the returned buffer, then call [`Open::end_section`].
    pub fn begin_section(&mut self, kind: u8) -> &mut Vec<u8> {
        self.section_start = self.out.len();
        self.out.extend_from_slice(&[kind, 0, 0, 0, 0, 0]);
        self.out
    }

    /// The buffer, to which the caller appends bytes of the current section.
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Ends the current section; `cost` is an argument here because it may be known only now.
    pub fn end_section(&mut self, cost: u8) {
        let head = self.section_start;
        let length = (self.out.len() - head - SECTION_HEAD_LEN) as u32;
        self.out[head + 1] = cost;
        self.out[head + 2..head + 6].copy_from_slice(&length.to_le_bytes());
        self.sections += 1;
    }

    /// Removes the current section.
    pub fn abandon_section(&mut self) {
        self.out.truncate(self.section_start);
    }

    /// Completes the record; returns its length in bytes.
    pub fn end(self) -> usize {
        let padded = (self.out.len() - self.start).next_multiple_of(ALIGN);
        self.out.resize(self.start + padded, 0);
        let record = &mut self.out[self.start..];
        record[0..4].copy_from_slice(&(padded as u32).to_le_bytes());
        record[42..44].copy_from_slice(&self.sections.to_le_bytes());
        padded
    }

    /// Removes the whole record.
    pub fn abandon(self) {
        self.out.truncate(self.start);
    }
}

/// Appends an event: one line for people.
pub fn push_event(out: &mut Vec<u8>, stamp: Stamp, line: &str) {
    push_text(out, &Head::text(stamp, RecordType::Event), line);
}

/// Appends a context: "key=value" lines.
pub fn push_context(out: &mut Vec<u8>, stamp: Stamp, lines: &str) {
    push_text(out, &Head::text(stamp, RecordType::Context), lines);
}

fn push_text(out: &mut Vec<u8>, head: &Head, text: &str) {
    let mut open = begin(out, head);
    open.section(0, 0, |out| out.extend_from_slice(text.as_bytes()));
    open.end();
}

/// A head as it lies on disk: its fields are plausible, its checksum is not verified.
#[derive(Clone, Copy, Debug)]
pub struct RawHead {
    /// Length of the whole record, in bytes.
    pub length: usize,
    /// CRC-32C of the epoch, the length, and all bytes after the checksum.
    pub crc: u32,
    /// Number of sections that follow.
    pub sections: u16,
    /// The decoded head.
    pub head: Head,
}

/// Decodes the head at the start of `bytes`; `None` if its fields are not plausible.
pub fn peek(bytes: &[u8]) -> Option<RawHead> {
    let bytes = bytes.get(..HEAD_LEN)?;
    let length = u32_at(bytes, 0) as usize;
    let (flags, record_type) = (bytes[41], RecordType::from_byte(bytes[40])?);
    let plausible = (HEAD_LEN..=RECORD_MAX).contains(&length)
        && length.is_multiple_of(ALIGN)
        && flags & !FLAG_KEY == 0
        && u64_at(bytes, 8) <= SEQ_MAX;
    plausible.then(|| RawHead {
        length,
        crc: u32_at(bytes, 4),
        sections: u16::from_le_bytes([bytes[42], bytes[43]]),
        head: Head {
            seq: u64_at(bytes, 8),
            stamp: Stamp {
                real_ns: u64_at(bytes, 16) as i64,
                mono_ns: u64_at(bytes, 24),
                boot_ns: u64_at(bytes, 32),
            },
            record_type,
            key: flags & FLAG_KEY != 0,
            missed: u32_at(bytes, 44),
        },
    })
}

/// Length of the record at the start of `bytes`; `None` if it is incomplete or cut short.
pub fn whole_len(bytes: &[u8]) -> Option<usize> {
    let raw = peek(bytes)?;
    let body = bytes.get(HEAD_LEN..raw.length)?;
    sections_fit(body, raw.sections).then_some(raw.length)
}

/// Writes sequence number and checksum into a complete record.
pub fn seal(record: &mut [u8], epoch: u64, seq: u64) {
    record[8..16].copy_from_slice(&seq.to_le_bytes());
    let crc = crc32c::crc32c_append(crc_start(epoch, record.len()), &record[8..]);
    record[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// The checksum of the bytes before byte 8 of a record's input: the epoch and the length.
pub(crate) fn crc_start(epoch: u64, length: usize) -> u32 {
    let crc = crc32c::crc32c(&epoch.to_le_bytes());
    crc32c::crc32c_append(crc, &(length as u32).to_le_bytes())
}

/// A record whose checksum and sections have been verified.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The decoded head.
    pub head: Head,
    /// Length of the record, in bytes.
    pub length: usize,
    body: &'a [u8],
    count: u16,
}

/// Parses and verifies the record at the start of `bytes`; the error describes the fault.
pub fn parse(bytes: &[u8], epoch: u64) -> Result<Record<'_>, &'static str> {
    let raw = peek(bytes).ok_or("bad head")?;
    let record = bytes.get(..raw.length).ok_or("cut short")?;
    if crc32c::crc32c_append(crc_start(epoch, raw.length), &record[8..]) != raw.crc {
        return Err("bad checksum");
    }
    if !sections_fit(&record[HEAD_LEN..], raw.sections) {
        return Err("bad sections");
    }
    Ok(Record {
        head: raw.head,
        length: raw.length,
        body: &record[HEAD_LEN..],
        count: raw.sections,
    })
}

/// Parses a record that has no sequence number and checksum yet, such as one from the sampler's
/// queue; never for bytes from a disk.
pub fn parse_unsealed(bytes: &[u8]) -> Result<Record<'_>, &'static str> {
    let raw = peek(bytes).ok_or("bad head")?;
    let record = bytes.get(..raw.length).ok_or("cut short")?;
    if !sections_fit(&record[HEAD_LEN..], raw.sections) {
        return Err("bad sections");
    }
    Ok(Record {
        head: raw.head,
        length: raw.length,
        body: &record[HEAD_LEN..],
        count: raw.sections,
    })
}

fn sections_fit(mut body: &[u8], count: u16) -> bool {
    for _ in 0..count {
        match split_section(body) {
            Some((_, rest)) => body = rest,
            None => return false,
        }
    }
    body.len() < ALIGN
}

fn split_section(body: &[u8]) -> Option<(Section<'_>, &[u8])> {
    let (head, rest) = body.split_at_checked(SECTION_HEAD_LEN)?;
    let (bytes, rest) = rest.split_at_checked(u32_at(head, 2) as usize)?;
    let section = Section {
        kind: head[0],
        cost: head[1],
        bytes,
    };
    Some((section, rest))
}

impl<'a> Record<'a> {
    /// The sections, in order.
    pub fn sections(&self) -> impl Iterator<Item = Section<'a>> + use<'a> {
        let mut body = self.body;
        (0..self.count).map_while(move |_| {
            let (section, rest) = split_section(body)?;
            body = rest;
            Some(section)
        })
    }

    /// The text of an event or a context; invalid UTF-8 is replaced by U+FFFD.
    pub fn text(&self) -> std::borrow::Cow<'a, str> {
        let first = self.sections().next();
        String::from_utf8_lossy(first.map_or(&[], |section| section.bytes))
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut array = [0; 4];
    array.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(array)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut array = [0; 8];
    array.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(array)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp {
        real_ns: -5,
        mono_ns: 7,
        boot_ns: 9,
    };

    fn example() -> Vec<u8> {
        let mut out = Vec::new();
        let mut open = begin(&mut out, &Head::sample(STAMP, true, 3));
        open.section(1, 10, |out| out.extend_from_slice(b"cpu"));
        open.begin_section(2).extend_from_slice(b"taken back");
        open.abandon_section();
        open.begin_section(2);
        open.end_section(255);
        let length = open.end();
        assert_eq!(length, out.len());
        seal(&mut out, 77, 42);
        out
    }

    #[test]
    fn what_is_built_is_parsed() {
        let bytes = example();
        let record = parse(&bytes, 77).unwrap();
        let expected = Head {
            seq: 42,
            ..Head::sample(STAMP, true, 3)
        };
        assert_eq!(record.head, expected);
        let sections: Vec<_> = record
            .sections()
            .map(|s| (s.kind, s.cost, s.bytes))
            .collect();
        assert_eq!(sections, [(1, 10, &b"cpu"[..]), (2, 255, b"")]);
    }

    #[test]
    fn texts() {
        let mut bytes = Vec::new();
        push_event(&mut bytes, STAMP, "wall clock stepped");
        seal(&mut bytes, 1, 1);
        let record = parse(&bytes, 1).unwrap();
        assert_eq!(record.head.record_type, RecordType::Event);
        assert_eq!(record.text(), "wall clock stepped");
    }

    #[test]
    fn a_wrong_epoch_a_cut_or_a_flipped_bit_is_refused() {
        let bytes = example();
        assert!(parse(&bytes, 78).is_err());
        for length in 0..bytes.len() {
            assert!(parse(&bytes[..length], 77).is_err(), "cut at {length}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&flipped, 77).is_err(), "bit {bit}");
        }
    }
}
