//! Formats for other programs and eyes, collectl's exports: one file each.

pub(crate) mod asked;
pub(crate) mod lines;
mod names;
pub(crate) mod vmstat;
