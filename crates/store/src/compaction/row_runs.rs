//! Joins the rows of one series from several columns.

use crate::consolidation::row_sink::Part;
use crate::consolidation::rows::{Column, ReadRows};

/// Pieces without overlap, oldest first.
pub(crate) struct Strip {
    row_bytes: usize,
    pieces: Vec<Piece>,
}

/// Consecutive rows: number of the first, count, and cells.
#[derive(Clone)]
struct Piece {
    first: u64,
    part: Part,
    cells: Vec<u8>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.first + self.part.rows()
    }

    /// The part of the piece within the rows `from..to`.
    fn cut(&self, from: u64, to: u64, row_bytes: usize) -> Option<Piece> {
        let (first, end) = (self.first.max(from), self.end().min(to));
        let count = end.checked_sub(first).filter(|&count| count > 0)?;
        let skipped = (first - self.first) as usize;
        let (part, cells) = match self.part {
            Part::Rows(_) => {
                let cells = &self.cells[skipped * row_bytes..][..count as usize * row_bytes];
                (Part::Rows(count), cells)
            }
            Part::Run(_) => (Part::Run(count), &self.cells[..]),
        };
        let cells = cells.to_vec();
        Some(Piece { first, part, cells })
    }
}

impl Strip {
    /// The rows `from..` of a series; of duplicate rows, those of the later column.
    pub(crate) fn of(columns: &[ReadRows<'_>], member: u8, from: u64, width: usize) -> Strip {
        let mut strip = Strip {
            row_bytes: 8 * width,
            pieces: Vec::new(),
        };
        for column in columns {
            column.parts(member, &mut |first, part, cells| {
                let cells = cells.to_vec();
                let piece = Piece { first, part, cells };
                if let Some(piece) = piece.cut(from, u64::MAX, strip.row_bytes) {
                    strip.push(piece);
                }
            });
        }
        strip
    }

    /// Adds a piece and removes overlapped rows. A later column may have older rows, since blocks that
    /// were written again lie after newer ones.
    fn push(&mut self, piece: Piece) {
        let (first, end) = (piece.first, piece.end());
        let at = self.pieces.partition_point(|before| before.end() <= first);
        let covered = self.pieces.split_off(at);
        let left = covered.iter();
        let left = left.filter_map(|old| old.cut(0, first, self.row_bytes));
        self.pieces.extend(left);
        self.pieces.push(piece);
        let right = covered.iter();
        let right = right.filter_map(|old| old.cut(end, u64::MAX, self.row_bytes));
        self.pieces.extend(right);
    }

    /// Number of the newest row.
    pub(crate) fn last(&self) -> Option<u64> {
        self.pieces.last().map(|piece| piece.end() - 1)
    }

    pub(crate) fn put(&self, member: u8, column: &mut Column) {
        let mut at = 0;
        while at < self.pieces.len() {
            let first = self.pieces[at].first;
            let (mut parts, mut end, mut cells) = (Vec::<Part>::new(), first, Vec::new());
            while let Some(piece) = self.pieces.get(at).filter(|piece| piece.first == end) {
                match (parts.last_mut(), piece.part) {
                    (Some(Part::Rows(before)), Part::Rows(count)) => *before += count,
                    _ => parts.push(piece.part),
                }
                cells.extend_from_slice(&piece.cells);
                end = piece.end();
                at += 1;
            }
            column.push_raw(member, first, &parts, &cells);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consolidation::rows::fill_member;
    use kymo_base::random::next_random;
    use std::collections::BTreeMap;

    /// Compares columns in random order with a map of single rows.
    #[test]
    fn the_later_column_counts_row_by_row() {
        let mut random = 3;
        for round in 0..3000 {
            let (mut encoded, mut rows) = (Vec::new(), BTreeMap::new());
            for number in 0..1 + next_random(&mut random) % 6 {
                let (mut column, mut raw) = (Column::default(), Vec::new());
                let first = next_random(&mut random) % 30;
                let count = 1 + next_random(&mut random) % 9;
                let is_run = next_random(&mut random).is_multiple_of(3);
                let stored = if is_run { 1 } else { count };
                let value = |at: u64| (number * 100 + at * 2) as f64;
                let cells = (0..stored).flat_map(|at| [value(at), value(at) + 1.0]);
                let cells: Vec<u8> = cells.flat_map(f64::to_le_bytes).collect();
                let part = if is_run {
                    Part::Run(count)
                } else {
                    Part::Rows(count)
                };
                column.push_raw(2, first, &[part], &cells);
                column.encode(&mut raw);
                encoded.push(raw);
                rows.extend((0..count).map(|at| (first + at, value(at.min(stored - 1)))));
            }
            let from = next_random(&mut random) % 20;
            rows.retain(|&row, _| row >= from);
            let columns = encoded.iter().map(|raw| ReadRows::parse(raw, 2).unwrap());
            let strip = Strip::of(&columns.collect::<Vec<_>>(), 2, from, 2);
            assert_eq!(strip.last(), rows.keys().last().copied(), "{round}");
            let (mut column, mut raw) = (Column::default(), Vec::new());
            strip.put(2, &mut column);
            column.encode(&mut raw);
            let mut found = vec![f64::NAN; 2 * 50];
            fill_member(&raw, 2, 2, 0, &mut found).unwrap();
            for (row, cells) in found.chunks(2).enumerate() {
                let wanted = rows.get(&(row as u64)).copied().unwrap_or(f64::NAN);
                let same = [wanted.to_bits(), (wanted + 1.0).to_bits()];
                assert_eq!(
                    [cells[0].to_bits(), cells[1].to_bits()],
                    same,
                    "{round} {row}"
                );
            }
        }
    }
}
