//! The rows of one series as if they were in a file: new rows,
//! rows in blocks, and rows of the file that it was adopted from.

use crate::consolidation::row_sink::NewRows;
use crate::consolidation::rows::fill_from;
use crate::consolidation::schema::{Schema, SeriesState};
use crate::error::FileError;
use crate::segment::placed::Placed;
use crate::segment::set::fill;
use kymo_rrd::{Error, Rows, Rrd, UNKNOWN};
use std::sync::Arc;

/// A file with rows from before the series was in the segments.
pub(crate) struct Base {
    pub(crate) rows: Box<dyn Rows + Send>,
    /// Last update of the file when the series was adopted.
    pub(crate) last_up: i64,
}

/// A series in its present state.
pub(crate) struct View {
    pub(crate) schema: Arc<Schema>,
    pub(crate) state: SeriesState,
    pub(crate) blocks: Arc<Vec<Placed>>,
    pub(crate) slot: u8,
    /// Rows in no block, for each archive; empty if there are none.
    pub(crate) fresh: Vec<NewRows>,
    pub(crate) base: Option<Base>,
    /// Number of unreadable frames, whose rows are unknown.
    pub(crate) damaged: u64,
}

impl View {
    /// The whole series as a file.
    pub(crate) fn whole(&mut self) -> Result<Rrd, FileError> {
        let header = self.state.header.clone();
        let mut cells = vec![0.0; header.cell_count() as usize];
        self.read(0, &mut cells)
            .map_err(|error| FileError::Rrd(error.text))?;
        Ok(Rrd { header, cells })
    }

    /// Fills `out` with the rows `number..` of an archive; missing rows are unknown.
    pub(crate) fn numbered(
        &mut self,
        archive: usize,
        number: u64,
        out: &mut [f64],
    ) -> Result<(), Error> {
        out.fill(UNKNOWN);
        self.overlay(archive, number, out)
    }

    /// Fills `out` with the rows `number..` of an archive; leaves missing and damaged rows unchanged.
    pub(crate) fn overlay(
        &mut self,
        archive: usize,
        number: u64,
        out: &mut [f64],
    ) -> Result<(), Error> {
        let newest = self.schema.newest(archive, self.state.header.last_up);
        self.fill_from_base(archive, (number, newest), out)?;
        let at = (self.slot, archive);
        let damaged = fill(&self.blocks, &self.schema, at, number, out);
        self.damaged +=
            damaged.map_err(|cause| Error::new(format!("cannot read rows: {cause}")))?;
        if let Some(fresh) = self.fresh.get(archive) {
            fill_from(fresh, newest, self.schema.width, number, out);
        }
        Ok(())
    }

    /// Fills `out` from the file that the series was adopted from, which still has its rows.
    fn fill_from_base(
        &mut self,
        archive: usize,
        (number, newest): (u64, u64),
        out: &mut [f64],
    ) -> Result<(), Error> {
        let Some(base) = &mut self.base else {
            return Ok(());
        };
        let about = &self.schema.archives[archive];
        let width = self.schema.width;
        let last = self.schema.newest(archive, base.last_up);
        let count = (out.len() / width.max(1)) as u64;
        let to = (number + count).min(last.min(newest) + 1);
        let from = number.max((newest + 1).saturating_sub(about.row_cnt));
        let current = self.state.header.cur_row[archive];
        let mut at = from;
        while at < to {
            let row = row_of(at, newest, current, about.row_cnt);
            let run = (to - at).min(about.row_cnt - row);
            let cells = (at - number) as usize * width..(at - number + run) as usize * width;
            base.rows
                .read(about.base + row * width as u64, &mut out[cells])?;
            at += run;
        }
        Ok(())
    }

    /// Reads cells of an archive from file row `row` to the end of the archive at most; returns their number.
    fn read_archive(&mut self, archive: usize, row: u64, out: &mut [f64]) -> Result<usize, Error> {
        let schema = self.schema.clone();
        let current = self.state.header.cur_row[archive];
        let newest = schema.newest(archive, self.state.header.last_up);
        in_numbers(
            &schema,
            (archive, row),
            (current, newest),
            out,
            |number, cells| self.numbered(archive, number, cells),
        )
    }
}

/// Calls `numbered` with the row numbers of file rows from `row`
/// to the end of the archive at most; returns the number of cells.
pub(crate) fn in_numbers(
    schema: &Schema,
    (archive, row): (usize, u64),
    (current, newest): (u64, u64),
    out: &mut [f64],
    mut numbered: impl FnMut(u64, &mut [f64]) -> Result<(), Error>,
) -> Result<usize, Error> {
    let (row_cnt, width) = (schema.archives[archive].row_cnt, schema.width);
    let rows = ((out.len() / width) as u64).min(row_cnt - row);
    let mut done = 0;
    while done < rows {
        let at = row + done;
        // A run of rows up to the current row, or from the one after it to the end.
        let (back, run) = match at <= current {
            true => (current - at, (current - at + 1).min(rows - done)),
            false => (current + row_cnt - at, rows - done),
        };
        let cells = &mut out[done as usize * width..(done + run) as usize * width];
        // Rows from before 1970 were never written.
        let before = back.saturating_sub(newest).min(run);
        let (never, written) = cells.split_at_mut(before as usize * width);
        never.fill(UNKNOWN);
        if !written.is_empty() {
            numbered(newest - (back - before), written)?;
        }
        done += run;
    }
    Ok(rows as usize * width)
}

/// Position of a row in its archive.
pub(crate) fn row_of(number: u64, newest: u64, current: u64, row_cnt: u64) -> u64 {
    let back = (newest - number) % row_cnt;
    match back <= current {
        true => current - back,
        false => current + row_cnt - back,
    }
}

impl Rows for View {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        let outside = || Error::new("a row lies outside the file");
        let (mut first, mut left) = (first, cells);
        let schema = self.schema.clone();
        let mut seasons = 0;
        for (archive, about) in schema.archives.iter().enumerate() {
            let len = about.row_cnt * schema.width as u64;
            let season = seasons;
            seasons += usize::from(about.seasonal);
            let Some(offset) = first.checked_sub(about.base).filter(|&offset| offset < len) else {
                continue;
            };
            let count = left.len().min((len - offset) as usize);
            let (mine, rest) = left.split_at_mut(count);
            if about.seasonal {
                let cells = &self.state.seasons[season][offset as usize..];
                mine.copy_from_slice(&cells[..count]);
            } else if offset % schema.width as u64 != 0 || count % schema.width != 0 {
                return Err(Error::new("a row is read in part"));
            } else {
                self.read_archive(archive, offset / schema.width as u64, mine)?;
            }
            left = rest;
            first += count as u64;
            if left.is_empty() {
                return Ok(());
            }
        }
        match left.is_empty() {
            true => Ok(()),
            false => Err(outside()),
        }
    }

    fn write(&mut self, _first: u64, _cells: &[f64]) -> Result<(), Error> {
        Err(Error::read_only())
    }
}
