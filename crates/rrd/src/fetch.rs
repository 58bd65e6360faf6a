//! Reads rows between two times, from the archive that rrdtool would choose.

use crate::UNKNOWN;
use crate::cf::Cf;
use crate::error::Error;
use crate::header::{FETCH_CELLS_MAX, Header, RraDef};
use crate::rows::Rows;
use kymo_base::printf::{put_exp, put_unsigned};

/// The rows of a fetch.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// Start, seconds since the epoch: one step before the first row's stamp.
    pub start: i64,
    /// Stamp of the last row, seconds since the epoch.
    pub end: i64,
    /// Seconds of a row.
    pub step: u64,
    /// Names of the columns.
    pub names: Vec<Vec<u8>>,
    /// Row after row, a cell for each name; the first row is stamped `start + step`.
    pub rows: Vec<f64>,
}

/// The rows that answer a request, before any of them is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    archive: usize,
    /// Start, seconds since the epoch: one step before the first row's stamp.
    pub start: i64,
    /// Stamp of the last row, seconds since the epoch.
    pub end: i64,
    /// Seconds of a row.
    pub step: u64,
    /// Number of rows.
    pub rows: u64,
}

impl Plan {
    /// Plans a fetch of rows of the consolidation function `cf` from `start` to `end`, with a step near `step`.
    pub fn of(header: &Header, cf: &[u8], start: i64, end: i64, step: u64) -> Result<Plan, Error> {
        let archive = choose(header, Cf::parse(cf)?, start, end, step)?;
        let rra = &header.rra[archive];
        let step = header.pdp_step * rra.pdp_cnt;
        // An aligned end adds one more step.
        let start = start.wrapping_sub((start as u64 % step) as i64);
        let end = end.wrapping_add((step - end as u64 % step) as i64);
        let ds_cnt = header.ds.len() as u64;
        let rows = end.wrapping_sub(start) as u64 / step;
        let cells = rows
            .checked_add(1)
            .and_then(|rows| rows.checked_mul(ds_cnt));
        if cells.is_none_or(|cells| cells > FETCH_CELLS_MAX) {
            return Err(Error::new("malloc fetch data area"));
        }
        Ok(Plan {
            archive,
            start,
            end,
            step,
            rows,
        })
    }

    /// Number of cells of the rows.
    pub fn cells(&self, header: &Header) -> u64 {
        self.rows * header.ds.len() as u64
    }

    /// Reads rows from number `first` (from 0) on into `out`. Rows outside of the archive are unknown.
    pub fn read(
        &self,
        header: &Header,
        rows: &mut impl Rows,
        first: u64,
        out: &mut [f64],
    ) -> Result<(), Error> {
        out.fill(UNKNOWN);
        let (rra, cur_row) = (&header.rra[self.archive], header.cur_row[self.archive]);
        let (row_cnt, ds_cnt) = (i128::from(rra.row_cnt), header.ds.len());
        let step = i128::from(self.step);
        let newest = i128::from(aligned(header.last_up, self.step));
        let oldest = newest - step * (row_cnt - 1);
        let offset = (i128::from(self.start) + step - oldest) / step + i128::from(first);
        let count = (out.len() / ds_cnt.max(1)) as i128;
        let (from, to) = (offset.max(0), (offset + count).min(row_cnt));
        let mut at = from;
        while at < to {
            let row = (i128::from(cur_row) + 1 + at) % row_cnt;
            let len = (to - at).min(row_cnt - row);
            let cells = (at - offset) as usize * ds_cnt..(at - offset + len) as usize * ds_cnt;
            rows.read(header.cell(self.archive, row as u64), &mut out[cells])?;
            at += len;
        }
        Ok(())
    }
}

/// Reads all rows of [`Plan::of`].
pub fn fetch(
    header: &Header,
    rows: &mut impl Rows,
    cf: &[u8],
    start: i64,
    end: i64,
    step: u64,
) -> Result<Fetched, Error> {
    let plan = Plan::of(header, cf, start, end, step)?;
    let mut found = Fetched {
        start: plan.start,
        end: plan.end,
        step: plan.step,
        names: header.ds.iter().map(|ds| ds.name().to_vec()).collect(),
        rows: vec![UNKNOWN; plan.cells(header) as usize],
    };
    plan.read(header, rows, 0, &mut found.rows)?;
    Ok(found)
}

/// The archive with the nearest step among those that reach back to the start, or else the one that covers most.
fn choose(header: &Header, cf: Cf, start: i64, end: i64, step: u64) -> Result<usize, Error> {
    let mut full: Option<(u64, usize)> = None;
    let mut part: Option<(i64, u64, usize)> = None;
    for (i, rra) in header.rra.iter().enumerate() {
        if !answers(rra, cf) {
            continue;
        }
        let rra_step = header.pdp_step * rra.pdp_cnt;
        let far = (step as i64).wrapping_sub(rra_step as i64).unsigned_abs();
        let first = aligned(header.last_up, rra_step).wrapping_sub((rra_step * rra.row_cnt) as i64);
        if first <= start {
            if full.is_none_or(|(best, _)| far < best) {
                full = Some((far, i));
            }
        } else {
            let covered = end
                .wrapping_sub(start)
                .wrapping_sub(first.wrapping_sub(start));
            let better = part.is_none_or(|(best, best_far, _)| {
                best < covered || (best == covered && far < best_far)
            });
            if better {
                part = Some((covered, far, i));
            }
        }
    }
    let chosen = full.map(|(_, i)| i).or(part.map(|(_, _, i)| i));
    chosen.ok_or_else(|| Error::new("the RRD does not contain an RRA matching the chosen CF"))
}

/// True if an archive can answer for `cf`. With one point in a row all plain functions have the same values.
fn answers(rra: &RraDef, cf: Cf) -> bool {
    let Some(own) = Cf::of(rra.cf()) else {
        return false;
    };
    own == cf || (rra.pdp_cnt == 1 && own.is_plain() && cf.is_plain())
}

/// Rounds a stamp down to a multiple of `step`.
fn aligned(stamp: i64, step: u64) -> i64 {
    stamp.wrapping_sub((stamp as u64 % step) as i64)
}

/// Stamp of the last update.
pub fn last(header: &Header) -> i64 {
    header.last_up
}

/// Stamp of the first row of an archive.
pub fn first(header: &Header, archive: i64) -> Result<i64, Error> {
    let rra = usize::try_from(archive)
        .ok()
        .and_then(|i| header.rra.get(i));
    let rra = rra.ok_or_else(|| Error::new("invalid rraindex number"))?;
    let step = header.pdp_step * rra.pdp_cnt;
    Ok(aligned(header.last_up, step).wrapping_sub(((rra.row_cnt - 1) * step) as i64))
}

/// Appends the table that `rrdtool fetch` prints.
pub fn print(fetched: &Fetched, out: &mut Vec<u8>) {
    out.extend_from_slice(b"           ");
    for name in &fetched.names {
        out.resize(out.len() + 20usize.saturating_sub(name.len()), b' ');
        out.extend_from_slice(name);
    }
    out.extend_from_slice(b"\n\n");
    let mut stamp = fetched.start as u64;
    for row in fetched.rows.chunks_exact(fetched.names.len().max(1)) {
        stamp = stamp.wrapping_add(fetched.step);
        put_unsigned(out, stamp, 10);
        out.push(b':');
        for &cell in row {
            out.push(b' ');
            put_exp(out, cell, 10);
        }
        out.push(b'\n');
    }
}
