//! The tail: a reader of the journal from a position on, in the journal's order, for a program that forwards it. It gives
//! definitions of series, and values of both kinds as they were sent. Each series is defined before its first value.
//!
//! A registered tail has a name, and its acknowledged position is on the disk: journal files behind that position are kept for
//! the tail, up to a cap. Values that the tail has not acknowledged come again after a crash of either side. A reader has its own
//! file descriptors and position, and holds the store's lock only for moments.

mod batch;
mod by_series;
mod cap;
mod entries;
mod reader;
mod window;

use crate::engine::{Inner, Store};
use crate::known::KnownSeries;
use crate::wal::tailed::JournalFiles;
use crate::wal::tails::{NAME_MAX, TAILS_MAX, Tail, is_name};
use crate::write_batch::Position;
pub use entries::TailSample;
pub use reader::TailReader;
use std::io;
use std::sync::{MutexGuard, PoisonError};

use crate::wal::tails::{Missed, Tails};

/// Begin of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailFrom {
    /// Behind the values that were given before this position.
    Position(Position),
    /// With future values; a registered tail goes on where it has acknowledged.
    Now,
    /// With the oldest values; a registered tail goes on where it has acknowledged.
    Oldest,
}

/// Receives the events of a tail.
pub trait TailSink {
    /// Defines the series of the samples that follow. A series is defined again where it has another name.
    fn defined(&mut self, series: &TailSeries);
    /// The series does not exist any more.
    fn gone(&mut self, series: u32);
    /// A part of the journal is lost.
    fn missed(&mut self, missed: Missed);
    /// Samples in the journal's order. Samples of the columns of one value follow one another.
    fn samples(&mut self, samples: &[TailSample]);
}

/// A series of a tail.
#[derive(Clone, Debug, PartialEq)]
pub struct TailSeries {
    /// Definition of the series, without its newest stamp.
    pub known: KnownSeries,
    /// Seconds without a value after which the first column is unknown.
    pub heartbeat_s: u64,
}

/// State of a registered tail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TailStatus {
    /// Name of the tail.
    pub name: String,
    /// Position before which everything is acknowledged or missed.
    pub position: u64,
    /// Bytes of the journal behind `position`.
    pub backlog_bytes: u64,
    /// Seconds since the first of these bytes was written, about.
    pub backlog_age_s: f64,
    /// Values that the tail has missed since it was registered.
    pub missed_values: u64,
}

impl TailStatus {
    /// The state of a tail, for a journal with these files and this end.
    pub(crate) fn of(
        name: &str,
        tail: Tail,
        files: &JournalFiles,
        (end, now_ns): (u64, i64),
    ) -> TailStatus {
        TailStatus {
            name: name.into(),
            position: tail.position,
            backlog_bytes: end.saturating_sub(tail.position),
            backlog_age_s: files.age_s(tail.position, end, now_ns),
            missed_values: tail.missed_values,
        }
    }
}

/// Errors of opening a tail and of reading on.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// The journal has no such position yet.
    #[error("position {position} is behind the end of the journal, which is {end}")]
    Beyond {
        /// The position that was asked for.
        position: u64,
        /// End of the journal on the disk.
        end: u64,
    },
    /// No record begins at the position.
    #[error("no record of the journal begins at position {0}")]
    NotARecord(u64),
    /// No tail may have this name.
    #[error("a name has 1 to {NAME_MAX} letters, digits, dots, dashes and underscores")]
    Name,
    /// There are too many tails.
    #[error("there are {TAILS_MAX} tails: end one of them first")]
    TooMany,
    /// The tail is not registered, or was ended.
    #[error("no such tail is registered")]
    Unknown,
    /// The disk failed.
    #[error("{}", kymo_base::errno::strerror(.0))]
    Io(#[from] io::Error),
}

impl Store {
    /// Opens a reader of the journal. A name registers the tail if it is not registered yet: its acknowledgements are durable. If
    /// the journal begins behind the position, the reader begins there and reports the missing part.
    pub fn tail(&self, name: Option<&str>, from: TailFrom) -> Result<TailReader, TailError> {
        let Some(name) = name else {
            let position = self.inner.begin_of_tail(from)?;
            return TailReader::open(self, None, position);
        };
        if !is_name(name) {
            return Err(TailError::Name);
        }
        let registered = self.inner.tails().get(name);
        if let Some(tail) = registered {
            let position = match from {
                TailFrom::Position(_) => self.inner.begin_of_tail(from)?,
                TailFrom::Now | TailFrom::Oldest => tail.position,
            };
            return TailReader::open(self, Some(name), position);
        }
        let position = self.inner.begin_of_tail(from)?;
        // An invalid position registers nothing.
        let reader = TailReader::open(self, Some(name), position)?;
        self.inner.register(name, reader.position().0)?;
        Ok(reader)
    }

    /// Ends a registered tail: no files are kept for it any more. `false`: there was none.
    pub fn end_tail(&self, name: &str) -> Result<bool, TailError> {
        let mut tails = self.inner.tails();
        if tails.get(name).is_none() {
            return Ok(false);
        }
        tails.put(&[(name.into(), None)])?;
        self.inner.keep_for(&tails)?;
        Ok(true)
    }

    /// The registered tails, by name.
    pub fn tails(&self) -> Vec<TailStatus> {
        let tails = self.inner.tails();
        let state = self.inner.lock();
        let now_ns = self.inner.clock.mono_ns().cast_signed();
        let end = state.journal.synced;
        let files = &state.journal.files;
        let tails = tails.iter();
        tails
            .map(|(name, tail)| TailStatus::of(name, tail, files, (end, now_ns)))
            .collect()
    }

    /// Ends the waiting of all readers.
    pub fn end_waiting_tails(&self) {
        let mut state = self.inner.lock();
        state.tails_end = true;
        state.journal.durable.ring();
    }
}

impl Inner {
    /// Locks the registered tails. A holder of this lock may take the store's lock, but not the other way round.
    pub(crate) fn tails(&self) -> MutexGuard<'_, Tails> {
        self.tails.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_of_tail(&self, from: TailFrom) -> Result<u64, TailError> {
        let state = self.lock();
        let end = state.journal.synced;
        match from {
            TailFrom::Now => Ok(end),
            TailFrom::Oldest => Ok(state.journal.files.oldest().unwrap_or(end).min(end)),
            TailFrom::Position(Position(position)) if position > end => {
                Err(TailError::Beyond { position, end })
            }
            TailFrom::Position(Position(position)) => Ok(position),
        }
    }

    fn register(&self, name: &str, position: u64) -> Result<(), TailError> {
        let mut tails = self.tails();
        if tails.get(name).is_some() {
            return Ok(());
        }
        if tails.len() >= TAILS_MAX {
            return Err(TailError::TooMany);
        }
        let tail = Tail {
            position,
            ..Tail::default()
        };
        tails.put(&[(name.into(), Some(tail))])?;
        self.keep_for(&tails)
    }

    /// Acknowledges everything before a position for a registered tail. `is_told`: the sink got its missed parts, too.
    fn acknowledge(&self, name: &str, position: u64, is_told: bool) -> Result<(), TailError> {
        let mut tails = self.tails();
        let mut tail = tails.get(name).ok_or(TailError::Unknown)?;
        if !tail.acknowledge(position, is_told) {
            return Ok(());
        }
        tails.put(&[(name.into(), Some(tail))])?;
        self.keep_for(&tails)
    }

    /// Keeps only the journal files and removed series that these tails need.
    pub(crate) fn keep_for(&self, tails: &Tails) -> Result<(), TailError> {
        let from = tails.needed_from();
        let mut state = self.lock();
        state.journal.files.needed_from = from;
        state.departed.keep_from(from);
        Ok(state.journal.drop_needless()?)
    }
}
