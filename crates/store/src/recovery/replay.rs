//! Replays the journal files of earlier processes on the state from the blocks.
//!
//! Unsynced writes may be there in part. Frames count up to the first gap, because later frames may depend on the missing
//! ones. There are two exceptions: a later frame proves that the gap had been on the disk, so that it is damage; or a later
//! file begins with all that memory held. After damage, each series that may have lost values gets a hole.

use crate::hole;
use crate::layout::CHUNKS_MAX;
use crate::memtable::file_state::FileState;
use crate::memtable::state::State;
use crate::names;
use crate::wal::frame;
use crate::wal::frame::{FileHead, Frame};
use crate::wal::point::{Double, Point, take_double};
use crate::wal::point_records::{Before, take_points};
use crate::wal::record;
use crate::wal::record::{Birth, Packed, Record};
use crate::wal::value::stamp_of;
use crate::wal::value::{Stamps, Value};
use kymo_base::name::DisplayName;
use std::collections::HashMap;

/// One journal file.
pub(crate) struct JournalSource {
    pub(crate) head: FileHead,
    pub(crate) bytes: Vec<u8>,
}

/// Result of the replay.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// Position at which the journal continues.
    pub(crate) position: u64,
    pub(crate) notices: Vec<String>,
    /// Message about frames after a gap that was never synced; they do not count.
    pub(crate) ignored: Option<String>,
}

/// Applies entries to the state.
struct Replayer<'a> {
    state: &'a mut State,
    /// Position up to which a chunk's records are in blocks.
    saved: &'a dyn Fn(u32) -> u64,
    /// Definitions of chunks in the current journal file.
    fronts: HashMap<u32, Vec<u8>>,
    /// Position of the newest START of a series.
    starts: HashMap<u32, u64>,
    notices: Vec<String>,
    sequence: u64,
    /// Number of damaged places so far, and end of the last one.
    gaps: u32,
    gap_end: u64,
    /// By series, the number of damaged places at its last check.
    looked: Vec<u32>,
    /// A number above those of all series so far.
    next_id: u32,
    /// Buffer for the current value.
    value: Value,
    text: Vec<u8>,
    /// The last decimals of series of points in this journal file, as far as it was read without damage.
    decimals: HashMap<u32, Before>,
    /// Number of samples whose values are steps from lost ones.
    lost_samples: u64,
}

/// The valid frames of journal files, which must be sorted by sequence number.
pub(crate) fn walk(sources: &[JournalSource]) -> Vec<Vec<Frame>> {
    let walked = sources.iter().enumerate().map(|(at, source)| {
        // Frames at or after the base of a later file were refused when that file was begun.
        let later = sources[at + 1..].iter().map(|later| later.head.base).min();
        let mut frames = frame::walk(&source.bytes, &source.head);
        frames.retain(|frame| later.is_none_or(|base| frame.end <= base));
        frames
    });
    walked.collect()
}

/// The lowest position of the journal files.
pub(crate) fn base(sources: &[JournalSource]) -> u64 {
    let bases = sources.iter().map(|source| source.head.base);
    bases.min().unwrap_or(0)
}

/// Replays journal files. `saved` returns the position up to which a chunk is in blocks. All before `proven` was on the
/// disk, because a block was written after it.
pub(crate) fn replay(
    sources: &[JournalSource],
    walked: &[Vec<Frame>],
    state: &mut State,
    saved: &dyn Fn(u32) -> u64,
    proven: u64,
) -> Story {
    let mut story = Story::default();
    let mut replayer = Replayer {
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
        decimals: HashMap::new(),
        lost_samples: 0,
    };
    let heads: Vec<&FileHead> = sources.iter().map(|source| &source.head).collect();
    let proofs = proofs(&heads, walked, proven);
    let mut position = base(sources);
    let mut number = 0;
    for (source, frames) in sources.iter().zip(walked) {
        replayer.fronts.clear();
        replayer.decimals.clear();
        replayer.sequence = source.head.sequence;
        let first = number;
        number += frames.len();
        for (at, frame) in (first..).zip(frames) {
            let again =
                at == first && source.head.carries_over && frame.position == source.head.base;
            if frame.position > position && !again {
                if proofs[at] <= position {
                    // The gap was never synced; the journal may continue with a later file.
                    let count = number - at;
                    story.ignored = Some(format!(
                        "journal file {}: bytes {position} to {} of the journal were never known to be on the disk, and are not there (did the power fail?): {count} frames behind them do not count",
                        source.head.sequence, frame.position
                    ));
                    break;
                }
                replayer.lose(frame.position);
                story.notices.push(format!(
                    "journal file {} is damaged: bytes {position} to {} of the journal are lost",
                    source.head.sequence, frame.position
                ));
            }
            position = frame.end;
            story.ignored = story.ignored.filter(|_| !again);
            let stamps = Stamps::at(source.head.stamp_s);
            if replayer.apply_frame(&source.bytes, frame, stamps).is_none() {
                story.notices.push(format!(
                    "journal file {} has an entry at byte {} of the journal that is not understood",
                    source.head.sequence, frame.position
                ));
                replayer.lose(frame.end);
            }
        }
    }
    story.position = position;
    replayer.end();
    story.notices.append(&mut replayer.notices);
    story
}

/// For each frame, the position up to which the journal was certainly synced, by blocks, the frame itself and later frames.
/// A file that carries everything over proves nothing about earlier files, since one of them may have been given up.
pub(crate) fn proofs(heads: &[&FileHead], walked: &[Vec<Frame>], proven: u64) -> Vec<u64> {
    let (mut proofs, mut synced) = (Vec::new(), proven);
    for (head, frames) in heads.iter().zip(walked).rev() {
        for frame in frames.iter().rev() {
            synced = synced.max(frame.synced);
            proofs.push(synced);
        }
        let first = frames.first().map(|frame| frame.position);
        if head.carries_over && first == Some(head.base) {
            // A later block proves only this file.
            synced = if proven <= head.base { proven } else { 0 };
        }
    }
    proofs.reverse();
    proofs
}

impl Replayer<'_> {
    /// Applies the entries of one frame; `None` if one of them is invalid.
    fn apply_frame(&mut self, bytes: &[u8], frame: &Frame, mut stamps: Stamps) -> Option<()> {
        let (mut input, position) = (&bytes[frame.entries.clone()], frame.position);
        if frame.short {
            let id = record::take_short(&mut input, &mut stamps)?;
            self.values(id, 1, position, &mut input, &mut stamps)?;
        }
        while !input.is_empty() {
            if let Some(id) = record::take_next(&mut input, &mut stamps) {
                self.values(id, 1, position, &mut input, &mut stamps)?;
                continue;
            }
            let mut each = |id, t_ms, input: &mut &[u8]| self.point(id, t_ms, position, input);
            if take_points(&mut input, &mut stamps, &mut each)? {
                continue;
            }
            match Record::take(&mut input)? {
                Record::Schema { chunk, front } => {
                    self.fronts.insert(chunk, front.into_owned());
                }
                Record::Series { id, path, birth } => self.series(id, path, &birth, position),
                Record::Values { id, count } => {
                    stamps.id = id;
                    self.values(id, count, position, &mut input, &mut stamps)?;
                }
                Record::Checkpoint { position } => self.checkpoint(position),
                Record::Gone { id } => self.gone(id, position),
                Record::Renamed { id, path } => self.renamed(id, path, position),
                entry => self.about(entry, position),
            }
        }
        Some(())
    }

    /// Notes that records before this position that are in no block are lost.
    fn lose(&mut self, end: u64) {
        self.gaps += 1;
        self.gap_end = end;
        self.decimals.clear();
        self.state.has_lost = true;
    }

    /// Begins a hole in a series if it may have lost values since its last check.
    fn look(&mut self, id: u32) {
        if self.gaps == 0 {
            return;
        }
        let at = id as usize;
        let Some(series) = self.state.series.get(id) else {
            return;
        };
        if self.looked.len() <= at {
            self.looked.resize(at + 1, 0);
        }
        let before = std::mem::replace(&mut self.looked[at], self.gaps);
        if before < self.gaps && (self.saved)(series.chunk) < self.gap_end {
            self.state.lose(id);
        }
    }

    /// Ends the replay.
    fn end(&mut self) {
        let ids: Vec<u32> = match self.gaps {
            0 => Vec::new(),
            _ => self.state.series.iter().map(|(id, _)| id).collect(),
        };
        ids.into_iter().for_each(|id| self.look(id));
        if self.lost_samples > 0 {
            let line = format!(
                "{} samples behind damage in the journal are lost",
                self.lost_samples
            );
            self.notices.push(line);
        }
        // New series must not get the numbers of series whose beginning is lost.
        self.state.series.go_on_at(self.next_id);
    }

    /// Returns true if a record of a series is in a block already, or the series is unknown.
    fn is_saved(&self, id: u32, position: u64) -> bool {
        let series = self.state.series.get(id);
        series.is_none_or(|series| position < (self.saved)(series.chunk))
    }

    fn touch(&mut self, id: u32) {
        let chunk = self.state.series.get(id).map(|series| series.chunk);
        if let Some(chunk) = chunk.and_then(|chunk| self.state.chunks.get_mut(chunk)) {
            chunk.touch(self.sequence, 0);
        }
    }

    fn series(&mut self, id: u32, path: &[u8], birth: &Birth, position: u64) {
        let known = self.state.series.get(id).is_some();
        if known || position < (self.saved)(birth.chunk) {
            return;
        }
        let chunks = &mut self.state.chunks;
        let schema = match self.fronts.get(&birth.chunk) {
            Some(front) => chunks.schema(front),
            None => chunks.get(birth.chunk).map(|chunk| chunk.schema.clone()),
        };
        let chunk = chunks.get(birth.chunk);
        let taken = chunk.and_then(|chunk| {
            chunk
                .members
                .get(usize::from(birth.slot))
                .copied()
                .flatten()
        });
        let schema = schema.filter(|schema| {
            let same = chunk.is_none_or(|chunk| chunk.schema == *schema);
            same && taken.is_none() && schema.words == birth.state.len()
        });
        let is_place = id < 1 << 28 && birth.chunk < CHUNKS_MAX;
        let path = schema
            .zip(self.state.restored(id, path))
            .filter(|_| is_place)
            .ok_or(path);
        let (schema, path) = match path {
            Ok(known) => known,
            Err(path) => {
                let path = DisplayName(path);
                self.notices.push(format!(
                    "cannot take values for {path}: what the journal says of it is damaged"
                ));
                return;
            }
        };
        let chunks = &mut self.state.chunks;
        let stamp = schema.stamp_of(&birth.state);
        chunks.put(birth.chunk, birth.slot, &schema, Some(id));
        let (place, file) = (
            (birth.chunk, birth.slot),
            FileState::of_birth(birth.base, stamp),
        );
        let series = self.state.series.insert(id, &path, place, file);
        series.values.state = Some(Packed::of(&birth.state));
        series.base = birth.base;
        series.values.last = stamp;
        series.values.applied = stamp;
        series.values.published = stamp;
        self.state.restore_points(id);
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
        let Replayer { value, text, .. } = self;
        let mut taken = 0;
        self.state.series.expect_next(id);
        let mut series = self.state.series.get_mut(id).filter(|_| !saved);
        if let Some(series) = series.as_deref_mut().filter(|series| series.forgotten) {
            series.forgotten = false;
            series.values.last = series.values.newest();
        }
        for _ in 0..count {
            value.take(input, stamps)?;
            let Some(series) = series.as_deref_mut() else {
                continue;
            };
            // A carried-over value is known already.
            let stamp = value.seconds().or_else(|| stamp_of(value.stamp_text(text)));
            if let Some(stamp) = stamp.filter(|stamp| *stamp > series.values.last) {
                series.values.last = stamp;
                series.values.pending.push_value(value);
                taken += 1;
            } else if let Some(after) =
                hole::after(value.stamp_text(text)).filter(|_| stamp.is_none())
                && after >= series.values.last
            {
                // A carried-over hole is known already too.
                let before = series.values.pending.len();
                series.values.pending.push_hole(series.values.last);
                taken += series.values.pending.len() - before;
            }
        }
        if let Some(series) = series {
            let (chunk, after) = (series.chunk, series.values.pending.len());
            self.state.count(chunk, after - taken, after);
            self.touch(id);
        }
        Some(())
    }

    /// Applies a sample.
    fn point(&mut self, id: u32, t_ms: i64, position: u64, input: &mut &[u8]) -> Option<()> {
        let double = take_double(input, self.decimals.entry(id).or_default())?;
        self.next_id = self.next_id.max(id.saturating_add(1));
        if self.is_saved(id, position) {
            return Some(());
        }
        let Double::Known(v) = double else {
            self.lost_samples += 1;
            return Some(());
        };
        let series = self.state.series.get_mut(id)?;
        let tail = series.values.points.as_mut()?;
        let before = tail.pending.len();
        let point = Point { t_ms, v };
        // A carried-over sample is known already.
        if tail.admits(point) == Ok(true) {
            tail.push(point);
        }
        let (chunk, after) = (series.chunk, tail.pending.len());
        series.values.last = series.values.last.max(point.seconds());
        series.values.published = series.values.last;
        self.state.count(chunk, before, after);
        self.touch(id);
        Some(())
    }

    fn about(&mut self, entry: Record<'_>, position: u64) {
        let (Record::Published { id, .. }
        | Record::Newest { id, .. }
        | Record::Start { id, .. }
        | Record::End { id, .. }
        | Record::Live { id, .. }
        | Record::NotStarted { id }
        | Record::Forget { id }) = entry
        else {
            return;
        };
        let saved = self.is_saved(id, position);
        match entry {
            Record::Start { .. } => self.state.series.replay_start(id, self.sequence),
            Record::End { identity, upto, .. } => self.state.series.replay_end(id, identity, upto),
            _ => {}
        }
        let Some(series) = self.state.series.get_mut(id) else {
            return;
        };
        let (chunk, before) = (series.chunk, series.values.pending.len());
        match entry {
            Record::Published { upto, .. } if !saved => series.values.published = upto,
            Record::Newest { stamp, .. } if !saved && stamp.is_finite() => {
                series.values.pending.cut_after(stamp);
                series.values.go_back_to(stamp);
            }
            Record::Forget { .. } if !saved => {
                series.values.pending.cut_after(series.values.published);
                series.forgotten = true;
            }
            Record::Start { .. } => {
                self.starts.insert(id, position);
            }
            Record::End { upto, .. } => series.values.published = series.values.published.max(upto),
            Record::Live { live, .. } => series.file.replay_live(live),
            Record::NotStarted { .. } => series.file.replay_not_started(),
            _ => return,
        }
        let after = series.values.pending.len();
        self.state.count(chunk, before, after);
        self.touch(id);
    }

    fn renamed(&mut self, id: u32, path: &[u8], position: u64) {
        if !names::is_file(path) || self.is_saved(id, position) {
            return;
        }
        if let Some(path) = self.state.restored(id, path) {
            self.touch(id);
            self.state.series.rename_file(id, &path);
        }
    }

    fn gone(&mut self, id: u32, position: u64) {
        if self.is_saved(id, position) {
            return;
        }
        self.touch(id);
        self.state.forget_series(id);
    }

    /// Notes that the file writes announced before `position` are on the disk.
    fn checkpoint(&mut self, position: u64) {
        let all = &mut self.state.series;
        self.starts.retain(|id, at| {
            let Some(series) = all.get(*id) else {
                return false;
            };
            let settled = *at < position && !series.file.is_unfinished();
            if settled {
                all.settle(*id);
            }
            !settled
        });
    }
}
