//! The cost of a hub that hundreds of collectds send to: the rows, one in each file, beside a real collectd with its
//! network and rrdtool plugins. One generator sends the same to both, by UDP on loopback, no faster than they can
//! receive: a datagram dropped by the kernel fails a row.

mod backup;
mod beside;
mod contender;
pub(crate) mod fleet;
mod intake;
mod memory;
mod new;
mod oracle;
pub(crate) mod pace;
mod rate;
mod real;
mod select;

use crate::row::Table;

/// The table of the hub's costs.
pub(crate) const HUB: Table = Table {
    part: "What a hub costs",
    rows: &[
        &intake::ROW,
        &new::ROW,
        &rate::ROW,
        &real::ROW,
        &memory::ROW,
        &beside::ROW,
        &select::ROW,
        &backup::ROW,
    ],
};

/// The 290 hosts of 70 values.
const SERIES: usize = 290 * fleet::VALUES_A_HOST;
/// Whole hosts for rows with 20,500 series.
const SERIES_OF_THE_CASE: usize = 293 * fleet::VALUES_A_HOST;
/// Series of a quick row.
const SERIES_QUICK: usize = 10 * fleet::VALUES_A_HOST;
