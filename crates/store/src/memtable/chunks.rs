//! Chunks: groups of series that are saved together.

use crate::consolidation::schema::Schema;
use crate::layout::CHUNK;
use crate::settings::PointsRetention;
use std::collections::HashMap;
use std::sync::Arc;

/// Limit of the states of a chunk, unless one state alone exceeds it; a block must have all of them.
const STATES_BYTES: usize = 16 << 20;

/// A chunk of series.
pub(crate) struct Chunk {
    pub(crate) schema: Arc<Schema>,
    /// The series in each slot.
    pub(crate) members: Vec<Option<u32>>,
    /// Number of values in no block, and of the series with such values.
    pub(crate) pending: u64,
    pub(crate) active: u64,
    /// The journal file with the oldest record that is in no block; 0 if there is none.
    pub(crate) since: u64,
    /// Time of that record, in monotonic nanoseconds.
    pub(crate) since_ns: u64,
    /// A thread is saving the chunk.
    pub(crate) saving: bool,
    /// The chunk is queued for saving.
    pub(crate) queued: bool,
    /// After a failed attempt, the earliest time of the next one (monotonic).
    pub(crate) not_before_ns: u64,
    /// The journal file to which the chunk's schema was written.
    pub(crate) introduced: u64,
}

/// All chunks.
#[derive(Default)]
pub(crate) struct Chunks {
    chunks: Vec<Option<Box<Chunk>>>,
    /// Chunks with free slots, by the address of their schema;
    /// series with equal definitions share one schema for ever.
    open: HashMap<usize, u32>,
    schemas: HashMap<Vec<u8>, Arc<Schema>>,
    /// The last requested schema, which is usually also the next.
    last: Option<Arc<Schema>>,
    /// Retention of series of points; `None` for that of their definitions.
    retention: Option<PointsRetention>,
}

impl Chunks {
    pub(crate) fn keeping(retention: Option<PointsRetention>) -> Chunks {
        Chunks {
            retention,
            ..Chunks::default()
        }
    }

    pub(crate) fn get(&self, chunk: u32) -> Option<&Chunk> {
        self.chunks.get(chunk as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, chunk: u32) -> Option<&mut Chunk> {
        self.chunks.get_mut(chunk as usize)?.as_deref_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Chunk)> {
        let chunks = self.chunks.iter().enumerate();
        chunks.filter_map(|(at, chunk)| Some((at as u32, chunk.as_deref()?)))
    }

    /// The schema for these definitions, shared by all series that have them.
    pub(crate) fn schema(&mut self, front: &[u8]) -> Option<Arc<Schema>> {
        if let Some(last) = self.last.as_ref().filter(|last| last.front == front) {
            return Some(last.clone());
        }
        let schema = match self.schemas.get(front) {
            Some(schema) => schema.clone(),
            None => {
                let schema = Schema::parse(front)?;
                let schema = Arc::new(match self.retention {
                    Some(retention) => schema.kept(retention),
                    None => schema,
                });
                self.schemas.insert(front.to_vec(), schema.clone());
                schema
            }
        };
        self.last = Some(schema.clone());
        Some(schema)
    }

    /// Gives a new series of this schema a place in a chunk that has
    /// room; a block must be able to hold all states of its chunk.
    pub(crate) fn place(&mut self, schema: &Arc<Schema>, id: u32) -> (u32, u8) {
        let known = self.open.get(&address(schema)).copied();
        let room = known.filter(|&chunk| self.get(chunk).is_some_and(Chunk::has_room));
        let chunk = room.unwrap_or_else(|| {
            let chunk = self.chunks.len() as u32;
            self.open.insert(address(schema), chunk);
            chunk
        });
        let slot = self.get(chunk).map_or(0, |chunk| chunk.members.len());
        self.put(chunk, slot as u8, schema, Some(id));
        (chunk, slot as u8)
    }

    /// Frees a place whose series did not begin, and notes that the journal lacks the chunk's schema.
    pub(crate) fn unplace(&mut self, chunk: u32, slot: u8) {
        if let Some(chunk) = self.get_mut(chunk) {
            chunk.introduced = 0;
            chunk.members[usize::from(slot)] = None;
        }
    }

    /// Puts a series into a slot.
    pub(crate) fn put(&mut self, chunk: u32, slot: u8, schema: &Arc<Schema>, id: Option<u32>) {
        let at = chunk as usize;
        if self.chunks.len() <= at {
            self.chunks.resize_with(at + 1, || None);
        }
        let chunk = self.chunks[at].get_or_insert_with(|| {
            Box::new(Chunk {
                schema: schema.clone(),
                members: Vec::new(),
                pending: 0,
                active: 0,
                since: 0,
                since_ns: 0,
                saving: false,
                queued: false,
                not_before_ns: 0,
                introduced: 0,
            })
        });
        let slot = usize::from(slot);
        if chunk.members.len() <= slot {
            chunk.members.resize(slot + 1, None);
        }
        chunk.members[slot] = id;
    }

    /// Closes a chunk whose series or rows are not all known:
    /// it takes no more series, and its number is not reused.
    pub(crate) fn close(&mut self, chunk: u32) {
        let at = chunk as usize;
        if self.chunks.len() <= at {
            self.chunks.resize_with(at + 1, || None);
        }
        if let Some(chunk) = &mut self.chunks[at] {
            chunk.members.resize(CHUNK, None);
        }
    }

    /// Sets the time of the oldest records that are in no block.
    pub(crate) fn begin_at(&mut self, now_ns: u64) {
        for chunk in self.chunks.iter_mut().flatten() {
            chunk.since_ns = now_ns;
        }
    }

    /// Reopens chunks with free slots after a start.
    pub(crate) fn reopen(&mut self) {
        for (at, chunk) in self.chunks.iter().enumerate() {
            if let Some(chunk) = chunk.as_deref().filter(|chunk| chunk.has_room()) {
                self.open.insert(address(&chunk.schema), at as u32);
            }
        }
    }
}

fn address(schema: &Arc<Schema>) -> usize {
    Arc::as_ptr(schema).addr()
}

impl Chunk {
    fn has_room(&self) -> bool {
        let states = STATES_BYTES / (8 * self.schema.words).max(1);
        self.members.len() < states.clamp(1, CHUNK)
    }

    /// Notes a record of one of its series that is in no block.
    pub(crate) fn touch(&mut self, sequence: u64, now_ns: u64) {
        if self.since == 0 {
            self.since = sequence;
            self.since_ns = now_ns;
        }
    }

    /// Returns true if the chunk has no series.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.iter().all(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consolidation::{samples, schema};

    #[test]
    fn of_large_states_fewer_share_a_chunk() {
        for (sources, period, most) in [(1, 6, CHUNK), (1, 60_000, 17), (10, 60_000, 1)] {
            let sources = (0..sources).map(|at| format!("DS:x{at}:GAUGE:60:U:U"));
            let prediction = format!("RRA:HWPREDICT:{period}:0.1:0.0035:{period}");
            let definitions: Vec<String> = sources.chain([prediction]).collect();
            let definitions: Vec<&str> = definitions.iter().map(String::as_str).collect();
            let header = samples::rrd(&definitions, 1).header;
            let mut chunks = Chunks::default();
            let schema = chunks.schema(&schema::front(&header)).unwrap();
            let placed: Vec<u32> = (0..2 * most as u32 + 1)
                .map(|id| chunks.place(&schema, id).0)
                .collect();
            let expected = (0..=2 * most).map(|at| (at / most) as u32);
            assert!(placed.iter().copied().eq(expected), "{period}: {placed:?}");
        }
    }
}
