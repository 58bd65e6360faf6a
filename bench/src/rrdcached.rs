//! The cost of keeping round-robin archives, beside stock's
//! rrdtool and rrdcached: the rows, one in each file.

mod batch;
mod create;
mod durable;
mod requests;
mod update;
mod values;

use crate::row::Table;

/// The table of the costs of round-robin archives.
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
