//! Limits of a file's cells and rows in progress in memory.

use crate::error::Error;
use crate::header::{Header, MEMORY_CELLS_MAX, PREPARATIONS_MAX};

/// Rejects a file beyond the limits of memory or arithmetic.
pub(crate) fn require_room(header: &Header) -> Result<(), Error> {
    let ds_cnt = header.ds.len() as u64;
    let cells = header.rra.iter().try_fold(0u64, |sum, rra| {
        let seconds = header
            .pdp_step
            .checked_mul(rra.pdp_cnt)?
            .checked_mul(rra.row_cnt)?;
        let whole = 0 < seconds && seconds < 1 << 62;
        let cells = ds_cnt.checked_mul(rra.row_cnt)?;
        sum.checked_add(cells).filter(|_| whole)
    });
    let preparations = ds_cnt.saturating_mul(header.rra.len() as u64);
    if cells.is_none_or(|cells| cells > MEMORY_CELLS_MAX) || preparations > PREPARATIONS_MAX {
        return Err(no_room());
    }
    Ok(())
}

/// rrdtool's error for it.
pub(crate) fn no_room() -> Error {
    Error::new("cannot allocate memory")
}
