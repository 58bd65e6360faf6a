//! Targets of the poller: their descriptions in its files (`files.rs`), and the display of their series: MRTG's four graphs with
//! the numbers below them, the 95th percentile, and the present state. The caller asks the keeper for the rows of values.

mod bill;
mod captions;
pub mod files;
mod graph;
mod percentile;
mod recent;
mod unit;

pub use bill::{Bill, Traffic};
pub use captions::{colours, direction_name, legends};
pub use graph::{Direction, Period, TargetGraph, TargetLine};
pub use percentile::{PERCENT, Percentile};
pub use recent::Recent;
pub use unit::{TargetUnit, percent};

use kymo_wire::keeper::Rows;
pub use kymo_wire::targets::DescribedTarget;

/// Names of a target's columns: in and out.
const COLUMNS: [&[u8]; 2] = [b"ds0", b"ds1"];

/// Which columns of rows are in and out: those that MRTG has, or else the first two.
fn columns(rows: &Rows) -> [Option<usize>; 2] {
    let found = COLUMNS.map(|name| rows.columns.iter().position(|column| column == name));
    match found {
        [Some(_), Some(_)] => found,
        _ => [0, 1].map(|at| Some(at).filter(|&at| at < rows.columns.len())),
    }
}

/// A column, row after row; nothing is known of one that is not there.
fn column(rows: &Rows, cells: &[f64], column: Option<usize>) -> Vec<f64> {
    let width = rows.columns.len().max(1);
    let cells = cells.chunks_exact(width);
    cells
        .map(|row| column.map_or(f64::NAN, |at| row[at]))
        .collect()
}
