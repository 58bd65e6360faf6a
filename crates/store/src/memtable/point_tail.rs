//! The samples of a series of points that are in no block, and what a batch may change of them.

use crate::wal::point::{Point, PointBuffer, PointMark, milliseconds_of};
use crate::wal::point_records::Before;
use std::sync::Arc;

/// A sample may be older than the newest of its series by this.
pub(crate) const LATE_MS: i64 = 600_000;

/// Samples of one series.
#[derive(Debug, Default)]
pub(crate) struct PointTail {
    /// Accepted, and not on their way into a block; in the order in which they came.
    pub(crate) pending: PointBuffer,
    /// On their way into a block.
    pub(crate) flushing: Option<Arc<PointBuffer>>,
    /// The newest sample; its value is not known after a start.
    pub(crate) newest: Option<(i64, Option<f64>)>,
    /// A journal file, and the decimal that it has of the series.
    journalled: (u64, Before),
}

/// How a tail was before a batch.
pub(crate) struct PointUndo {
    pub(crate) id: u32,
    mark: PointMark,
    newest: Option<(i64, Option<f64>)>,
    journalled: (u64, Before),
    pub(crate) last: f64,
    pub(crate) version: u64,
    pub(crate) since: (u64, u64),
}

/// Why a sample is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointRefusal {
    /// There is no such series, or it has no samples.
    NoSeries,
    /// Another writer keeps the series.
    Held,
    /// The sample is older than the newest of its series by more than ten minutes.
    TooOld,
    /// The series has another value of this moment.
    Duplicate,
}

impl PointRefusal {
    /// For people.
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
    /// A series whose newest saved sample is of this moment, in seconds; not finite: it has none.
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

    /// Decides whether to take a sample; `false`: the series has it already.
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

    /// Samples on their way into a block.
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

    /// As it was before a batch.
    pub(crate) fn restore(&mut self, undo: &PointUndo) {
        self.pending.truncate(undo.mark);
        self.newest = undo.newest;
        self.journalled = undo.journalled;
    }

    /// How it is now, of a series that a batch is about to change.
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
