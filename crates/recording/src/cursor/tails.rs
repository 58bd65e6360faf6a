//! Reads a tail. A recorder may be writing it, so its end is checked again later.

use super::ahead::tail_order;
use super::{Cursor, OpenFile, Part, Ready, context_head, give, lost_context};
use crate::error::Result;
use crate::reader::Kinds;
use crate::record::{self, Head, RecordType};
use crate::tail::{Step, TailHeader, Walk, Window};
use kymo_sys::disk::{DiskFile, OpenMode};
use std::path::{Path, PathBuf};

/// Largest time from a tail's header to its first sample, in nanoseconds.
const TAIL_SLACK_NS: i64 = 60_000_000_000;

pub(super) struct OpenTail {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    pub(super) header: TailHeader,
    walk: Walk,
    pub(super) record: Vec<u8>,
    /// Offset and content of the read buffer, kept between calls.
    read: (u64, Vec<u8>),
    /// Last known size of the file; `None` if it may have grown since.
    size_bytes: Option<u64>,
}

impl Cursor {
    // ---- tails

    pub(super) fn enter_tail(&mut self, path: PathBuf, header: TailHeader) -> Result<bool> {
        let early = header.stamp.real_ns.saturating_sub(TAIL_SLACK_NS);
        if early > self.range.thru_ns {
            self.newest_tail = Some(tail_order(&header));
            self.beyond = true;
            return self.enter_next();
        }
        let Ok(file) = self.recording.disk.open(&path, OpenMode::Read) else {
            return Ok(false);
        };
        if !is_same(&*file, &header) {
            // The recorder has reused the tail since it was listed; its former records are in a block.
            self.look_around()?;
            return self.enter_next();
        }
        let head = Head {
            seq: header.first_seq,
            ..Head::sample(header.stamp, false, 0)
        };
        self.ready.push_back(match &header.context {
            Some(context) => Ready::Text(context_head(&head), context.clone()),
            None => lost_context(&path, header.first_seq),
        });
        let mut tail = Box::new(OpenTail {
            path,
            file,
            walk: Walk::new(&header),
            header,
            record: Vec::new(),
            read: (0, Vec::new()),
            size_bytes: None,
        });
        self.pass_over(&mut tail);
        self.place = OpenFile::Tail(tail);
        Ok(true)
    }

    /// Moves to the last key before the range, as in a block: of the records before that key, only the
    /// last context is needed.
    fn pass_over(&mut self, tail: &mut OpenTail) {
        let mut window = window(&*tail.file, &mut tail.size_bytes, &mut tail.read);
        let (mut walk, mut context, mut found) = (tail.walk.clone(), None, None);
        loop {
            let before = walk.clone();
            let Step::Record(offset, raw) = walk.step(&mut window) else {
                break;
            };
            if raw.head.stamp.real_ns >= self.range.from_ns {
                break;
            }
            match raw.head.record_type {
                RecordType::Sample if raw.head.key => found = Some((before, context)),
                RecordType::Context => context = Some((offset, raw.length)),
                _ => {}
            }
        }
        self.bytes_read += window.bytes_read;
        let Some((key, context)) = found.filter(|(key, _)| key.last_seq >= tail.header.first_seq)
        else {
            return;
        };
        if let Some((offset, length)) = context
            && read_record(&mut window, offset, length, &mut tail.record)
            && let Ok(record) = record::parse(&tail.record, tail.header.epoch)
        {
            let given = Ready::Text(context_head(&record.head), record.text().into_owned());
            self.ready.push_back(given);
        }
        self.chain.jump();
        tail.walk = key;
    }

    /// Reads on in the tail; returns `false` if the recorder has written no more.
    pub(super) fn step_tail(&mut self) -> Result<bool> {
        let OpenFile::Tail(tail) = &mut self.place else {
            return Ok(true);
        };
        let mut window = window(&*tail.file, &mut tail.size_bytes, &mut tail.read);
        let (mut ended, mut again) = (false, false);
        // Reads records until one is to be returned or the tail ends.
        while self.ready.is_empty() && !ended && !again {
            match tail.walk.step(&mut window) {
                Step::Record(offset, raw) => {
                    let read = read_record(&mut window, offset, raw.length, &mut tail.record);
                    let record = record::parse(&tail.record, tail.header.epoch);
                    match record {
                        Ok(record) if read => {
                            let given = tail_record(&record, &self.kinds);
                            give(&mut self.chain, &self.range, &mut self.ready, given);
                        }
                        _ if !is_same(&*tail.file, &tail.header) => again = true,
                        _ => {
                            let message = format!("{} changed while read", tail.path.display());
                            self.chain.damaged(raw.head.seq, message);
                        }
                    }
                }
                Step::Damage { .. } if !is_same(&*tail.file, &tail.header) => again = true,
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
        if ended {
            tail.size_bytes = None;
        }
        if again {
            // The recorder reused the tail during the read. This
            // is no damage: its former records are in a block.
            self.place = OpenFile::Between;
            self.look_around()?;
            return Ok(true);
        }
        if ended { self.leave_tail() } else { Ok(true) }
    }

    /// At the end of a tail: decides if the recorder still writes to it.
    fn leave_tail(&mut self) -> Result<bool> {
        let OpenFile::Tail(tail) = &self.place else {
            return Ok(true);
        };
        let (path, header) = (tail.path.clone(), tail.header.clone());
        // Usually it does, and a check of the tails alone avoids listing a thousand blocks each second.
        self.look_at_tails()?;
        if self.queue.is_empty() && self.is_newest(&path, &header) {
            return Ok(false);
        }
        self.look_around()?;
        if self.queue.is_empty() && self.is_newest(&path, &header) {
            return Ok(false);
        }
        let still = self.has_tail(&path, &header);
        // The recorder has switched to another tail, so this tail is complete.
        let OpenFile::Tail(tail) = &mut self.place else {
            return Ok(true);
        };
        let size = tail.file.metadata().map_or(0, |stat| stat.size_bytes);
        let mut window = Window::new(&*tail.file, size);
        if still && !matches!(tail.walk.clone().step(&mut window), Step::End) {
            return Ok(true);
        }
        // All records have been read only if the tail was not reused meanwhile.
        if still && is_same(&*tail.file, &header) {
            self.newest_tail = self.newest_tail.max(Some(tail_order(&header)));
        }
        self.place = OpenFile::Between;
        Ok(true)
    }
}

impl Cursor {
    /// Returns true if the tail still exists and is in the same use.
    fn has_tail(&self, path: &Path, header: &TailHeader) -> bool {
        let mut tails = self.tails.iter();
        tails.any(|(at, now)| at == path && now.epoch == header.epoch)
    }

    /// Returns true if the tail still exists, in the same use, and is the newest.
    fn is_newest(&self, path: &Path, header: &TailHeader) -> bool {
        let mut tails = self.tails.iter();
        let later = tails.any(|(_, now)| tail_order(now) > tail_order(header));
        self.has_tail(path, header) && !later
    }
}

/// A window on the file with the kept read buffer; gets
/// the file's size again only after its end was reached.
fn window<'a>(
    file: &'a dyn DiskFile,
    size_bytes: &mut Option<u64>,
    read: &mut (u64, Vec<u8>),
) -> Window<'a> {
    let size = || file.metadata().map_or(0, |stat| stat.size_bytes);
    let size = *size_bytes.get_or_insert_with(size);
    Window::resume(file, size, std::mem::take(read))
}

/// Returns true if the file is still in the use that `header` describes.
fn is_same(file: &dyn DiskFile, header: &TailHeader) -> bool {
    TailHeader::read(file).is_ok_and(|now| now.as_ref() == Ok(header))
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
