//! Reading a tail, which a recorder may be writing: what comes to its end is asked again.

use super::ahead::tail_order;
use super::{Cursor, Part, Place, Ready, context_head, give, lost_context};
use crate::error::Result;
use crate::reader::Kinds;
use crate::record::{self, Head, RecordType};
use crate::tail::{Step, TailHeader, Walk, Window};
use kymo_sys::disk::{DiskFile, OpenMode};
use std::path::PathBuf;

/// A tail's header is this much younger than its first sample at most, in nanoseconds.
const TAIL_SLACK_NS: i64 = 60_000_000_000;

pub(super) struct OpenTail {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    pub(super) header: TailHeader,
    walk: Walk,
    pub(super) record: Vec<u8>,
    /// What was read ahead.
    read: (u64, Vec<u8>),
}

impl Cursor {
    // ---- tails

    pub(super) fn enter_tail(&mut self, path: PathBuf, header: TailHeader) -> Result<bool> {
        let early = header.stamp.real_ns.saturating_sub(TAIL_SLACK_NS);
        if early > self.range.thru_ns {
            self.newest_tail = Some(tail_order(&header));
            return self.enter_next();
        }
        let Ok(file) = self.recording.disk.open(&path, OpenMode::Read) else {
            return Ok(false);
        };
        let head = Head {
            seq: header.first_seq,
            ..Head::sample(header.stamp, false, 0)
        };
        self.ready.push_back(match &header.context {
            Some(context) => Ready::Text(context_head(&head), context.clone()),
            None => lost_context(&path, header.first_seq),
        });
        self.place = Place::Tail(Box::new(OpenTail {
            path,
            file,
            walk: Walk::new(&header),
            header,
            record: Vec::new(),
            read: (0, Vec::new()),
        }));
        Ok(true)
    }

    /// `false` when the recorder has not written more.
    pub(super) fn step_tail(&mut self) -> Result<bool> {
        let Place::Tail(tail) = &mut self.place else {
            return Ok(true);
        };
        let size = tail.file.metadata().map_or(0, |stat| stat.size_bytes);
        let read = std::mem::take(&mut tail.read);
        let mut window = Window::resume(&*tail.file, size, read);
        let mut ended = false;
        // Records are taken until one is to be given, or there are no more.
        while self.ready.is_empty() && !ended {
            match tail.walk.step(&mut window) {
                Step::Record(offset, raw) => {
                    let read = read_record(&mut window, offset, raw.length, &mut tail.record);
                    let record = record::parse(&tail.record, tail.header.epoch);
                    match record {
                        Ok(record) if read => {
                            let given = tail_record(&record, &self.kinds);
                            give(&mut self.chain, &self.range, &mut self.ready, given);
                        }
                        _ => {
                            let message = format!("{} changed while read", tail.path.display());
                            self.chain.damaged(raw.head.seq, message);
                        }
                    }
                }
                Step::Damage { from, to } => {
                    let message = format!(
                        "cannot read bytes {from} to {to} of {}: bad checksum, or what it needs is lost",
                        tail.path.display()
                    );
                    self.chain
                        .damaged(tail.walk.last_seq.wrapping_add(1), message);
                }
                Step::End => ended = true,
            }
        }
        self.bytes_read += window.bytes_read;
        tail.read = window.into_read();
        if ended { self.leave_tail() } else { Ok(true) }
    }

    /// The tail has no more records: is it still the one that is written?
    fn leave_tail(&mut self) -> Result<bool> {
        let Place::Tail(tail) = &self.place else {
            return Ok(true);
        };
        let (path, header) = (tail.path.clone(), tail.header.clone());
        self.look_around()?;
        let still = self
            .tails
            .iter()
            .any(|(at, now)| *at == path && now.epoch == header.epoch);
        let later = self
            .tails
            .iter()
            .any(|(_, now)| tail_order(now) > tail_order(&header));
        if still && !later && self.queue.is_empty() {
            return Ok(false);
        }
        // The recorder went on elsewhere; what it wrote here until then is complete now.
        let Place::Tail(tail) = &mut self.place else {
            return Ok(true);
        };
        let size = tail.file.metadata().map_or(0, |stat| stat.size_bytes);
        let mut window = Window::new(&*tail.file, size);
        if still && !matches!(tail.walk.clone().step(&mut window), Step::End) {
            return Ok(true);
        }
        // Only if the tail was not overwritten meanwhile has all of it been seen.
        let same = TailHeader::read(&*tail.file).is_ok_and(|now| now.as_ref() == Ok(&header));
        if still && same {
            self.newest_tail = self.newest_tail.max(Some(tail_order(&header)));
        }
        self.place = Place::Between;
        Ok(true)
    }
}

fn tail_record(record: &record::Record<'_>, kinds: &Kinds) -> Ready {
    if record.head.record_type != RecordType::Sample {
        return Ready::Text(record.head, record.text().into_owned());
    }
    let mut at = record::HEAD_LEN;
    let mut parts = Vec::new();
    for section in record.sections() {
        let start = at + record::SECTION_HEAD_LEN;
        at = start + section.bytes.len();
        if kinds.contains(section.kind) {
            parts.push(Part {
                kind: section.kind,
                cost: section.cost,
                start,
                end: at,
            });
        }
    }
    Ready::Sample(record.head, false, parts)
}

fn read_record(window: &mut Window<'_>, offset: u64, length: usize, out: &mut Vec<u8>) -> bool {
    out.clear();
    window.pieces(offset, length, &mut |piece| out.extend_from_slice(piece));
    out.len() == length
}
