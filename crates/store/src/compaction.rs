//! Compaction: merges blocks and leaves out their dead content.

pub(crate) mod dead;
pub(crate) mod merge;
mod points;
pub(crate) mod rewrite;
pub(crate) mod row_runs;
pub(crate) mod size_limit;
#[cfg(test)]
mod tests;
