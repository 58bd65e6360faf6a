//! Compaction: blocks are written together, without what is dead.

pub(crate) mod dead;
pub(crate) mod merge;
pub(crate) mod rewrite;
pub(crate) mod row_runs;
pub(crate) mod size_limit;
