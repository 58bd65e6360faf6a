//! The way through a recording: records in the order of their sequence numbers, from blocks first
//! and from tails after them, with every hole said.
//!
//! After a hole samples resume at a key, since the ones before it need what is missing. At the end
//! the cursor can be asked again: a recorder may have gone on.

use crate::block::{BlockFile, DECODED_MAX, HEADS, Stream, Unpacker, unpack};
use crate::error::Result;
use crate::heads;
use crate::reader::{Kinds, Listed, Recording, TimeRange};
use crate::record::{self, Head, RecordType, Section};
use crate::tail::{Step, TailHeader, Walk, Window};
use crate::varint;
use kymo_sys::disk::{DiskFile, OpenMode};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// A tail's header is this much younger than its first sample at most, in nanoseconds.
const TAIL_SLACK_NS: i64 = 60_000_000_000;

/// A hole in the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first sequence number that is missing.
    pub first_missing_seq: u64,
    /// The last one, if it is known.
    pub last_missing_seq: Option<u64>,
    /// Set when only this kind is missing, in the records of one block.
    pub kind: Option<u8>,
    /// Why, for people.
    pub message: String,
}

/// What the cursor comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A sample.
    Sample {
        /// What is known of it.
        head: Head,
        /// Outside the range: it is here because the next ones depend on it or subtract it.
        warmup: bool,
        /// The sections of the wanted kinds.
        sections: Vec<Section<'a>>,
    },
    /// An event within the range.
    Event {
        /// When.
        head: Head,
        /// What happened; one line.
        text: &'a str,
    },
    /// The context from here on. At the start of each block and tail, too, where the head is that
    /// of the first record to come or of the start of the tail.
    Context {
        /// When.
        head: Head,
        /// "key=value" lines.
        text: &'a str,
    },
    /// Records or a kind are missing.
    Gap(Gap),
}

/// A place in a recording.
pub struct Cursor {
    recording: Recording,
    range: TimeRange,
    kinds: Kinds,
    folders: Vec<PathBuf>,
    queue: VecDeque<Queued>,
    tails: Vec<(PathBuf, TailHeader)>,
    /// First sequence number of the newest block there is.
    newest_block: Option<u64>,
    /// First sequence number of the newest block that was entered.
    entered_block: Option<u64>,
    /// The newest tail that was read to its end.
    newest_tail: Option<(u64, u64)>,
    place: Place,
    chain: Chain,
    ready: VecDeque<Ready>,
    current: Ready,
    bytes_read: u64,
}

/// A block to be read.
struct Queued {
    block: Listed,
    /// Whether the block before it in sequence is read, too.
    follows: bool,
}

enum Place {
    Between,
    Block(Box<OpenBlock>),
    Tail(Box<OpenTail>),
}

/// What holds the records together: sequence numbers.
#[derive(Default)]
struct Chain {
    seen: Option<u64>,
    expected: Option<u64>,
    broken: bool,
    damage: Option<String>,
}

/// An item that owns where its bytes are.
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

struct OpenBlock {
    heads: Vec<u8>,
    decoder: heads::Decoder,
    /// By kind: decoded bytes and how far they were used.
    streams: Vec<Option<(Vec<u8>, usize)>>,
    /// Numbers of the records, in the block, that are to be given.
    first: u32,
    last: u32,
    number: u32,
    last_seq: u64,
    path: PathBuf,
}

struct OpenTail {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    header: TailHeader,
    walk: Walk,
    record: Vec<u8>,
    /// What was read ahead.
    read: (u64, Vec<u8>),
}

impl Cursor {
    /// At the start of `range`; only the streams of `kinds` will be read.
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
            entered_block: None,
            place: Place::Between,
            chain: Chain {
                broken: true,
                ..Chain::default()
            },
            ready: VecDeque::new(),
            current: Ready::Nothing,
            bytes_read: 0,
        }
    }

    /// Bytes read from files so far; listing folders is not counted.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// The next item; `None` at the end, for now: a later call looks again.
    #[expect(clippy::should_implement_trait, reason = "the item borrows the cursor")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>> {
        match self.advance()? {
            true => Ok(self.item()),
            false => Ok(None),
        }
    }

    /// Whether there is more now; the item found is given by the following `next`.
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
            Place::Block(block) => block.streams[usize::from(part.kind)]
                .as_ref()
                .map_or(&[], |(raw, _)| &raw[part.start..part.end]),
            Place::Tail(tail) => &tail.record[part.start..part.end],
            Place::Between => &[],
        };
        Section {
            kind: part.kind,
            cost: part.cost,
            bytes,
        }
    }

    /// Makes the next item current.
    fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                self.current = ready;
                return Ok(true);
            }
            match &mut self.place {
                Place::Between => {
                    if !self.enter_next()? {
                        return Ok(self.finish());
                    }
                }
                Place::Block(_) => self.step_block(),
                Place::Tail(_) => {
                    if !self.step_tail()? {
                        return Ok(self.finish());
                    }
                }
            }
        }
    }

    /// At the end: a hole that nothing follows is said now.
    fn finish(&mut self) -> bool {
        let Some(gap) = self.chain.take_open_gap() else {
            return false;
        };
        self.current = Ready::Gap(gap);
        true
    }

    // ---- what to read next

    fn enter_next(&mut self) -> Result<bool> {
        if self.queue.is_empty() {
            self.look_around()?;
        }
        if self.hole_ahead() {
            // A name given while the folder was being listed may have been missed.
            self.look_around()?;
        }
        if let Some(queued) = self.queue.pop_front() {
            self.entered_block = Some(queued.block.name.first_seq);
            self.enter_block(&queued);
            return Ok(true);
        }
        match self.next_tail() {
            Some(index) => {
                let (path, header) = self.tails.remove(index);
                self.enter_tail(path, header)
            }
            None => Ok(false),
        }
    }

    /// The oldest tail that is in no block and was not read yet.
    fn next_tail(&self) -> Option<usize> {
        let (sealed, done) = (self.newest_block, self.newest_tail);
        self.tails.iter().position(|(_, header)| {
            sealed.is_none_or(|sealed| header.first_seq > sealed)
                && done.is_none_or(|done| tail_order(header) > done)
        })
    }

    fn hole_ahead(&self) -> bool {
        let next = match (self.queue.front(), self.next_tail()) {
            (Some(queued), _) => queued.follows.then_some(queued.block.name.first_seq),
            (None, Some(index)) => Some(self.tails[index].1.first_seq),
            (None, None) => None,
        };
        matches!((next, self.chain.expected), (Some(next), Some(expected)) if next > expected)
    }

    /// Reads the heads of tails before it lists blocks: what a recorder seals in between is then
    /// found in a block, never nowhere.
    fn look_around(&mut self) -> Result<()> {
        self.folders = self.recording.folders()?;
        self.tails.clear();
        for path in self.recording.tails(&self.folders) {
            if let Some(header) = self.tail_header(&path) {
                self.tails.push((path, header));
            }
        }
        self.tails.sort_by_key(|(_, header)| tail_order(header));
        let blocks = self.recording.blocks(&self.folders)?;
        let floor = self.unread_from();
        let from = blocks.partition_point(|block| block.name.first_seq < floor);
        self.queue.clear();
        self.enqueue(&blocks, from);
        self.newest_block = blocks.last().map(|block| block.name.first_seq);
        Ok(())
    }

    fn tail_header(&mut self, path: &Path) -> Option<TailHeader> {
        let file = self.recording.disk.open(path, OpenMode::Read).ok()?;
        let header = TailHeader::read(&*file).ok()?.ok()?;
        let context_len = header.context.as_ref().map_or(0, String::len);
        self.bytes_read += (4096 + context_len) as u64;
        Some(header)
    }

    /// Blocks that begin before this number were read, as blocks or as tails. The one made of the
    /// tail that is being read was not: the tail may be overwritten before its end is seen.
    fn unread_from(&self) -> u64 {
        let block = self
            .entered_block
            .map_or(0, |first_seq| first_seq.saturating_add(1));
        let tail = self
            .newest_tail
            .map_or(0, |(first_seq, _)| first_seq.saturating_add(1));
        let current = match &self.place {
            Place::Tail(tail) => tail.header.first_seq,
            _ => 0,
        };
        block.max(tail).max(current)
    }

    /// Queues the blocks from `from` on that the range asks for.
    fn enqueue(&mut self, blocks: &[Listed], from: usize) {
        let range = self.range;
        let started = self.unread_from() > 0;
        let wanted = |block: &Listed| intersects(&range, block);
        let mut first = (from..blocks.len()).find(|index| wanted(&blocks[*index]));
        if !started && self.needs_predecessor(first.map(|index| &blocks[index])) {
            let before = first.unwrap_or(blocks.len()).checked_sub(1);
            first = before.or(first);
        }
        let Some(first) = first else {
            return;
        };
        for index in first..blocks.len() {
            if index == first || wanted(&blocks[index]) {
                let follows = index > first && wanted(&blocks[index - 1]) || index == first + 1;
                let follows = follows || started && index == from;
                self.queue.push_back(Queued {
                    block: blocks[index],
                    follows,
                });
            }
        }
    }

    /// Whether a sample before the range can only be in the block before the first that
    /// intersects it.
    fn needs_predecessor(&self, first: Option<&Listed>) -> bool {
        let start_ns = match first {
            Some(block) => block.name.wall_min_s as i64 * 1_000_000_000,
            None => match self.tails.first() {
                Some((_, header)) => header.stamp.real_ns,
                None => return false,
            },
        };
        self.range.from_ns > 0 && start_ns.saturating_add(999_999_999) >= self.range.from_ns
    }

    // ---- blocks

    fn enter_block(&mut self, queued: &Queued) {
        let name = queued.block.name;
        let path = self.folders[queued.block.folder].join(name.format());
        if !queued.follows {
            self.chain.jump();
        }
        match self.open_block(&path) {
            Ok(Some(block)) => self.place = Place::Block(Box::new(block)),
            Ok(None) => {}
            Err(message) => self.chain.damaged(name.first_seq, message),
        }
    }

    fn open_block(&mut self, path: &Path) -> Result<Option<OpenBlock>, String> {
        let opened = BlockFile::open(&*self.recording.disk, path);
        let block = opened.map_err(|error| error.to_string())?;
        self.bytes_read += block.bytes_read;
        if self
            .chain
            .seen
            .is_some_and(|seen| block.index.last_seq <= seen)
        {
            return Ok(None);
        }
        let damaged = |cause: String| format!("cannot read {}: {cause}", path.display());
        let Some(heads) = block.index.stream(HEADS).copied() else {
            return Err(damaged("no heads stream".to_string()));
        };
        let mut unpacker = Unpacker::new().map_err(|cause| damaged(cause.to_string()))?;
        let mut budget = DECODED_MAX;
        let mut read = |stream: Stream| {
            let raw = unpack(&mut unpacker, &*block.file, stream, &mut budget);
            (raw, unpacker.bytes_read())
        };
        let (heads, bytes_read) = read(heads);
        self.bytes_read += bytes_read;
        let heads = heads.map_err(damaged)?;
        let (first, last) = self.wanted_records(&heads);
        let mut open = OpenBlock {
            heads,
            decoder: heads::Decoder::default(),
            streams: (0..256).map(|_| None).collect(),
            first,
            last,
            number: 0,
            last_seq: block.index.last_seq,
            path: path.into(),
        };
        self.start_of_block(&open, &block);
        for stream in &block.index.streams {
            let kind = u8::try_from(stream.id).ok();
            if let Some(kind) = kind.filter(|kind| self.kinds.contains(*kind)) {
                let (raw, bytes_read) = read(*stream);
                self.bytes_read += bytes_read;
                match raw {
                    Ok(raw) => open.streams[usize::from(kind)] = Some((raw, 0)),
                    Err(cause) => self.lose_kind(path, kind, &block, &cause),
                }
            }
        }
        Ok(Some(open))
    }

    fn lose_kind(&mut self, path: &Path, kind: u8, block: &BlockFile, cause: &str) {
        self.ready.push_back(Ready::Gap(Gap {
            first_missing_seq: block.index.first_seq,
            last_missing_seq: Some(block.index.last_seq),
            kind: Some(kind),
            message: format!("cannot read kind {kind} of {}: {cause}", path.display()),
        }));
    }

    fn start_of_block(&mut self, open: &OpenBlock, block: &BlockFile) {
        let first = open.decoder.clone().next(&open.heads);
        match (&block.context, first) {
            (Some(context), Some(Ok(entry))) => {
                let head = context_head(&entry.head);
                self.ready.push_back(Ready::Text(head, context.clone()));
            }
            (Some(_), _) => {}
            (None, _) => {
                let lost = lost_context(&open.path, block.index.first_seq);
                self.ready.push_back(lost);
            }
        }
    }

    /// The numbers of the first and the last record of a block that are to be given: from the last
    /// key before the range, so that there is a sample before it, to the last one in it.
    fn wanted_records(&self, heads: &[u8]) -> (u32, u32) {
        let (mut decoder, mut number) = (heads::Decoder::default(), 0);
        let (mut key, mut first, mut last) = (0, None, None);
        while let Some(Ok(entry)) = decoder.next(heads) {
            if self.range.holds(entry.head.stamp.real_ns) {
                first.get_or_insert(key);
                last = Some(number);
            }
            if entry.head.key {
                key = number;
            }
            number += 1;
        }
        match (first, last) {
            (Some(first), Some(last)) => (first, last),
            _ => (key, number.saturating_sub(1)),
        }
    }

    fn step_block(&mut self) {
        let Place::Block(block) = &mut self.place else {
            return;
        };
        let wanted = block.number <= block.last;
        match block.decoder.next(&block.heads).filter(|_| wanted) {
            Some(Ok(entry)) => {
                let parts = block.parts(&entry);
                let given = block.number >= block.first;
                block.number += 1;
                let text = String::from_utf8_lossy(&block.heads[entry.text.clone()]);
                match (given, parts) {
                    (true, Ok(parts)) => {
                        let text = text.into_owned();
                        self.give(entry.head, parts, text);
                    }
                    (true, Err(())) => {
                        let message = format!("cannot read {}: bad stream", block.path.display());
                        self.chain.damaged(entry.head.seq, message);
                    }
                    (false, _) => self.chain.jump(),
                }
            }
            Some(Err(cause)) => {
                let message = format!("cannot read {}: {cause}", block.path.display());
                self.chain.damaged(0, message);
            }
            None => {
                if !wanted {
                    self.chain.passed(block.last_seq);
                }
                self.place = Place::Between;
            }
        }
    }

    // ---- tails

    fn enter_tail(&mut self, path: PathBuf, header: TailHeader) -> Result<bool> {
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
    fn step_tail(&mut self) -> Result<bool> {
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

    // ---- giving

    fn give(&mut self, head: Head, parts: Vec<Part>, text: String) {
        let given = match head.record_type {
            RecordType::Sample => Ready::Sample(head, false, parts),
            _ => Ready::Text(head, text),
        };
        give(&mut self.chain, &self.range, &mut self.ready, given);
    }
}

fn intersects(range: &TimeRange, block: &Listed) -> bool {
    let second = |ns: i64| (ns.max(0) / 1_000_000_000) as u64;
    block.name.wall_max_s >= second(range.from_ns) && block.name.wall_min_s <= second(range.thru_ns)
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

/// Tails in the order of their use. Two may begin with the same number: the header of the first
/// was written, and then something failed.
fn tail_order(header: &TailHeader) -> (u64, u64) {
    (header.first_seq, header.epoch)
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

impl OpenBlock {
    /// Takes the sections of a record out of their streams.
    fn parts(&mut self, entry: &heads::Entry) -> Result<Vec<Part>, ()> {
        let mut parts = Vec::new();
        let kinds = &self.heads[entry.kinds.clone()];
        for (kind, cost) in kinds.iter().zip(&self.heads[entry.costs.clone()]) {
            let Some((raw, at)) = &mut self.streams[usize::from(*kind)] else {
                continue;
            };
            let length = varint::take(raw, at).and_then(|length| usize::try_from(length).ok());
            let end = length.and_then(|length| at.checked_add(length));
            let Some(end) = end.filter(|end| *end <= raw.len()) else {
                return Err(());
            };
            parts.push(Part {
                kind: *kind,
                cost: *cost,
                start: *at,
                end,
            });
            *at = end;
        }
        Ok(parts)
    }
}

impl Chain {
    /// Records were passed over on purpose: the next one follows nothing.
    fn jump(&mut self) {
        if self.damage.is_none() {
            self.expected = None;
            self.broken = true;
        }
    }

    /// The records up to `seq` were passed over on purpose.
    fn passed(&mut self, seq: u64) {
        self.seen = self.seen.max(Some(seq));
        self.expected = Some(seq.wrapping_add(1));
    }

    fn damaged(&mut self, seq: u64, message: String) {
        self.broken = true;
        self.expected.get_or_insert(seq);
        self.damage.get_or_insert(message);
    }

    /// Whether a record may be given: not twice, and not without what it needs.
    fn admits(&mut self, head: &Head) -> bool {
        if self.seen.is_some_and(|seen| head.seq <= seen) {
            return false;
        }
        let expected = *self.expected.get_or_insert(head.seq);
        self.broken |= expected != head.seq;
        let depends = head.record_type == RecordType::Sample && !head.key;
        if depends && self.broken {
            self.seen = Some(head.seq);
            let lost = || "the key that the records need is lost".to_string();
            self.damage.get_or_insert_with(lost);
            return false;
        }
        true
    }

    /// Takes a record in; the hole before it, if there is one.
    fn admit(&mut self, head: &Head) -> Option<Gap> {
        let expected = self.expected.unwrap_or(head.seq);
        let damage = self.damage.take();
        let hole = expected < head.seq || damage.is_some();
        let gap = hole.then(|| Gap {
            first_missing_seq: expected,
            last_missing_seq: Some(head.seq.wrapping_sub(1)),
            kind: None,
            message: damage.unwrap_or_else(|| "the records were not written".to_string()),
        });
        if head.record_type == RecordType::Sample {
            self.broken = false;
        }
        self.seen = Some(head.seq);
        self.expected = Some(head.seq.wrapping_add(1));
        gap
    }

    fn take_open_gap(&mut self) -> Option<Gap> {
        let message = self.damage.take()?;
        Some(Gap {
            first_missing_seq: self.expected.unwrap_or(0),
            last_missing_seq: self.seen.filter(|seen| Some(*seen) >= self.expected),
            kind: None,
            message,
        })
    }
}
