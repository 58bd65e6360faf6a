//! The cost of the drum, the store of `kymo rrdcached`: the rows, one in each file, beside stock's rrdcached wherever it
//! can do the same. Values come in simulated time, unless a row says otherwise.

mod batch;
mod collectd;
mod export;
mod fetch;
mod intake;
mod memory;
mod million;
mod never;
mod on_demand;
mod real;
mod requests;
mod series;
mod start;

use crate::row::Table;

/// The table of the drum's costs.
pub(crate) const DRUM: Table = Table {
    part: "What the drum costs",
    rows: &[
        &batch::ROW,
        &requests::ROW,
        &fetch::ROW,
        &memory::ROW,
        &start::ROW,
        &real::ROW,
        &collectd::ROW,
        &million::ROW,
        &on_demand::ROW,
        &export::ROW,
    ],
};
