//! Samples in a block: a frame has entries, each with samples of one series. Layout: docs/formats/store.md, "Samples".

use crate::layout::STRIPE;
use crate::segment::point_column::{PointDecoder, PointEncoder, SAMPLES_MAX};
use crate::wal::point::Point;
use kymo_base::varint::{put_bytes, put_count, take, take_bytes};

/// Largest number of samples of one member that are read from a frame.
const MEMBER_SAMPLES_MAX: usize = 1 << 22;
/// Offset of the member in an entry's first byte.
const SAMPLES: u8 = 32;

/// Encodes entries, reusing its memory.
#[derive(Default)]
pub(crate) struct SamplesWriter {
    encoder: PointEncoder,
    entry: Vec<u8>,
    run: Vec<Point>,
}

impl SamplesWriter {
    /// Begins a frame.
    pub(crate) fn begin(&mut self) {
        self.encoder.begin();
    }

    /// Appends the samples of a member of the stripe, sorted by time. Each entry begins with the sample before it, at first
    /// with `before`, the last saved one, so that the growth of a counter is known from each entry alone.
    pub(crate) fn put(
        &mut self,
        out: &mut Vec<u8>,
        member: u8,
        before: Option<Point>,
        points: &[Point],
    ) {
        let mut before = before;
        for part in points.chunks(SAMPLES_MAX - 1) {
            self.run.clear();
            self.run.extend(before);
            self.run.extend_from_slice(part);
            self.entry.clear();
            self.encoder.put(&mut self.entry, &self.run);
            put_entry(
                out,
                &SamplesEntry {
                    member,
                    count: self.run.len(),
                    has_before: before.is_some(),
                    bytes: &self.entry,
                },
            );
            before = part.last().copied();
        }
    }
}

/// Samples of one member.
pub(crate) struct SamplesEntry<'a> {
    pub(crate) member: u8,
    /// Number of samples, including the one before.
    pub(crate) count: usize,
    /// The first sample is also in an earlier entry.
    pub(crate) has_before: bool,
    bytes: &'a [u8],
}

impl SamplesEntry<'_> {
    /// Appends the samples, including the one before; `None` if the entry is damaged.
    pub(crate) fn read(&self, decoder: &mut PointDecoder, out: &mut Vec<Point>) -> Option<()> {
        decoder.read(self.bytes, self.count, out)
    }

    /// Skips the entry.
    pub(crate) fn skip(&self, decoder: &mut PointDecoder) -> Option<()> {
        decoder.skip(self.bytes, self.count)
    }
}

fn put_entry(out: &mut Vec<u8>, entry: &SamplesEntry<'_>) {
    out.push(SAMPLES | entry.member);
    put_count(out, entry.count << 1 | usize::from(entry.has_before));
    put_bytes(out, entry.bytes);
}

/// The entries of a frame, up to the first invalid one.
pub(crate) fn each_entry(mut raw: &[u8]) -> impl Iterator<Item = SamplesEntry<'_>> {
    std::iter::from_fn(move || take_entry(&mut raw))
}

fn take_entry<'a>(raw: &mut &'a [u8]) -> Option<SamplesEntry<'a>> {
    let (&kind, rest) = raw.split_first()?;
    *raw = rest;
    let member = kind.checked_sub(SAMPLES)?;
    let count = take(raw)?;
    let bytes = take_bytes(raw, usize::MAX)?;
    let entry = SamplesEntry {
        member,
        count: usize::try_from(count >> 1).ok()?,
        has_before: count & 1 == 1,
        bytes,
    };
    (usize::from(member) < STRIPE).then_some(entry)
}

/// The second of the oldest sample of a frame; `None` if it is before 1970 or the frame is damaged.
pub(crate) fn oldest_second(raw: &[u8]) -> Option<u64> {
    let (mut decoder, mut points) = (PointDecoder::default(), Vec::new());
    let mut oldest = i64::MAX;
    for entry in each_entry(raw) {
        points.clear();
        entry.read(&mut decoder, &mut points)?;
        let mine = points.iter().skip(usize::from(entry.has_before));
        oldest = mine.fold(oldest, |oldest, point| oldest.min(point.t_ms));
    }
    u64::try_from(oldest.div_euclid(1000)).ok()
}

/// Returns true if the whole frame can be decoded.
pub(crate) fn are_samples(mut raw: &[u8]) -> bool {
    let (mut decoder, mut out) = (PointDecoder::default(), Vec::new());
    while !raw.is_empty() {
        out.clear();
        let entry = take_entry(&mut raw);
        if entry
            .and_then(|entry| entry.read(&mut decoder, &mut out))
            .is_none()
        {
            return false;
        }
    }
    true
}

/// Appends the samples of one member, without those that are also in other entries; `None` if the frame is damaged.
pub(crate) fn read_member(raw: &[u8], member: u8, out: &mut Vec<Point>) -> Option<()> {
    let mut decoder = PointDecoder::default();
    for entry in each_entry(raw) {
        if entry.member != member {
            entry.skip(&mut decoder)?;
            continue;
        }
        let first = out.len();
        entry.read(&mut decoder, out)?;
        if entry.has_before {
            out.remove(first);
        }
        if out.len() > MEMBER_SAMPLES_MAX {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back() {
        let point = |t_ms, v| Point { t_ms, v };
        let many: Vec<Point> = (0..10_000).map(|t| point(t * 1000, t as f64)).collect();
        let (mut writer, mut raw) = (SamplesWriter::default(), Vec::new());
        writer.begin();
        writer.put(&mut raw, 3, None, &many[..2]);
        writer.put(&mut raw, 5, Some(point(-10, 0.5)), &many);
        assert!(are_samples(&raw));
        assert!(!are_samples(&raw[..raw.len() - 1]));
        for (member, expected) in [(3, &many[..2]), (5, &many[..]), (6, &[])] {
            let mut out = Vec::new();
            read_member(&raw, member, &mut out).unwrap();
            assert_eq!(out, expected, "{member}");
        }
        let entries: Vec<(usize, bool)> = each_entry(&raw)
            .map(|entry| (entry.count, entry.has_before))
            .collect();
        assert_eq!(entries[..2], [(2, false), (4096, true)]);
        assert_eq!(entries.len(), 4);
    }
}
