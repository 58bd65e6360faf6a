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
    let mut base = 0;
    for (archive, due) in scratch.due.iter().enumerate() {
        if due.skip {
            let row_cnt = header.rra[archive].row_cnt;
            header.cur_row[archive] = (header.cur_row[archive] + due.rows) % row_cnt;
        } else if due.rows > 0 {
            if let Some(seen) = seen.as_deref_mut() {
                tell(header, archive, *due, time, seen);
            }
            write_archive(header, rows, archive, base, due.rows, &mut scratch.cells)?;
        }
        base += header.rra[archive].row_cnt * header.ds.len() as u64;
    }
    Ok(())
}

fn write_archive(
    header: &mut Header,
    rows: &mut impl Rows,
    archive: usize,
    base: u64,
    count: u64,
    cells: &mut Vec<f64>,
) -> Result<(), Error> {
    let (ds_cnt, row_cnt) = (header.ds.len(), header.rra[archive].row_cnt);
    let prepared = &header.cdp_prep[archive * ds_cnt..][..ds_cnt];
    let value = |slot: usize| {
        prepared
            .iter()
            .map(move |cell| f64::from_bits(cell.scratch[slot]))
    };
    let most = count.min((CELLS_MAX / ds_cnt).max(1) as u64);
    cells.clear();
    cells.extend(value(PRIMARY));
    for _ in 1..most {
        cells.extend(value(SECONDARY));
    }
    let mut left = count;
    while left > 0 {
        let row = (header.cur_row[archive] + 1) % row_cnt;
        let run = left.min(most).min(row_cnt - row);
        rows.write(base + row * ds_cnt as u64, &cells[..run as usize * ds_cnt])?;
        header.cur_row[archive] = row + run - 1;
        if left == count {
            cells.truncate(0);
            for _ in 0..most.min(left - run) {
                cells.extend(value(SECONDARY));
            }
        }
        left -= run;
    }
    Ok(())
}

/// The stamps are updatev's own: rows after the first are told two steps late.
fn tell(header: &Header, archive: usize, due: Due, time: i64, seen: &mut Vec<Written>) {
    let (ds_cnt, rra) = (header.ds.len(), &header.rra[archive]);
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
