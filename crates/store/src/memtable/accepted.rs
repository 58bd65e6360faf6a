//! Accepted values of a series: those that are in no block yet, and
//! the stamps up to which values are in blocks and visible to clients.

use crate::memtable::buffer::{Pending, Texts};
use crate::memtable::point_tail::PointTail;
use crate::stats::Stats;
use crate::wal::record::Packed;
use crate::wal::value::stamp_of;
use std::sync::Arc;

/// Accepted values of one series and their state.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// Accepted values that are not being saved yet.
    pub(crate) pending: Pending,
    /// Values that are being saved.
    pub(crate) flushing: Option<Arc<Pending>>,
    /// The state to which these values are applied, if no block has it.
    pub(crate) state: Option<Packed>,
    /// Number of values accepted so far.
    pub(crate) version: u64,
    /// Stamp of the newest accepted value.
    pub(crate) last: f64,
    /// Stamp of the newest state in a block, or of the state with which the series began.
    pub(crate) applied: f64,
    /// Stamp up to which values are published, that is, count as written: PENDING leaves them out, INFO includes them.
    pub(crate) published: f64,
    /// Start of the interval for `published`, in monotonic nanoseconds.
    pub(crate) published_ns: u64,
    /// Number of the batch that last changed it.
    pub(crate) batch: u64,
    /// For a series of points, its samples; such a series has no other values.
    pub(crate) points: Option<Box<PointTail>>,
}

impl Default for Accepted {
    fn default() -> Accepted {
        Accepted {
            pending: Pending::default(),
            flushing: None,
            state: None,
            version: 0,
            last: f64::NEG_INFINITY,
            applied: f64::NEG_INFINITY,
            published: f64::NEG_INFINITY,
            published_ns: 0,
            batch: 0,
            points: None,
        }
    }
}

impl Accepted {
    /// Newest stamp of the values in memory and of the state.
    pub(crate) fn newest(&self) -> f64 {
        let mut newest = self.applied;
        self.each_stamp(&mut |stamp| newest = newest.max(stamp));
        newest
    }

    /// Calls `each` with the stamps of all values that are in no block.
    fn each_stamp(&self, each: &mut dyn FnMut(f64)) {
        self.flushing
            .iter()
            .for_each(|taken| taken.each_stamp(each));
        self.pending.each_stamp(each);
    }

    /// The values since a version; `None` if some of them are not in memory any more. If values were dropped, the result
    /// begins with older ones, which readers skip by their stamps.
    pub(crate) fn since(&self, version: u64) -> Option<Texts> {
        let missing = self.version.checked_sub(version)?;
        let taken = self.flushing.as_ref().map_or(0, |taken| taken.len());
        let here = (taken + self.pending.len()) as u64;
        let skip = here.checked_sub(missing)? as usize;
        let mut texts = Texts::default();
        if let Some(old) = self.flushing.as_ref().filter(|_| skip < taken) {
            old.texts_from(skip, &mut texts);
        }
        self.pending
            .texts_from(skip.saturating_sub(taken), &mut texts);
        Some(texts)
    }

    /// Number of values that are in no block and not being saved.
    pub(crate) fn unsaved_len(&self) -> usize {
        let points = self
            .points
            .as_ref()
            .map_or(0, |points| points.pending.len());
        self.pending.len() + points
    }

    /// Returns true if all values are in blocks.
    pub(crate) fn is_saved(&self) -> bool {
        let points = self.points.as_ref();
        let has_points = points.is_some_and(|points| !points.is_saved());
        self.pending.is_empty() && self.flushing.is_none() && !has_points
    }

    /// Returns true if all values are published.
    pub(crate) fn is_published(&self) -> bool {
        self.last <= self.published
    }

    /// Calls `each` with the unpublished values; returns their number.
    pub(crate) fn each_unpublished(&self, each: &mut dyn FnMut(&[u8])) -> usize {
        if self.is_published() {
            return 0;
        }
        let (mut texts, mut count) = (Texts::default(), 0);
        self.texts_into(&mut texts);
        for text in texts.iter() {
            if stamp_of(text).is_some_and(|stamp| stamp > self.published) {
                count += 1;
                each(text);
            }
        }
        count
    }

    /// Appends all values that are in no block.
    pub(crate) fn texts_into(&self, texts: &mut Texts) {
        if let Some(taken) = &self.flushing {
            taken.texts_into(texts);
        }
        self.pending.texts_into(texts);
    }

    /// Publishes all values.
    pub(crate) fn publish(&mut self, now_ns: u64, stats: &mut Stats) {
        self.published_ns = now_ns;
        if self.is_published() {
            return;
        }
        let count = self.count_after(self.published);
        if count > 0 {
            self.published = self.last;
            stats.updates_written += 1;
            stats.data_sets_written += count as u64;
        }
    }

    /// Publishes the values that are being saved, as the block will have them.
    pub(crate) fn publish_taken(&mut self, stats: &mut Stats) {
        let Some(taken) = &self.flushing else {
            return;
        };
        let (mut count, before) = (0, self.published);
        taken.each_stamp(&mut |at| {
            count += u64::from(at > before);
            self.published = self.published.max(at);
        });
        stats.updates_written += u64::from(count > 0);
        stats.data_sets_written += count;
    }

    /// Number of values in no block with later stamps.
    pub(crate) fn count_after(&self, stamp: f64) -> usize {
        let mut count = 0;
        self.each_stamp(&mut |at| count += usize::from(at > stamp));
        count
    }

    /// Number of unpublished values that are being saved.
    pub(crate) fn taken_unpublished(&self) -> usize {
        let (mut count, published) = (0, self.published);
        if let Some(taken) = self.flushing.as_ref().filter(|_| !self.is_published()) {
            taken.each_stamp(&mut |at| count += usize::from(at > published));
        }
        count
    }

    /// Lowers the newest stamp after values were refused, since a stamp in the far future must not block later values.
    /// Returns the newest stamp if it has changed.
    pub(crate) fn go_back(&mut self) -> Option<f64> {
        let newest = self.newest();
        let goes = newest < self.last;
        self.go_back_to(newest);
        goes.then_some(newest)
    }

    /// Sets the newest stamp; later stamps are not published any more.
    pub(crate) fn go_back_to(&mut self, newest: f64) {
        self.last = newest;
        self.published = self.published.min(newest);
    }
}
