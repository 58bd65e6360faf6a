//! A reader of the journal: its file and position, and its handling of damage and of removed files.

use super::batch::Batch;
use super::entries::{Count, Decoder};
use super::window::Window;
use super::{TailError, TailSink};
use crate::engine::Store;
use crate::memtable::state::nanos;
use crate::wal::frame;
use crate::wal::frame::Frame;
use crate::wal::tailed::FilePlace;
use crate::wal::tails::Missed;
use crate::write_batch::Position;
use kymo_sys::disk::{DiskFile, OpenMode};
use std::io;
use std::time::Duration;

/// Tries to open a file that is renamed meanwhile.
const TRIES: usize = 8;

/// Reads the journal from a position on.
pub struct TailReader {
    store: Store,
    name: Option<String>,
    /// Position before which everything was read.
    position: u64,
    open: Option<Open>,
    window: Window,
    decoder: Decoder,
    batch: Batch,
    /// Missed parts that the sink has not got yet.
    missed: Vec<Missed>,
    /// The sink has got the missed parts before this position.
    told_to: u64,
}

/// The file that is being read.
struct Open {
    file: Box<dyn DiskFile>,
    place: FilePlace,
}

/// The next part of the journal.
enum Next {
    Frame(Frame),
    /// No frame can be read before this position.
    Damage(u64),
}

impl TailReader {
    pub(super) fn open(
        store: &Store,
        name: Option<&str>,
        position: u64,
    ) -> Result<TailReader, TailError> {
        let tail = name.and_then(|name| store.inner.tails().get(name));
        let mut reader = TailReader {
            store: store.clone(),
            name: name.map(String::from),
            position,
            open: None,
            window: Window::default(),
            decoder: Decoder::default(),
            batch: Batch::default(),
            missed: tail.and_then(|tail| tail.missed).into_iter().collect(),
            told_to: 0,
        };
        // An invalid position is an error at once.
        let end = reader.look();
        let missed = reader.enter(end)?;
        let is_news = |missed: &Missed| !reader.missed.contains(missed);
        let missed: Vec<Missed> = missed.into_iter().filter(is_news).collect();
        reader.missed.extend(missed);
        Ok(reader)
    }

    /// Position before which everything was read.
    pub fn position(&self) -> Position {
        Position(self.position)
    }

    /// The name of the tail, if it is registered.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Acknowledges everything that was read: the tail does not get it again.
    pub fn acknowledge(&mut self) -> Result<(), TailError> {
        match &self.name {
            Some(name) => {
                let is_told = self.told_to >= self.position;
                self.store.inner.acknowledge(name, self.position, is_told)
            }
            None => Ok(()),
        }
    }

    /// Waits at most this time until there is something to read. False: there is nothing.
    pub fn wait(&self, at_most: Duration) -> bool {
        let clock = &self.store.inner.clock;
        let until_ns = clock.mono_ns().saturating_add(nanos(at_most));
        let mut state = self.store.inner.lock();
        loop {
            let left = Duration::from_nanos(until_ns.saturating_sub(clock.mono_ns()));
            let has_more = state.journal.synced > self.position;
            if has_more || left.is_zero() || state.tails_end {
                return has_more;
            }
            let durable = state.journal.durable.clone();
            let is_over;
            (state, is_over) = durable.wait(state, left);
            if is_over {
                return state.journal.synced > self.position;
            }
        }
    }

    /// Reads on, about this number of bytes of the journal or to its end; the sink has all of it when this returns.
    pub fn read(&mut self, bytes_max: u64, sink: &mut dyn TailSink) -> Result<(), TailError> {
        for missed in std::mem::take(&mut self.missed) {
            self.tell_missed(missed, sink);
        }
        let until = self.position.saturating_add(bytes_max);
        loop {
            let end = self.look();
            if self.position >= end.min(until) {
                return Ok(());
            }
            let before = self.position;
            let read = self.enter(end).and_then(|missed| {
                missed
                    .into_iter()
                    .for_each(|missed| self.tell_missed(missed, sink));
                self.read_file(end, until, sink)
            });
            self.hand_over(before, sink);
            read?;
            if self.position == before {
                return Ok(());
            }
        }
    }

    /// The end of the journal on the disk; updates the limit of the numbers of series.
    fn look(&mut self) -> u64 {
        let state = self.store.inner.lock();
        self.decoder.next_id = state.series.next_id();
        state.journal.synced
    }

    /// Opens the file of the position, and passes over the frames before the position. Returns the missed part before
    /// that file.
    fn enter(&mut self, end: u64) -> Result<Option<Missed>, TailError> {
        let mut tries = 0;
        loop {
            let found = {
                let state = self.store.inner.lock();
                let place = state.journal.files.place_of(self.position);
                place.map(|place| (place, state.journal.path_of(&place)))
            };
            let Some((place, path)) = found else {
                return Ok(self.skip_to(end));
            };
            if let Some(open) = &mut self.open
                && open.place.head == place.head
            {
                open.place = place;
                return Ok(None);
            }
            match self.store.inner.disk.open(&path, OpenMode::Read) {
                Ok(file) => {
                    self.open = Some(Open { file, place });
                    self.window.clear();
                    self.decoder.forget();
                    return self.pass_to(place, end);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => {
                    tries += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Passes over the frames of a file before the position: later values may be differences to theirs.
    fn pass_to(&mut self, place: FilePlace, end: u64) -> Result<Option<Missed>, TailError> {
        let base = place.head.base;
        if self.position < base {
            return Ok(self.skip_to(base));
        }
        let (wanted, limit) = (self.position, place.end.min(end));
        self.position = base;
        while self.position < wanted {
            match self.next(limit)? {
                Next::Frame(frame) => {
                    if !self.pass_over(&frame) {
                        self.decoder.forget();
                    }
                }
                Next::Damage(to) => {
                    self.decoder.forget();
                    self.window.clear();
                    self.position = to.min(wanted);
                }
            }
        }
        match self.position == wanted {
            true => Ok(None),
            false => {
                self.open = None;
                self.position = wanted;
                Err(TailError::NotARecord(wanted))
            }
        }
    }

    /// Goes on at a later position, because there is nothing before it; returns the missed part.
    fn skip_to(&mut self, to: u64) -> Option<Missed> {
        let from = self.position;
        if from >= to {
            return None;
        }
        self.position = to;
        let tails = || self.store.inner.tails();
        let tail = self.name.as_deref().and_then(|name| tails().get(name));
        let counted = tail.and_then(|tail| tail.missed);
        let is_it = |missed: &Missed| missed.to == to && missed.from <= from;
        let values = None;
        Some(counted.filter(is_it).unwrap_or(Missed { from, to, values }))
    }

    fn tell_missed(&mut self, missed: Missed, sink: &mut dyn TailSink) {
        self.told_to = self.told_to.max(missed.to);
        sink.missed(missed);
    }

    /// Reads the open file, to its end or about up to a position.
    fn read_file(
        &mut self,
        end: u64,
        until: u64,
        sink: &mut dyn TailSink,
    ) -> Result<(), TailError> {
        let Some(place) = self.open.as_ref().map(|open| open.place) else {
            return Ok(());
        };
        let limit = place.end.min(end);
        let mut from = self.position;
        while self.position < limit.min(until) {
            match self.next(limit)? {
                Next::Frame(frame) => {
                    if !self.take(&frame) {
                        self.decoder.forget();
                        self.hand_over(from, sink);
                        self.tell_damage(frame.position, frame.end, sink);
                    }
                    if self.batch.is_full() {
                        self.hand_over(from, sink);
                        from = self.position;
                    }
                }
                Next::Damage(to) => {
                    if !self.is_still(&place) {
                        // The file was reused meanwhile: the next step opens another file, or reports the missing
                        // part.
                        self.open = None;
                        return Ok(());
                    }
                    self.hand_over(from, sink);
                    self.decoder.forget();
                    self.window.clear();
                    if to < place.end || !place.is_carried_over {
                        self.tell_damage(self.position, to, sink);
                    }
                    self.position = to;
                    from = to;
                }
            }
        }
        Ok(())
    }

    /// True if tails can still read the file.
    fn is_still(&self, place: &FilePlace) -> bool {
        let state = self.store.inner.lock();
        let now = state.journal.files.place_of(self.position);
        now.is_some_and(|now| now.head == place.head)
    }

    fn tell_damage(&mut self, from: u64, to: u64, sink: &mut dyn TailSink) {
        let values = None;
        self.tell_missed(Missed { from, to, values }, sink);
    }

    fn hand_over(&mut self, from: u64, sink: &mut dyn TailSink) {
        let range = (from, self.position);
        self.batch.hand_over(&self.store.inner, range, sink);
    }

    fn next(&mut self, limit: u64) -> Result<Next, TailError> {
        let Some(Open { file, place }) = &self.open else {
            return Ok(Next::Damage(limit));
        };
        let found = self
            .window
            .frame(&**file, &place.head, self.position, limit)?;
        match found {
            Some(frame) => Ok(Next::Frame(frame)),
            None => Ok(Next::Damage(behind_damage(
                &**file,
                place,
                self.position,
                limit,
            )?)),
        }
    }

    /// Decodes the frame at the window's start; `false`: an entry is not understood.
    fn take(&mut self, frame: &Frame) -> bool {
        let Some(head) = self.open.as_ref().map(|open| open.place.head) else {
            return false;
        };
        let bytes = self.window.rest();
        let taken = self.decoder.frame(bytes, frame, &head, &mut self.batch);
        self.end_frame(frame);
        taken.is_some()
    }

    /// As [`TailReader::take`], but keeps only the decoder's state for the values behind the frame.
    fn pass_over(&mut self, frame: &Frame) -> bool {
        let Some(head) = self.open.as_ref().map(|open| open.place.head) else {
            return false;
        };
        let bytes = self.window.rest();
        let taken = self
            .decoder
            .frame(bytes, frame, &head, &mut Count::default());
        self.end_frame(frame);
        taken.is_some()
    }

    fn end_frame(&mut self, frame: &Frame) {
        self.window.take(frame.end - frame.position);
        self.position = frame.end;
    }
}

/// Position of the first frame behind a position at which no frame begins.
fn behind_damage(
    file: &dyn DiskFile,
    place: &FilePlace,
    position: u64,
    limit: u64,
) -> Result<u64, TailError> {
    let len = limit.saturating_sub(place.head.base) + frame::FRAMES_OFFSET;
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    let frames = frame::walk(&bytes, &place.head);
    let behind = frames.iter().find(|frame| frame.position > position);
    Ok(behind.map_or(limit, |frame| frame.position))
}
