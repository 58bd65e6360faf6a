//! What the journal files of an earlier life say, applied to what the blocks said: bytes in, groups out.
//!
//! What was never synced may be there in part. Frames count up to the first gap, for what lies behind a gap may
//! need what is missing in it; unless a later frame says that the gap had been on the disk (then it is damage),
//! or a later file begins with all that memory held. Behind damage there is a hole in each group that may have lost
//! something.

use crate::chunks::CHUNKS_MAX;
use crate::entry::{self, Birth, Entry, Packed};
use crate::frame::{self, FileHead, Frame};
use crate::hole;
use crate::names;
use crate::state::State;
use crate::turn::stamp_of;
use crate::value::{Stamps, Value};
use kymo_base::name::DisplayName;
use std::collections::HashMap;

/// One journal file.
pub(crate) struct Source {
    pub(crate) head: FileHead,
    pub(crate) bytes: Vec<u8>,
}

/// What became of it.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// Where the journal goes on.
    pub(crate) position: u64,
    pub(crate) notices: Vec<String>,
    /// What was written behind a place that was never synced, and does not count.
    pub(crate) ignored: Option<String>,
}

/// Applies entries.
struct Teller<'a> {
    state: &'a mut State,
    /// Up to which position a chunk's records are in blocks.
    saved: &'a dyn Fn(u32) -> u64,
    /// Definitions of chunks, as the journal file says.
    fronts: HashMap<u32, Vec<u8>>,
    /// Where a group's newest START is.
    starts: HashMap<u32, u64>,
    notices: Vec<String>,
    sequence: u64,
    /// Damaged places so far, and where the last one ends.
    gaps: u32,
    gap_end: u64,
    /// How many of them were there when a group was last looked at.
    looked: Vec<u32>,
    /// A number of a group that is higher than any there was.
    next_id: u32,
    /// Memory for the value that is read.
    value: Value,
    text: Vec<u8>,
}

/// The frames of journal files, which must be sorted by sequence.
pub(crate) fn walk(sources: &[Source]) -> Vec<Vec<Frame>> {
    let walked = sources.iter().enumerate().map(|(at, source)| {
        // What a later file takes the place of was refused when that one was begun.
        let later = sources[at + 1..].iter().map(|later| later.head.base).min();
        let mut frames = frame::walk(&source.bytes, &source.head);
        frames.retain(|frame| later.is_none_or(|base| frame.end <= base));
        frames
    });
    walked.collect()
}

/// The lowest position of journal files.
pub(crate) fn base(sources: &[Source]) -> u64 {
    let bases = sources.iter().map(|source| source.head.base);
    bases.min().unwrap_or(0)
}

/// Reads journal files that were walked. `saved`: up to which position a chunk is in blocks; all before `proven` was on the
/// disk, for a block came after it.
pub(crate) fn replay(
    sources: &[Source],
    walked: &[Vec<Frame>],
    state: &mut State,
    saved: &dyn Fn(u32) -> u64,
    proven: u64,
) -> Story {
    let mut story = Story::default();
    let mut teller = Teller {
        state,
        saved,
        fronts: HashMap::new(),
        starts: HashMap::new(),
        notices: Vec::new(),
        sequence: 0,
        gaps: 0,
        gap_end: 0,
        looked: Vec::new(),
        next_id: 0,
        value: Value::default(),
        text: Vec::new(),
    };
    let heads: Vec<&FileHead> = sources.iter().map(|source| &source.head).collect();
    let proofs = proofs(&heads, walked, proven);
    let mut position = base(sources);
    let mut number = 0;
    for (source, frames) in sources.iter().zip(walked) {
        teller.fronts.clear();
        teller.sequence = source.head.sequence;
        let first = number;
        number += frames.len();
        for (at, frame) in (first..).zip(frames) {
            let anew = at == first && source.head.restates && frame.position == source.head.base;
            if frame.position > position && !anew {
                if proofs[at] <= position {
                    // The gap was never synced; a later file may begin anew.
                    let count = number - at;
                    story.ignored = Some(format!(
                        "journal file {}: bytes {position} to {} of the journal were never known to be on the disk, and are not there (did the power fail?): {count} frames behind them do not count",
                        source.head.sequence, frame.position
                    ));
                    break;
                }
                teller.lose(frame.position);
                story.notices.push(format!(
                    "journal file {} is damaged: bytes {position} to {} of the journal are lost",
                    source.head.sequence, frame.position
                ));
            }
            position = frame.end;
            story.ignored = story.ignored.filter(|_| !anew);
            let stamps = Stamps::at(source.head.stamp_s);
            if teller.tell(&source.bytes, frame, stamps).is_none() {
                story.notices.push(format!(
                    "journal file {} has an entry at byte {} of the journal that is not understood",
                    source.head.sequence, frame.position
                ));
                teller.lose(frame.end);
            }
        }
    }
    story.position = position;
    teller.end();
    story.notices.append(&mut teller.notices);
    story
}

/// For each frame, how far the journal was synced for certain, as blocks, it and those behind it say. Behind a file that
/// restates nobody needs what came before it: what is said there proves nothing about a file that was given up.
pub(crate) fn proofs(heads: &[&FileHead], walked: &[Vec<Frame>], proven: u64) -> Vec<u64> {
    let (mut proofs, mut synced) = (Vec::new(), proven);
    for (head, frames) in heads.iter().zip(walked).rev() {
        for frame in frames.iter().rev() {
            synced = synced.max(frame.synced);
            proofs.push(synced);
        }
        let first = frames.first().map(|frame| frame.position);
        if head.restates && first == Some(head.base) {
            // A block that came later tells of this file.
            synced = if proven <= head.base { proven } else { 0 };
        }
    }
    proofs.reverse();
    proofs
}

impl Teller<'_> {
    /// Applies the entries of one frame; `None` when one is not understood.
    fn tell(&mut self, bytes: &[u8], frame: &Frame, mut stamps: Stamps) -> Option<()> {
        let (mut input, position) = (&bytes[frame.entries.clone()], frame.position);
        if frame.short {
            let id = entry::take_short(&mut input, &mut stamps)?;
            self.values(id, 1, position, &mut input, &mut stamps)?;
        }
        while !input.is_empty() {
            if let Some(id) = entry::take_next(&mut input, &mut stamps) {
                self.values(id, 1, position, &mut input, &mut stamps)?;
                continue;
            }
            match Entry::take(&mut input)? {
                Entry::Shape { chunk, front } => {
                    self.fronts.insert(chunk, front.into_owned());
                }
                Entry::Group { id, path, birth } => self.group(id, path, &birth, position),
                Entry::Values { id, count } => {
                    stamps.id = id;
                    self.values(id, count, position, &mut input, &mut stamps)?;
                }
                Entry::Checkpoint { position } => self.checkpoint(position),
                Entry::Gone { id } => self.gone(id, position),
                Entry::Renamed { id, path } => self.renamed(id, path, position),
                entry => self.about(entry, position),
            }
        }
        Some(())
    }

    /// What was said before this position, and is in no block, is lost.
    fn lose(&mut self, end: u64) {
        self.gaps += 1;
        self.gap_end = end;
        self.state.has_lost = true;
    }

    /// Begins a hole in a group that may have lost values since it was last looked at.
    fn look(&mut self, id: u32) {
        if self.gaps == 0 {
            return;
        }
        let at = id as usize;
        let Some(group) = self.state.groups.get(id) else {
            return;
        };
        if self.looked.len() <= at {
            self.looked.resize(at + 1, 0);
        }
        let before = std::mem::replace(&mut self.looked[at], self.gaps);
        if before < self.gaps && (self.saved)(group.chunk) < self.gap_end {
            self.state.lose(id);
        }
    }

    /// All is read.
    fn end(&mut self) {
        let ids: Vec<u32> = match self.gaps {
            0 => Vec::new(),
            _ => self.state.groups.iter().map(|(id, _)| id).collect(),
        };
        ids.into_iter().for_each(|id| self.look(id));
        // Of groups whose beginning is lost others must not have the numbers.
        self.state.groups.go_on_at(self.next_id);
    }

    /// Whether a record of a group that is there is in a block already.
    fn is_saved(&self, id: u32, position: u64) -> bool {
        let group = self.state.groups.get(id);
        group.is_none_or(|group| position < (self.saved)(group.chunk))
    }

    fn touch(&mut self, id: u32) {
        let chunk = self.state.groups.get(id).map(|group| group.chunk);
        if let Some(chunk) = chunk.and_then(|chunk| self.state.chunks.get_mut(chunk)) {
            chunk.touch(self.sequence, 0);
        }
    }

    fn group(&mut self, id: u32, path: &[u8], birth: &Birth, position: u64) {
        let known = self.state.groups.get(id).is_some();
        if known || position < (self.saved)(birth.chunk) {
            return;
        }
        let chunks = &mut self.state.chunks;
        let shape = match self.fronts.get(&birth.chunk) {
            Some(front) => chunks.shape(front),
            None => chunks.get(birth.chunk).map(|chunk| chunk.shape.clone()),
        };
        let chunk = chunks.get(birth.chunk);
        let taken = chunk.and_then(|chunk| {
            chunk
                .members
                .get(usize::from(birth.slot))
                .copied()
                .flatten()
        });
        let shape = shape.filter(|shape| {
            let same = chunk.is_none_or(|chunk| chunk.shape == *shape);
            same && taken.is_none() && shape.words == birth.state.len()
        });
        let sane = path.first() == Some(&b'/') && names::refused(path).is_none() && id < 1 << 28;
        let (Some(shape), true) = (shape, sane && birth.chunk < CHUNKS_MAX) else {
            let path = DisplayName(path);
            self.notices.push(format!(
                "cannot take values for {path}: what the journal says of it is damaged"
            ));
            return;
        };
        let stamp = shape.stamp_of(&birth.state);
        chunks.put(birth.chunk, birth.slot, &shape, Some(id));
        let group = self
            .state
            .groups
            .insert(id, path, (birth.chunk, birth.slot));
        group.state = Some(Packed::of(&birth.state));
        group.base = birth.base;
        group.unsafe_birth = birth.base.is_none();
        for place in [
            &mut group.last,
            &mut group.applied,
            &mut group.shown,
            &mut group.upto,
            &mut group.safe,
        ] {
            *place = stamp;
        }
        self.touch(id);
        self.looked
            .resize(self.looked.len().max(id as usize + 1), 0);
        self.looked[id as usize] = self.gaps;
    }

    fn values(
        &mut self,
        id: u32,
        count: u64,
        position: u64,
        input: &mut &[u8],
        stamps: &mut Stamps,
    ) -> Option<()> {
        let saved = self.is_saved(id, position);
        self.next_id = self.next_id.max(id.saturating_add(1));
        self.look(id);
        let Teller { value, text, .. } = self;
        let mut taken = 0;
        self.state.groups.expect_next(id);
        let mut group = self.state.groups.get_mut(id).filter(|_| !saved);
        if let Some(group) = group.as_deref_mut().filter(|group| group.forgotten) {
            group.forgotten = false;
            group.last = group.newest();
        }
        for _ in 0..count {
            value.take(input, stamps)?;
            let Some(group) = group.as_deref_mut() else {
                continue;
            };
            // A value that was restated is there already.
            let stamp = value.seconds().or_else(|| stamp_of(value.stamp_text(text)));
            if let Some(stamp) = stamp.filter(|stamp| *stamp > group.last) {
                group.last = stamp;
                group.pending.push_value(value);
                taken += 1;
            } else if let Some(after) =
                hole::after(value.stamp_text(text)).filter(|_| stamp.is_none())
                && after >= group.last
            {
                // The same for what was lost.
                let before = group.pending.len();
                group.pending.push_hole(group.last);
                taken += group.pending.len() - before;
            }
        }
        if let Some(group) = group {
            let (chunk, after) = (group.chunk, group.pending.len());
            self.state.count(chunk, after - taken, after);
            self.touch(id);
        }
        Some(())
    }

    fn about(&mut self, entry: Entry<'_>, position: u64) {
        let (Entry::Shown { id, .. }
        | Entry::Newest { id, .. }
        | Entry::Start { id, .. }
        | Entry::End { id, .. }
        | Entry::Live { id, .. }
        | Entry::NotStarted { id }
        | Entry::Forget { id }) = entry
        else {
            return;
        };
        let saved = self.is_saved(id, position);
        match entry {
            Entry::Start { .. } => self.state.groups.start(id, self.sequence),
            Entry::End { identity, .. } => self.state.groups.leave(id, identity),
            _ => {}
        }
        let Some(group) = self.state.groups.get_mut(id) else {
            return;
        };
        let (chunk, before) = (group.chunk, group.pending.len());
        match entry {
            Entry::Shown { upto, .. } if !saved => group.shown = upto,
            Entry::Newest { stamp, .. } if !saved && stamp.is_finite() => {
                group.pending.cut_after(stamp);
                group.go_back_to(stamp);
            }
            Entry::Forget { .. } if !saved => {
                group.pending.cut_after(group.shown);
                group.forgotten = true;
            }
            Entry::Start { .. } => {
                self.starts.insert(id, position);
                group.redo = true;
                group.writing = true;
            }
            Entry::End { upto, .. } => {
                group.writing = false;
                group.live = None;
                group.upto = upto;
                group.shown = group.shown.max(upto);
            }
            Entry::Live { live, .. } => group.live = Some(live),
            Entry::NotStarted { .. } => group.writing = false,
            _ => return,
        }
        let after = group.pending.len();
        self.state.count(chunk, before, after);
        self.touch(id);
    }

    fn renamed(&mut self, id: u32, path: &[u8], position: u64) {
        let sane = path.first() == Some(&b'/') && names::refused(path).is_none();
        if sane && !self.is_saved(id, position) {
            self.touch(id);
            self.state.groups.rename_file(id, path);
        }
    }

    fn gone(&mut self, id: u32, position: u64) {
        if self.is_saved(id, position) {
            return;
        }
        self.touch(id);
        self.state.forget_group(id);
    }

    /// What was written before `position` is on the disk.
    fn checkpoint(&mut self, position: u64) {
        let groups = &mut self.state.groups;
        self.starts.retain(|id, at| {
            let Some(group) = groups.get(*id) else {
                return false;
            };
            let settled = *at < position && !group.writing;
            if settled {
                groups.settle(*id);
            }
            !settled
        });
    }
}
