//! Consolidation: points become the row in the making, and its primary and secondary value when it is due.
//! Primary is the first row to be written, secondary all that follow in the same go.

use crate::UNKNOWN;
use crate::aberrant;
use crate::error::Error;
use crate::header::{Header, RraDef, Univals};
use crate::kind::Cf;
use crate::rows::Rows;

use super::pdp::Span;
use super::{PRIMARY, SECONDARY, Scratch};

/// Words of `cdp_prep_t`.
const VALUE: usize = 0;
const UNKNOWN_PDPS: usize = 1;

/// What an archive gets in this pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    /// Rows that are due; those beyond the archive's length would only overwrite each other.
    pub rows: u64,
    /// Seasonal rows keep their contents when several are passed over.
    pub skip: bool,
}

/// A pass as one archive sees it.
struct Steps {
    elapsed: u64,
    /// Points until its row in the making is full.
    to_full: u64,
    /// Points that the next row begins with; meaningful when a row is due.
    carried: u64,
}

/// All archives: counts the rows that are due into `scratch.due`, and consolidates.
pub(super) fn consolidate(
    header: &mut Header,
    rows: &mut impl Rows,
    scratch: &mut Scratch,
    span: &Span,
) -> Result<(), Error> {
    scratch.due.clear();
    let ds_cnt = header.ds.len();
    for archive in 0..header.rra.len() {
        let (cf, rra) = (scratch.cfs[archive], &header.rra[archive]);
        let to_full = rra.pdp_cnt - span.first_pdp % rra.pdp_cnt;
        let mut due = Due::default();
        let mut carried = 0;
        if let Some(over) = span.elapsed.checked_sub(to_full) {
            due.rows = (over / rra.pdp_cnt + 1).min(rra.row_cnt);
            carried = over % rra.pdp_cnt;
        }
        let steps = Steps {
            elapsed: span.elapsed,
            to_full,
            carried,
        };
        if cf.is_seasonal() {
            due.skip = due.rows > 1;
            let seasons = &mut scratch.seasons;
            seasons.pass(header, rows, archive, span.elapsed, due.skip)?;
        }
        let rra = &header.rra[archive];
        let cells = &mut header.cdp_prep[archive * ds_cnt..][..ds_cnt];
        if rra.pdp_cnt > 1 {
            for (cell, &point) in cells.iter_mut().zip(&scratch.points) {
                consolidate_cell(&mut cell.scratch, cf, rra, point, &steps, due.rows > 0);
            }
        } else if span.elapsed > 2 {
            for (i, (cell, &point)) in cells.iter_mut().zip(&scratch.points).enumerate() {
                match cf {
                    Cf::Average | Cf::Min | Cf::Max | Cf::Last => {
                        cell.scratch[PRIMARY] = point.to_bits();
                        cell.scratch[SECONDARY] = point.to_bits();
                    }
                    _ => aberrant::reset(
                        &mut cell.scratch,
                        cf,
                        rra,
                        span.elapsed,
                        &scratch.seasons,
                        i,
                    ),
                }
            }
        }
        scratch.due.push(due);
    }
    Ok(())
}

fn consolidate_cell(
    words: &mut Univals,
    cf: Cf,
    rra: &RraDef,
    point: f64,
    steps: &Steps,
    is_due: bool,
) {
    if !is_due {
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
    words[VALUE] = begun(cf, point, steps.carried).to_bits();
    words[UNKNOWN_PDPS] = if point.is_nan() { steps.carried } else { 0 };
}

/// The row in the making, after points that do not fill it.
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

/// The row that is full.
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

/// What the next row begins with.
fn begun(cf: Cf, point: f64, carried: u64) -> f64 {
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
