//! A series of a metric, and the store's number of it.

use kymo_store::PointSeries;

/// A series of a metric, as far as the store is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// The store was not asked for it.
    #[default]
    New,
    /// The store has it.
    Known(PointSeries),
    /// Another metric has its name.
    Taken,
}
