//! What was accepted for a series: its values that are in no block, and up to which stamps blocks and clients have them.

use crate::memtable::buffer::{Pending, Texts};
use crate::memtable::point_tail::PointTail;
use crate::stats::Stats;
use crate::wal::record::Packed;
use crate::wal::value::stamp_of;
use std::sync::Arc;

/// Values of one series, and how far they are.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// Accepted, and not on its way into a block.
    pub(crate) pending: Pending,
    /// On its way into a block.
    pub(crate) flushing: Option<Arc<Pending>>,
    /// The state that they are applied to, if no block has it.
    pub(crate) state: Option<Packed>,
    /// Values that were accepted so far.
    pub(crate) version: u64,
    /// The newest stamp that was accepted.
    pub(crate) last: f64,
    /// The stamp of the newest state in a block, or the one it began with.
    pub(crate) applied: f64,
    /// Values up to this stamp count as written: PENDING does not tell them, INFO does.
    pub(crate) published: f64,
    /// Monotonic nanoseconds from which on the interval for `published` counts.
    pub(crate) published_ns: u64,
    /// The batch that last changed it.
    pub(crate) batch: u64,
    /// Of a series of points: its samples, and then there are no other values.
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
    /// The newest stamp among the values that are there, or of the state.
    pub(crate) fn newest(&self) -> f64 {
        let mut newest = self.applied;
        self.each_stamp(&mut |stamp| newest = newest.max(stamp));
        newest
    }

    /// Stamps of all values that are in no block.
    fn each_stamp(&self, each: &mut dyn FnMut(f64)) {
        self.flushing
            .iter()
            .for_each(|taken| taken.each_stamp(each));
        self.pending.each_stamp(each);
    }

    /// The values since a version; `None`: they are not all here. Where some were dropped there are older ones before
    /// them, which are passed over by their stamps.
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

    /// Values that wait for a block, and are on their way into none.
    pub(crate) fn unsaved_len(&self) -> usize {
        let points = self
            .points
            .as_ref()
            .map_or(0, |points| points.pending.len());
        self.pending.len() + points
    }

    /// Whether all its values are in blocks.
    pub(crate) fn is_saved(&self) -> bool {
        let points = self.points.as_ref();
        let has_points = points.is_some_and(|points| !points.is_saved());
        self.pending.is_empty() && self.flushing.is_none() && !has_points
    }

    /// Whether all its values count as written.
    pub(crate) fn is_published(&self) -> bool {
        self.last <= self.published
    }

    /// Values that are not counted as written.
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

    /// All values that are in no block.
    pub(crate) fn texts_into(&self, texts: &mut Texts) {
        if let Some(taken) = &self.flushing {
            taken.texts_into(texts);
        }
        self.pending.texts_into(texts);
    }

    /// From now on all its values count as written.
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

    /// From now on its values on their way into a block count as written: the block will have them.
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

    /// Values in no block with later stamps.
    pub(crate) fn count_after(&self, stamp: f64) -> usize {
        let mut count = 0;
        self.each_stamp(&mut |at| count += usize::from(at > stamp));
        count
    }

    /// Values on their way into a block that are not counted as written.
    pub(crate) fn taken_unpublished(&self) -> usize {
        let (mut count, published) = (0, self.published);
        if let Some(taken) = self.flushing.as_ref().filter(|_| !self.is_published()) {
            taken.each_stamp(&mut |at| count += usize::from(at > published));
        }
        count
    }

    /// Values were refused. A stamp from the far future must not refuse all that come: what its newest stamp is from now
    /// on, if that is another one.
    pub(crate) fn go_back(&mut self) -> Option<f64> {
        let newest = self.newest();
        let goes = newest < self.last;
        self.go_back_to(newest);
        goes.then_some(newest)
    }

    /// Its newest stamp is this one, and no later one counts as written.
    pub(crate) fn go_back_to(&mut self, newest: f64) {
        self.last = newest;
        self.published = self.published.min(newest);
    }
}
