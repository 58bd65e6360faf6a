//! The cost of serving: the rows of the server's cost table, one in each file, in the table's order,
//! and their shared parts: kymo as a server, a browser, a ring, requests.

mod browser;
mod cursor;
mod day;
mod first_view;
mod idle;
mod peers;
mod request;
mod rings;
mod served;
mod start;
mod watch;
mod weight;

pub(crate) use request::{free_port, number};
pub(crate) use rings::forget;

use crate::row::Table;

/// The table of serving's costs.
pub(crate) const SERVING: Table = Table {
    part: "What serving costs",
    rows: &[
        &idle::ROW,
        &peers::ROW,
        &start::ROW,
        &cursor::ROW,
        &day::ROW,
        &first_view::ROW,
        &weight::ROW,
    ],
};
