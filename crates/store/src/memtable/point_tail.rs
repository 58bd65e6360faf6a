//! The samples of a series of points that are in no
//! block, and their state for the rollback of a batch.

use crate::wal::point::{Point, PointBuffer, PointMark, milliseconds_of};
use crate::wal::point_records::Before;
use std::sync::Arc;

/// Largest time by which a sample may be older than the newest of its series.
pub(crate) const LATE_MS: i64 = 600_000;

/// Samples of one series that are in no block.
#[derive(Debug, Default)]
pub(crate) struct PointTail {
    /// Accepted samples that are not being saved yet, in the order of arrival.
    pub(crate) pending: PointBuffer,
    /// Samples that are being saved.
    pub(crate) flushing: Option<Arc<PointBuffer>>,
    /// Time and value of the newest sample; its value is unknown after a start.
    pub(crate) newest: Option<(i64, Option<f64>)>,
    /// Number of a journal file, and the last decimal of the series in it.
    journalled: (u64, Before),
}

/// State of a tail before a batch.
pub(crate) struct PointUndo {
    pub(crate) id: u32,
    mark: PointMark,
    newest: Option<(i64, Option<f64>)>,
    journalled: (u64, Before),
    pub(crate) last: f64,
    pub(crate) version: u64,
    pub(crate) since: (u64, u64),
}

/// Reason for the refusal of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointRefusal {
    /// There is no such series, or it is no series of points.
    NoSeries,
    /// Another writer holds the series.
    Held,
    /// The sample is more than ten minutes older than the newest one of its series.
    TooOld,
    /// The series has another value with the same time.
    Duplicate,
}

impl PointRefusal {
    /// The reason in words for users.
    pub fn why(self) -> &'static str {
        match self {
            PointRefusal::NoSeries => "there is no such series",
            PointRefusal::Held => "another sender writes this series",
            PointRefusal::TooOld => "it is more than 10 minutes older than the newest sample",
            PointRefusal::Duplicate => "the series has another value of this moment",
        }
    }
}

impl PointTail {
    /// A series whose newest saved sample has this time in seconds; not finite if it has none.
    pub(crate) fn of_saved(seconds: f64) -> PointTail {
        let t_ms = milliseconds_of(seconds);
        PointTail {
            newest: seconds.is_finite().then_some((t_ms, None)),
            ..PointTail::default()
        }
    }

    /// A series with this newest saved sample.
    pub(crate) fn of_newest(newest: Option<Point>) -> PointTail {
        PointTail {
            newest: newest.map(|point| (point.t_ms, Some(point.v))),
            ..PointTail::default()
        }
    }

    pub(crate) fn is_saved(&self) -> bool {
        self.pending.is_empty() && self.flushing.is_none()
    }

    /// Decides if a sample is accepted; `false` means that the series has it already.
    pub(crate) fn admits(&self, point: Point) -> Result<bool, PointRefusal> {
        let Some((newest_ms, value)) = self.newest else {
            return Ok(true);
        };
        if point.t_ms > newest_ms {
            return Ok(true);
        }
        if point.t_ms < newest_ms.saturating_sub(LATE_MS) {
            return Err(PointRefusal::TooOld);
        }
        let known = match point.t_ms == newest_ms {
            true => value.or(Some(point.v)),
            false => {
                let flushing = self.flushing.iter().flat_map(|points| points.iter());
                let mut all = flushing.chain(self.pending.iter());
                let same = all.find(|known| known.t_ms == point.t_ms);
                same.map(|known| known.v)
            }
        };
        match known {
            None => Ok(true),
            Some(value) if value.to_bits() == point.v.to_bits() => Ok(false),
            Some(_) => Err(PointRefusal::Duplicate),
        }
    }

    pub(crate) fn push(&mut self, point: Point) {
        self.pending.push(point);
        if self.newest.is_none_or(|(t_ms, _)| t_ms < point.t_ms) {
            self.newest = Some((point.t_ms, Some(point.v)));
        }
    }

    /// Moves the pending samples to those being saved, and returns them.
    pub(crate) fn take(&mut self) -> Arc<PointBuffer> {
        let points = Arc::new(std::mem::take(&mut self.pending));
        self.flushing = Some(points.clone());
        points
    }

    /// The decimal before the next value in a journal file.
    pub(crate) fn journalled(&mut self, sequence: u64) -> &mut Before {
        if self.journalled.0 != sequence {
            self.journalled = (sequence, None);
        }
        &mut self.journalled.1
    }

    /// All samples that are in no block.
    pub(crate) fn points(&self) -> Vec<Point> {
        let flushing = self.flushing.iter().flat_map(|points| points.iter());
        flushing.chain(self.pending.iter()).collect()
    }

    /// Restores the state before a batch.
    pub(crate) fn restore(&mut self, undo: &PointUndo) {
        self.pending.truncate(undo.mark);
        self.newest = undo.newest;
        self.journalled = undo.journalled;
    }

    /// The state before a batch, for [`PointTail::restore`].
    pub(crate) fn undo(&self, id: u32, last: f64, version: u64, since: (u64, u64)) -> PointUndo {
        PointUndo {
            id,
            mark: self.pending.mark(),
            newest: self.newest,
            journalled: self.journalled,
            last,
            version,
            since,
        }
    }
}
