//! A series at one moment, taken under the lock and read without it.

use crate::consolidation::apply::Applier;
use crate::consolidation::schema::Schema;
use crate::error::FileError;
use crate::memtable::buffer::Texts;
use crate::memtable::series::Series;
use crate::memtable::state::State;
use crate::read::view::{Base, View};
use crate::segment::placed::Placed;
use crate::segment::set::{SegmentSet, states_again};
use crate::wal::record::Packed;
use crate::wal::value::stamp_of;
use kymo_rrd::update::Now;
use std::sync::Arc;

/// The data that a view is made from.
pub(crate) struct Snapshot {
    pub(crate) path: Arc<[u8]>,
    schema: Arc<Schema>,
    slot: u8,
    state: Option<Packed>,
    blocks: Arc<Vec<Placed>>,
    /// Values in no block, up to the stamp of the snapshot.
    values: Texts,
    pub(crate) base: Option<i64>,
}

impl Snapshot {
    /// Takes a snapshot of a series with its values up to a stamp.
    pub(crate) fn of(
        state: &State,
        segments: &SegmentSet,
        series: &Series,
        until: f64,
    ) -> Option<Snapshot> {
        let chunk = state.chunks.get(series.chunk)?;
        let schema = chunk.schema.clone();
        let mut all = Texts::default();
        series.values.texts_into(&mut all);
        let values = match until >= series.values.last {
            true => all,
            false => {
                let mut some = Texts::default();
                let early = all
                    .iter()
                    .filter(|text| stamp_of(text).is_none_or(|stamp| stamp <= until));
                early.for_each(|text| some.push(text));
                some
            }
        };
        Some(Snapshot {
            path: series.path.clone(),
            schema,
            slot: series.slot,
            state: series.values.state.clone(),
            blocks: segments.visible_blocks(series.chunk),
            values,
            base: series.base,
        })
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn slot(&self) -> u8 {
        self.slot
    }

    pub(crate) fn blocks(&self) -> &[Placed] {
        &self.blocks
    }

    /// Length of its file's header, in bytes.
    pub(crate) fn header_bytes(&self) -> u64 {
        self.schema.header_bytes()
    }

    /// Number of cells of all its archives.
    pub(crate) fn cell_count(&self) -> u64 {
        self.schema.template.cell_count()
    }

    /// The values in no block.
    pub(crate) fn texts(&self) -> Texts {
        self.values.clone()
    }

    /// Applies the values; `applier` then has the refused ones.
    pub(crate) fn view(
        self,
        applier: &mut Applier,
        now: Now,
        base: Option<Base>,
    ) -> Result<View, FileError> {
        let io = FileError::Io;
        let stripe = crate::layout::STRIPE as u8;
        let in_block = match &self.state {
            Some(_) => Arc::default(),
            None => states_again(&self.blocks, &self.schema, self.slot / stripe).map_err(io)?,
        };
        let mine = in_block.iter().find(|(at, _)| *at == self.slot % stripe);
        let fresh = self.state.as_ref().map(Packed::words);
        let words = fresh.as_deref().or(mine.map(|(_, words)| &words[..]));
        let words = words.ok_or_else(|| FileError::Rrd("its state is damaged".into()))?;
        let values: Vec<&[u8]> = self.values.iter().collect();
        let applied = applier.apply(&self.schema, words, &self.path, &values, now);
        applied.map_err(|error| crate::error::rrd_error(&self.path, &error.text))?;
        let state = applier.take_series();
        let state = state.ok_or_else(|| FileError::Rrd("its state is damaged".into()))?;
        Ok(View {
            schema: self.schema,
            state,
            blocks: self.blocks,
            slot: self.slot,
            fresh: std::mem::take(&mut applier.captured.archives),
            base,
            damaged: 0,
        })
    }
}
