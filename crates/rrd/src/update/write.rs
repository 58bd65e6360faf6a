//! The rows that are due, archive after archive. Rows of an archive that lie side by side are one write.

use super::cdp::Due;
use super::{PRIMARY, SECONDARY, Scratch, Written};
use crate::error::Error;
use crate::header::Header;
use crate::rows::Rows;

/// Most cells of one write, unless a row is longer.
const CELLS_MAX: usize = 8192;

/// Writes what `scratch.due` says.
pub(super) fn write_rows(
    header: &mut Header,
    rows: &mut impl Rows,
    scratch: &mut Scratch,
    time: i64,
    mut seen: Option<&mut Vec<Written>>,
) -> Result<(), Error> {
    let Scratch { due, cells, .. } = scratch;
    for due in due {
        if due.skip {
            let current = &mut header.cur_row[due.archive];
            *current = (*current + due.rows) % header.rra[due.archive].row_cnt;
            continue;
        }
        if let Some(seen) = seen.as_deref_mut() {
            tell(header, *due, time, seen);
        }
        write_archive(header, rows, *due, cells)?;
    }
    Ok(())
}

fn write_archive(
    header: &mut Header,
    rows: &mut impl Rows,
    due: Due,
    cells: &mut Vec<f64>,
) -> Result<(), Error> {
    let (archive, count) = (due.archive, due.rows);
    let (ds_cnt, row_cnt) = (header.ds.len(), header.rra[archive].row_cnt);
    let prepared = &header.cdp_prep[archive * ds_cnt..][..ds_cnt];
    let value = |slot: usize| {
        prepared
            .iter()
            .map(move |cell| f64::from_bits(cell.scratch[slot]))
    };
    let most = count.min((CELLS_MAX / ds_cnt).max(1) as u64);
    // The first row differs from all others; when it is written it becomes one of them.
    cells.clear();
    cells.extend(value(PRIMARY));
    for _ in 1..most {
        cells.extend(value(SECONDARY));
    }
    let mut left = count;
    while left > 0 {
        let next = header.cur_row[archive] + 1;
        let row = if next < row_cnt { next } else { 0 };
        let run = left.min(most).min(row_cnt - row);
        rows.write(
            due.base + row * ds_cnt as u64,
            &cells[..run as usize * ds_cnt],
        )?;
        header.cur_row[archive] = row + run - 1;
        for (cell, value) in cells.iter_mut().zip(value(SECONDARY)) {
            *cell = value;
        }
        left -= run;
    }
    Ok(())
}

/// The stamps are updatev's own: rows after the first are told two steps late.
fn tell(header: &Header, due: Due, time: i64, seen: &mut Vec<Written>) {
    let (archive, ds_cnt) = (due.archive, header.ds.len());
    let rra = &header.rra[archive];
    let step = rra.pdp_cnt * header.pdp_step;
    let aligned = time as u64 - time as u64 % step;
    for row in 0..due.rows {
        let (slot, less) = if row == 0 {
            (PRIMARY, 1)
        } else {
            (SECONDARY, 2)
        };
        let steps = (due.rows - row).wrapping_sub(less);
        let time = aligned.wrapping_sub(steps.wrapping_mul(step)) as i64;
        for source in 0..ds_cnt {
            let words = &header.cdp_prep[archive * ds_cnt + source].scratch;
            seen.push(Written {
                time,
                archive,
                source,
                value: f64::from_bits(words[slot]),
            });
        }
    }
}
