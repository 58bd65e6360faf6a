//! Consolidation: adds points to rows in progress, and sets the primary and secondary values of completed
//! rows. The primary value is that of the first row to be written, the secondary one that of all others in
//! the same pass.

use crate::UNKNOWN;
use crate::aberrant::{self, SeasonPosition};
use crate::cf::Cf;
use crate::error::Error;
use crate::header::{Header, RraDef, Univals};
use crate::rows::Rows;

use super::Scratch;
use super::pdp::Span;
use crate::preparation::{PRIMARY, SECONDARY};

/// Words of `cdp_prep_t`.
const VALUE: usize = 0;
const UNKNOWN_PDPS: usize = 1;

/// Rows of an archive that a pass completes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// Index of the archive.
    pub archive: usize,
    /// First cell of the archive.
    pub base: u64,
    /// Number of rows, at most as many as the archive has.
    pub rows: u64,
    /// True if rows stay as they are: seasonal ones when a pass completes several.
    pub skip: bool,
}

/// A pass in units of one archive.
struct Steps {
    elapsed: u64,
    /// Points that complete the row in progress.
    to_full: u64,
    /// Points of the next row; valid if a row is completed.
    carried: u64,
    /// Completed rows.
    rows: u64,
}

impl Steps {
    fn of(rra: &RraDef, span: &Span) -> Steps {
        let to_full = rra.pdp_cnt - rest(span.first_pdp, rra.pdp_cnt);
        let (mut carried, mut rows) = (0, 0);
        if let Some(over) = span.elapsed.checked_sub(to_full) {
            carried = rest(over, rra.pdp_cnt);
            rows = (over / rra.pdp_cnt + 1).min(rra.row_cnt);
        }
        Steps {
            elapsed: span.elapsed,
            to_full,
            carried,
            rows,
        }
    }
}

/// `a % b`, which mostly avoids the slow 64-bit division.
fn rest(a: u64, b: u64) -> u64 {
    match (u32::try_from(a), u32::try_from(b)) {
        _ if b == 1 => 0,
        _ if a < b => a,
        (Ok(a), Ok(b)) => u64::from(a % b),
        _ => a % b,
    }
}

/// Consolidates all archives; `scratch.due` gets the completed rows.
pub(super) fn consolidate(
    header: &mut Header,
    rows: &mut impl Rows,
    scratch: &mut Scratch,
    span: &Span,
) -> Result<(), Error> {
    scratch.due.clear();
    let (ds_cnt, mut base) = (header.ds.len(), 0);
    let cells = header.cdp_prep.chunks_exact_mut(ds_cnt);
    let archives = header.rra.iter().zip(&scratch.cfs).zip(cells);
    for (archive, ((rra, &cf), cells)) in archives.enumerate() {
        let steps = Steps::of(rra, span);
        let skip = steps.rows > 1 && cf.is_seasonal();
        if cf.is_seasonal() {
            let place = SeasonPosition {
                base,
                width: ds_cnt,
                row_cnt: rra.row_cnt,
                current: header.cur_row[archive],
            };
            if skip {
                scratch.seasons.pass(rows, place, span.elapsed)?;
            }
            let first = &mut cells[0].scratch;
            scratch.seasons.note_end(first, rra, place, span.elapsed);
        }
        for (source, (cell, &point)) in cells.iter_mut().zip(&scratch.points).enumerate() {
            let words = &mut cell.scratch;
            if rra.pdp_cnt > 1 {
                consolidate_cell(words, cf, rra, point, &steps);
            } else if cf.is_plain() {
                take(words, point, span.elapsed);
            } else if span.elapsed > 2 {
                aberrant::reset(words, cf, rra, span.elapsed, &scratch.seasons, source);
            }
        }
        if steps.rows > 0 {
            scratch.due.push(Due {
                archive,
                base,
                rows: steps.rows,
                skip,
            });
        }
        base += rra.row_cnt * ds_cnt as u64;
    }
    Ok(())
}

/// Stores the point of an archive with one point in a row, which needs no consolidation.
fn take(words: &mut Univals, point: f64, elapsed: u64) {
    words[PRIMARY] = point.to_bits();
    if elapsed > 1 {
        words[SECONDARY] = point.to_bits();
    }
}

/// Adds a single point to a row in progress. If it is the last one of the row, the next row begins.
pub(crate) fn put_point(words: &mut Univals, cf: Cf, rra: &RraDef, point: f64, is_last: bool) {
    let steps = Steps {
        elapsed: 1,
        to_full: 1,
        carried: 0,
        rows: u64::from(is_last),
    };
    consolidate_cell(words, cf, rra, point, &steps);
}

fn consolidate_cell(words: &mut Univals, cf: Cf, rra: &RraDef, point: f64, steps: &Steps) {
    if steps.rows == 0 {
        if point.is_nan() {
            words[UNKNOWN_PDPS] = words[UNKNOWN_PDPS].wrapping_add(steps.elapsed);
        } else {
            let value = f64::from_bits(words[VALUE]);
            words[VALUE] = gathered(cf, value, point, steps.elapsed).to_bits();
        }
        return;
    }
    let mut secondary = point;
    if point.is_nan() {
        words[UNKNOWN_PDPS] = words[UNKNOWN_PDPS].wrapping_add(steps.to_full);
        secondary = UNKNOWN;
    }
    words[SECONDARY] = secondary.to_bits();
    let xff = f64::from_bits(rra.par[0]);
    let primary = if words[UNKNOWN_PDPS] as f64 > rra.pdp_cnt as f64 * xff {
        UNKNOWN
    } else {
        completed(cf, words, point, steps.to_full, rra.pdp_cnt)
    };
    words[PRIMARY] = primary.to_bits();
    words[VALUE] = first_value(cf, point, steps.carried).to_bits();
    words[UNKNOWN_PDPS] = if point.is_nan() { steps.carried } else { 0 };
}

/// The row in progress after points that do not complete it.
fn gathered(cf: Cf, value: f64, point: f64, elapsed: u64) -> f64 {
    match cf {
        Cf::Average if value.is_nan() => point * elapsed as f64,
        Cf::Average => value + point * elapsed as f64,
        Cf::Min if !value.is_nan() => {
            if point < value {
                point
            } else {
                value
            }
        }
        Cf::Max if !value.is_nan() => {
            if point > value {
                point
            } else {
                value
            }
        }
        _ => point,
    }
}

/// The completed row.
fn completed(cf: Cf, words: &Univals, point: f64, to_full: u64, pdp_cnt: u64) -> f64 {
    let value = f64::from_bits(words[VALUE]);
    let known = |value: f64, instead: f64| if value.is_nan() { instead } else { value };
    match cf {
        Cf::Average => {
            let sum = known(value, 0.0) + known(point, 0.0) * to_full as f64;
            sum / pdp_cnt.wrapping_sub(words[UNKNOWN_PDPS]) as f64
        }
        Cf::Max => {
            let (value, point) = (
                known(value, f64::NEG_INFINITY),
                known(point, f64::NEG_INFINITY),
            );
            if point > value { point } else { value }
        }
        Cf::Min => {
            let (value, point) = (known(value, f64::INFINITY), known(point, f64::INFINITY));
            if point < value { point } else { value }
        }
        _ => point,
    }
}

/// The value that the next row begins with.
fn first_value(cf: Cf, point: f64, carried: u64) -> f64 {
    let nothing = carried == 0 || point.is_nan();
    match cf {
        Cf::Average if nothing => 0.0,
        Cf::Average => point * carried as f64,
        Cf::Max if nothing => f64::NEG_INFINITY,
        Cf::Min if nothing => f64::INFINITY,
        _ if nothing => UNKNOWN,
        _ => point,
    }
}
