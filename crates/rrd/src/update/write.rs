//! Writes the completed rows, archive after archive.

use super::cdp::Due;
use super::{Scratch, Written};
use crate::error::Error;
use crate::header::Header;
use crate::preparation::{PRIMARY, SECONDARY};
use crate::rows::{Rows, Tip};

/// Writes the rows of `scratch.due`.
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
            record_written(header, *due, time, seen);
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
    // The first row differs from the others.
    cells.clear();
    for slot in [PRIMARY, SECONDARY] {
        cells.extend(
            prepared
                .iter()
                .map(|cell| f64::from_bits(cell.scratch[slot])),
        );
    }
    let current = &mut header.cur_row[archive];
    let tip = Tip {
        archive,
        base: due.base,
        row_cnt,
        cur_row: *current,
    };
    let (first, rest) = cells.split_at(ds_cnt);
    rows.append(tip, first, rest, count)?;
    *current = match *current + count {
        next if next < row_cnt => next,
        next => next % row_cnt,
    };
    Ok(())
}

/// Records written cells. Their stamps are those of updatev, which are two
/// steps late from the second row on.
fn record_written(header: &Header, due: Due, time: i64, seen: &mut Vec<Written>) {
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
