//! A group as it is at one moment, taken under the lock and looked at without it.

use crate::drum::apply::Applier;
use crate::drum::shape::Shape;
use crate::drum::view::{Base, View};
use crate::drum::{Placed, block, states_again};
use crate::entry::Packed;
use crate::error::FileError;
use crate::groups::Group;
use crate::pending::Texts;
use crate::state::State;
use crate::store::Inner;
use crate::turn::stamp_of;
use kymo_rrd::update::Now;
use std::sync::Arc;

/// What a view needs.
pub(crate) struct Snapshot {
    pub(crate) path: Arc<[u8]>,
    shape: Arc<Shape>,
    slot: u8,
    state: Option<Packed>,
    blocks: Arc<Vec<Placed>>,
    /// Values that are in no block, up to where they count.
    values: Texts,
    pub(crate) base: Option<i64>,
}

impl Inner {
    /// The group with its values up to a stamp.
    pub(crate) fn snapshot(&self, state: &State, group: &Group, until: f64) -> Option<Snapshot> {
        let chunk = state.chunks.get(group.chunk)?;
        let shape = chunk.shape.clone();
        // A block that was just written has values which count as written only when its save ends.
        let before = chunk.before.clone();
        let mut all = Texts::default();
        group.all_values(&mut all);
        let values = match until >= group.last {
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
            path: group.path.clone(),
            shape,
            slot: group.slot,
            state: group.state.clone(),
            blocks: before.unwrap_or_else(|| self.drum.blocks(group.chunk)),
            values,
            base: group.base,
        })
    }

    pub(crate) fn rrd_now(&self) -> Now {
        let real_ns = self.clock.now().real_ns;
        Now {
            sec: real_ns.div_euclid(1_000_000_000),
            usec: real_ns.rem_euclid(1_000_000_000) / 1000,
        }
    }
}

impl Snapshot {
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Bytes of its file before the rows.
    pub(crate) fn header_bytes(&self) -> u64 {
        self.shape.header_bytes()
    }

    /// Its values.
    pub(crate) fn texts(&self) -> Texts {
        self.values.clone()
    }

    /// Applies its values. `applier` afterwards has those that were refused.
    pub(crate) fn view(
        self,
        applier: &mut Applier,
        now: Now,
        base: Option<Base>,
    ) -> Result<View, FileError> {
        let io = FileError::Io;
        let sixteen = block::SIXTEEN as u8;
        let in_block = match &self.state {
            Some(_) => Arc::default(),
            None => states_again(&self.blocks, &self.shape, self.slot / sixteen).map_err(io)?,
        };
        let mine = in_block.iter().find(|(at, _)| *at == self.slot % sixteen);
        let fresh = self.state.as_ref().map(Packed::words);
        let words = fresh.as_deref().or(mine.map(|(_, words)| &words[..]));
        let words = words.ok_or_else(|| FileError::Rrd("its state is damaged".into()))?;
        let values: Vec<&[u8]> = self.values.iter().collect();
        let applied = applier.apply(&self.shape, words, &self.path, &values, now);
        applied.map_err(|error| crate::rrd_file::rrd_error(&self.path, &error.text))?;
        let group = applier.take_group();
        let group = group.ok_or_else(|| FileError::Rrd("its state is damaged".into()))?;
        Ok(View {
            shape: self.shape,
            group,
            blocks: self.blocks,
            slot: self.slot,
            fresh: std::mem::take(&mut applier.captured.archives),
            base,
            damaged: 0,
        })
    }
}
