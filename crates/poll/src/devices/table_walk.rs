//! A walk down all columns of a table: each request asks for the next rows of several columns. A column ends where the
//! agent names another one; one that repeats itself, or never ends, is cut off, and the others go on.

use std::collections::BTreeMap;

use kymo_wire::snmp::{Ask, ErrorStatus, ObjectValue, Oid, Response};

use super::cell::Cell;
use crate::engine::place_of;

/// Columns of a request.
const COLUMNS_MAX: usize = 20;
/// Varbinds that an answer is asked for: about as many as a datagram of 1500 bytes has.
const VARBINDS_MAX: usize = 48;
/// Memory of a table, in bytes, about.
const ROOM_BYTES: usize = 16 << 20;
/// Memory of a cell.
const CELL_BYTES: usize = 32;

/// Rows of a table by their index; a cell for each column.
pub(super) type Rows = BTreeMap<Box<[u32]>, Vec<Option<Cell>>>;

/// Number of rows in a table. Objects that are there once have one row, so nothing is asked behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowCount {
    One,
    Many,
}

/// The state of a walk.
#[derive(Debug)]
pub(super) struct TableWalk {
    cursors: Vec<Cursor>,
    pub(super) rows: Rows,
    /// Columns that were cut off.
    pub(super) broken: u32,
    count: RowCount,
    /// Columns of the pending request.
    asked: Vec<usize>,
    width: usize,
    /// Most rows of a request; 0: GETNEXT alone.
    repetitions: usize,
    room_bytes: usize,
}

/// The place in a column.
#[derive(Debug)]
struct Cursor {
    column: Oid,
    at: Oid,
    rows: usize,
    is_done: bool,
}

impl TableWalk {
    /// A walk from the begin of all columns.
    pub(super) fn new(columns: &[Oid], count: RowCount, has_bulk: bool) -> TableWalk {
        let cursor = |column: &Oid| Cursor {
            column: column.clone(),
            at: column.clone(),
            rows: 0,
            is_done: false,
        };
        TableWalk {
            cursors: columns.iter().map(cursor).collect(),
            rows: Rows::new(),
            broken: 0,
            count,
            asked: Vec::new(),
            width: COLUMNS_MAX,
            repetitions: match (count, has_bulk) {
                (RowCount::Many, true) => VARBINDS_MAX,
                (RowCount::Many | RowCount::One, _) => 0,
            },
            room_bytes: ROOM_BYTES,
        }
    }

    /// The next request; `None`: the walk is complete.
    pub(super) fn request(&mut self) -> Option<(Ask, Vec<Oid>)> {
        let open = self.cursors.iter().enumerate();
        let open = open.filter(|(_, cursor)| !cursor.is_done);
        self.asked = open.map(|(at, _)| at).take(self.width).collect();
        if self.asked.is_empty() {
            return None;
        }
        let names = self.asked.iter().map(|&at| self.cursors[at].at.clone());
        let names: Vec<Oid> = names.collect();
        let rows = self.rows_left().min(VARBINDS_MAX / names.len());
        let ask = match rows.min(self.repetitions) {
            0 if self.repetitions == 0 => Ask::GetNext,
            rows => Ask::GetBulk {
                non_repeaters: 0,
                max_repetitions: u16::try_from(rows.max(1)).unwrap_or(1),
            },
        };
        Some((ask, names))
    }

    /// Rows that are still to come, as far as a column that is complete says, and one to see the end.
    fn rows_left(&self) -> usize {
        let is_known = self
            .cursors
            .iter()
            .any(|cursor| cursor.is_done && cursor.rows > 0);
        let had = self.asked.iter().map(|&at| self.cursors[at].rows).min();
        match had {
            Some(had) if is_known => self.rows.len().saturating_sub(had) + 1,
            _ => VARBINDS_MAX,
        }
    }

    /// Takes the answer to the last request.
    pub(super) fn take(&mut self, answer: &Response<'_>) {
        match answer.status {
            ErrorStatus::NO_ERROR => self.take_rows(answer),
            status => self.take_error(status, answer.index),
        }
    }

    fn take_error(&mut self, status: ErrorStatus, index: i32) {
        let named = usize::try_from(index)
            .ok()
            .and_then(|index| index.checked_sub(1));
        let named = named.and_then(|at| self.asked.get(at).copied());
        match (status, named) {
            // v1: this column has no further row.
            (ErrorStatus::NO_SUCH_NAME, Some(column)) => self.cursors[column].is_done = true,
            (ErrorStatus::NO_SUCH_NAME, None) => self.end(),
            (ErrorStatus::TOO_BIG, _) if self.repetitions > 1 => self.repetitions /= 2,
            (ErrorStatus::TOO_BIG, _) if self.asked.len() > 1 => self.width = self.asked.len() / 2,
            // An agent that has no GETBULK.
            (_, None) if self.repetitions > 0 => self.repetitions = 0,
            (_, Some(column)) => {
                self.cursors[column].is_done = true;
                self.broken += 1;
            }
            (_, None) => self.cut(),
        }
    }

    /// Ends all columns of the request.
    fn end(&mut self) {
        for &at in &self.asked {
            self.cursors[at].is_done = true;
        }
    }

    /// Cuts off all columns of the request.
    fn cut(&mut self) {
        self.broken += u32::try_from(self.asked.len()).unwrap_or(u32::MAX);
        self.end();
    }

    fn take_rows(&mut self, answer: &Response<'_>) {
        let asked = std::mem::take(&mut self.asked);
        let mut fresh = vec![Progress::None; asked.len()];
        for (place, varbind) in answer.varbinds.enumerate() {
            let slot = place % asked.len();
            if self.cursors[asked[slot]].is_done {
                continue;
            }
            let Ok((name, value)) = varbind else {
                fresh[slot..].fill(Progress::Wrong);
                break;
            };
            match self.take_row(asked[slot], name, value) {
                Taken::New => fresh[slot] = Progress::Rows,
                Taken::Known if fresh[slot] == Progress::None => fresh[slot] = Progress::Wrong,
                Taken::Known => {}
                Taken::End => self.cursors[asked[slot]].is_done = true,
                Taken::Full => {
                    self.asked = (0..self.cursors.len()).collect();
                    return self.cut();
                }
            }
        }
        let is_stuck = |at: &usize| !self.cursors[*at].is_done;
        let has_none = fresh.iter().all(|progress| *progress == Progress::None);
        let is_silent = has_none && asked.iter().all(is_stuck);
        for (&at, progress) in asked.iter().zip(fresh) {
            let cursor = &mut self.cursors[at];
            if !cursor.is_done && (progress == Progress::Wrong || is_silent) {
                cursor.is_done = true;
                self.broken += 1;
            }
        }
    }

    fn take_row(&mut self, at: usize, name: &[u8], value: ObjectValue<'_>) -> Taken {
        let cursor = &mut self.cursors[at];
        let behind = name.strip_prefix(&cursor.column[..]);
        let Some(behind) = behind.filter(|rest| !rest.is_empty() && !value.is_exception()) else {
            return Taken::End;
        };
        let Some(index) = place_of(behind) else {
            return Taken::End;
        };
        let columns = self.cursors.len();
        let room_bytes = &mut self.room_bytes;
        let row = self.rows.entry(index.into()).or_insert_with(|| {
            *room_bytes = room_bytes.saturating_sub(columns * CELL_BYTES);
            vec![None; columns]
        });
        if row[at].is_some() {
            return Taken::Known;
        }
        let cell = Cell::of(value);
        if let Cell::Text(text) = &cell {
            *room_bytes = room_bytes.saturating_sub(text.len());
        }
        row[at] = Some(cell);
        let cursor = &mut self.cursors[at];
        cursor.at = Oid::of_bytes(name);
        cursor.rows += 1;
        cursor.is_done = self.count == RowCount::One;
        match *room_bytes {
            0 => Taken::Full,
            _ => Taken::New,
        }
    }
}

/// Meaning of a varbind for its column.
enum Taken {
    /// A new row.
    New,
    /// A row that was there before.
    Known,
    /// The end of the column.
    End,
    /// One row too many.
    Full,
}

/// Meaning of an answer for a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    None,
    Rows,
    Wrong,
}
