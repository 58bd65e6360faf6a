//! What the journal files of an earlier life say, put together: pure, bytes in, pasts of files out.
//!
//! What was never synced may be there in part. Frames count up to the first gap, for what lies behind a gap may
//! need what is missing in it; unless a later frame says that the gap had been on the disk (then it is damage),
//! or a later file begins with all that memory held.

use crate::entry::{self, Begin, Entry, Identity, Stamps};
use crate::frame::{self, FileHead, Frame};
use crate::turn::stamp_of;
use std::collections::{BTreeMap, HashMap};

/// One journal file.
pub(crate) struct Source {
    pub(crate) head: FileHead,
    pub(crate) bytes: Vec<u8>,
}

/// What is known of one .rrd file.
#[derive(Debug)]
pub(crate) struct Past {
    /// Accepted values in their order, with their stamps.
    pub(crate) values: Vec<(f64, Box<[u8]>)>,
    /// How the file was, oldest first: before its first write since the last checkpoint, and since one begins.
    pub(crate) begins: Vec<(u64, Begin)>,
    /// How it was left, and the stamp of what it has.
    pub(crate) end: Option<(Identity, f64)>,
    /// A write was announced, and not that it ended.
    pub(crate) open: bool,
    /// Values came since it was forgotten.
    pub(crate) known: bool,
    /// The newest stamp that was handed to it.
    handed: f64,
    last: f64,
    /// It was forgotten, and nothing that was announced since has been written.
    forgotten: Option<Forgotten>,
}

/// What there was when a file was forgotten. Until it is written again nobody knows whether what comes is for the same
/// file, so stamps before and after do not compare.
#[derive(Clone, Copy, Debug)]
struct Forgotten {
    /// So many values came before. They are in the file, and kept for it to be done again.
    values: usize,
    /// A write was announced since.
    announced: bool,
}

impl Default for Past {
    fn default() -> Past {
        Past {
            values: Vec::new(),
            begins: Vec::new(),
            end: None,
            open: false,
            known: false,
            handed: f64::NEG_INFINITY,
            last: f64::NEG_INFINITY,
            forgotten: None,
        }
    }
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// By path, so that everything is done in path order.
    pub(crate) pasts: BTreeMap<Box<[u8]>, Past>,
    /// Where the journal goes on.
    pub(crate) position: u64,
    pub(crate) notices: Vec<String>,
}

/// Reads journal files, which must be sorted by sequence.
pub(crate) fn replay(sources: &[Source]) -> Story {
    let mut story = Story::default();
    let walked: Vec<Vec<Frame>> = sources
        .iter()
        .enumerate()
        .map(|(at, source)| {
            // What a later file takes the place of was refused when that one was begun.
            let later = sources[at + 1..].iter().map(|later| later.head.base).min();
            let mut frames = frame::walk(&source.bytes, &source.head);
            frames.retain(|frame| later.is_none_or(|base| frame.end <= base));
            frames
        })
        .collect();
    let proofs = proofs(&walked);
    let mut position = sources
        .iter()
        .map(|source| source.head.base)
        .min()
        .unwrap_or(0);
    let mut number = 0;
    for (source, frames) in sources.iter().zip(&walked) {
        let mut ids = HashMap::new();
        let first = number;
        number += frames.len();
        for (at, frame) in (first..).zip(frames) {
            let anew = at == first && source.head.restates && frame.position == source.head.base;
            if frame.position > position && !anew {
                if proofs[at] <= position {
                    // The gap was never synced; a later file may begin anew.
                    break;
                }
                story.notices.push(format!(
                    "journal file {} is damaged: bytes {position} to {} of the journal are lost",
                    source.head.sequence, frame.position
                ));
            }
            position = frame.end;
            if !story.apply(
                &source.bytes[frame.entries.clone()],
                &mut ids,
                frame.position,
            ) {
                story.notices.push(format!(
                    "journal file {} has an entry at byte {} of the journal that is not understood",
                    source.head.sequence, frame.position
                ));
            }
        }
    }
    story.position = position;
    story
}

/// For each frame, how far the journal was synced for certain, as it and those behind it say.
fn proofs(walked: &[Vec<Frame>]) -> Vec<u64> {
    let mut proofs: Vec<u64> = walked.iter().flatten().map(|frame| frame.synced).collect();
    for at in (1..proofs.len()).rev() {
        proofs[at - 1] = proofs[at - 1].max(proofs[at]);
    }
    proofs
}

impl Story {
    /// Applies the entries of one frame; `false` when one is not understood.
    fn apply(
        &mut self,
        mut input: &[u8],
        ids: &mut HashMap<u32, Box<[u8]>>,
        position: u64,
    ) -> bool {
        let mut stamps = Stamps::default();
        while !input.is_empty() {
            let Some(entry) = Entry::take(&mut input) else {
                return false;
            };
            let id = match entry {
                Entry::File { id, path } => {
                    ids.insert(id, path.into());
                    continue;
                }
                Entry::Checkpoint { position } => {
                    self.pasts
                        .values_mut()
                        .for_each(|past| past.checkpoint(position));
                    continue;
                }
                Entry::Values { id, .. }
                | Entry::Begin { id, .. }
                | Entry::Start { id, .. }
                | Entry::End { id, .. }
                | Entry::Forget { id }
                | Entry::Edited { id }
                | Entry::NotStarted { id } => id,
            };
            // An id that nobody introduced: what introduced it is lost. Its values must be passed over.
            let mut unknown = Past::default();
            let past = match ids.get(&id) {
                Some(path) if !self.pasts.contains_key(path) => {
                    self.pasts.entry(path.clone()).or_default()
                }
                Some(path) => self.pasts.get_mut(path).unwrap_or(&mut unknown),
                None => &mut unknown,
            };
            if past
                .apply(entry, position, &mut input, &mut stamps)
                .is_none()
            {
                return false;
            }
        }
        true
    }
}

impl Past {
    fn apply(
        &mut self,
        entry: Entry<'_>,
        position: u64,
        input: &mut &[u8],
        stamps: &mut Stamps,
    ) -> Option<()> {
        match entry {
            Entry::Values { count, .. } => {
                self.known = true;
                for _ in 0..count {
                    let mut text = Vec::new();
                    entry::take_value(input, stamps, &mut text)?;
                    self.value(text);
                }
            }
            Entry::Begin { begin, .. } => self.begin(position, begin),
            Entry::Start { upto, .. } => self.announced(upto),
            Entry::End { upto, identity, .. } => {
                self.open = false;
                self.handed = upto;
                self.end = Some((identity, upto));
                // It was the same file after all.
                self.forgotten = self.forgotten.filter(|forgotten| !forgotten.announced);
            }
            Entry::Forget { .. } => {
                let (before, handed) = (self.before(), self.handed);
                let mut at = 0;
                self.values.retain(|(stamp, _)| {
                    at += 1;
                    (at <= before) | (*stamp <= handed)
                });
                self.forgotten = Some(Forgotten {
                    values: self.values.len(),
                    announced: false,
                });
                self.known = false;
                self.handed = f64::NEG_INFINITY;
                self.last = f64::NEG_INFINITY;
            }
            Entry::Edited { .. } => {
                self.drop_before();
                let handed = self.handed;
                self.values.retain(|(stamp, _)| *stamp > handed);
                self.begins.clear();
                self.end = None;
                self.open = false;
            }
            Entry::NotStarted { .. } => {
                self.open = false;
                self.handed = self.upto();
            }
            Entry::File { .. } | Entry::Checkpoint { .. } => {}
        }
        Some(())
    }

    fn value(&mut self, text: Vec<u8>) {
        // A value that was restated is there already.
        if let Some(stamp) = stamp_of(&text).filter(|stamp| *stamp > self.last) {
            self.last = stamp;
            self.values.push((stamp, text.into()));
        }
    }

    /// The newest stamp that counts for it.
    pub(crate) fn newest(&self) -> f64 {
        let upto = self.upto();
        self.values
            .last()
            .map_or(upto, |(stamp, _)| stamp.max(upto))
    }

    /// Stamp of what was written, as far as it is certain that it is this file.
    fn upto(&self) -> f64 {
        match (self.forgotten, self.end) {
            (None, Some((_, upto))) => upto,
            _ => f64::NEG_INFINITY,
        }
    }

    /// Values that came before it was forgotten.
    fn before(&self) -> usize {
        self.forgotten.map_or(0, |forgotten| forgotten.values)
    }

    /// What came before it was forgotten is needed no more.
    fn drop_before(&mut self) {
        self.values.drain(..self.before());
        self.forgotten = None;
    }

    fn announced(&mut self, upto: f64) {
        self.open = true;
        self.handed = upto;
        if let Some(forgotten) = &mut self.forgotten {
            forgotten.announced = true;
        }
    }

    fn begin(&mut self, position: u64, begin: Begin) {
        if begin.fresh {
            self.begins.clear();
            self.end = None;
            self.drop_before();
            let after = begin.after;
            self.values.retain(|(stamp, _)| *stamp > after);
        }
        self.announced(begin.upto);
        self.begins.push((position, begin));
    }

    /// What was written before `position` is on the disk.
    fn checkpoint(&mut self, position: u64) {
        self.begins.retain(|(at, _)| *at >= position);
        let after = match (self.begins.first(), self.end) {
            (Some((_, begin)), _) => begin.after,
            (None, Some(_)) if self.forgotten.is_some() => {
                self.end = None;
                return self.drop_before();
            }
            (None, Some((_, upto))) => upto,
            (None, None) => return,
        };
        let (before, mut at, mut kept) = (self.before(), 0, 0);
        let all_since = self.forgotten.is_some();
        self.values.retain(|(stamp, _)| {
            at += 1;
            let is_before = at <= before;
            let keep = (*stamp > after) | (all_since & !is_before);
            kept += usize::from(is_before & keep);
            keep
        });
        if let Some(forgotten) = &mut self.forgotten {
            forgotten.values = kept;
        }
    }
}
