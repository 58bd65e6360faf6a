//! Smooths seasons by a moving average over the cycle.

use super::{COEFFICIENT, Cell, Model, dependent, get, model, set};
use crate::cf::Cf;
use crate::error::{Error, Kind};
use crate::header::Header;
use crate::rows::Rows;

/// Part of the cycle that the average covers before version 4; later versions store it in the archive.
const WINDOW: f64 = 0.05;
/// Most cells of a cycle that is smoothed, 128 MiB: more than a year of minutes of 30 data sources.
const CELLS_MAX: usize = 1 << 24;
/// Number of cells of one read.
const PIECE: usize = 65_536;
/// Word of `rra_def_t` with the window.
const SMOOTHING_WINDOW: usize = 2;

/// Smooths all seasonal archives, except those with an unknown row.
pub(crate) fn smooth_all(
    header: &mut Header,
    rows: &mut impl Rows,
    cfs: &[Cf],
) -> Result<(), Error> {
    for (archive, &cf) in cfs.iter().enumerate() {
        if cf.is_seasonal() {
            smooth(header, rows, archive, cf)?;
        }
    }
    Ok(())
}

fn smooth(header: &mut Header, rows: &mut impl Rows, archive: usize, cf: Cf) -> Result<(), Error> {
    let rra = &header.rra[archive];
    let row_cnt = rra.row_cnt as usize;
    let window = if header.version >= 4 {
        f64::from_bits(rra.par[SMOOTHING_WINDOW])
    } else {
        WINDOW
    };
    let half = (window / 2.0 * row_cnt as f64).floor();
    // Only a window outside of 0..1 can be longer than the cycle.
    if !(1.0..row_cnt as f64).contains(&half) {
        return Ok(());
    }
    let ds_cnt = header.ds.len();
    if row_cnt * ds_cnt > CELLS_MAX {
        return Ok(());
    }
    let first = header.cell(archive, 0);
    let mut cells = read_all(rows, first, row_cnt * ds_cnt)?;
    if cells.iter().any(|cell| cell.is_nan()) {
        return Ok(());
    }
    let mut base_lines = Vec::with_capacity(ds_cnt);
    for source in 0..ds_cnt {
        base_lines.push(average(&mut cells, source, ds_cnt, half as usize));
    }
    if cf == Cf::Seasonal {
        center(header, archive, &base_lines, &mut cells)?;
    }
    rows.write(first, &cells)
}

/// Reads cells piece by piece, as a header may promise more than the file has.
fn read_all(rows: &mut impl Rows, first: u64, count: usize) -> Result<Vec<f64>, Error> {
    let mut cells = Vec::new();
    while cells.len() < count {
        let from = cells.len();
        cells.resize(count.min(from + PIECE), 0.0);
        rows.read(first + from as u64, &mut cells[from..])?;
    }
    Ok(cells)
}

/// Replaces the column of a source by its moving average; returns the mean of that.
fn average(cells: &mut [f64], source: usize, ds_cnt: usize, half: usize) -> f64 {
    let column: Vec<f64> = cells.iter().skip(source).step_by(ds_cnt).copied().collect();
    let row_cnt = column.len();
    let at = |row: usize, back: usize| (row + 2 * row_cnt - back) % row_cnt;
    let mut sum = 0.0;
    for row in 0..2 * half {
        sum += column[at(row, half)];
    }
    let mut base_line = 0.0;
    for row in half..row_cnt + half {
        sum += column[row % row_cnt];
        let average = sum / (2 * half + 1) as f64;
        cells[at(row, half) * ds_cnt + source] = average;
        base_line += average;
        sum -= column[at(row, 2 * half)];
    }
    base_line / row_cnt as f64
}

/// Moves the mean of all seasons into the intercept of the prediction.
fn center(
    header: &mut Header,
    archive: usize,
    base_lines: &[f64],
    cells: &mut [f64],
) -> Result<(), Error> {
    let wrong = |cf: &[u8]| {
        let cf = String::from_utf8_lossy(cf);
        Error {
            kind: Kind::NotSmoothed,
            text: format!("apply smoother: SEASONAL rra doesn't have valid dependency: {cf}"),
        }
    };
    let leans_on = dependent(header, archive).ok_or_else(|| wrong(b""))?;
    let model: Model = model(header, leans_on).ok_or_else(|| wrong(header.rra[leans_on].cf()))?;
    for row in cells.chunks_exact_mut(base_lines.len()) {
        for (cell, &base_line) in row.iter_mut().zip(base_lines) {
            *cell = model.first_season(*cell, base_line);
        }
    }
    for (source, &base_line) in base_lines.iter().enumerate() {
        let prediction = Cell {
            archive: leans_on,
            source,
            slot: 0,
        };
        let intercept = get(header, prediction, COEFFICIENT) + base_line;
        set(header, prediction, COEFFICIENT, intercept);
    }
    Ok(())
}
