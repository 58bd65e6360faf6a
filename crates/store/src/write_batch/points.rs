//! Samples of series of points in a batch.

use super::WriteBatch;
use crate::memtable::point_tail::PointRefusal;
use crate::memtable::writer::Writer;
use crate::points::PointSeries;
use crate::wal::point::Point;
use crate::wal::point_records::{Moment, put_run};

impl WriteBatch<'_> {
    /// Accepts samples; samples of one time or of one series that are adjacent need the least space in the journal. Calls
    /// `refused` with index and reason of each refused sample. Returns the number of new samples; samples that a series has
    /// already are not counted.
    pub fn append_points(
        &mut self,
        samples: &[(PointSeries, Point)],
        refused: &mut dyn FnMut(usize, PointRefusal),
    ) -> usize {
        let mut accepted = std::mem::take(&mut self.accepted);
        accepted.clear();
        for (at, &(PointSeries(id), point)) in samples.iter().enumerate() {
            let id = self.state.series.moved(id);
            match self.accept_point(id, point) {
                Ok(true) => accepted.push((id, point)),
                Ok(false) => {}
                Err(why) => refused(at, why),
            }
        }
        self.put_points(&accepted);
        let count = accepted.len();
        self.accepted = accepted;
        count
    }

    /// Adds a sample to memory.
    pub(super) fn accept_point(&mut self, id: u32, point: Point) -> Result<bool, PointRefusal> {
        let state = &mut *self.state;
        state.series.expect_next(id.wrapping_add(1));
        let series = state.series.get_mut(id).filter(|series| !series.forgotten);
        let series = series.ok_or(PointRefusal::NoSeries)?;
        let chunk_id = series.chunk;
        let chunk = state.chunks.get_mut(chunk_id);
        let chunk = chunk.ok_or(PointRefusal::NoSeries)?;
        if self.writer != Writer::ANYBODY {
            let interval_s = chunk.schema.definitions().pdp_step;
            if !series.hold.admits(self.writer, self.now_ns, interval_s) {
                return Err(PointRefusal::Held);
            }
        }
        let values = &mut series.values;
        let tail = values.points.as_mut().ok_or(PointRefusal::NoSeries)?;
        if !tail.admits(point)? {
            return Ok(false);
        }
        if values.batch != state.batch.batches {
            values.batch = state.batch.batches;
            let since = (chunk.since, chunk.since_ns);
            let undo = tail.undo(id, values.last, values.version, since);
            state.batch.undo_points.push(undo);
        }
        chunk.touch(state.journal.sequence(), self.now_ns);
        let before = tail.pending.len();
        tail.push(point);
        values.last = values.last.max(point.seconds());
        values.published = values.last;
        values.version += 1;
        state.count(chunk_id, before, before + 1);
        Ok(true)
    }

    /// Adds the records of accepted samples to the journal's buffer.
    pub(super) fn put_points(&mut self, mut samples: &[(u32, Point)]) {
        let state = &mut *self.state;
        let sequence = state.journal.sequence();
        let (out, stamps) = state.journal.values();
        while let Some(&(id, Point { t_ms, .. })) = samples.first() {
            let run = samples.iter().take_while(|(other, _)| *other == id).count();
            if run > 1 {
                let (mine, rest) = samples.split_at(run);
                samples = rest;
                let tail = state.series.get_mut(id);
                let tail = tail.and_then(|series| series.values.points.as_mut());
                if let Some(tail) = tail {
                    let before = tail.journalled(sequence);
                    put_run(
                        out,
                        stamps,
                        id,
                        before,
                        mine.iter().map(|(_, point)| *point),
                    );
                }
                continue;
            }
            let mut moment = Moment::begin(out, stamps, t_ms);
            while let Some((&(id, point), rest)) = samples.split_first() {
                let begins_run = rest.first().is_some_and(|(next, _)| *next == id);
                if point.t_ms != t_ms || begins_run {
                    break;
                }
                samples = rest;
                let tail = state.series.get_mut(id);
                let tail = tail.and_then(|series| series.values.points.as_mut());
                if let Some(tail) = tail {
                    moment.put(id, tail.journalled(sequence), point.v);
                }
            }
            moment.end();
        }
    }
}
