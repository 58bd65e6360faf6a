//! Formats for other programs and eyes, collectl's exports: one file each.

pub(crate) mod asked;
mod fold;
mod forest;
mod ganglia;
pub(crate) mod lines;
mod name_tables;
mod names;
pub(crate) mod proctree;
pub(crate) mod tree_asked;
pub(crate) mod vmstat;
