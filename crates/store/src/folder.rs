//! The folder of a store: its owner, its locks, its files that requests must not touch, and listings of the folders of .rrd
//! files.

pub(crate) mod claim;
pub(crate) mod fence;
pub(crate) mod listings;
pub(crate) mod owner;
pub(crate) mod read_only;
