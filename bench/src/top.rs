//! The cost of `kymo top` and `kymo why`: the rows, one in each file, beside Debian's atop.

mod hosts;
mod live;
mod replay;
mod step;
mod why;

use crate::row::Table;

/// The table of the costs of looking.
pub(crate) const TOP: Table = Table {
    part: "What looking costs",
    rows: &[&why::ROW, &step::ROW, &live::ROW, &replay::ROW, &hosts::ROW],
};
