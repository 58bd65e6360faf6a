//! The definition of an archive, or of a tier.

/// The shape of one archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Archive {
    pub(crate) row_cnt: u64,
    /// Seconds of a row.
    pub(crate) step: u64,
    /// Index of its first cell.
    pub(crate) base: u64,
    /// True for rows that are state and change in place.
    pub(crate) seasonal: bool,
}
