//! What keeping round-robin archives costs, beside stock's rrdtool and rrdcached: the rows, one file each.

mod batch;
mod create;
mod durable;
mod requests;
mod update;
mod values;

use crate::row::Table;

/// What keeping round-robin archives costs.
pub(crate) const CACHING: Table = Table {
    part: "What round-robin archives cost",
    rows: &[
        &update::ROW,
        &batch::ROW,
        &requests::ROW,
        &durable::ROW,
        &values::ROW,
        &create::ROW,
    ],
};
