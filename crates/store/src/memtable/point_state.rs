//! Rolls back samples that are in no block, puts them back after
//! a failed flush, and carries them over to a new journal file.

use crate::memtable::state::State;
use crate::wal::point_records::put_run;

impl State {
    /// Rolls back the samples of a batch.
    pub(crate) fn roll_back_points(&mut self) {
        for undo in std::mem::take(&mut self.batch.undo_points)
            .into_iter()
            .rev()
        {
            let Some(series) = self.series.get_mut(undo.id) else {
                continue;
            };
            let (chunk, before) = (series.chunk, series.values.unsaved_len());
            if let Some(tail) = &mut series.values.points {
                tail.restore(&undo);
                series.values.last = undo.last;
                series.values.version = undo.version;
            }
            let after = series.values.unsaved_len();
            self.count(chunk, before, after);
            if let Some(chunk) = self.chunks.get_mut(chunk) {
                (chunk.since, chunk.since_ns) = undo.since;
            }
        }
    }

    /// Puts samples back before newer ones after a failed flush.
    pub(crate) fn put_back_points(&mut self, id: u32, chunk: u32) {
        let series = self.series.get_mut(id);
        let Some(tail) = series.and_then(|series| series.values.points.as_mut()) else {
            return;
        };
        let Some(flushing) = tail.flushing.take() else {
            return;
        };
        let before = tail.pending.len();
        tail.pending.prepend(&flushing);
        let after = tail.pending.len();
        self.count(chunk, before, after);
    }

    /// Writes the samples of a series that are in no block to the journal's buffer.
    pub(crate) fn carry_over_points(&mut self, id: u32) {
        let sequence = self.journal.sequence();
        let Some(series) = self.series.get_mut(id) else {
            return;
        };
        let Some(tail) = &mut series.values.points else {
            return;
        };
        let points = tail.points();
        if !points.is_empty() {
            let before = tail.journalled(sequence);
            let (out, stamps) = self.journal.values();
            put_run(out, stamps, id, before, points.into_iter());
        }
    }
}
