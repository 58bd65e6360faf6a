//! State of names that are new to the store, shared by all sockets: waiting names, and budgets for new series.

use super::budgets::SeriesBudgets;
use super::probation::Probation;

/// Waiting names and budgets.
#[derive(Default)]
pub(super) struct NewNames {
    pub probation: Probation,
    pub budgets: SeriesBudgets,
    /// Buffer for the path of a name.
    pub path: Vec<u8>,
}
