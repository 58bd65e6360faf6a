//! A series of a metric, and its number in the store.

use kymo_store::PointSeries;

/// A series of a metric, and its state in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// The store was not asked for the series yet.
    #[default]
    New,
    /// The store has it.
    Known(PointSeries),
    /// Another metric has this name.
    Taken,
}
