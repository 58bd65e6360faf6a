//! Reads the journal's values from a position on, in the order in which they were accepted. Only what is on the disk is given.

use std::collections::HashMap;
use std::path::PathBuf;

use kymo_sys::disk::{DiskFile, OpenMode};

use super::decode::{FrameSink, decode};
use crate::engine::{Inner, Store};
use crate::wal::frame::{self, FRAMES_OFFSET, FileHead, Frame};
use crate::wal::point_records::Before;
use crate::wal::spans::{FileSpan, read_head};
use crate::wal::value::Stamps;

/// Bytes that are read at once; of a longer frame, more.
const PIECE: usize = 256 << 10;

/// Takes what a tail reads.
pub trait TailSink {
    /// A value of a column of a series, with the moment in milliseconds since 1970.
    fn value(&mut self, series: u32, column: u16, t_ms: i64, v: f64);

    /// A series is gone, or has another name.
    fn changed(&mut self, series: u32);

    /// True if nothing more should come: the reader stops behind the frame it is at.
    fn is_full(&self) -> bool;
}

/// Outcome of a reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TailStep {
    /// Everything before this position was given.
    pub position: u64,
    /// Bytes of the journal that are gone or damaged, and were not given.
    pub lost_bytes: u64,
    /// Values that are unknown because others are damaged.
    pub lost_values: u64,
}

/// Reads on from a position.
pub struct TailReader {
    store: Store,
    position: u64,
    open: Option<OpenSpan>,
}

/// A journal file that is being read, from its begin: values are differences to earlier ones in the file.
struct OpenSpan {
    span: FileSpan,
    head: FileHead,
    file: Box<dyn DiskFile>,
    /// The position of the next frame, and where it begins in the buffer.
    at: u64,
    start: usize,
    buffer: Vec<u8>,
    decimals: HashMap<u32, Before>,
}

impl Store {
    /// A reader of the journal from a position on.
    pub fn tail(&self, position: u64) -> TailReader {
        TailReader {
            store: self.clone(),
            position,
            open: None,
        }
    }
}

impl TailReader {
    /// Where the next reading begins.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Gives all that is on the disk, or as much as the sink takes.
    pub fn read(&mut self, sink: &mut dyn TailSink) -> TailStep {
        let mut step = TailStep::default();
        let mut frames = Given {
            sink,
            is_wanted: false,
            lost: 0,
        };
        while !frames.sink.is_full() {
            let Some((span, end)) = next_span(&self.store.inner, self.position) else {
                break;
            };
            if self.position < span.base {
                step.lost_bytes += span.base - self.position;
                self.position = span.base;
            }
            let open = self.open.take();
            let open = open.filter(|open| open.span.sequence == span.sequence);
            let Some(mut open) = open.or_else(|| OpenSpan::new(&self.store.inner, span)) else {
                // A file that was removed while it was looked for: the next one goes on.
                step.lost_bytes += end - self.position;
                self.position = end;
                continue;
            };
            let lost = open.read(&mut self.position, end, &mut frames);
            step.lost_bytes += lost;
            self.open = Some(open);
        }
        step.lost_values = frames.lost;
        step.position = self.position;
        step
    }
}

/// The values of a part of the journal.
pub(super) fn count(inner: &Inner, from: u64, end: u64) -> u64 {
    let (mut position, mut counted) = (from, Counted(0));
    while position < end {
        let Some((span, span_end)) = next_span(inner, position) else {
            break;
        };
        position = position.max(span.base);
        let upto = span_end.min(end);
        let Some(mut open) = OpenSpan::new(inner, span) else {
            break;
        };
        let mut frames = Given {
            sink: &mut counted,
            is_wanted: false,
            lost: 0,
        };
        open.read(&mut position, upto, &mut frames);
        counted.0 += frames.lost;
        position = position.max(upto);
    }
    counted.0
}

struct Counted(u64);

impl TailSink for Counted {
    fn value(&mut self, _series: u32, _column: u16, _t_ms: i64, _v: f64) {
        self.0 += 1;
    }

    fn changed(&mut self, _series: u32) {}

    fn is_full(&self) -> bool {
        false
    }
}

/// The file that has the frame at a position, or else the next one, and up to where it may be read. `None`: nothing behind the
/// position is on the disk.
fn next_span(inner: &Inner, position: u64) -> Option<(FileSpan, u64)> {
    let state = inner.lock();
    let synced = state.journal.synced;
    let mut spans = state.journal.spans();
    let found = spans.find(|(span, end)| *end > position && span.base < *end);
    let (span, end) = found.filter(|_| synced > position)?;
    Some((span, end.min(synced))).filter(|(span, end)| *end > position.max(span.base))
}

impl OpenSpan {
    fn new(inner: &Inner, span: FileSpan) -> Option<OpenSpan> {
        let path: PathBuf = inner.settings.folder.join(span.name());
        let head = read_head(&*inner.disk, &path, span.sequence)?;
        let file = inner.disk.open(&path, OpenMode::Read).ok()?;
        (head.base == span.base).then(|| OpenSpan {
            span,
            head,
            file,
            at: span.base,
            start: 0,
            buffer: Vec::new(),
            decimals: HashMap::new(),
        })
    }

    /// Gives the frames from `position` up to `end`, or until the sink is full, and moves the position on; the bytes that are
    /// damaged.
    fn read(&mut self, position: &mut u64, end: u64, frames: &mut Given<'_>) -> u64 {
        let mut lost = 0;
        while self.at < end && !(frames.sink.is_full() && self.at >= *position) {
            let Some(frame) = self.next_frame(end) else {
                // Only a look at the whole file finds the next frame behind damage.
                let next = self.frame_behind(self.at, end).unwrap_or(end);
                lost += next.saturating_sub(self.at.max(*position));
                self.go_to(next);
                *position = (*position).max(next);
                continue;
            };
            frames.is_wanted = frame.position >= *position;
            let unread = &self.buffer[self.start..];
            let entries = &unread[frame.entries.clone()];
            let stamps = Stamps::at(self.head.stamp_s);
            if decode(entries, frame.short, stamps, &mut self.decimals, frames).is_none() {
                self.decimals.clear();
                lost += frame.end - frame.position;
            }
            self.start += frame.entries.end;
            self.at = frame.end;
            *position = (*position).max(frame.end);
        }
        lost
    }

    /// The next frame. `None`: there is no valid one.
    fn next_frame(&mut self, end: u64) -> Option<Frame> {
        loop {
            let unread = self.buffer.get(self.start..).unwrap_or_default();
            if let Some(frame) = frame::first(unread, &self.head, self.at)
                && frame.end <= end
            {
                return Some(frame);
            }
            if !self.fill(end) {
                return None;
            }
        }
    }

    /// Reads more bytes. `false`: there are no more.
    fn fill(&mut self, end: u64) -> bool {
        self.buffer.drain(..self.start);
        self.start = 0;
        let have = self.buffer.len();
        let filled = u64::try_from(have).unwrap_or(u64::MAX);
        let left = (end - self.at).saturating_sub(filled);
        let more = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(PIECE.max(have));
        if more == 0 {
            return false;
        }
        self.buffer.resize(have + more, 0);
        let offset = FRAMES_OFFSET + (self.at - self.head.base) + filled;
        let count = self
            .file
            .read_at(&mut self.buffer[have..], offset)
            .unwrap_or(0);
        self.buffer.truncate(have + count);
        count > 0
    }

    /// The first valid frame behind a damaged place.
    fn frame_behind(&self, position: u64, end: u64) -> Option<u64> {
        let size = usize::try_from(FRAMES_OFFSET + (end - self.head.base)).ok()?;
        let mut bytes = vec![0; size];
        let count = self.file.read_at(&mut bytes, 0).ok()?;
        bytes.truncate(count);
        let frames = frame::walk(&bytes, &self.head);
        let next = frames.iter().map(|frame| frame.position);
        next.filter(|next| *next > position).min()
    }

    fn go_to(&mut self, position: u64) {
        (self.at, self.start) = (position, 0);
        self.buffer.clear();
        self.decimals.clear();
    }
}

/// Gives the values of frames that are wanted; those before them are only needed for the differences.
struct Given<'a> {
    sink: &'a mut dyn TailSink,
    is_wanted: bool,
    lost: u64,
}

impl FrameSink for Given<'_> {
    fn value(&mut self, series: u32, column: u16, t_ms: i64, v: f64) {
        if self.is_wanted {
            self.sink.value(series, column, t_ms, v);
        }
    }

    fn lost(&mut self) {
        self.lost += u64::from(self.is_wanted);
    }

    fn changed(&mut self, series: u32) {
        if self.is_wanted {
            self.sink.changed(series);
        }
    }
}
