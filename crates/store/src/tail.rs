//! The tail: what the journal says from a position on, in its order, for who carries it on: definitions of series, and values of
//! both kinds as they were sent. Each series is defined before its first value.
//!
//! A *registered* tail has a name, and what it has acknowledged is on the disk: journal files behind that are kept for it, up to a
//! cap. What it has not acknowledged comes again after a crash of either side. A reader has file descriptors and a place of its
//! own, and takes the store's lock for moments alone.

mod batch;
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

/// Where a tail begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailFrom {
    /// Behind all that was given before this position.
    Position(Position),
    /// With what is on the disk from now on; a registered tail goes on where it has acknowledged.
    Now,
    /// With the oldest that is there; likewise.
    Oldest,
}

/// Hears what the journal says.
pub trait TailSink {
    /// The series of samples that follow, until it is defined again: it may have another name then.
    fn defined(&mut self, series: &TailSeries);
    /// There is no such series any more.
    fn gone(&mut self, series: u32);
    /// Part of the journal cannot be had any more.
    fn missed(&mut self, missed: Missed);
    /// Samples in the journal's order. Those of one value of several columns follow one another.
    fn samples(&mut self, samples: &[TailSample]);
}

/// A series of a tail.
#[derive(Clone, Debug, PartialEq)]
pub struct TailSeries {
    /// What it is, without its newest stamp.
    pub known: KnownSeries,
    /// Seconds without a value after which nothing is known of its first column.
    pub heartbeat_s: u64,
}

/// A registered tail, for who looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TailStatus {
    /// Its name.
    pub name: String,
    /// All before it is acknowledged, or missed.
    pub position: u64,
    /// Bytes of the journal behind that.
    pub backlog_bytes: u64,
    /// Seconds since the first of them was written, about.
    pub backlog_age_s: f64,
    /// Values that it has missed since it is registered.
    pub missed_values: u64,
}

impl TailStatus {
    /// Of a tail, where the journal has these files and this end.
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

/// Why there is no tail, or why it cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// The journal has no such position yet.
    #[error("position {position} is behind the end of the journal, which is {end}")]
    Beyond {
        /// What was asked for.
        position: u64,
        /// Where the journal ends on the disk.
        end: u64,
    },
    /// The position is in the middle of something.
    #[error("no record of the journal begins at position {0}")]
    NotARecord(u64),
    /// A name that no tail may have.
    #[error("a name has 1 to {NAME_MAX} letters, digits, dots, dashes and underscores")]
    Name,
    /// There are too many.
    #[error("there are {TAILS_MAX} tails: end one of them first")]
    TooMany,
    /// A tail that is not registered, or was ended.
    #[error("no such tail is registered")]
    Unknown,
    /// The disk said no.
    #[error("{}", kymo_base::errno::strerror(.0))]
    Io(#[from] io::Error),
}

impl Store {
    /// A reader of the journal. With a name the tail is registered, if it is not: what it has acknowledged lasts. A position of
    /// which only later ones are left begins with these, and tells what is missing.
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
        // A position that is none registers nothing.
        let reader = TailReader::open(self, Some(name), position)?;
        self.inner.register(name, reader.position().0)?;
        Ok(reader)
    }

    /// Ends a registered tail: nothing is kept for it any more. `false`: there was none.
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

    /// No reader waits any longer for what comes.
    pub fn end_waiting_tails(&self) {
        let mut state = self.inner.lock();
        state.tails_end = true;
        state.journal.durable.ring();
    }
}

impl Inner {
    /// The registered tails. Whoever has them may take the store's lock, and not the other way round.
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

    /// All before a position was taken by a registered tail. `is_told`: what it has missed, too.
    fn acknowledge(&self, name: &str, position: u64, is_told: bool) -> Result<(), TailError> {
        let mut tails = self.tails();
        let mut tail = tails.get(name).ok_or(TailError::Unknown)?;
        if !tail.acknowledge(position, is_told) {
            return Ok(());
        }
        tails.put(&[(name.into(), Some(tail))])?;
        self.keep_for(&tails)
    }

    /// Keeps what these tails need, and nothing else.
    pub(crate) fn keep_for(&self, tails: &Tails) -> Result<(), TailError> {
        let from = tails.needed_from();
        let mut state = self.lock();
        state.journal.files.needed_from = from;
        state.departed.keep_from(from);
        Ok(state.journal.drop_needless()?)
    }
}
