//! The folder of a store: who owns it, its locks, and what no request may touch there.

pub(crate) mod claim;
pub(crate) mod fence;
pub(crate) mod owner;
pub(crate) mod read_only;
