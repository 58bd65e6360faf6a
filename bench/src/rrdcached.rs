//! What keeping round-robin archives costs, beside stock's rrdtool and rrdcached: the rows, one file each, and what
//! they share: both daemons, each on an ext4 of its own, asked by the same client.

mod batch;
mod create;
mod durable;
mod files;
mod requests;
mod side;
mod update;
mod values;
mod wire;

use crate::figures::{median, significant, spread};
use crate::row::Table;

/// What keeping round-robin archives costs.
pub const CACHING: Table = Table {
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

/// `stock 22.1 us [21.8-23.0]`
fn tell(name: &str, unit: &str, values: &[f64]) -> String {
    let (low, high) = spread(values);
    let [middle, low, high] = [median(values), low, high].map(significant);
    format!("{name} {middle} {unit} [{low}-{high}]")
}
