//! Whole files into the drum: definitions, state and all rows.

use crate::drum::block::{Builder, SIXTEEN};
use crate::drum::captured::NewRows;
use crate::drum::column::Column;
use crate::drum::shape::Shape;
use crate::error::FileError;
use crate::files::Beginning;
use crate::store::{Inner, seasons_of};
use kymo_rrd::{Rrd, UNKNOWN};

impl Inner {
    /// A group of this path that is all of this file; who had the path before is gone, but for values that are newer.
    pub(crate) fn import(&self, path: &[u8], rrd: &Rrd, by_create: bool) -> Result<u32, FileError> {
        let beginning = Beginning {
            base: None,
            seen: None,
            by_create,
        };
        let id = self.adopt_as(path, &rrd.header, seasons_of(rrd), beginning)?;
        let place = self
            .lock()
            .groups
            .get(id)
            .map(|group| (group.chunk, group.slot));
        let (chunk, slot) = place.ok_or(FileError::NoSuchFile)?;
        let shape =
            Shape::of(&rrd.header).ok_or_else(|| FileError::Rrd("has a damaged header".into()))?;
        self.import_rows(chunk, slot, &shape, rrd)
            .map_err(FileError::Io)?;
        Ok(id)
    }

    /// A block with nothing but a group's rows.
    fn import_rows(&self, chunk: u32, slot: u8, shape: &Shape, rrd: &Rrd) -> std::io::Result<()> {
        let mut builder = Builder::new(shape.archives.len())?;
        let position = self.drum.position(chunk);
        builder.begin(chunk, position, shape.archives.len());
        builder.part(slot / SIXTEEN as u8);
        builder.stamp = rrd.header.last_up.max(0) as u64;
        for archive in 0..shape.archives.len() {
            let rows = rows_of(shape, archive, rrd);
            let mut column = Column::default();
            column.push(
                slot % SIXTEEN as u8,
                shape.newest(archive, rrd.header.last_up),
                &rows,
            );
            builder.rows(archive, &column, column.newest)?;
        }
        builder.drop_empty_part();
        match builder.is_empty() {
            true => Ok(()),
            false => self
                .drum
                .append(&mut builder)
                .and_then(|()| self.drum.sync()),
        }
    }
}

/// The rows of an archive in the order of time; none if none is known.
fn rows_of(shape: &Shape, archive: usize, rrd: &Rrd) -> NewRows {
    let mut rows = NewRows::default();
    let about = &shape.archives[archive];
    if about.seasonal {
        return rows;
    }
    let newest = shape.newest(archive, rrd.header.last_up);
    let current = rrd.header.cur_row[archive];
    // Those before the epoch are none.
    let count = about.row_cnt.min(newest + 1);
    let (mut run, mut known): (Option<(&[f64], u64)>, bool) = (None, false);
    for back in (0..count).rev() {
        let row = (current + about.row_cnt - back % about.row_cnt) % about.row_cnt;
        let first = (about.base + row * shape.width as u64) as usize;
        let cells = &rrd.cells[first..first + shape.width];
        known |= cells.iter().any(|cell| cell.to_bits() != UNKNOWN.to_bits());
        let same = |other: &[f64]| {
            other
                .iter()
                .zip(cells)
                .all(|(a, b)| a.to_bits() == b.to_bits())
        };
        run = match run {
            Some((other, count)) if same(other) => Some((other, count + 1)),
            before => {
                if let Some((cells, count)) = before {
                    push(&mut rows, cells, count);
                }
                Some((cells, 1))
            }
        };
    }
    if let Some((cells, count)) = run {
        push(&mut rows, cells, count);
    }
    if !known {
        rows.clear();
    }
    rows
}

/// A run of a few rows is no shorter than the rows.
fn push(rows: &mut NewRows, cells: &[f64], count: u64) {
    match count {
        0..4 => (0..count).for_each(|_| rows.push(cells)),
        _ => rows.push_run(cells, count),
    }
}
