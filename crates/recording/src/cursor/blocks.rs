//! Reads a block: decodes the heads stream and the streams of the wanted kinds as a whole.

use super::ahead::Queued;
use super::{Cursor, Gap, OpenFile, Part, Ready, context_head, lost_context};
use crate::block::{BlockFile, DECODED_MAX, HEADS, Stream, Unpacker, unpack};
use crate::heads;
use kymo_base::varint;
use std::path::{Path, PathBuf};

pub(super) struct OpenBlock {
    heads: Vec<u8>,
    decoder: heads::Decoder,
    /// By kind: the decoded bytes, and the position up to which they have been used.
    pub(super) streams: Vec<Option<(Vec<u8>, usize)>>,
    /// Numbers, within the block, of the first and last record to return.
    first: u32,
    last: u32,
    number: u32,
    last_seq: u64,
    path: PathBuf,
}

impl Cursor {
    // ---- blocks

    pub(super) fn enter_block(&mut self, queued: &Queued) {
        let name = queued.block.name;
        let path = self.folders[queued.block.folder].join(name.format());
        if !queued.follows {
            self.chain.jump();
        }
        match self.open_block(&path) {
            Ok(Some(block)) => self.place = OpenFile::Block(Box::new(block)),
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

    /// Numbers of the first and the last record to return: from the last key before the range, so
    /// that a sample precedes the range, to the last record in the range.
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

    pub(super) fn step_block(&mut self) {
        let OpenFile::Block(block) = &mut self.place else {
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
                self.place = OpenFile::Between;
            }
        }
    }
}

impl OpenBlock {
    /// Returns the sections of a record and moves past them in their streams.
    fn parts(&mut self, entry: &heads::Entry) -> Result<Vec<Part>, ()> {
        let mut parts = Vec::new();
        let kinds = &self.heads[entry.kinds.clone()];
        for (kind, cost) in kinds.iter().zip(&self.heads[entry.costs.clone()]) {
            let Some((raw, at)) = &mut self.streams[usize::from(*kind)] else {
                continue;
            };
            let length = varint::take_at(raw, at).and_then(|length| usize::try_from(length).ok());
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
