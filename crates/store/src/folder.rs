//! The folder of a store: its owner, its locks,
//! and its files that requests must not touch.

pub(crate) mod claim;
pub(crate) mod fence;
pub(crate) mod owner;
pub(crate) mod read_only;
