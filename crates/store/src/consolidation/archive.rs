//! The definition of an archive, or of a tier.

/// One archive as far as rows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Archive {
    pub(crate) row_cnt: u64,
    /// Seconds a row.
    pub(crate) step: u64,
    /// Its first cell.
    pub(crate) base: u64,
    /// Its rows are state: updates change them in place.
    pub(crate) seasonal: bool,
}
