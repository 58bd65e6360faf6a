//! Export formats, for other programs and people; one module each.

mod fold;
pub mod forest;
mod ganglia;
pub(crate) mod lines;
mod name_tables;
mod names;
pub(crate) mod proctree;
pub mod sums;
pub(crate) mod vmstat;
