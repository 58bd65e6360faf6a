//! Captures the rows that an update writes; runs of equal rows are stored once.

use crate::consolidation::schema::Schema;
use kymo_rrd::{Error, Rows, Tip};

/// Consecutive rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// This number of rows, each with its cells.
    Rows(u64),
    /// This number of equal rows, with the cells of one.
    Run(u64),
}

impl Part {
    pub(crate) fn rows(self) -> u64 {
        match self {
            Part::Rows(count) | Part::Run(count) => count,
        }
    }

    /// Number of rows whose cells are stored.
    pub(crate) fn stored(self) -> u64 {
        match self {
            Part::Rows(count) => count,
            Part::Run(_) => 1,
        }
    }
}

/// The new rows of one archive of one series.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NewRows {
    pub(crate) parts: Vec<Part>,
    pub(crate) cells: Vec<f64>,
}

impl NewRows {
    pub(crate) fn clear(&mut self) {
        self.parts.clear();
        self.cells.clear();
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.rows()).sum()
    }

    pub(crate) fn push(&mut self, cells: &[f64]) {
        self.cells.extend_from_slice(cells);
        match self.parts.last_mut() {
            Some(Part::Rows(count)) => *count += 1,
            _ => self.parts.push(Part::Rows(1)),
        }
    }

    pub(crate) fn push_run(&mut self, cells: &[f64], count: u64) {
        if count == 1 {
            return self.push(cells);
        }
        self.cells.extend_from_slice(cells);
        self.parts.push(Part::Run(count));
    }
}

/// The archives of one series while its updates are applied.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    pub(crate) archives: Vec<NewRows>,
    /// First cell and cells of each seasonal archive, which is state.
    seasons: Vec<(u64, Vec<f64>)>,
    seasonal: Vec<Option<usize>>,
}

impl Captured {
    /// Prepares for a series of this schema; holds
    /// its seasonal cells until [`Captured::end`].
    pub(crate) fn begin(&mut self, schema: &Schema, seasons: Vec<Vec<f64>>) {
        self.archives
            .resize_with(schema.archives.len(), NewRows::default);
        self.archives.iter_mut().for_each(NewRows::clear);
        self.seasonal.clear();
        let mut next = 0..;
        for archive in &schema.archives {
            let at = archive.seasonal.then(|| next.next()).flatten();
            self.seasonal.push(at);
        }
        let bases = schema.archives.iter().filter(|archive| archive.seasonal);
        self.seasons.clear();
        self.seasons
            .extend(bases.map(|archive| archive.base).zip(seasons));
    }

    /// Returns the seasonal cells with their changes.
    pub(crate) fn end(&mut self) -> Vec<Vec<f64>> {
        self.seasons.drain(..).map(|(_, cells)| cells).collect()
    }

    fn season(&mut self, first: u64, len: usize) -> Result<&mut [f64], Error> {
        for (base, cells) in &mut self.seasons {
            let at = first.checked_sub(*base).map(|at| at as usize);
            if let Some(at) = at.filter(|&at| at < cells.len()) {
                let end = at.saturating_add(len);
                return cells.get_mut(at..end).ok_or_else(outside);
            }
        }
        Err(outside())
    }
}

fn outside() -> Error {
    Error::new("a row lies outside the file")
}

impl Rows for Captured {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        cells.copy_from_slice(self.season(first, cells.len())?);
        Ok(())
    }

    fn write(&mut self, first: u64, cells: &[f64]) -> Result<(), Error> {
        self.season(first, cells.len())?.copy_from_slice(cells);
        Ok(())
    }

    fn append(&mut self, tip: Tip, first: &[f64], rest: &[f64], count: u64) -> Result<(), Error> {
        if let Some(season) = self.seasonal.get(tip.archive).copied().flatten() {
            let cells = &mut self.seasons[season].1;
            let mut row = tip.cur_row;
            for at in 0..count {
                row = if row + 1 < tip.row_cnt { row + 1 } else { 0 };
                let from = row as usize * first.len();
                let values = if at == 0 { first } else { rest };
                cells
                    .get_mut(from..from + first.len())
                    .ok_or_else(outside)?
                    .copy_from_slice(values);
            }
            return Ok(());
        }
        let rows = self.archives.get_mut(tip.archive).ok_or_else(outside)?;
        if count >= tip.row_cnt {
            // The new rows fill the whole archive, so all earlier ones are overwritten.
            rows.clear();
        }
        rows.push(first);
        if count > 1 {
            rows.push_run(rest, count - 1);
        }
        Ok(())
    }
}
