//! Shared parts of `kymo-bench rrdcached` and `kymo-bench drum`: stock's daemon and kymo's, each on its own ext4, their
//! files, one client for both, and their use of resources.

pub(crate) mod cost;
pub(crate) mod files;
pub(crate) mod side;
pub(crate) mod wire;

use crate::figures::{median, significant, spread};

/// A median with its spread: `stock 22.1 us [21.8-23.0]`.
pub(crate) fn describe(name: &str, unit: &str, values: &[f64]) -> String {
    let (low, high) = spread(values);
    let [middle, low, high] = [median(values), low, high].map(significant);
    format!("{name} {middle} {unit} [{low}-{high}]")
}
