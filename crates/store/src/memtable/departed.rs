//! Names and definitions of removed series, kept until the tails have all their values.

use crate::consolidation::schema::Schema;
use std::collections::HashMap;
use std::sync::Arc;

/// Series that are remembered at most.
const DEPARTED_MAX: usize = 100_000;

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct DepartedSeries {
    pub(crate) path: Arc<[u8]>,
    pub(crate) schema: Arc<Schema>,
    /// All its values are before this position of the journal.
    position: u64,
}

/// All of them, by number.
#[derive(Debug, Default)]
pub(crate) struct Departed {
    series: HashMap<u32, DepartedSeries>,
    /// No tail asks for them.
    is_off: bool,
}

impl Departed {
    /// A series goes.
    pub(crate) fn insert(&mut self, id: u32, path: Arc<[u8]>, schema: Arc<Schema>, position: u64) {
        if self.is_off || self.series.len() >= DEPARTED_MAX {
            return;
        }
        let departed = DepartedSeries {
            path,
            schema,
            position,
        };
        self.series.insert(id, departed);
    }

    pub(crate) fn get(&self, id: u32) -> Option<&DepartedSeries> {
        self.series.get(&id)
    }

    /// Sets the position of all series that an earlier life of the store removed.
    pub(crate) fn begin_life(&mut self, position: u64) {
        for departed in self.series.values_mut() {
            departed.position = position;
        }
    }

    /// Registered tails have all before a position; `None`: there is none.
    pub(crate) fn keep_from(&mut self, position: Option<u64>) {
        self.is_off = position.is_none();
        match position {
            Some(from) => self.series.retain(|_, departed| departed.position > from),
            None => self.series = HashMap::new(),
        }
    }
}
