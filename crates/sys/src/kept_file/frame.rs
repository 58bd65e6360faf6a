//! The bytes of a kept file: a head that is there twice, and records that a reader finds again behind damage. Reads
//! version 0, too.

use std::ops::Range;

use super::{Contents, Found, Kind};

/// Signature, version, checksum, generation.
const HEAD: usize = 24;
const SECOND_HEAD: usize = 512;
const RECORDS: usize = 1024;
/// Mark, length, checksum of the two, checksum of the body.
const FRAME: usize = 16;
/// Length and checksum of a record of version 0.
const OLD_FRAME: usize = 8;
/// Most bytes of version 0 that are looked at behind damage, for each byte there is: its records have no marks.
const OLD_LOOKS: usize = 64;

/// Records on their way into a file, each with its frame.
pub struct Records {
    pub(super) bytes: Vec<u8>,
    generation: u64,
    /// Offset of the records in the file.
    from: usize,
}

impl Records {
    /// Records of a whole file, with its head.
    pub(super) fn whole(kind: &Kind, generation: u64) -> Records {
        let mut bytes = vec![0; RECORDS];
        let mut head = kind.magic.to_vec();
        head.extend(kind.version.to_le_bytes());
        let checksum = head_checksum(&head, &generation.to_le_bytes());
        head.extend(checksum.to_le_bytes());
        head.extend(generation.to_le_bytes());
        for at in [0, SECOND_HEAD] {
            bytes[at..at + HEAD].copy_from_slice(&head);
        }
        Records {
            bytes,
            generation,
            from: 0,
        }
    }

    pub(super) fn at(generation: u64, from: usize) -> Records {
        Records {
            bytes: Vec::new(),
            generation,
            from,
        }
    }

    pub(super) fn follow(&self, end: usize) -> bool {
        self.from == end
    }

    /// Adds a record with the bytes that `put` appends.
    pub fn put(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend([0; FRAME]);
        put(&mut self.bytes);
        let length = self.bytes.len() - start - FRAME;
        self.bytes.resize(start + FRAME + padded(length), 0);
        let place = RecordPosition {
            generation: self.generation,
            position: self.from + start,
        };
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let (frame, body) = self.bytes[start..].split_at_mut(FRAME);
        frame[..4].copy_from_slice(&place.mark());
        frame[4..8].copy_from_slice(&length.to_le_bytes());
        let checksum = place.checksum(&frame[..8]);
        frame[8..12].copy_from_slice(&checksum);
        frame[12..].copy_from_slice(&place.checksum(body));
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if there is no record.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes back all but the first bytes.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }
}

/// A record counts in its place alone.
struct RecordPosition {
    generation: u64,
    position: usize,
}

impl RecordPosition {
    fn seed(&self) -> u64 {
        let position = u64::try_from(self.position).unwrap_or(u64::MAX);
        position.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.generation
    }

    /// Few places have these bytes by chance, so a search for the next record computes few checksums in vain.
    fn mark(&self) -> [u8; 4] {
        let [.., a, b, c, d] = self.seed().to_le_bytes();
        [a, b, c, d]
    }

    fn checksum(&self, bytes: &[u8]) -> [u8; 4] {
        let seed = crc32c::crc32c(&self.seed().to_le_bytes());
        crc32c::crc32c_append(seed, bytes).to_le_bytes()
    }
}

/// Records begin at multiples of 8.
fn padded(length: usize) -> usize {
    length.next_multiple_of(8)
}

fn head_checksum(front: &[u8], generation: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(front), generation)
}

/// Parses a file.
pub fn parse(bytes: Vec<u8>, kind: &Kind) -> Found {
    let heads = [0, SECOND_HEAD].map(|at| head(&bytes, at, kind));
    if let Some((version, generation)) = heads[0].or(heads[1]) {
        return match version > kind.version {
            true => Found::Newer(version),
            false => Found::Read(current(bytes, (version, generation), heads)),
        };
    }
    // In an old head with a checksum, a digit that the checksum does not cover is damage.
    let is_sound = !kind.old.has_generation || old_generation(&bytes).is_some();
    if let Some(version) = old_version(&bytes, kind)
        && version > kind.old.newest
        && is_sound
    {
        return Found::Newer(version);
    }
    let old = old(&bytes, kind);
    if old.records.is_empty() && old_version(&bytes, kind).is_none() {
        return Found::Read(headless(bytes));
    }
    Found::Read(Contents { bytes, ..old })
}

/// A file that was begun when the power failed is empty or has zeros alone.
fn headless(bytes: Vec<u8>) -> Contents {
    let is_blank = bytes.iter().all(|byte| *byte == 0);
    let all = 0..bytes.len();
    Contents {
        cut: (is_blank && !bytes.is_empty()).then_some(0),
        damage: if is_blank { Vec::new() } else { vec![all] },
        bytes,
        ..Contents::default()
    }
}

/// Version and generation. In all versions the first 24 bytes mean the same.
fn head(bytes: &[u8], at: usize, kind: &Kind) -> Option<(u32, u64)> {
    let (head, _) = bytes.get(at..)?.split_first_chunk::<HEAD>()?;
    let (front, rest) = head.split_first_chunk::<12>()?;
    let (checksum, generation) = rest.split_first_chunk::<4>()?;
    let version = front.strip_prefix(&kind.magic)?.first_chunk()?;
    let is_right = head_checksum(front, generation) == u32::from_le_bytes(*checksum);
    let generation = u64::from_le_bytes(*generation.first_chunk()?);
    is_right.then_some((u32::from_le_bytes(*version), generation))
}

fn current(
    bytes: Vec<u8>,
    (version, generation): (u32, u64),
    heads: [Option<(u32, u64)>; 2],
) -> Contents {
    let mut contents = Contents {
        version,
        generation,
        ..Contents::default()
    };
    for (head, at) in heads.into_iter().zip([0, SECOND_HEAD]) {
        let rest = bytes.get(at + HEAD..(at + RECORDS - SECOND_HEAD).min(bytes.len()));
        let has_zeros = rest.is_some_and(|rest| rest.iter().all(|byte| *byte == 0));
        if head.is_none() || !has_zeros {
            contents.damage.push(at..at + HEAD);
        }
    }
    let mut at = RECORDS;
    if bytes.len() < RECORDS {
        contents.cut = Some(bytes.len());
    }
    while at < bytes.len() {
        at = step(&bytes, at, generation, &mut contents);
    }
    contents.bytes = bytes;
    contents
}

/// Takes the record at a place, or skips to the next one.
fn step(bytes: &[u8], at: usize, generation: u64, contents: &mut Contents) -> usize {
    if let Some(length) = frame_at(bytes, at, generation) {
        let end = at + FRAME + padded(length);
        match bytes.get(at + FRAME..end) {
            None => contents.cut = Some(at),
            Some(body) if is_right(bytes, at, body, generation) => {
                contents.records.push(at + FRAME..at + FRAME + length);
            }
            Some(_) => contents.damage.push(at..end),
        }
        return end;
    }
    let next = (at + 8..bytes.len()).step_by(8);
    let next = next
        .into_iter()
        .find(|next| frame_at(bytes, *next, generation).is_some());
    let rest = bytes.get(at..).unwrap_or_default();
    match next {
        // A write that did not end: its first bytes are missing, or all of it is zeros.
        None if rest.len() < FRAME || rest.iter().all(|byte| *byte == 0) => contents.cut = Some(at),
        _ => contents.damage.push(at..next.unwrap_or(bytes.len())),
    }
    next.unwrap_or(bytes.len())
}

/// The length that a sound frame says.
fn frame_at(bytes: &[u8], position: usize, generation: u64) -> Option<usize> {
    let place = RecordPosition {
        generation,
        position,
    };
    let (frame, _) = bytes.get(position..)?.split_first_chunk::<FRAME>()?;
    let is_sound = frame[..4] == place.mark() && frame[8..12] == place.checksum(&frame[..8]);
    let length = u32::from_le_bytes(*frame[4..8].first_chunk()?);
    is_sound.then(|| usize::try_from(length).ok()).flatten()
}

fn is_right(bytes: &[u8], position: usize, body: &[u8], generation: u64) -> bool {
    let place = RecordPosition {
        generation,
        position,
    };
    bytes.get(position + 12..position + FRAME) == Some(&place.checksum(body)[..])
}

/// The digit of version 0, or of one that never was.
fn old_version(bytes: &[u8], kind: &Kind) -> Option<u32> {
    let digit = bytes.strip_prefix(&kind.old.magic)?.first()?;
    digit.is_ascii_digit().then(|| u32::from(digit - b'0'))
}

fn old(bytes: &[u8], kind: &Kind) -> Contents {
    let version = old_version(bytes, kind).filter(|version| *version <= kind.old.newest);
    let mut contents = Contents {
        version: version.unwrap_or(kind.old.newest),
        ..Contents::default()
    };
    let mut at = 8;
    if kind.old.has_generation {
        at = 20;
        contents.generation = old_generation(bytes).unwrap_or(0);
    }
    if version.is_none() || kind.old.has_generation && contents.generation == 0 {
        contents.damage.push(0..at);
    }
    let mut looks = bytes.len().saturating_mul(OLD_LOOKS);
    while at < bytes.len() {
        let found =
            (at..bytes.len()).find_map(|from| Some((from, old_record(bytes, from, &mut looks)?)));
        let from = found.as_ref().map_or(bytes.len(), |(from, _)| *from);
        if from > at {
            contents.damage.push(at..from);
        }
        at = found.as_ref().map_or(bytes.len(), |(_, body)| body.end);
        contents.records.extend(found.map(|(_, body)| body));
    }
    contents
}

fn old_generation(bytes: &[u8]) -> Option<u64> {
    let (front, rest) = bytes.split_first_chunk::<16>()?;
    let is_right = crc32c::crc32c(front) == u32::from_le_bytes(*rest.first_chunk()?);
    let generation = u64::from_le_bytes(*front.last_chunk()?);
    is_right.then_some(generation)
}

/// The body of a record of version 0, if there is one. A file can be made so that each place looks like one: looking ends.
fn old_record(bytes: &[u8], at: usize, looks: &mut usize) -> Option<Range<usize>> {
    let (frame, rest) = bytes.get(at..)?.split_first_chunk::<OLD_FRAME>()?;
    let (length, wanted) = frame.split_first_chunk::<4>()?;
    let count = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let body = rest.get(..count).filter(|body| !body.is_empty())?;
    *looks = looks.checked_sub(count)?;
    let checksum = crc32c::crc32c_append(crc32c::crc32c(length), body);
    let start = at + OLD_FRAME;
    (checksum.to_le_bytes() == *wanted).then_some(start..start + count)
}
