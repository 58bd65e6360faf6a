//! The cost of samples that are pushed and of PromQL: the rows, one in each file, beside Debian's Prometheus and
//! victoria-metrics. All get the same samples by remote write 1.0, and are asked by the same requests on one connection.

mod client;
mod engine;
mod fleet;
mod forward;
mod label;
mod own;
mod push;
mod rate;
mod sink;

use crate::row::Table;

/// The table of the costs of questions.
pub(crate) const QUERY: Table = Table {
    part: "What questions cost",
    rows: &[
        &push::ROW,
        &rate::ROW,
        &own::ROW,
        &label::ROW,
        &forward::ROW,
    ],
};
