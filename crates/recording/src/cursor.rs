//! Reads a recording: records in the order of their sequence numbers, first from blocks and then
//! from tails, and a gap for every hole.
//!
//! After a hole, samples resume at a key, since those before it depend on the missing records.
//! After the end the cursor can be called again, as a recorder may have written more.
//!
//! This file has the public functions. The submodules are: `ahead`, which finds the next file to
//! read; `blocks` and `tails`, which read it; `chain`, which checks sequence numbers.

mod ahead;
mod blocks;
mod chain;
mod tails;

use crate::error::Result;
use crate::reader::{Kinds, Recording, TimeRange};
use crate::record::{Head, RecordType, Section};
use crate::tail::TailHeader;
use ahead::Queued;
use blocks::OpenBlock;
use chain::Chain;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use tails::OpenTail;

/// A hole in the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first missing sequence number.
    pub first_missing_seq: u64,
    /// The last missing sequence number, if it is known.
    pub last_missing_seq: Option<u64>,
    /// Set if only this kind is missing, from the records of one block.
    pub kind: Option<u8>,
    /// Reason, for users.
    pub message: String,
}

impl Gap {
    /// Returns true if data that was on the disk is unreadable.
    pub fn is_damage(&self) -> bool {
        self.message != chain::NOT_WRITTEN
    }
}

/// An item of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A sample.
    Sample {
        /// Head of the record.
        head: Head,
        /// True for a sample outside the range, which
        /// later samples depend on or are subtracted from.
        warmup: bool,
        /// The sections of the wanted kinds.
        sections: Vec<Section<'a>>,
    },
    /// An event within the range.
    Event {
        /// Head of the record.
        head: Head,
        /// One line that describes the event.
        text: &'a str,
    },
    /// The context of the records that follow. Also given at the start of each block and tail,
    /// with the head of the block's first record or one made from the header of the tail.
    Context {
        /// Head of the record.
        head: Head,
        /// "key=value" lines.
        text: &'a str,
    },
    /// Records or a kind are missing.
    Gap(Gap),
}

/// A position in a recording.
pub struct Cursor {
    recording: Recording,
    range: TimeRange,
    kinds: Kinds,
    folders: Vec<PathBuf>,
    queue: VecDeque<Queued>,
    tails: Vec<(PathBuf, TailHeader)>,
    /// First sequence number of the newest existing block.
    newest_block: Option<u64>,
    /// First sequence number of the newest block that was opened for reading.
    entered_block: Option<u64>,
    /// Order of the newest tail that was read to its end.
    newest_tail: Option<(u64, u64)>,
    /// Set when a tail begins after the range; all later records are outside the range then.
    beyond: bool,
    place: OpenFile,
    chain: Chain,
    ready: VecDeque<Ready>,
    current: Ready,
    bytes_read: u64,
}

enum OpenFile {
    Between,
    Block(Box<OpenBlock>),
    Tail(Box<OpenTail>),
}

/// An item that owns its bytes or their positions.
#[derive(Clone, Debug)]
enum Ready {
    Nothing,
    Sample(Head, bool, Vec<Part>),
    Text(Head, String),
    Gap(Gap),
}

#[derive(Clone, Debug)]
struct Part {
    kind: u8,
    cost: u8,
    start: usize,
    end: usize,
}

impl Cursor {
    /// Returns a cursor at the start of `range`; it reads only the streams of `kinds`.
    pub fn new(recording: &Recording, range: TimeRange, kinds: Kinds) -> Self {
        Cursor {
            recording: recording.clone(),
            range,
            kinds,
            folders: Vec::new(),
            queue: VecDeque::new(),
            tails: Vec::new(),
            newest_block: None,
            newest_tail: None,
            beyond: false,
            entered_block: None,
            place: OpenFile::Between,
            chain: Chain {
                broken: true,
                ..Chain::default()
            },
            ready: VecDeque::new(),
            current: Ready::Nothing,
            bytes_read: 0,
        }
    }

    /// Bytes read from files so far, without the listing of folders.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Returns the next item. `None` means the end for now; a later call checks again.
    #[expect(clippy::should_implement_trait, reason = "the item borrows the cursor")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>> {
        match self.advance()? {
            true => Ok(self.item()),
            false => Ok(None),
        }
    }

    /// Returns true if there is another item, which the next call of `next` returns.
    pub fn poll_more(&mut self) -> Result<bool> {
        let found = self.advance()?;
        if found {
            let current = std::mem::replace(&mut self.current, Ready::Nothing);
            self.ready.push_front(current);
        }
        Ok(found)
    }

    fn item(&self) -> Option<Item<'_>> {
        Some(match &self.current {
            Ready::Nothing => return None,
            Ready::Gap(gap) => Item::Gap(gap.clone()),
            Ready::Text(head, text) if head.record_type == RecordType::Event => {
                Item::Event { head: *head, text }
            }
            Ready::Text(head, text) => Item::Context { head: *head, text },
            Ready::Sample(head, warmup, parts) => Item::Sample {
                head: *head,
                warmup: *warmup,
                sections: parts.iter().map(|part| self.section(part)).collect(),
            },
        })
    }

    fn section(&self, part: &Part) -> Section<'_> {
        let bytes: &[u8] = match &self.place {
            OpenFile::Block(block) => block.streams[usize::from(part.kind)]
                .as_ref()
                .map_or(&[], |(raw, _)| &raw[part.start..part.end]),
            OpenFile::Tail(tail) => &tail.record[part.start..part.end],
            OpenFile::Between => &[],
        };
        Section {
            kind: part.kind,
            cost: part.cost,
            bytes,
        }
    }

    /// Makes the next item current; returns false at the end.
    fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                self.current = ready;
                return Ok(true);
            }
            match &mut self.place {
                OpenFile::Between => {
                    if !self.enter_next()? {
                        return Ok(self.finish());
                    }
                }
                OpenFile::Block(_) => self.step_block(),
                OpenFile::Tail(_) => {
                    if !self.step_tail()? {
                        return Ok(self.finish());
                    }
                }
            }
        }
    }

    /// At the end: makes a hole that no record follows the current item.
    fn finish(&mut self) -> bool {
        let Some(gap) = self.chain.take_open_gap() else {
            return false;
        };
        self.current = Ready::Gap(gap);
        true
    }

    fn give(&mut self, head: Head, parts: Vec<Part>, text: String) {
        let given = match head.record_type {
            RecordType::Sample => Ready::Sample(head, false, parts),
            _ => Ready::Text(head, text),
        };
        give(&mut self.chain, &self.range, &mut self.ready, given);
    }
}

fn give(chain: &mut Chain, range: &TimeRange, ready: &mut VecDeque<Ready>, given: Ready) {
    let (head, given) = match given {
        Ready::Sample(head, _, parts) => {
            let warmup = !range.holds(head.stamp.real_ns);
            (head, Ready::Sample(head, warmup, parts))
        }
        Ready::Text(head, text) => (head, Ready::Text(head, text)),
        Ready::Nothing | Ready::Gap(_) => return,
    };
    if !chain.admits(&head) {
        return;
    }
    if let Some(gap) = chain.admit(&head) {
        ready.push_back(Ready::Gap(gap));
    }
    let event = head.record_type == RecordType::Event;
    if !event || range.holds(head.stamp.real_ns) {
        ready.push_back(given);
    }
}

fn lost_context(path: &Path, first_seq: u64) -> Ready {
    Ready::Gap(Gap {
        first_missing_seq: first_seq,
        last_missing_seq: None,
        kind: None,
        message: format!(
            "cannot read the context of {}: bad checksum",
            path.display()
        ),
    })
}

fn context_head(head: &Head) -> Head {
    Head {
        record_type: RecordType::Context,
        key: false,
        missed: 0,
        ..*head
    }
}
