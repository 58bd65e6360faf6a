//! The heads stream of a block: all of each record but the bytes of its sections, namely
//! sequence numbers, stamps, kinds, costs, and the texts of events and contexts.
//!
//! Stamps are stored as differences of differences, so a steady recorder needs a few bytes a
//! record.
//! Layout: docs/formats/recording.md, "Heads stream".

use crate::record::{Head, RecordType};
use kymo_base::varint;
use kymo_sys::clock::Stamp;
use std::ops::Range;

const TYPE_MASK: u8 = 0b11;
const KEY: u8 = 1 << 2;
const MISSED: u8 = 1 << 3;
const LEAP: u8 = 1 << 4;
const SAME_KINDS: u8 = 1 << 5;
const KNOWN: u8 = TYPE_MASK | KEY | MISSED | LEAP | SAME_KINDS;

/// The previous record's values, to which the next record is stored as a difference.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    seq: u64,
    stamp: Stamp,
    mono_step: i64,
}

impl Before {
    fn moved_to(&self, head: &Head) -> Before {
        Before {
            seq: head.seq,
            stamp: head.stamp,
            mono_step: step(self.stamp.mono_ns, head.stamp.mono_ns),
        }
    }
}

fn step(from: u64, to: u64) -> i64 {
    to.wrapping_sub(from) as i64
}

/// Encodes the heads of successive records.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    before: Before,
    kinds: Vec<u8>,
}

impl Encoder {
    /// Appends the head of a sample; `kinds` and `costs` have one byte for each section.
    pub(crate) fn sample(&mut self, out: &mut Vec<u8>, head: &Head, kinds: &[u8], costs: &[u8]) {
        let same = self.kinds == kinds;
        self.head(out, head, if same { SAME_KINDS } else { 0 });
        if !same {
            varint::put(out, kinds.len() as u64);
            out.extend_from_slice(kinds);
            self.kinds.clear();
            self.kinds.extend_from_slice(kinds);
        }
        out.extend_from_slice(costs);
    }

    /// Appends the head of an event or a context; the
    /// caller then appends `length` bytes of text.
    pub(crate) fn text(&mut self, out: &mut Vec<u8>, head: &Head, length: usize) {
        self.head(out, head, 0);
        varint::put(out, length as u64);
    }

    fn head(&mut self, out: &mut Vec<u8>, head: &Head, more: u8) {
        let before = self.before;
        let leap = head.seq.wrapping_sub(before.seq);
        let mut tag = head.record_type as u8 | more;
        for (bit, set) in [
            (KEY, head.key),
            (MISSED, head.missed > 0),
            (LEAP, leap != 1),
        ] {
            tag |= if set { bit } else { 0 };
        }
        out.push(tag);
        let mono = step(before.stamp.mono_ns, head.stamp.mono_ns);
        let real = step(before.stamp.real_ns as u64, head.stamp.real_ns as u64);
        let boot = step(before.stamp.boot_ns, head.stamp.boot_ns);
        varint::put_signed(out, mono.wrapping_sub(before.mono_step));
        varint::put_signed(out, real.wrapping_sub(mono));
        varint::put_signed(out, boot.wrapping_sub(mono));
        if head.missed > 0 {
            varint::put(out, u64::from(head.missed));
        }
        if leap != 1 {
            varint::put(out, leap);
        }
        self.before = before.moved_to(head);
    }
}

/// The head of one record; the ranges are positions in the stream.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) head: Head,
    pub(crate) kinds: Range<usize>,
    pub(crate) costs: Range<usize>,
    pub(crate) text: Range<usize>,
}

/// Decodes a heads stream, one record for each call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoder {
    before: Before,
    kinds: Range<usize>,
    at: usize,
}

impl Decoder {
    /// Decodes the next record. After `Some(Err(..))` the rest of the stream is unreadable.
    pub(crate) fn next(&mut self, stream: &[u8]) -> Option<Result<Entry, &'static str>> {
        if self.at >= stream.len() {
            return None;
        }
        let entry = self.entry(stream).ok_or("bad heads stream");
        if entry.is_err() {
            self.at = stream.len();
        }
        Some(entry)
    }

    fn entry(&mut self, stream: &[u8]) -> Option<Entry> {
        let tag = *stream.get(self.at)?;
        self.at += 1;
        let head = self.head(stream, tag)?;
        let mut entry = Entry {
            head,
            kinds: 0..0,
            costs: 0..0,
            text: 0..0,
        };
        if head.record_type == RecordType::Sample {
            if tag & SAME_KINDS == 0 {
                self.kinds = self.counted(stream)?;
            }
            entry.kinds = self.kinds.clone();
            entry.costs = self.range(stream, self.kinds.len())?;
        } else {
            entry.text = self.counted(stream)?;
        }
        self.before = self.before.moved_to(&head);
        Some(entry)
    }

    fn head(&mut self, stream: &[u8], tag: u8) -> Option<Head> {
        let record_type = RecordType::from_byte(tag & TYPE_MASK).filter(|_| tag & !KNOWN == 0)?;
        let before = self.before;
        let mono = self.signed(stream)?.wrapping_add(before.mono_step);
        let real = self.signed(stream)?.wrapping_add(mono);
        let boot = self.signed(stream)?.wrapping_add(mono);
        let missed = match tag & MISSED {
            0 => 0,
            _ => u32::try_from(varint::take_at(stream, &mut self.at)?).ok()?,
        };
        let leap = match tag & LEAP {
            0 => 1,
            _ => varint::take_at(stream, &mut self.at)?,
        };
        Some(Head {
            seq: before.seq.wrapping_add(leap),
            stamp: Stamp {
                real_ns: before.stamp.real_ns.wrapping_add(real),
                mono_ns: before.stamp.mono_ns.wrapping_add(mono as u64),
                boot_ns: before.stamp.boot_ns.wrapping_add(boot as u64),
            },
            record_type,
            key: tag & KEY != 0,
            missed,
        })
    }

    fn signed(&mut self, stream: &[u8]) -> Option<i64> {
        varint::take_signed_at(stream, &mut self.at)
    }

    fn counted(&mut self, stream: &[u8]) -> Option<Range<usize>> {
        let length = usize::try_from(varint::take_at(stream, &mut self.at)?).ok()?;
        self.range(stream, length)
    }

    fn range(&mut self, stream: &[u8], length: usize) -> Option<Range<usize>> {
        let end = self.at.checked_add(length)?;
        let range = self.at..end;
        stream.get(range.clone())?;
        self.at = end;
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_head() -> impl Strategy<Value = (Head, Vec<u8>)> {
        let stamp = any::<(i64, u64, u64)>().prop_map(|(real_ns, mono_ns, boot_ns)| Stamp {
            real_ns,
            mono_ns,
            boot_ns,
        });
        let kinds = prop_oneof![
            Just(vec![1, 2, 3]),
            proptest::collection::vec(any::<u8>(), 0..5)
        ];
        let head = (any::<u64>(), stamp, 1u8..4, any::<bool>(), any::<u32>());
        (head, kinds).prop_map(|((seq, stamp, byte, key, missed), kinds)| {
            let record_type = RecordType::from_byte(byte).unwrap();
            let missed = if missed % 2 == 0 { 0 } else { missed };
            let head = Head {
                seq,
                stamp,
                record_type,
                key,
                missed,
            };
            (head, kinds)
        })
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(records in proptest::collection::vec(any_head(), 0..20)) {
            let (mut encoder, mut stream) = (Encoder::default(), Vec::new());
            for (head, kinds) in &records {
                if head.record_type == RecordType::Sample {
                    encoder.sample(&mut stream, head, kinds, kinds);
                } else {
                    encoder.text(&mut stream, head, kinds.len());
                    stream.extend_from_slice(kinds);
                }
            }
            let mut decoder = Decoder::default();
            for (head, kinds) in &records {
                let entry = decoder.next(&stream).unwrap().unwrap();
                prop_assert_eq!(&entry.head, head);
                if head.record_type == RecordType::Sample {
                    prop_assert_eq!(&stream[entry.kinds], &kinds[..]);
                    prop_assert_eq!(&stream[entry.costs], &kinds[..]);
                } else {
                    prop_assert_eq!(&stream[entry.text], &kinds[..]);
                }
            }
            prop_assert!(decoder.next(&stream).is_none());
        }

        #[test]
        fn any_bytes_end(stream in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = Decoder::default();
            while decoder.next(&stream).is_some() {}
        }
    }
}
