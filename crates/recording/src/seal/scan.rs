//! The first pass over a tail: finds its valid records
//! and the length of each stream of its block.

use crate::block::{HEADS, Index};
use crate::folder::BlockName;
use crate::heads;
use crate::record::{HEAD_LEN, RawHead, RecordType, SECTION_HEAD_LEN, u32_at};
use crate::tail::{Step, TailHeader, Walk, Window};
use kymo_base::varint;
use kymo_sys::clock::Stamp;
use kymo_sys::disk::DiskFile;

/// Result of the first pass over a tail.
pub(crate) struct Scan {
    pub(crate) records: u32,
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) damages: u64,
    /// The streams of the block, in order.
    pub(super) streams: Vec<Planned>,
    pub(super) end: u64,
    samples: u32,
    keys: u32,
    real_min_ns: i64,
    real_max_ns: i64,
    first: Stamp,
    last: Stamp,
    context_len: usize,
}

/// Id and length of a future stream.
#[derive(Clone, Copy, Default)]
pub(super) struct Planned {
    /// A kind, or [`HEADS`].
    pub(super) id: u16,
    /// Number of sections; in the heads stream, number of records.
    pub(super) sections: u32,
    pub(super) raw_len: u64,
}

impl Planned {
    fn add(&mut self, bytes: usize) {
        self.sections += 1;
        self.raw_len += bytes as u64;
    }
}

impl Scan {
    fn new(header: &TailHeader, end: u64) -> Self {
        Scan {
            records: 0,
            first_seq: 0,
            last_seq: 0,
            damages: 0,
            streams: Vec::new(),
            end,
            samples: 0,
            keys: 0,
            real_min_ns: i64::MAX,
            real_max_ns: i64::MIN,
            first: Stamp::default(),
            last: Stamp::default(),
            context_len: header.context.as_ref().map_or(0, String::len),
        }
    }

    fn add(&mut self, raw: &RawHead) {
        let head = &raw.head;
        if self.records == 0 {
            (self.first_seq, self.first) = (head.seq, head.stamp);
        }
        (self.last_seq, self.last) = (head.seq, head.stamp);
        self.real_min_ns = self.real_min_ns.min(head.stamp.real_ns);
        self.real_max_ns = self.real_max_ns.max(head.stamp.real_ns);
        self.records += 1;
        self.samples += u32::from(head.record_type == RecordType::Sample);
        self.keys += u32::from(head.key);
    }

    pub(super) fn name(&self) -> BlockName {
        let seconds = |ns: i64| (ns.max(0) / 1_000_000_000) as u64;
        BlockName {
            first_seq: self.first_seq,
            wall_min_s: seconds(self.real_min_ns),
            wall_max_s: seconds(self.real_max_ns),
        }
    }

    /// Returns the block's index, without streams.
    pub(super) fn index(&self) -> Index {
        Index {
            first_seq: self.first_seq,
            last_seq: self.last_seq,
            real_min_ns: self.real_min_ns,
            real_max_ns: self.real_max_ns,
            first: self.first,
            last: self.last,
            records: self.records,
            samples: self.samples,
            keys: self.keys,
            streams: Vec::new(),
        }
    }

    /// Upper bound of the block's length: zstd stores incompressible bytes as they are.
    pub(crate) fn block_bytes_max(&self) -> u64 {
        let bytes: u64 = self.streams.iter().map(|stream| stream.raw_len).sum();
        let parts = self.streams.len() as u64 + 1;
        bytes + bytes / 64 + self.context_len as u64 + 1024 * parts
    }
}

/// Scans a tail, whose records all lie in the first `end` bytes.
pub(crate) fn scan(file: &dyn DiskFile, header: &TailHeader, end: u64) -> Scan {
    let (mut window, mut walk) = (Window::new(file, end), Walk::new(header));
    let (mut scan, mut heads) = (Scan::new(header, end), HeadsPass::default());
    let mut streams = vec![Planned::default(); 257];
    loop {
        match walk.step(&mut window) {
            Step::Record(offset, raw) => {
                scan.add(&raw);
                let (head, text) = heads.encode(&mut window, offset, &raw);
                streams[usize::from(HEADS)].add(head.len() + text.1);
                each_section(&mut window, offset, &raw, &mut |_, kind, _, _, length| {
                    streams[usize::from(kind)].add(varint::len(length as u64) + length);
                });
            }
            Step::Damage { .. } => scan.damages += 1,
            Step::End => break,
        }
    }
    // The heads stream first, then the kinds in ascending order.
    for id in std::iter::once(HEADS).chain(0..HEADS) {
        let stream = streams[usize::from(id)];
        if stream.sections > 0 {
            scan.streams.push(Planned { id, ..stream });
        }
    }
    scan
}

pub(super) type EachSection<'a> = dyn FnMut(&mut Window<'_>, u8, u8, u64, usize) + 'a;

/// Calls `each` with the kind, cost, offset and length of each section of a sample.
pub(super) fn each_section(
    window: &mut Window<'_>,
    offset: u64,
    raw: &RawHead,
    each: &mut EachSection<'_>,
) {
    if raw.head.record_type == RecordType::Sample {
        each_part(window, offset, raw, each);
    }
}

fn each_part(window: &mut Window<'_>, offset: u64, raw: &RawHead, each: &mut EachSection<'_>) {
    let (mut at, end) = (offset + HEAD_LEN as u64, offset + raw.length as u64);
    for _ in 0..raw.sections {
        let Some(&[kind, cost, ref length @ ..]) = window
            .get(at, SECTION_HEAD_LEN)
            .first_chunk::<SECTION_HEAD_LEN>()
        else {
            return;
        };
        let length = u32_at(length, 0) as usize;
        at += SECTION_HEAD_LEN as u64;
        if length as u64 > end.saturating_sub(at) {
            return;
        }
        each(window, kind, cost, at, length);
        at += length as u64;
    }
}

/// Encodes the heads of a tail's records, one after the other.
#[derive(Default)]
pub(super) struct HeadsPass {
    encoder: heads::Encoder,
    kinds: Vec<u8>,
    costs: Vec<u8>,
    bytes: Vec<u8>,
}

impl HeadsPass {
    /// Returns the encoded head of a record, and the
    /// offset and length of the text that must follow it.
    pub(super) fn encode(
        &mut self,
        window: &mut Window<'_>,
        offset: u64,
        raw: &RawHead,
    ) -> (&[u8], (u64, usize)) {
        self.kinds.clear();
        self.costs.clear();
        self.bytes.clear();
        let mut text = (offset, 0);
        if raw.head.record_type == RecordType::Sample {
            each_part(window, offset, raw, &mut |_, kind, cost, _, _| {
                self.kinds.push(kind);
                self.costs.push(cost);
            });
            let (kinds, costs) = (&self.kinds, &self.costs);
            self.encoder
                .sample(&mut self.bytes, &raw.head, kinds, costs);
        } else {
            each_part(window, offset, raw, &mut |_, _, _, at, length| {
                text = (at, length);
            });
            self.encoder.text(&mut self.bytes, &raw.head, text.1);
        }
        (&self.bytes, text)
    }
}
