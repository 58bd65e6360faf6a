//! What the rows of `kymo-bench rrdcached` and `kymo-bench drum` share: stock's daemon and ours, each on an ext4 of its
//! own, their files, one client for both, and what they used.

pub(crate) mod cost;
pub(crate) mod files;
pub(crate) mod side;
pub(crate) mod wire;

use crate::figures::{median, significant, spread};

/// `stock 22.1 us [21.8-23.0]`
pub(crate) fn tell(name: &str, unit: &str, values: &[f64]) -> String {
    let (low, high) = spread(values);
    let [middle, low, high] = [median(values), low, high].map(significant);
    format!("{name} {middle} {unit} [{low}-{high}]")
}
