//! The series with rows in a block whose head does not have their age, because some series lag behind the others of
//! their chunk. Rows are dead once their own series has enough newer ones, so each series is checked on its own.

use crate::consolidation::rows::ReadRows;
use crate::consolidation::schema::Schema;
use crate::layout::{CHUNK, STRIPE};
use crate::segment::block::AGELESS;
use crate::segment::placed::{Ages, DeadRows, Placed};
use std::cell::Cell;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Largest number of compressed bytes read in one check of all segments; other blocks are read in a later check.
const READ_AT_ONCE: u64 = 64 << 20;

/// Bytes that may still be read in this check.
pub(crate) struct Budget(Cell<u64>);

impl Default for Budget {
    fn default() -> Budget {
        Budget(Cell::new(READ_AT_ONCE))
    }
}

impl Placed {
    /// Bytes of dead rows, for a block whose head does not have their age. `stamps` returns
    /// the stamp up to which the series of each slot is saved, `position` is the position
    /// up to which all are. Rows of the first archive before `first_row` are dead.
    pub(crate) fn dead_by_series(
        &self,
        schema: &Schema,
        (position, first_row): (u64, u64),
        budget: &Budget,
        stamps: impl FnOnce() -> Vec<Option<i64>>,
    ) -> u64 {
        let Some(ages) = &self.ages else { return 0 };
        if ages.get().is_none() {
            let Some(left) = budget.0.get().checked_sub(u64::from(self.len)) else {
                return 0;
            };
            budget.0.set(left);
            // Unreadable blocks count as alive.
            if let Ok(read) = Ages::read(self, schema) {
                let _somebody_else_was_faster = ages.set(read);
            }
        }
        let Some(ages) = ages.get() else { return 0 };
        let mut found = ages.found.lock().unwrap_or_else(PoisonError::into_inner);
        if (found.position, found.first_row) != (position, first_row) {
            *found = DeadRows {
                position,
                first_row,
                bytes: ages.dead(self, schema, &stamps(), first_row),
            };
        }
        found.bytes
    }
}

impl Ages {
    fn read(placed: &Placed, schema: &Schema) -> io::Result<Ages> {
        let mut ages = Ages {
            upto: Vec::new(),
            slots: vec![[0; CHUNK / 64]; schema.archives.len()],
            found: Mutex::new(DeadRows::default()),
        };
        let Some(head) = placed.head()? else {
            return Ok(ages);
        };
        let mut upto = vec![0; CHUNK];
        for (stripe, part) in &head.parts {
            for (at, archive) in schema.archives.iter().enumerate() {
                let ageless = placed.newest.get(at) == Some(&AGELESS);
                let frame = part.rows.get(at).copied().flatten();
                let Some(frame) = frame.filter(|_| ageless) else {
                    continue;
                };
                let raw = placed.frame(&frame)?.unwrap_or_default();
                let entries = ReadRows::parse(&raw, schema.width);
                for entry in entries.iter().flat_map(|column| &column.entries) {
                    let slot = usize::from(*stripe) * STRIPE + usize::from(entry.member);
                    let rows: u64 = entry.parts.iter().map(|part| part.rows()).sum();
                    let last = (entry.first + rows).saturating_sub(1);
                    upto[slot] = last.saturating_mul(archive.step).max(upto[slot]);
                    ages.slots[at][slot / 64] |= 1 << (slot % 64);
                }
            }
        }
        let slots = upto.iter().enumerate().filter(|(_, upto)| **upto > 0);
        ages.upto = slots.map(|(slot, &upto)| (slot as u8, upto)).collect();
        Ok(ages)
    }

    /// Counts no more bytes than a merge would drop, so that a merged segment is not merged again.
    fn dead(
        &self,
        placed: &Placed,
        schema: &Schema,
        stamps: &[Option<i64>],
        first_row: u64,
    ) -> u64 {
        let mut dead = 0;
        let archives = schema.archives.iter().zip(&self.slots).enumerate();
        for (at, (archive, slots)) in archives {
            let all: u32 = slots.iter().map(|slots| slots.count_ones()).sum();
            let is_dead = |&&(slot, upto): &&(u8, u64)| {
                let slot = usize::from(slot);
                let has = slots[slot / 64] & 1 << (slot % 64) != 0;
                let stamp = stamps.get(slot).copied().flatten();
                let last = upto / archive.step;
                let is_past = |stamp| last + archive.row_cnt <= schema.newest(at, stamp);
                let is_cut = at == 0 && last < first_row;
                has && (is_cut || stamp.is_none_or(is_past))
            };
            let gone = self.upto.iter().filter(is_dead).count() as u64;
            let bytes = placed.row_bytes.get(at).copied().unwrap_or(0);
            dead += u64::from(bytes) * gone / u64::from(all.max(1));
        }
        dead
    }
}
